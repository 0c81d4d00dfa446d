-- The locks that a call names, as items, and what is read of them. Every script over locks takes its keys in one order:
--   on one server: registry, waiting, events, the agent's index and waitfor; nothing of these in a cluster, where they
--   live in other slots and the caller keeps them, as supersets, before a grant and after a release;
--   then per lock: lock, queue, waiters, fence, channel; of capacity also leases; of resources, on one server, the type's index
-- and these arguments:
--   args.shape     two letters per lock: kind (t, r, a) and mode (x, s)
--   args.publish   PUBLISH on one server; in a cluster SPUBLISH, or 'cluster' where the server has none
--   args.agent     who calls
--   args.grace_us  how long after its lease the lock of an agent-class holder is nobody else's yet
-- Lines that keep a promise are marked: the suite fails without each of them.
-- @include _now.lua
local whole = args.publish == 'PUBLISH'
local registry, waiting, stream, index, waitfor
local items = {}

do
  local all, at = keys.all, 0
  if whole then
    registry, waiting, stream, index, waitfor = all[1], all[2], all[3], all[4], all[5]
    at = 5
  end
  for i = 1, #args.shape, 2 do
    local kind = string.sub(args.shape, i, i)
    local item = {
      kind = kind, shared = string.sub(args.shape, i + 1, i + 1) == 's', lock = all[at + 1], queue = all[at + 2],
      waiters = all[at + 3], fence = all[at + 4], channel = all[at + 5], leases = false, type_index = false,
      holders = {}, token = 0,
    }
    at = at + 5
    if kind == 'a' then
      at = at + 1
      item.leases = all[at]
    elseif kind == 'r' and whole then
      at = at + 1
      item.type_index = all[at]
    end
    items[#items + 1] = item
  end
end
-- @include _lock.lua
