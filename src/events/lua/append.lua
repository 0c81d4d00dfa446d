-- Append one event to a stream, stamped with the Redis server's time.
--   keys.stream
--   args.fields    names and values, in order
-- Outcome: the id of the new entry
-- @include ../../redis/lua/_time.lua
return redis.call('XADD', keys.stream, 'MAXLEN', '~', ctx.keep, '*',
  'timestamp', iso_time(now_us()), 'source', ctx.source, unpack(args.fields))
