-- The next numbers, for tasks that are to be taken in, in the order of their source.
--   args.count
-- Outcome: the last of them
return redis.call('HINCRBY', key.taskCounts(), 'seq', args.count)
