-- Where tasks are found by who made them, what they work on, and their tags. A place is { kind, name… }, as admission.ts wrote it.
local INDEX_SECONDS = 7776000

-- A task that is part of another is found by it, for the agent that works on that one.
local function enter_child(t)
  redis.call('SADD', key.childTasks(t.parent), t.task)
  if redis.call('EXISTS', key.taskRecord(t.parent)) == 1 then redis.call('SADD', key.parentTasks(), t.parent) end
end

-- Its children may have come first.
local function enter_parent(t)
  if redis.call('EXISTS', key.childTasks(t.task)) == 1 then redis.call('SADD', key.parentTasks(), t.task) end
end

local function index_of(place)
  if place[1] == 'author' then return key.tasksByAuthor(place[2]) end
  if place[1] == 'resource' then return key.tasksByResource(place[2], place[3]) end
  return key.tasksByTag(place[2])
end

local function enter_index(t, place)
  local index = index_of(place)
  redis.call('ZADD', index, t.born, t.ade)
  redis.call('EXPIRE', index, INDEX_SECONDS)
end

-- Takes a task out of the places it is not to be found at any more, and enters it at the others.
local function reindex(t, places)
  local text = redis.call('HGET', key.taskRecord(t.task), 'found_by')
  local left = {}
  for _, place in ipairs(text and cjson.decode(text) or {}) do left[index_of(place)] = true end
  for _, place in ipairs(cjson.decode(places)) do
    left[index_of(place)] = nil
    enter_index(t, place)
  end
  for index in pairs(left) do redis.call('ZREM', index, t.ade) end
  note(t, 'found_by', places)
end
