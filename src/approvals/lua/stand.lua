-- Write down what people may vote as. Who is not named is left alone: another daemon with a store of its own may know that one.
--   keys.standing
--   args.roles      person → JSON list
--   args.gone       list of those who may not vote
-- Outcome: 1 if it was otherwise before
local changed = 0
for _, person in ipairs(args.gone) do
  if redis.call('HDEL', keys.standing, person) == 1 then changed = 1 end
end
for person, roles in pairs(args.roles) do
  if redis.call('HGET', keys.standing, person) ~= roles then
    redis.call('HSET', keys.standing, person, roles)
    changed = 1
  end
end
return changed
