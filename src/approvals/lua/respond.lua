-- Answer questions: all of them, or none if anything stands against one of them.
--   args.by         who answers
--   args.answers    list of: approval, action (approve, reject, request_changes), reason, hash (of what was seen; empty: as it is)
--   args.dry        1: only say what would stand against it
-- Outcomes: one list for each answer: DONE state · FINE (nothing was done) · SAME state · and what look() says against it
-- @include _answers.lua

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
  end
end
write_progress()
return replies
