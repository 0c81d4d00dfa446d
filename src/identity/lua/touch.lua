-- Say that a session is in use. One that has ended meanwhile is not brought back by it.
--   keys.session
--   args.at      ISO 8601
-- Outcome: 1 if it is there
if redis.call('EXISTS', keys.session) == 0 then return 0 end
redis.call('HSET', keys.session, 'last_active', args.at)
return 1
