-- What the scripts of the usual case share. They do for several requests at once what claim.lua and complete.lua do for one,
-- written out: of the same keys those that others decide by, in few calls, and the rest by an entry in the ledger. Whatever is not
-- usual they leave as it was and answer with UNUSUAL; the caller then asks the script that knows every case.
--   args.head    as for every script over tasks, see _task.lua
-- What the requests of one call write to one key is gathered, and written once at the end.
-- @include ../../locks/lua/_now.lua
local function whole_number(n)
  return string.format('%d', n)
end
local call, UNUSUAL = redis.call, { 'UNUSUAL' }
-- A task with more than these is not usual: what is gathered must fit into one command.
local FEW_RESOURCES = 16

-- The resources that a task takes, if they are few and all exclusive. One whose text needs no unescaping is read without the
-- decoder, which costs more than a lock.
local NONE = {}
local function usual_claims(text)
  if not text or text == '' then return NONE end
  local find, sub = string.find, string.sub
  if not find(text, '\\', 1, true) and not find(text, '],[', 1, true) then
    local after_type = find(text, '","', 4, true)
    local after_id = find(text, '","', after_type + 3, true)
    if sub(text, after_id, after_id + 6) ~= '","x","' then return nil end
    local after_mark = find(text, '",[', after_id + 7, true)
    return { { sub(text, 4, after_type - 1), sub(text, after_type + 3, after_id - 1), 'x', sub(text, after_id + 7, after_mark - 1), after_mark + 3 } }
  end
  local claims = cjson.decode(text)
  if #claims > FEW_RESOURCES then return nil end
  for _, claim in ipairs(claims) do
    if claim[3] ~= 'x' then return nil end
  end
  return claims
end
