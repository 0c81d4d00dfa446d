-- What takes two admins: the first asks, with a reason and a ticket; the second says the same of the same content within the time.
--   args.by, args.reason, args.ticket
--   args.hash      of what was looked at
--   args.policy    the policy it is about; empty: all of them
--   args.life_us   how long the second one has
-- @include _answers.lua

-- Answers with what the call is to answer, or with nil and what the first one said: by, reason, ticket.
local function agreed(t, state)
  local override = key.taskOverride(t.ade)
  local v = redis.call('HMGET', override, 'by', 'hash', 'expires_us', 'reason', 'ticket', 'policy')
  local holds = v[1] and v[2] == args.hash and (v[6] or '') == args.policy and now < tonumber(v[3])
  if not holds then
    redis.call('DEL', override)
    redis.call('HSET', override, 'by', args.by, 'hash', args.hash, 'expires_us', whole_number(now + args.life_us), 'reason', args.reason,
      'ticket', args.ticket, 'at', now_text, 'policy', args.policy)
    redis.call('PEXPIRE', override, math.ceil(args.life_us / 1000))
    tell('task', 'task:override_asked', '{"task_id":"' .. t.ade .. '","by":' .. quoted(args.by) .. ',"reason":' .. quoted(args.reason)
      .. ',"ticket":' .. quoted(args.ticket) .. ',"policy":' .. quoted(args.policy) .. '}')
    audit(now_text, 'override_ask', 'task:' .. t.ade, state, state, 'config_hash', args.hash, 'reason', args.reason, 'ticket', args.ticket)
    return { 'WAITING', iso_time(now + args.life_us) }
  end
  if same_person(v[1], args.by) then return { 'SAME_PERSON' } end
  if is_maker(t.ade, args.by) then return { 'OWN' } end
  redis.call('DEL', override)
  return nil, { by = v[1], reason = v[4], ticket = v[5] }
end
