-- lane: how a lane stands.
--
-- KEYS[1] root  emq:{q}:<lanes>  lanes  read
-- ARGV[1] lane
--
-- Answers how many of its jobs wait, how many are active, 1 if it is paused, else 0, and, each empty if there is none, its
-- limit, its weight, its rate, and the time until which it is held back.
--
-- uses lib/guard, lib/waiting, lib/lanes

local root = unpack(KEYS)
local lane = ARGV[1]

return {
  length_of(line_of(root, lane)),
  count(redis.call('HGET', root .. 'gactive', lane)),
  redis.call('SISMEMBER', root .. 'paused', lane),
  redis.call('HGET', root .. 'glimit', lane) or '',
  redis.call('HGET', root .. 'gweight', lane) or '',
  redis.call('HGET', root .. 'grate', lane) or '',
  redis.call('ZSCORE', root .. 'held', lane) or '',
}
