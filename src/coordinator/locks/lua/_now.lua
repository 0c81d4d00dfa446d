-- One moment for the whole call.
-- @include ../../../redis/lua/_time.lua
local now = now_us()
local now_text = iso_time(now)
