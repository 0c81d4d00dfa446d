-- A result that nobody waits for any more is kept, newest first, and told of.
local LATE_KEPT, LATE_SECONDS = 20, 7776000
local function park_result(t, result)
  local late = key.lateResults(t.task)
  redis.call('LPUSH', late, result)
  redis.call('LTRIM', late, 0, LATE_KEPT - 1)
  redis.call('EXPIRE', late, LATE_SECONDS)
  -- At no station: the task has not moved, and whoever comes late is not its agent.
  say('late_result', t, args.agent, '{"status":"' .. t.status .. '","holder":"' .. t.agent .. '"}', '')
  return { 'LATE', t.status, t.agent }
end
