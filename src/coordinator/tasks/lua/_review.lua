-- What people were asked about a task and what they said: counted anew wherever it matters, never believed from a counter.
-- @include _ready.lua

local function tell(stream, event, payload)
  redis.call('XADD', key.events(stream), 'MAXLEN', '~', ctx.keep, '*', 'event', event, 'timestamp', now_text, 'payload', payload,
    'source', ctx.source)
end

-- Who agreed to exactly this content, how many, and how many refused it.
local function votes_on(ade, hash)
  local agreed, approvals, refusals = {}, 0, 0
  local votes = redis.call('HGETALL', key.approvalVotes(ade))
  for at = 1, #votes, 2 do
    local vote = cjson.decode(votes[at + 1])
    if vote.hash == hash and vote.action == 'approve' then
      agreed[votes[at]] = true
      approvals = approvals + 1
    elseif vote.hash == hash and vote.action == 'reject' then
      refusals = refusals + 1
    end
  end
  return agreed, approvals, refusals
end

-- What a person may vote as, at this moment; nil for one who is not here any more.
local roles_known = {}
local function roles_of(person)
  if roles_known[person] == nil then
    local text, roles = redis.call('HGET', key.approvalStanding(), person), nil
    if text then
      roles = {}
      for _, role in ipairs(cjson.decode(text)) do roles[role] = true end
    end
    roles_known[person] = roles or false
  end
  return roles_known[person] or nil
end

-- Whether a vote still has the right it was cast by: a person's own role, that of those in whose place it was cast, or, for one
-- who was asked because others could not answer, that of any reviewer.
local REVIEWERS = { 'reviewer', 'admin' }
local function still_counts(need, person, roles)
  if not roles_of(person) then return false end
  local principals = need.by and need.by[person] or { person }
  for _, one in ipairs(need.stand_ins or {}) do
    if one == person then principals, roles = { person }, REVIEWERS end
  end
  for _, principal in ipairs(principals) do
    local has = roles_of(principal)
    for _, role in ipairs(roles) do
      if has and has[role] then return true end
    end
  end
  return false
end

-- Each policy has its own quorum of distinct people, and each role it asks for is among them. Nothing asked is nothing met.
local function quorum_reached(needs, agreed)
  for _, need in ipairs(needs) do
    local found, wanted = 0, {}
    for _, role in ipairs(need.roles) do wanted[#wanted + 1] = role.role end
    for _, person in ipairs(need.voters) do
      if agreed[person] and still_counts(need, person, wanted[1] and wanted or REVIEWERS) then found = found + 1 end
    end
    if found < need.min then return false end
    for _, role in ipairs(need.roles) do
      local covered = false
      for _, person in ipairs(role.voters) do covered = covered or agreed[person] and still_counts(need, person, { role.role }) end
      if not covered then return false end
    end
  end
  return #needs > 0
end

-- Whether what people agreed to is what would be handed out now, to the byte, and enough of them did.
local function may_apply(t)
  local said = redis.call('HMGET', key.taskApprovalStats(t.ade), 'needs', 'sealed', 'override_hash')
  local hash = redis.call('HGET', key.taskConfig(t.ade), 'config_hash')
  if not said[1] or not hash or said[2] ~= redis.sha1hex(redis.call('GET', key.taskData(t.ade)) or '') then return false end
  if said[3] == hash then return true end
  return quorum_reached(cjson.decode(said[1]), (votes_on(t.ade, hash)))
end

-- Ends every question about a task that nobody has answered yet. Those who were asked learn who ended it.
local function close_requests(t, status, by, why)
  for _, id in ipairs(redis.call('SMEMBERS', key.approvalIndex(t.ade))) do
    local request = key.approvalRequest(id)
    local found = redis.call('HMGET', request, 'status', 'reviewer_id')
    if found[1] == 'PENDING' then
      redis.call('HSET', request, 'status', status, 'responded_at', now_text, 'reviewed_by', by, 'response_reason', why)
      redis.call('ZREM', key.userApprovalQueue(found[2]), id)
      redis.call('ZREM', key.approvalQueue(), id)
      redis.call('HSET', key.userApprovalStats(found[2]), 'pending_count', redis.call('ZCARD', key.userApprovalQueue(found[2])))
      tell('approval', 'approval:resolved', '{"approval_id":"' .. id .. '","task_id":"' .. t.ade .. '","reviewer":"' .. found[2]
        .. '","by":' .. quoted(by) .. ',"because":' .. quoted(why) .. '}')
    end
  end
  redis.call('HSET', key.taskApprovalStats(t.ade), 'pending_count', 0)
end

-- Votes on other content are no votes on this.
local function void_votes(t, by, why)
  close_requests(t, 'SUPERSEDED', by, why)
  redis.call('DEL', key.approvalVotes(t.ade))
  redis.call('HSET', key.taskApprovalStats(t.ade), 'approved_count', 0, 'rejected_count', 0, 'quorum_reached', 'false')
  redis.call('HDEL', key.taskApprovalStats(t.ade), 'override_hash', 'needs', 'sealed')
  note(t, 'gated', '')
  t.gated = ''
end
