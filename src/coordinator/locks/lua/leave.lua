-- Leave the line of one lock: given up by the waiter itself, or taken out by the deadlock detector, which leaves word
-- for the waiter's next call. Whoever stood behind it may be next now.
--   args.agent, args.lock_id
--   args.since_us    taken out only if this is still the same wait (0: whichever it is)
--   args.word_us     how long the word is kept
--   args.cycle       the word; empty: given up by itself
-- Outcomes: LEFT since · GONE (it does not wait here, or not any more)
-- @include _locks.lua
-- @include _holders.lua
-- @include _queue.lua

local item = items[1]
local waiter = waiter_of(item, args.lock_id)
if not waiter then return { 'GONE' } end
if waiter.aborted or waiter.told then
  if args.cycle == '' then redis.call('HDEL', item.waiters, args.lock_id) end
  return { 'GONE' }
end
if is_foreign(waiter) then return { 'GONE' } end -- guard
if args.since_us > 0 and waiter.since ~= args.since_us then return { 'GONE' } end -- guard

read_holders(item)
leave(item, args.lock_id, waiter)
note_length(item)
if args.cycle ~= '' then
  local ends = now + args.word_us
  redis.call('HSET', item.waiters, args.lock_id, '!' .. whole_number(ends) .. '|' .. whole_number(waiter.since) .. '|' .. args.cycle)
  if whole then redis.call('ZADD', waiting, seconds(ends), item.lock) end -- guard
  tell(item, 'deadlock', args.agent, '","lock_id":"' .. args.lock_id .. '","cycle":' .. args.cycle .. '}') -- guard
end
promote(item) -- guard
return with_told({ 'LEFT', whole_number(waiter.since) })
