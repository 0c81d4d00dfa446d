-- Enter what usual claims and completions left for later.
--   args.most     how many entries of the ledger at once
--   args.young    how long a claim may wait for its completion, in µs
-- Outcome: how many claims and completions those were, and how many claims were left
-- @include ../../locks/lua/_now.lua
local function whole_number(n)
  return string.format('%d', n)
end
-- @include _ledger.lua
local written, kept = write_up(args.most, args.young)
return { written, kept or 0 }
