-- Plain clients may have put anything at a public name. What is of another type there gives way, and is told of: it must
-- not end a change half-way. Costs nothing where all is well.
local public
public = function(command, name, ...)
  local answer = redis.pcall(command, name, ...)
  if type(answer) ~= 'table' or not answer.err then return answer end
  if not string.find(answer.err, 'WRONGTYPE', 1, true) then error(answer.err) end
  redis.call('DEL', name)
  public('XADD', key.coordinationEvents(), 'MAXLEN', '~', ctx.keep, '*', 'event_type', 'drift_found', 'timestamp', now_text,
    'source', ctx.source, 'payload', '{"key":' .. cjson.encode(name) .. ',"problem":"it was of another type, and gave way"}')
  return redis.call(command, name, ...)
end
