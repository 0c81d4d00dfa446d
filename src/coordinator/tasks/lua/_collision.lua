-- The running task that a claim on a resource would collide with: the same thing or one beneath it, or a folder above.
local function holder_in(set, from, to, task)
  for _, member in ipairs(redis.call('ZRANGEBYLEX', set, from, to, 'LIMIT', '0', '2')) do
    local holder = string.match(member, '%z(.*)$')
    if holder and holder ~= task then return holder end
  end
end

local function collision_in(set, claim, task)
  local holder = holder_in(set, '[' .. claim[4], '(' .. claim[4] .. '\255', task)
  for _, above in ipairs(claim[5]) do
    holder = holder or holder_in(set, '[' .. above .. '\0', '(' .. above .. '\1', task)
  end
  return holder
end

local any_shared
local function collision(claims, task)
  if any_shared == nil then any_shared = redis.call('EXISTS', key.heldShared()) == 1 end
  for _, claim in ipairs(claims) do
    local holder = collision_in(key.heldExclusive(), claim, task)
    if not holder and any_shared and claim[3] ~= 's' then holder = collision_in(key.heldShared(), claim, task) end
    if holder then return holder end
  end
end
