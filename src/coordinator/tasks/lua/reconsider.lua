-- Bring some tasks in line with what is paused: of those that are ready, the paused ones step aside; of those that stand aside, the
-- others are ready again.
--   args.tasks    ids
-- Outcome: how many changed sides
-- @include _ready.lua

local moved = 0
for _, id in ipairs(args.tasks) do
  local t = load(id)
  if not t or t.status ~= 'pending' and t.paused == '' then
    redis.call('ZREM', key.pausedTasks(), id)
  elseif t.status == 'pending' then
    if is_kept_back(t) then settle(t) end
    if t.status == 'blocked' then moved = moved + 1 end
  elseif settle(t) then
    moved = moved + 1
  end
end
if moved > 0 then write_progress() end
return moved
