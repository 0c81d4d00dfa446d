-- Set a live setting or flag, or take it back to its default, and tell of it.
--   keys.setting   ade:config:… or ade:feature:…
--   keys.events    the stream of the system
--   args.value     the new text; empty removes the key
--   args.event     config:changed or flag:changed
--   args.payload   what the event says; the value before is added as `from`
-- Outcome: the text before, empty if there was none
-- @include ../../redis/lua/_emit.lua
local before = redis.call('GET', keys.setting) or ''
if args.value == '' then
  redis.call('DEL', keys.setting)
else
  redis.call('SET', keys.setting, args.value)
end
local payload = args.payload
payload.from = before
emit(keys.events, args.event, payload)
return before
