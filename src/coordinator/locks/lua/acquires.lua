-- Take locks for several requests of one turn: each for one task on one server, as acquire.lua does it in the usual case. What
-- is not usual is left as it was, and asked for alone. All is judged before anything is written, so that what they share is
-- written once.
--   args.asked   per request five texts: lock, agent, lock_id, lease_us, purpose
-- Outcome: for each request what acquire.lua answers, or nothing
-- @include _usual-grant.lua
local asked = args.asked
local names = {}
for at = 1, #asked, 5 do
  names[#names + 1], names[#names + 2] = asked[at], asked[at] .. const.queue
end
local quiet = call('EXISTS', unpack(names)) == 0

local leases = {}
local function lease_of(us)
  local lease = leases[us]
  if not lease then
    lease = { usual_lease(tonumber(us)) }
    leases[us] = lease
  end
  return lease
end

local befores, registered, taken = {}, {}, {}
for at = 1, #asked, 5 do
  local lock = asked[at]
  local free = quiet or call('EXISTS', lock, lock .. const.queue) == 0
  if taken[lock] then free = false end -- guard
  local before = free and token_before(lock .. const.fence, asked[at + 2])
  -- Before the lock: if anything fails between, these name a lock too many, which the sweeper finds, never one too few.
  if before and type(redis.pcall('SADD', key.agentLocks(asked[at + 1]), lock)) == 'number' then
    befores[at], taken[lock] = before, true
    registered[#registered + 1], registered[#registered + 2] = lease_of(asked[at + 3])[2], lock
  end
end
if registered[1] then call('ZADD', const.registry, unpack(registered)) end -- guard

local replies = {}
for at = 1, #asked, 5 do
  local before, reply = befores[at], ''
  if before then
    local lock, lease = asked[at], lease_of(asked[at + 3])
    local token = write_usual_grant(lock, lock .. const.fence, before, asked[at + 1], asked[at + 2], asked[at + 4], lease[1], lease[3], '0')
    reply = 'GRANTED 0 ' .. now_text .. ' ' .. lease[1] .. ' ' .. token
  end
  replies[#replies + 1] = reply
end
return replies
