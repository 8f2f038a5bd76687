-- get: everything that is stored of a job.
--
-- KEYS[1] row     emq:{q}:job:<id>         hash    read
-- KEYS[2] result  emq:{q}:job:<id>:result  string  read
-- KEYS[3] done    emq:{q}:done             zset    read
-- ARGV[1] id
--
-- Answers 1 if the job has ended and is remembered, else 0; its result or nil; then one list of the names and values of
-- the fields of its row, empty if it has none.

local done = redis.call('ZSCORE', KEYS[3], ARGV[1]) and 1 or 0
return { done, redis.call('GET', KEYS[2]), redis.call('HGETALL', KEYS[1]) }
