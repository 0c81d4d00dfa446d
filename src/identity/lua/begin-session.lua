-- Begin a session, and audit it.
--   keys.session, keys.index
--   args.session, args.user
--   args.fields          of the session's hash
--   args.seconds         how long it lives
--   args.index_seconds   how long the index of its user lives from here on
-- @include ../../redis/lua/_time.lua
-- @include ../../redis/lua/_audit.lua
for name, value in pairs(args.fields) do redis.call('HSET', keys.session, name, value) end
redis.call('EXPIRE', keys.session, args.seconds)
redis.call('SADD', keys.index, args.session)
redis.call('EXPIRE', keys.index, args.index_seconds)
audit(iso_time(now_us()), 'session.begin', 'session:' .. args.session, '', 'active', 'detail', cjson.encode({ user = args.user }))
return 1
