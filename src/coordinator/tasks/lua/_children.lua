-- A task that is part of another which somebody works on. The holder of the parent gets it first, needs no second place for it,
-- and goes through the locks that the parent has: a child never waits for its own parent.

-- The resources' locks a child has to take itself. Nil and who stands in the way: a running task outside the family, or a lock.
local function locks_beside_parent(t, claims, parent)
  local items = {}
  for _, claim in ipairs(claims) do
    for _, set in ipairs(claim[3] == 's' and { key.heldExclusive() } or { key.heldExclusive(), key.heldShared() }) do
      for _, holder in ipairs(noted_at(set, { claim })) do
        if holder ~= t.task and holder ~= parent.task then return nil, 'collision', holder end
      end
    end
    local item = resource_item(claim)
    read_holders(item)
    if not grant_of(item, parent.lock_id) then
      item = resource_item(claim)
      local what = obstacle(item)
      if what then return nil, what, item end
      items[#items + 1] = item
    end
  end
  return items
end

-- The children of what an agent works on, as they may be ready. Forgets those of parents whose children have all ended.
local function children_of(mine)
  local found = {}
  if not mine[1] or redis.call('EXISTS', key.parentTasks()) == 0 then return found end
  for at = 1, #mine, 2 do
    local open = 0
    for _, id in ipairs(redis.call('SMEMBERS', key.childTasks(mine[at]))) do
      local t = load(id)
      if t and t.parent == mine[at] and t.status ~= 'completed' and t.status ~= 'failed' then
        open = open + 1
        if t.status == 'pending' then found[#found + 1] = t end
      end
    end
    if open == 0 then redis.call('SREM', key.parentTasks(), mine[at]) end
  end
  table.sort(found, function(one, other) return tonumber(one.score) < tonumber(other.score) end)
  return found
end
