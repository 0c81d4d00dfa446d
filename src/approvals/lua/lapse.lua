-- Count the votes on a task anew, while it is before people. A vote that has lost the right it was given by is none any more, and its
-- question is open again, so that whoever can answer it instead is found as for any other.
--   args.task              its id under ade:
--   args.span_us, args.remind
-- Outcome: the requests whose votes are none any more
-- @include _reopen.lua

local t = task_of(args.task)
if not t or redis.call('GET', key.taskState(t.ade)) ~= 'REVIEWING' then return {} end
local hash = redis.call('HGET', key.taskConfig(t.ade), 'config_hash')
local needs = cjson.decode(redis.call('HGET', key.taskApprovalStats(t.ade), 'needs') or '[]')

-- Whether somebody agreed by a right that is gone: needed by a policy, and good for none.
local function has_lapsed(person)
  local is_needed = false
  for _, need in ipairs(needs) do
    local wanted = {}
    for _, role in ipairs(need.roles) do wanted[#wanted + 1] = role.role end
    for _, voter in ipairs(need.voters) do
      if voter == person then
        if still_counts(need, person, wanted[1] and wanted or REVIEWERS) then return false end
        is_needed = true
      end
    end
  end
  return is_needed
end

local lapsed = {}
for person in pairs((votes_on(t.ade, hash))) do
  if has_lapsed(person) then lapsed[#lapsed + 1] = person end
end
table.sort(lapsed)

local reopened = {}
for at, person in ipairs(lapsed) do
  local id = cjson.decode(redis.call('HGET', key.approvalVotes(t.ade), person)).request
  local why = person .. ' agreed, and has no right to any more'
  redis.call('HDEL', key.approvalVotes(t.ade), person)
  reopen(t, id, needs)
  tell('approval', 'approval:lapsed', '{"approval_id":"' .. id .. '","task_id":"' .. t.ade .. '","reviewer":"' .. person .. '","because":'
    .. quoted(why) .. '}')
  audit(now_text, 'lapse', 'approval:' .. id, 'REVIEWING', 'REVIEWING', 'task', t.ade, 'config_hash', hash, 'reason', why)
  reopened[at] = id
end
if reopened[1] then write_stats(t, needs, hash) end
return reopened
