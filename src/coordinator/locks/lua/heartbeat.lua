-- Renew locks that the caller holds. A lock that is lost says so and is not touched: writing to it would make a key
-- that nobody holds and nothing ends. One lost lock keeps the others of the call from being renewed.
--   args.agent, args.lock_id
--   args.extend_us, args.extend_agent_us   how long from now, by the class of the lease; already within the allowed
-- Outcomes: EXTENDED expires_at heartbeats · LOST n
-- @include _locks.lua
-- @include _holders.lua
-- @include _renew.lua

return renew_all(items)
