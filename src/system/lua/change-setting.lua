-- Set a live setting or flag, or take it back to its default, tell of it, and audit it.
--   keys.setting   ade:config:… or ade:feature:…
--   keys.events    the stream of the system
--   args.value     the new text; empty removes the key
--   args.event     config:changed or flag:changed
--   args.payload   what the event says; the value before is added as `from`
-- Outcome: the text before, empty if there was none
-- @include ../../redis/lua/_emit.lua
-- @include ../../redis/lua/_audit.lua
local before = redis.call('GET', keys.setting) or ''
if args.value == '' then
  redis.call('DEL', keys.setting)
else
  redis.call('SET', keys.setting, args.value)
end
local payload = args.payload
payload.from = before
emit(keys.events, args.event, payload)
-- config:changed is of config:NAME, flag:changed of flag:NAME.
local kind = string.match(args.event, '^%a+')
audit(iso_time(now_us()), kind .. '.set', kind .. ':' .. payload.name, before, args.value)
return before
