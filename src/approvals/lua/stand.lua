-- Write down what people may vote as.
--   keys.standing
--   args.roles      person → JSON list
-- Outcome: 1 if it was otherwise before
local found, changed = redis.call('HGETALL', keys.standing), 0
for at = 1, #found, 2 do
  if not args.roles[found[at]] then
    redis.call('HDEL', keys.standing, found[at])
    changed = 1
  end
end
for person, roles in pairs(args.roles) do
  if redis.call('HGET', keys.standing, person) ~= roles then
    redis.call('HSET', keys.standing, person, roles)
    changed = 1
  end
end
return changed
