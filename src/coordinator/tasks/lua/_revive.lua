-- A lease that ended while nobody could hear its holder: Redis was away, or the daemon. Until the task is taken back the holder's own
-- word brings the lease back, under the tokens it had, unless somebody else has had since what belongs to it alone.
-- Whoever includes this has included _holders.lua.
-- @include ../../locks/lua/_grant.lua
-- @include ../../locks/lua/_grants.lua

-- Whether the last that is known of it is that this lease had it.
local function was_mine(item, lock_id)
  if item.kind == 'a' then return redis.call('HEXISTS', item.fence, 'lease:' .. lock_id) == 1 end
  read_fence(item)
  for _, holder in ipairs(vanished(item)) do
    if holder.lock_id == lock_id then return true end
  end
  return #item.holders == 0 and item.state == 'expired' and item.last_lock_id == lock_id
end

local function read_again(item)
  item.holders, item.held_shared, item.mine = {}, nil, nil
  read_holders(item)
  item.mine = grant_of(item, args.lock_id)
end

-- Of what is shared a later writer may have come and gone: the task was a reader before and is one now, which is all it asked for.
local function is_free_for_me(item)
  if item.mine and item.mine.agent_id == args.agent and not is_over(item.mine) then return true end
  if redis.call('EXISTS', item.queue) == 1 then return false end
  read_fence(item)
  if item.kind == 'a' then return item.limit and item.active < item.limit end
  if item.shared then
    return item.held_shared or #item.holders == 0 and (item.state ~= 'held' or item.sharing)
  end
  return (item.mine or #item.holders == 0) and item.last_lock_id == args.lock_id and item.state ~= 'released'
end

local function bring_back_place(item)
  local token = redis.call('HGET', item.fence, 'lease:' .. args.lock_id)
  grant_place(item, token or whole_number(next_token(item)))
end

-- Others whose entries ended with the key are put back beside it, as ended as they were: each end is theirs to undo, or to be told.
local function bring_back_shared(item)
  if #item.holders == 0 then item.holders = vanished(item) end
  local mine = grant_of(item, args.lock_id)
  if mine then
    mine.expires_at = expires_text
    enter_indexes(item, write_shared(item))
    return
  end
  local us = next_token(item)
  grant_shared(item, whole_number(us))
  seal(item, us, whole_number(us))
end

local function bring_back_alone(item, t)
  grant_alone(item, whole_number(item.token))
  redis.call('HSET', item.lock, 'acquired_at', t.claimed_at)
  if item.state == 'expired' then seal(item, item.token, whole_number(item.token)) end
end

-- All of it or nothing. True: it stands again, to be renewed.
local function revive(t, items)
  for _, item in ipairs(items) do
    read_again(item)
    if not is_free_for_me(item) then return false end
  end
  args.lease_class = redis.call('HGET', key.taskRecord(t.task), 'lease_class') or ''
  ends = args.lease_class == 'agent' and expires + grace_us or expires
  for _, item in ipairs(items) do
    if item.mine and not is_over(item.mine) then -- as it was
    elseif item.kind == 'a' then bring_back_place(item)
    elseif item.shared then bring_back_shared(item)
    else bring_back_alone(item, t) end
    item.holders, item.held_shared = {}, nil
  end
  say('lease_revived', t, t.agent)
  return true
end
