-- state: where a job stands.
--
-- KEYS[1] row   emq:{q}:job:<id>  hash  read
-- KEYS[2] done  emq:{q}:done      zset  read
-- ARGV[1] id
--
-- Answers the text of the row's field `state`, empty if it has none, or one of:
-- DONE       the job was done and is remembered
-- CANCELLED  the job was cancelled and is remembered
-- REMOVED    the job was removed and is remembered
-- GONE       there is no such job
--
-- uses lib/marks, lib/ended

local row, done = unpack(KEYS)
local id = ARGV[1]

local state = redis.call('HGET', row, 'state')
if state or redis.call('EXISTS', row) == 1 then return state or '' end
return ended_as(done, id)
