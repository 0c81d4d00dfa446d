-- Asking again what was answered already, because the answer is none any more.
--   args.span_us, args.remind
-- @include _answers.lua

-- Whether this person's vote would still count for anything.
local function is_voter(needs, person)
  for _, need in ipairs(needs) do
    for _, voter in ipairs(need.voters) do
      if voter == person then return true end
    end
  end
  return false
end

local function ask_again(id)
  local request = key.approvalRequest(id)
  local v = redis.call('HMGET', request, 'reviewer_id', 'risk', 'priority')
  redis.call('HSET', request, 'status', 'PENDING')
  redis.call('HDEL', request, 'response_action', 'response_reason', 'responded_at', 'reviewed_by', 'follows')
  open_question(id, v[1], tonumber(v[2]), v[3], { span_us = args.span_us, remind = args.remind })
end

-- The question is open again. What was implied by its answer goes with it: those who followed are asked again, too, unless somebody
-- asked them meanwhile.
local function reopen(t, id, needs)
  ask_again(id)
  for _, other in ipairs(redis.call('SMEMBERS', key.approvalIndex(t.ade))) do
    local f = redis.call('HMGET', key.approvalRequest(other), 'follows', 'reviewer_id')
    if f[1] == id and is_voter(needs, f[2]) and not is_asked(t, f[2]) then ask_again(other) end
  end
end
