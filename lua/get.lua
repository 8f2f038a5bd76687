-- get: everything that is stored of a job.
--
-- KEYS[1] row     emq:{q}:job:<id>         hash    read
-- KEYS[2] result  emq:{q}:job:<id>:result  string  read
-- KEYS[3] done    emq:{q}:done             zset    read
-- ARGV[1] id
--
-- Answers how the job ended; its result or nil; then one list of the names and values of the fields of its row, empty if
-- it has none. It ended as one of:
-- DONE       the job was done and is remembered
-- CANCELLED  the job was cancelled and is remembered
-- REMOVED    the job was removed and is remembered
-- GONE       no end of it is remembered
--
-- uses lib/marks, lib/ended

local row, result, done = unpack(KEYS)
local id = ARGV[1]

return { ended_as(done, id), redis.call('GET', result), redis.call('HGETALL', row) }
