-- Renew the lease of a task: its lock, the locks of what it works on and the place of its agent, together or not at all. One that has
-- ended unnoticed stands again, if nobody else has had any of it since: the task is its holder's until it is taken back.
--   args.task, args.agent, args.lock_id, args.token    the lease; lock_id and token may be empty for one who has only its name
--   args.extend_us, args.extend_agent_us               how long from now, by the class of the lease
--   args.lease_us, args.lease_class, args.hold_us, args.purpose    as for any lock; the class is that of the lease
-- Outcomes: EXTENDED expires_at heartbeats · LATE status agent · UNKNOWN
-- @include _task.lua
-- @include ../../locks/lua/_holders.lua
-- @include ../../locks/lua/_renew.lua
-- @include _revive.lua

local t = load(args.task)
if not t then return { 'UNKNOWN' } end
local late = { 'LATE', t.status, t.agent }
if t.status ~= 'assigned' and t.status ~= 'in_progress' or not is_owner(t, args.agent, args.lock_id, args.token) then return late end

-- What a lease consists of. A plain client has only the lock of its task: it asked for nothing else. A child has a place and the locks
-- of its parent, and renews what it took beside those.
local function lease_items(t)
  local items, plain = {}, string.sub(t.agent, 1, 4) == 'raw.'
  if not plain then
    for _, claim in ipairs(claims_of(t)) do items[#items + 1] = resource_item(claim) end
    items[#items + 1] = place_item(t.agent)
  end
  local kept = {}
  for _, item in ipairs(items) do
    local is_own = true
    if t.parent ~= '' then
      read_holders(item)
      is_own = grant_of(item, t.lock_id) ~= nil or was_mine(item, t.lock_id)
      item.holders = {}
    end
    if is_own then kept[#kept + 1] = item end
  end
  kept[#kept + 1] = task_item(t.ade)
  return kept
end

local extend_us = args.extend_us
local function renew(t)
  act_as(t.agent, t.lock_id)
  -- A place has no class of its own, and its end counts the grace in.
  local class = redis.call('HGET', key.taskRecord(t.task), 'lease_class')
  args.extend_us = class == 'agent' and args.extend_agent_us + args.grace_us or extend_us
  local items = lease_items(t)
  local renewed = renew_all(items)
  if renewed[1] ~= 'LOST' or not revive(t, items) then return renewed end
  return renew_all(items)
end

local renewed = renew(t)
if renewed[1] == 'LOST' then return late end
-- Whoever works on a part of it works on it.
local GENERATIONS = 8
local child = t
for _ = 1, GENERATIONS do
  local parent = child.parent ~= '' and load(child.parent)
  if not parent or parent.agent ~= t.agent or parent.status ~= 'assigned' and parent.status ~= 'in_progress' then break end
  renew(parent)
  child = parent
end
redis.call('EXPIRE', key.agent(t.agent), 86400)
return renewed
