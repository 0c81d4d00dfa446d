-- How long the lifecycle of a task is kept: this long after it moved last, and for as long as it has not ended.
local LIFE = 7776000

-- All of it lives on together: the evidence no shorter than what it let pass. Once in a step is enough, however often it moves in that.
local lives_on = {}
local function live_on(ade)
  if lives_on[ade] then return end
  lives_on[ade] = true
  for _, name in ipairs({ key.taskState(ade), key.taskData(ade), key.taskConfig(ade), key.taskMetadata(ade), key.taskExecution(ade),
    key.taskRisk(ade), key.approvalIndex(ade), key.approvalVotes(ade), key.taskComments(ade), key.taskApprovalStats(ade) }) do
    redis.call('EXPIRE', name, LIFE)
  end
  for _, id in ipairs(redis.call('SMEMBERS', key.approvalIndex(ade))) do redis.call('EXPIRE', key.approvalRequest(id), LIFE) end
end
