-- partitions: how many partitions a queue ever had; from now on so many at least.
--
-- KEYS[1] meta      emq:{q}:meta  hash  partitions, if it had fewer
-- ARGV[1] at_least  1 to look only
--
-- Answers the number.
--
-- uses lib/guard

local meta = unpack(KEYS)
local at_least = tonumber(ARGV[1])

local ever = math.max(count(redis.call('HGET', meta, 'partitions')), 1)
if at_least > ever then
  -- Removes nothing that isn't written again: a worker may start while the server is out of memory.
  redis.call('HDEL', meta, 'partitions')
  redis.call('HSET', meta, 'partitions', ARGV[1])
  ever = at_least
end
return ever
