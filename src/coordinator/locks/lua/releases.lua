-- Give locks back for several requests of one turn: each of one task on one server, held alone by the caller, with nobody in
-- line, as release.lua does it. What is not so is left as it was, and given back alone.
--   args.asked   per request three texts: lock, agent, lock_id
-- Outcome: for each request RELEASED, or nothing
-- @include _usual-release.lua
local asked = args.asked
local queues = {}
for at = 1, #asked, 3 do queues[#queues + 1] = asked[at] .. const.queue end
local quiet = call('EXISTS', unpack(queues)) == 0

local given, replies = {}, {}
local ours = {}
for at = 1, #asked, 3 do
  local lock = asked[at]
  local mine = usual_mine(lock, asked[at + 1], asked[at + 2])
  if ours[lock] then mine = nil end -- guard
  if mine and not quiet and call('EXISTS', lock .. const.queue) == 1 then mine = nil end -- guard
  replies[#replies + 1] = mine and 'RELEASED' or ''
  if mine then
    ours[lock] = true
    given[#given + 1] = lock
  end
end
if not given[1] then return replies end

call('DEL', unpack(given))
call('ZREM', const.registry, unpack(given)) -- guard
for n, reply in ipairs(replies) do
  if reply ~= '' then
    local at = 3 * n - 2
    call('HSET', asked[at] .. const.fence, 'state', 'released') -- guard
    write_usual_release(asked[at], asked[at + 1], asked[at + 2])
  end
end
return replies
