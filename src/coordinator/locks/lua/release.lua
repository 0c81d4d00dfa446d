-- Give locks back. Only the grant with this lock_id is ended; a second release of it is recognised, and a lock that was
-- lost meanwhile is left as it is.
--   args.agent, args.lock_id
--   args.forget   1: as if it had never been granted, for a caller that could not get the rest; the lock_id stays usable
--   args.next_id, args.next_lease_us, args.next_purpose   what a waiter asks that comes along with this call, if it is next
-- Outcomes: one word per lock: RELEASED · ALREADY · LOST; after it, what acquire.lua answers who came along and got it
-- @include _usual-give-back.lua
-- @include _locks.lua
-- @include _holders.lua
-- @include _queue.lua

local function verdict(item)
  local mine = item.mine
  if mine and mine.agent_id ~= args.agent then mine = nil end -- guard
  if mine and is_over(mine) then mine = nil end -- guard
  if mine then return 'RELEASED' end
  read_fence(item)
  if item.last_released == args.lock_id then return 'ALREADY' end
  return item.last_lock_id == args.lock_id and item.state == 'released' and 'ALREADY' or 'LOST'
end

local reply = {}
for n, item in ipairs(items) do
  read_holders(item)
  item.mine, item.at = grant_of(item, args.lock_id)
  reply[n] = verdict(item)
end

local forget = args.forget == 1
-- @include _free.lua

for n, item in ipairs(items) do
  if reply[n] == 'RELEASED' then free(item) end
end
return with_told(reply)
