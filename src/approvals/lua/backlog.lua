-- Whether too much waits for answers. Its beginning and its end are told once each.
--   keys.queue, keys.backlog, keys.events
--   args.limit      from how many on; 0: never
--   args.on_call
-- Outcomes: BEGAN open · GOES_ON open · OVER open · NONE open
-- @include ../../redis/lua/_emit.lua
-- @include ../../redis/lua/_audit.lua
local open, text = redis.call('ZCARD', keys.queue), iso_time(now_us())
local known = redis.call('EXISTS', keys.backlog) == 1
if args.limit > 0 and open >= args.limit then
  if known then return { 'GOES_ON', open } end
  redis.call('HSET', keys.backlog, 'since', text, 'open', open, 'limit', args.limit)
  emit(keys.events, 'approval:backlog', { open = open, limit = args.limit, on_call = args.on_call })
  audit(text, 'backlog', 'approvals:all', '', '', 'reason', open .. ' requests are open')
  return { 'BEGAN', open }
end
-- One more or one less is no new backlog each time.
if not known or args.limit > 0 and open >= args.limit * 0.8 then return { known and 'GOES_ON' or 'NONE', open } end
redis.call('DEL', keys.backlog)
emit(keys.events, 'approval:backlog_over', { open = open, limit = args.limit })
audit(text, 'backlog_over', 'approvals:all', '', '', 'reason', open .. ' requests are open')
return { 'OVER', open }
