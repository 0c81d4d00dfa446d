-- Move what is due from the plan to the queue of its type, in one step: a job is always in one of them.
--   keys.scheduled
--   keys.queues    one for each of const.types, in that order
--   args.limit     at most so many
-- Outcome: members that are no jobs; they are dropped
-- @include ../../redis/lua/_time.lua
local now = string.format('%.6f', now_us() / 1000000)
local refused = {}
local queue_of = {}
for at, name in ipairs(const.types) do queue_of[name] = keys.queues[at] end
local due = redis.call('ZRANGEBYSCORE', keys.scheduled, '-inf', now, 'WITHSCORES', 'LIMIT', 0, args.limit)
for at = 1, #due, 2 do
  local read, job = pcall(cjson.decode, due[at])
  local queue = read and type(job) == 'table' and queue_of[job.type]
  if queue then
    redis.call('ZADD', queue, 'NX', due[at + 1], due[at])
  else
    refused[#refused + 1] = due[at]
  end
  redis.call('ZREM', keys.scheduled, due[at])
end
return refused
