-- Submit a task, or one that was edited once more: its preview and its risk are written down, and it passes, or people are asked.
--   args.task, args.by
--   args.version     of the content that was looked at; another one means that it was edited meanwhile
--   args.hash        of that content
--   args.preview     JSON
--   args.risk        names and values
--   args.outcome     pass, ask, wait (nobody can be asked), or refuse (its preview has errors)
--   args.because     why that is the outcome
--   args.needs       JSON of what each policy asks for
--   args.questions   list of: to, name, chain (JSON)
--   args.priority, args.risk_score, args.policies     of each question
--   args.span_us, args.remind     how long people have, and when to remind them
-- Outcomes: SUBMITTED (it waits) · APPROVED · REVIEWING request… · REJECTED · STATE state · CHANGED version · UNKNOWN
-- @include _questions.lua

local t = load(args.task)
if not t then return { 'UNKNOWN' } end
local state = redis.call('GET', key.taskState(t.ade))
if state ~= 'DRAFT' and state ~= 'SUBMITTED' then return { 'STATE', state or '' } end
local version = redis.call('HGET', key.taskConfig(t.ade), 'version')
if version ~= args.version then return { 'CHANGED', version or '' } end

local risk, stats, votes = key.taskRisk(t.ade), key.taskApprovalStats(t.ade), key.approvalVotes(t.ade)
redis.call('HSET', key.taskConfig(t.ade), 'config_hash', args.hash)
redis.call('SET', key.taskPreview(t.ade), args.preview, 'EX', PREVIEW_SECONDS)
redis.call('DEL', risk, votes)
redis.call('HSET', risk, 'assessed_at', now_text, unpack(args.risk))
redis.call('EXPIRE', risk, LIFE_SECONDS)
redis.call('HSET', stats, 'needs', args.needs, 'sealed', redis.sha1hex(redis.call('GET', key.taskData(t.ade)) or ''),
  'required_count', 0, 'approved_count', 0, 'rejected_count', 0, 'pending_count', #args.questions, 'quorum_reached', 'false',
  'because', args.because, 'policies', args.policies)
redis.call('EXPIRE', stats, LIFE_SECONDS)
if state == 'DRAFT' then move(t, 'DRAFT', 'SUBMITTED') end
redis.call('HSET', key.taskMetadata(t.ade), 'submitted_by', args.by)

local function record(action, to)
  audit(now_text, action, 'task:' .. t.ade, state, to, 'config_hash', args.hash, 'policy_version', args.policies, 'detail',
    '{"because":' .. quoted(args.because) .. '}')
end

if args.outcome == 'refuse' then
  record('refuse', 'REJECTED')
  reject(t, 'SUBMITTED', args.because, args.by)
  write_progress()
  return { 'REJECTED' }
end
if args.outcome == 'pass' then
  redis.call('HSET', votes, 'system', '{"action":"approve","hash":"' .. args.hash .. '","at":"' .. now_text .. '","policies":' .. args.policies .. '}')
  redis.call('EXPIRE', votes, LIFE_SECONDS)
  redis.call('HSET', stats, 'quorum_reached', 'true')
  note(t, 'gated', '')
  record('auto_approve', 'APPROVED')
  let_pass(t, 'SUBMITTED', args.because)
  write_progress()
  return { 'APPROVED' }
end

if args.outcome == 'wait' then
  note(t, 'reason', args.because)
  if t.status ~= 'blocked' then settle(t) end
  write_progress()
  return { 'SUBMITTED' }
end

local reply, needed = { 'REVIEWING' }, 0
for _, need in ipairs(cjson.decode(args.needs)) do needed = math.max(needed, need.min) end
redis.call('HSET', stats, 'required_count', needed)
note(t, 'gated', '1', 'reason', args.because)
record('submit', 'REVIEWING')
move(t, 'SUBMITTED', 'REVIEWING')
for _, question in ipairs(args.questions) do
  question.priority, question.hash, question.version = args.priority, args.hash, args.version
  question.risk, question.policies = args.risk_score, args.policies
  reply[#reply + 1] = ask(t, question, { span_us = args.span_us, remind = args.remind })
end
if t.status ~= 'blocked' then settle(t) end
write_progress()
return reply
