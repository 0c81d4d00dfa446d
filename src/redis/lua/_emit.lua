-- Appends an event in the same atomic step as the change it tells of, in the form of its stream.
-- @include _time.lua

-- ade:events:*: event, timestamp, payload, source.
-- cjson keeps 14 digits of a number: tokens and microseconds go into a payload as text, string.format('%.0f', n).
local function emit(stream, event, payload)
  return redis.call('XADD', stream, 'MAXLEN', '~', ctx.keep, '*',
    'event', event, 'timestamp', iso_time(now_us()), 'payload', cjson.encode(payload), 'source', ctx.source)
end
