-- resume: let a queue, or one lane of it, go on that was paused or held back.
--
-- KEYS[1] meta    emq:{q}:meta     hash   paused and held removed, for the queue
-- KEYS[2] marker  emq:{q}:marker   zset   set
-- KEYS[3] root    emq:{q}:<lanes>  lanes  the lane not among the paused and the held, and in the ring if it has jobs
-- ARGV[1] lane    or empty for the queue
--
-- OK  it isn't paused
--
-- uses lib/guard, lib/waiting, lib/lanes

local meta, marker, root = unpack(KEYS)
local lane = ARGV[1]

if lane == '' then
  redis.call('HDEL', meta, 'paused', 'held')
  wake(marker)
else
  check_sets(root .. 'held')
  redis.call('SREM', root .. 'paused', lane)
  redis.call('ZREM', root .. 'held', lane)
  redis.pcall('HDEL', root .. 'gheld', lane)
  put_right(root, marker, lane)
end
return 'OK'
