-- Take tasks out of the indexes that Redis has forgotten: their keys have run out, and the indexes cannot know.
--   args.head     what stands before a task's id in ADE
--   args.state    the state they stand under
--   args.tasks    list of: task, author (empty: nobody knows)
-- Outcome: how many went
-- @include ../../coordinator/tasks/lua/_indexes.lua

local gone = 0
for _, named in ipairs(args.tasks) do
  local ade = args.head .. named[1]
  -- Somebody may have written it anew since we looked.
  if redis.call('EXISTS', key.taskState(ade)) == 0 then
    local found_by = redis.call('HGET', key.taskRecord(named[1]), 'found_by')
    for _, place in ipairs(found_by and cjson.decode(found_by) or {}) do redis.call('ZREM', index_of(place), ade) end
    if named[2] ~= '' then redis.call('ZREM', key.tasksByAuthor(named[2]), ade) end
    -- Last: what stands here is looked at again, should one of the others be none of ours.
    gone = gone + redis.call('ZREM', key.tasksByState(args.state), ade)
  end
end
return gone
