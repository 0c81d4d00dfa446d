-- The locks that a call names, as items, and what is read of them. Every script over locks takes its keys in one order:
--   on one server: per lock its own key, and of resources their type's index; what accompanies a lock has its name and an
--   ending, and what the agent has follows from args.agent;
--   in a cluster, where every key must be named and the lists live in other slots, so that the caller keeps them, as
--   supersets, before a grant and after a release: per lock: lock, queue, waiters, fence, channel; of capacity also leases
-- and these arguments:
--   args.shape     two letters per lock: kind (t, r, a) and mode (x, s); in a cluster before them * where the server has
--                  sharded channels, + where it has none
--   args.agent     who calls
-- Lines that keep a promise are marked: the suite fails without each of them.
-- @include _now.lua
local shape = args.shape
local whole = string.find(shape, '^%l') ~= nil
local publish = string.sub(shape, 1, 1) == '*' and 'SPUBLISH' or 'PUBLISH'
local grace_us = const.grace_us
local registry, waiting, stream, index, waitfor
local items = {}

do
  local all, at = keys.all, 0
  if whole then
    registry, waiting, stream = const.registry, const.waiting, const.events
    index, waitfor = key.agentLocks(args.agent), key.waitFor(args.agent)
  end
  for i = whole and 1 or 2, #shape, 2 do
    local kind = string.sub(shape, i, i)
    at = at + 1
    local lock = all[at]
    local item = {
      kind = kind, shared = string.sub(shape, i + 1, i + 1) == 's', lock = lock, queue = lock .. const.queue,
      waiters = lock .. const.waiters, fence = lock .. const.fence, channel = lock .. const.channel,
      leases = kind == 'a' and lock .. const.leases, type_index = false, holders = {}, token = 0,
    }
    if not whole then
      at = at + (kind == 'a' and 5 or 4)
    elseif kind == 'r' then
      at = at + 1
      item.type_index = all[at]
    end
    items[#items + 1] = item
  end
end
-- @include _lock.lua
