-- Answer questions: all of them, or none if anything stands against one of them.
--   args.by         who answers
--   args.answers    list of: approval, action (approve, reject, request_changes), reason, hash (of what was seen; empty: as it is),
--                    detail (JSON for the audit; may be empty), followers (list of those who go along with an approval)
--   args.first      1: what passes is handed out before all else
--   args.dry        1: only say what would stand against it
-- Outcomes: one list for each answer: DONE state · FINE (nothing was done) · SAME state · and what look() says against it
-- @include _answers.lua

-- Before whatever is ready now, and wherever else it has to wait first.
local function put_first(t)
  local best = redis.call('ZRANGE', key.readyOrder(), 0, 0, 'WITHSCORES')
  if best[1] == t.task or t.status == 'pending' and not withdraw(t) then return end
  t.score = whole_number(math.min(tonumber(best[2] or t.score), tonumber(t.score)) - 1)
  note(t, 'score', t.score)
  if t.status == 'pending' then make_ready(t) end
end

local replies, found, clear, tasks = {}, {}, true, {}
for at, answer in ipairs(args.answers) do
  local against, q = look(answer)
  if q and tasks[q.t.ade] then against, q = { 'TWICE', tasks[q.t.ade] }, nil end
  if q then tasks[q.t.ade] = answer.approval end
  replies[at], found[at] = against or { 'FINE' }, q or false
  clear = clear and (q ~= nil or against[1] == 'SAME')
end
if not clear or args.dry == 1 then return replies end
for at, answer in ipairs(args.answers) do
  if found[at] then
    -- What became of one task may have moved another: it is read anew.
    found[at].t = load(found[at].t.task)
    replies[at] = { 'DONE', give(found[at], answer) }
    if args.first == 1 and replies[at][2] == 'APPROVED' then put_first(found[at].t) end
  end
end
write_progress()
return replies
