-- What the scripts of the usual case share. They do for several requests at once what claim.lua and complete.lua do for one,
-- written out: the same keys with the same values, in about a third of the calls. Whatever is not usual they leave as it was
-- and answer with UNUSUAL; the caller then asks the script that knows every case.
--   args.head, args.window      as for every script over tasks, see _task.lua
-- What the requests of one call write to a sorted set, a set or the counts is gathered, and written once at the end.
-- @include ../../locks/lua/_now.lua
-- @include _public.lua
local UNUSUAL = { 'UNUSUAL' }
-- A task with more than these is not usual: what is gathered must fit into one command.
local FEW_RESOURCES = 16

-- The resources that a task takes, if they are few and all exclusive. One whose text needs no unescaping is read without the
-- decoder, which costs more than a lock.
local ONE = '^%[%["([^"\\]*)","([^"\\]*)","x","([^"\\]*)",%[([^%]\\]*)%]%]%]$'
local function usual_claims(text)
  if not text or text == '' then return {} end
  local type, id, mark, folders = string.match(text, ONE)
  if type then
    local above = {}
    for folder in string.gmatch(folders, '"([^"]*)"') do above[#above + 1] = folder end
    return { { type, id, 'x', mark, above } }
  end
  local claims = cjson.decode(text)
  if #claims > FEW_RESOURCES then return nil end
  for _, claim in ipairs(claims) do
    if claim[3] ~= 'x' then return nil end
  end
  return claims
end

-- Writes what was gathered for one key, in one command.
local function write_all(command, name, values)
  if values[1] then redis.call(command, name, unpack(values)) end
end
