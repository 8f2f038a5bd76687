-- resume_recurring: let a recurring job that is paused go on with a slot to come.
--
-- KEYS[1] record     emq:{q}:repeat:<name>  hash  next; paused and held removed
-- KEYS[2] recurring  emq:{q}:repeat         zset  score = next slot
-- KEYS[3] marker     emq:{q}:marker         zset  set
-- ARGV[1] name
-- ARGV[2] schedule  by which the next slot was computed
-- ARGV[3] next      ms, that slot
--
-- OK     it goes on, or wasn't paused
-- STALE  it has another schedule by now; nothing was written
-- GONE   there is none of this name; nothing was written
--
-- uses lib/guard, lib/waiting

local record, recurring, marker = unpack(KEYS)
local name, schedule, next = ARGV[1], ARGV[2], ARGV[3]

check_sets(recurring)
local before = redis.call('HMGET', record, 'schedule', 'paused')
if not before[1] then return 'GONE' end
if not before[2] then return 'OK' end
if before[1] ~= schedule then return 'STALE' end
redis.call('HDEL', record, 'paused', 'held')
redis.call('HSET', record, 'next', next)
redis.call('ZADD', recurring, next, name)
wake(marker)
return 'OK'
