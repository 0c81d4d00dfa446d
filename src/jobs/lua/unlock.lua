-- Give a job lock back, unless it ran out and is someone else's by now.
--   keys.lock
--   args.worker
if redis.call('GET', keys.lock) == args.worker then
  return redis.call('DEL', keys.lock)
end
return 0
