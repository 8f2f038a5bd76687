-- logs: the lines that a job's runs have logged.
--
-- KEYS[1] logs  emq:{q}:job:<id>:logs  list  read
-- ARGV[1] limit  how many at most
--
-- Answers the lines, the oldest first.

local limit = tonumber(ARGV[1])
return redis.call('LRANGE', KEYS[1], 0, limit - 1)
