-- What may be said to a question, and what follows from it. Everything is looked at before anything is written, so that
-- several answers are given together or not at all.
--   args.by     who answers
-- @include _questions.lua

-- The same id in another case is the same person.
local function same_person(a, b)
  return a and string.lower(a) == string.lower(b) or false
end

-- The task of a request, in this project; nil if it is another's.
local function task_of(ade)
  if string.sub(ade, 1, #args.head) ~= args.head then return nil end
  return load(string.sub(ade, #args.head + 1))
end

local function is_maker(ade, person)
  local made = redis.call('HMGET', key.taskMetadata(ade), 'author_id', 'editor_id', 'submitted_by')
  return same_person(made[1], person) or same_person(made[2], person) or same_person(made[3], person)
end

-- Whether this person has a question about the task, or a vote on it. An answer from before it was asked anew is neither.
local function is_asked(t, person)
  if redis.call('HEXISTS', key.approvalVotes(t.ade), person) == 1 then return true end
  for _, id in ipairs(redis.call('SMEMBERS', key.approvalIndex(t.ade))) do
    local other = redis.call('HMGET', key.approvalRequest(id), 'status', 'reviewer_id')
    if other[1] == 'PENDING' and same_person(other[2], person) then return true end
  end
  return false
end

-- Reads a question. Answers with what stands against this answer to it, as the call answers, or nil and all that is known.
local function look(answer)
  local v = redis.call('HMGET', key.approvalRequest(answer.approval), 'task_id', 'reviewer_id', 'status', 'config_hash', 'due_us',
    'escalates', 'asked_us', 'response_action', 'reviewed_by', 'delegated_to')
  local t = v[1] and task_of(v[1])
  if not t then return { 'UNKNOWN' } end
  local q = { id = answer.approval, t = t, reviewer = v[2], status = v[3], hash = v[4], due_us = tonumber(v[5]), asked_us = tonumber(v[7]) }
  if not same_person(q.reviewer, args.by) then return { 'NOT_ASSIGNED', q.reviewer } end
  if q.status == 'SUPERSEDED' then return { 'SUPERSEDED', v[9] or '' } end
  if q.status == 'EXPIRED' then return { 'EXPIRED', iso_time(q.due_us), v[10] or '' } end
  if q.status ~= 'PENDING' then
    if same_person(v[9], args.by) and v[8] == answer.action then return { 'SAME', redis.call('GET', key.taskState(t.ade)) or '' } end
    return { 'ANSWERED', q.status, v[9] or '' }
  end
  local state = redis.call('GET', key.taskState(t.ade)) or ''
  if state ~= 'REVIEWING' then return { 'STATE', state } end
  if is_maker(t.ade, args.by) then return { 'OWN' } end
  local current = redis.call('HGET', key.taskConfig(t.ade), 'config_hash')
  if current ~= q.hash or answer.hash ~= '' and answer.hash ~= current then return { 'STALE', current or '' } end
  if v[6] == '1' and now >= q.due_us then return { 'EXPIRED', iso_time(q.due_us), '' } end
  if redis.call('HEXISTS', key.approvalVotes(t.ade), q.reviewer) == 1 then return { 'VOTED' } end
  return nil, q
end

local STATUS = { approve = 'APPROVED', reject = 'REJECTED', request_changes = 'REJECTED' }
local DID = { approve = 'approval:approved', reject = 'approval:rejected', request_changes = 'approval:changes_requested' }

local function count_answer(person, action, asked_us)
  local today = string.sub(now_text, 1, 10)
  local stats, day = key.userApprovalStats(person), key.userApprovalDay(person, today)
  redis.call('HINCRBY', day, action == 'approve' and 'approved' or 'rejected', 1)
  redis.call('EXPIRE', day, DAY_SECONDS)
  local answers = redis.call('HINCRBY', stats, 'answers', 1)
  local total = redis.call('HINCRBYFLOAT', stats, 'answer_seconds', string.format('%.3f', (now - asked_us) / 1000000))
  local counts = redis.call('HMGET', day, 'approved', 'rejected')
  redis.call('HSET', stats, 'avg_response_time', string.format('%.3f', tonumber(total) / answers), 'last_action_at', now_text,
    'approved_today', counts[1] or 0, 'rejected_today', counts[2] or 0, 'day', today)
end

-- The open question that this person was asked in person: one that came from somebody else is not theirs to let go.
local function own_question(t, person)
  for _, id in ipairs(redis.call('SMEMBERS', key.approvalIndex(t.ade))) do
    local v = redis.call('HMGET', key.approvalRequest(id), 'status', 'reviewer_id', 'delegation_chain')
    if v[1] == 'PENDING' and same_person(v[2], person) and #cjson.decode(v[3]) < 2 then return id, v[2] end
  end
  return nil
end

-- Whether those who agreed and those who are still asked would be enough without this person.
local function enough_without(t, needs, hash, person)
  local able = votes_on(t.ade, hash)
  for _, id in ipairs(redis.call('SMEMBERS', key.approvalIndex(t.ade))) do
    local v = redis.call('HMGET', key.approvalRequest(id), 'status', 'reviewer_id')
    if v[1] == 'PENDING' and not same_person(v[2], person) then able[v[2]] = true end
  end
  return quorum_reached(needs, able)
end

-- Those who follow the one who just approved have nothing more to say: their questions end with it, and count for nothing. One
-- whose own word is still needed for the quorum is left to say it.
local function end_followers(q, followers, needs)
  local t = q.t
  for _, follower in ipairs(followers) do
    local id, person = own_question(t, follower)
    if id and not is_maker(t.ade, person) and enough_without(t, needs, q.hash, person) then
      local why = 'follows ' .. q.reviewer
      redis.call('HSET', key.approvalRequest(id), 'status', 'APPROVED', 'responded_at', now_text, 'response_action', 'approve',
        'reviewed_by', q.reviewer, 'response_reason', why, 'follows', q.id)
      close_question(id, person)
      tell('approval', 'approval:resolved', '{"approval_id":"' .. id .. '","task_id":"' .. t.ade .. '","reviewer":"' .. person
        .. '","by":' .. quoted(q.reviewer) .. ',"because":' .. quoted(why) .. ',"follows":"' .. q.id .. '"}')
      audit(now_text, 'follow', 'approval:' .. id, 'REVIEWING', 'REVIEWING', 'task', t.ade, 'config_hash', q.hash, 'reason', why, 'detail',
        '{"follows":"' .. q.id .. '","counts":false}')
    end
  end
end

-- Writes an answer that look() had nothing against. Answers with where the task stands since.
local function give(q, answer)
  local t, by, action = q.t, q.reviewer, answer.action
  redis.call('HSET', key.approvalRequest(q.id), 'status', STATUS[action], 'responded_at', now_text, 'response_action', action,
    'response_reason', answer.reason, 'reviewed_by', by)
  close_question(q.id, by)
  count_answer(by, action, q.asked_us)
  local votes = key.approvalVotes(t.ade)
  redis.call('HSET', votes, by, '{"action":"' .. action .. '","hash":"' .. q.hash .. '","request":"' .. q.id .. '","at":"' .. now_text .. '"}')
  redis.call('EXPIRE', votes, LIFE_SECONDS)
  tell('approval', DID[action], '{"approval_id":"' .. q.id .. '","task_id":"' .. t.ade .. '","reviewer":"' .. by .. '","reason":'
    .. quoted(answer.reason) .. '}')
  local to = action == 'reject' and 'REJECTED' or action == 'request_changes' and 'DRAFT' or 'REVIEWING'
  if action == 'approve' then
    local needs = cjson.decode(redis.call('HGET', key.taskApprovalStats(t.ade), 'needs') or '[]')
    end_followers(q, answer.followers, needs)
    if write_stats(t, needs, q.hash) then to = 'APPROVED' end
  end
  audit(now_text, action, 'approval:' .. q.id, 'REVIEWING', to, 'task', t.ade, 'config_hash', q.hash, 'reason', answer.reason, 'detail', answer.detail)
  if to == 'APPROVED' then
    close_requests(t, 'SUPERSEDED', by, 'enough people agreed')
    let_pass(t, 'REVIEWING', 'enough people agreed')
  elseif to == 'REJECTED' then
    write_stats(t, {}, q.hash)
    reject(t, 'REVIEWING', answer.reason, by)
  elseif to == 'DRAFT' then
    void_votes(t, by, 'changes were asked for')
    note(t, 'reason', 'changes were asked for: ' .. answer.reason)
    move(t, 'REVIEWING', 'DRAFT')
  end
  return to
end
