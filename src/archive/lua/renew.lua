-- Keep tasks from being forgotten that have not ended, and the indexes in which they are found.
--   args.head     what stands before a task's id in ADE
--   args.tasks    ids
--   args.ended    the states that a task does not leave by itself
-- Outcome: how many were renewed
-- @include ../../coordinator/tasks/lua/_life.lua
-- @include ../../coordinator/tasks/lua/_indexes.lua

local ended, renewed = {}, 0
for _, state in ipairs(args.ended) do ended[state] = true end
for _, task in ipairs(args.tasks) do
  local ade = args.head .. task
  local state = redis.call('GET', key.taskState(ade))
  if state and not ended[state] then
    live_on(ade)
    redis.call('EXPIRE', key.mirrorStatus(ade), LIFE)
    local found_by = redis.call('HGET', key.taskRecord(task), 'found_by')
    for _, place in ipairs(found_by and cjson.decode(found_by) or {}) do redis.call('EXPIRE', index_of(place), INDEX_SECONDS) end
    local author = redis.call('HGET', key.taskMetadata(ade), 'author_id')
    if author then redis.call('EXPIRE', key.tasksByAuthor(author), INDEX_SECONDS) end
    renewed = renewed + 1
  end
end
return renewed
