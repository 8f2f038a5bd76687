-- list: a page of the ids in one place of a queue, in the order of their scores.
--
-- KEYS[1] place   emq:{q}:pending  zset  read; or active, schedule, dead, done, a lane's
-- ARGV[1] offset  how many to skip
-- ARGV[2] count   how many at most
--
-- Answers per job its id and its score.

local offset = tonumber(ARGV[1])
return redis.call('ZRANGE', KEYS[1], offset, offset + tonumber(ARGV[2]) - 1, 'WITHSCORES')
