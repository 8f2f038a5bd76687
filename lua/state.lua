-- state: where a job stands.
--
-- KEYS[1] row   emq:{q}:job:<id>  hash  read
-- KEYS[2] done  emq:{q}:done      zset  read
-- ARGV[1] id
--
-- Answers the text of the row's field `state`, empty if it has none, or one of:
-- DONE  the job has ended and is remembered
-- GONE  there is no such job

local state = redis.call('HGET', KEYS[1], 'state')
if state or redis.call('EXISTS', KEYS[1]) == 1 then return state or '' end
return redis.call('ZSCORE', KEYS[2], ARGV[1]) and 'DONE' or 'GONE'
