-- Give an approval request the word for its number, unless somebody has answered it meanwhile.
--   keys.request
--   args.number, args.word
-- Outcome: 1 if it was changed
if redis.call('HGET', keys.request, 'status') ~= args.number then return 0 end
redis.call('HSET', keys.request, 'status', args.word)
return 1
