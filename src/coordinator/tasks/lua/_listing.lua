-- What keeps a task from being handed out: a pause, of all work, of its type or of something it works on. And what keeps a ready
-- one from the public list although it is next: its parent, whose holder is to get it first; and, where the list must hold only
-- tasks that can run side by side, the others there.
--   args.exclusive    1: the list holds no two tasks that would collide, nor one that would collide with a running task

-- What is noted in a sorted set of marks at these claims: at the same thing, beneath it, or at a folder above.
local function noted_at(set, claims)
  local names = {}
  local function add(members)
    for _, member in ipairs(members) do names[#names + 1] = string.match(member, '%z(.*)$') end
  end
  for _, claim in ipairs(claims) do
    add(redis.call('ZRANGEBYLEX', set, '[' .. claim[4], '(' .. claim[4] .. '\255'))
    for _, above in ipairs(claim[5]) do add(redis.call('ZRANGEBYLEX', set, '[' .. above .. '\0', '(' .. above .. '\1')) end
  end
  return names
end

local function is_over_at(pause)
  local ends = tonumber(pause.ends) or 0
  return ends > 0 and ends <= now / 1000000
end

local function is_in_force(what)
  local pause = redis.call('HGET', key.pauses(), what)
  return pause and not is_over_at(cjson.decode(pause))
end

-- Who works on the parent of a task now; nil if nobody does.
local function parent_holder(t)
  if t.parent == '' then return nil end
  local parent = redis.call('HMGET', key.taskRecord(t.parent), 'status', 'agent')
  return (parent[1] == 'assigned' or parent[1] == 'in_progress') and parent[2] or nil
end

-- The pause that keeps a task where it is, by its name; nil if none does. A lane of those who ask for a type by name is of that type.
local function pause_of(t)
  if redis.call('EXISTS', key.pauses()) == 0 then return nil end
  for _, what in ipairs({ 'all', (string.gsub(t.lane, '^only%.', '')) }) do
    if is_in_force(what) then return what end
  end
  if t.claims == '' then return nil end
  for _, what in ipairs(noted_at(key.pausedResources(), cjson.decode(t.claims))) do
    if is_in_force(what) then return what end
  end
end

local function is_kept_back(t)
  return pause_of(t) ~= nil
end

-- Whether anything is paused, or may be kept for the holder of its parent.
local function is_anything_kept_back()
  return redis.call('EXISTS', key.pauses(), key.parentTasks()) > 0
end

-- Whether it would collide with what runs or is listed. Readers of one thing do not.
local function is_crowded(t)
  if t.claims == '' then return false end
  for _, claim in ipairs(cjson.decode(t.claims)) do
    local sets = { key.heldExclusive(), key.listedExclusive() }
    if claim[3] ~= 's' then sets = { key.heldExclusive(), key.listedExclusive(), key.heldShared(), key.listedShared() } end
    for _, set in ipairs(sets) do
      for _, name in ipairs(noted_at(set, { claim })) do
        if name ~= t.task then return true end
      end
    end
  end
  return false
end

local function each_listed_mark(t, change)
  if args.exclusive ~= 1 or t.claims == '' then return end
  for _, claim in ipairs(cjson.decode(t.claims)) do
    change(claim[3] == 's' and key.listedShared() or key.listedExclusive(), claim[4] .. '\0' .. t.task)
  end
end

local function mark_listed(t)
  each_listed_mark(t, function(set, mark) redis.call('ZADD', set, 0, mark) end)
end

local function unmark_listed(t)
  each_listed_mark(t, function(set, mark) redis.call('ZREM', set, mark) end)
end

local function is_listable(t)
  return not parent_holder(t) and not (args.exclusive == 1 and is_crowded(t))
end

-- A pause that has just begun has not reached all ready tasks yet: until then, each is asked.
local function belongs_on_list(t)
  return not is_kept_back(t) and is_listable(t)
end

-- The list as it should be, best first. Where it must be free of collisions its marks are made anew on the way.
local function wanted_list()
  local best = redis.call('ZRANGE', key.readyOrder(), 0, args.window - 1)
  if args.exclusive ~= 1 and not is_anything_kept_back() then return best end
  redis.call('DEL', key.listedExclusive(), key.listedShared())
  local wanted = {}
  for _, id in ipairs(best) do
    local t = load(id)
    if t and belongs_on_list(t) then
      wanted[#wanted + 1] = id
      mark_listed(t)
    end
  end
  return wanted
end
