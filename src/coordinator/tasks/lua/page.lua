-- A part of a sorted set, from a place in it on that need not be anybody's any more: what was last on the page before may have left.
--   keys.index
--   args.score, args.member    the place; empty: from the beginning
--   args.count
-- Outcome: member, score, member, score …

-- As Redis orders members, whatever the language of the machine.
local function comes_after(one, other)
  for at = 1, math.min(#one, #other) do
    local a, b = string.byte(one, at), string.byte(other, at)
    if a ~= b then return a > b end
  end
  return #one > #other
end

local function rank_after(score, member)
  local low, high = redis.call('ZCOUNT', keys.index, '-inf', '(' .. score), redis.call('ZCOUNT', keys.index, '-inf', score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if comes_after(redis.call('ZRANGE', keys.index, middle, middle)[1], member) then high = middle else low = middle + 1 end
  end
  return low
end

local from = args.score == '' and 0 or rank_after(args.score, args.member)
return redis.call('ZRANGE', keys.index, from, from + args.count - 1, 'WITHSCORES')
