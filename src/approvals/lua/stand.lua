-- Write down what people may vote as. Who is not named is left alone: another daemon with a store of its own may know that one.
--   keys.standing, keys.events
--   args.roles      person → JSON list
--   args.gone       list of those who may not vote
-- Outcome: 1 if it was otherwise before
-- @include ../../redis/lua/_emit.lua
-- A picture that is drawn for the first time, or after Redis lost it, changes nobody's rights.
local others, is_first = {}, redis.call('EXISTS', keys.standing) == 0
for _, person in ipairs(args.gone) do
  if redis.call('HDEL', keys.standing, person) == 1 then others[#others + 1] = person end
end
for person, roles in pairs(args.roles) do
  if redis.call('HGET', keys.standing, person) ~= roles then
    redis.call('HSET', keys.standing, person, roles)
    others[#others + 1] = person
  end
end
if not others[1] then return 0 end
table.sort(others)
if not is_first then emit(keys.events, 'approval:rights_changed', { people = others }) end
return 1
