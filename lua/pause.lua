-- pause: let nothing more of a queue, or of one lane of it, be claimed.
--
-- KEYS[1] meta  emq:{q}:meta     hash   paused, for the queue
-- KEYS[2] root  emq:{q}:<lanes>  lanes  the lane among the paused, and out of the ring
-- ARGV[1] lane  or empty for the queue
--
-- OK  it is paused
--
-- uses lib/guard, lib/waiting, lib/lanes

local meta, root = unpack(KEYS)
local lane = ARGV[1]

if lane == '' then
  -- Removes nothing that isn't written again: an operator may pause a server that is out of memory.
  redis.call('HDEL', meta, 'paused')
  redis.call('HSET', meta, 'paused', '1')
else
  redis.call('SREM', root .. 'paused', lane)
  redis.call('SADD', root .. 'paused', lane)
  leave_ring(root, lane)
end
return 'OK'
