-- What every script that touches a lock needs: numbers as text, its fence, and a way to tell of it. Whoever includes this
-- has set now, now_text, whole, publish (the command) and, on one server, the stream.
local function whole_number(n)
  return string.format('%.0f', n)
end

local function seconds(us)
  return string.format('%.6f', us / 1000000)
end

local function read_fence(item)
  local fence = redis.call('HMGET', item.fence, 'token', 'state', 'last_lock_id', 'last_released', 'last_holder', 'sharing')
  item.token, item.state = tonumber(fence[1]) or 0, fence[2]
  item.last_lock_id, item.last_released, item.last_holder, item.sharing = fence[3], fence[4], fence[5], fence[6]
end

-- Says on the lock's channel and in the event stream what happened. Nobody may rely on the channel: it is a hint.
-- In a cluster the stream is elsewhere: what it should be told travels with the answer.
local told = {}
local function tell(item, word, agent, facts)
  redis.call(publish, item.channel, word == 'expired' and word or word .. ':' .. agent)
  if not whole then
    told[#told + 1], told[#told + 2] = 'lock:' .. word, '{"agent_id":"' .. agent .. (facts or '"}')
    return
  end
  local name = string.sub(item.lock, 10)
  if item.kind == 'a' then name = string.gsub(name, ':capacity$', '') end
  redis.call('XADD', stream, 'MAXLEN', '~', ctx.keep, '*', 'event', 'lock:' .. word, 'timestamp', now_text,
    'payload', '{"lock":"' .. name .. '","agent_id":"' .. agent .. (facts or '"}'), 'source', ctx.source)
end

local function with_told(reply)
  return whole and reply or { reply, told }
end
