-- One turn of whoever looks for jobs: plan what is periodic and nowhere, move what is due from the plan to the queue of its
-- type in one step, so that a job is always in one of them, and say what is due now and when something will be.
--   keys.scheduled
--   keys.queues      one for each of const.types, in that order
--   args.periodic    JSON: by type, the member that is always in the plan or in its queue
--   args.limit       at most so many of each
-- Outcome: { now in seconds, seconds until the next or '', members that were no jobs and are dropped, { type, members }… }
-- @include ../../redis/lua/_time.lua
local seconds = now_us() / 1000000
local now = string.format('%.6f', seconds)
local refused, queue_of, next_at = {}, {}, nil

local function look_ahead(key)
  local first = redis.call('ZRANGEBYSCORE', key, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
  if first then next_at = math.min(next_at or tonumber(first), tonumber(first)) end
end

for at, name in ipairs(const.types) do
  queue_of[name] = keys.queues[at]
  local member = args.periodic[name]
  if member and not redis.call('ZSCORE', keys.scheduled, member) and not redis.call('ZSCORE', queue_of[name], member) then
    redis.call('ZADD', keys.scheduled, now, member)
  end
end
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

look_ahead(keys.scheduled)
local found = {}
for at, name in ipairs(const.types) do
  local members = redis.call('ZRANGEBYSCORE', keys.queues[at], '-inf', now, 'LIMIT', 0, args.limit)
  if #members > 0 then found[#found + 1] = { name, members } end
  look_ahead(keys.queues[at])
end
return { now, next_at and string.format('%.6f', next_at - seconds) or '', refused, found }
