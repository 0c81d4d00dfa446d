-- End a session, and audit it.
--   keys.session, keys.index
--   args.session, args.user
-- Outcome: 1 if it was there
-- @include ../../redis/lua/_time.lua
-- @include ../../redis/lua/_audit.lua
redis.call('SREM', keys.index, args.session)
if redis.call('DEL', keys.session) == 0 then return 0 end
audit(iso_time(now_us()), 'session.end', 'session:' .. args.session, 'active', 'ended', 'detail', cjson.encode({ user = args.user }))
return 1
