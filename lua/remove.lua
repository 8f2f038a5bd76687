-- remove: delete a job that waits, is scheduled or is dead.
--
-- KEYS[1] row       emq:{q}:job:<id>         hash    deleted
-- KEYS[2] logs      emq:{q}:job:<id>:logs    list    deleted
-- KEYS[3] result    emq:{q}:job:<id>:result  string  deleted
-- KEYS[4] active    emq:{q}:active           zset    read
-- KEYS[5] pending   emq:{q}:pending          zset    member removed
-- KEYS[6] schedule  emq:{q}:schedule         zset    member removed
-- KEYS[7] dead      emq:{q}:dead             zset    member removed
-- KEYS[8] done      emq:{q}:done             zset    member added, if the job was ever claimed
-- KEYS[9] root      emq:{q}:<lanes>          lanes   member removed; deduplication key freed or passed on
-- ARGV[1] id
-- ARGV[2] retention  ms for which the id of a job that was claimed stays taken
--
-- OK       the job is gone
-- GONE     there is no such job; nothing was written
-- EMQLOCK  error: a worker holds the job; nothing was written
--
-- uses lib/clock, lib/guard, lib/waiting, lib/lanes, lib/unique, lib/events

local row, logs, result, active, pending, schedule, dead, done, root = unpack(KEYS)
local id, retention = ARGV[1], tonumber(ARGV[2])

check_sets(pending, schedule, dead, done)
local field = redis.call('HMGET', row, 'attempts', 'did', 'group')
if not field[1] and redis.call('EXISTS', row) == 0 then return 'GONE' end
if redis.call('ZSCORE', active, id) then
  return redis.error_reply('EMQLOCK the job is active: a worker holds it')
end

leave_line(pending, root, id, field[3])
redis.call('ZREM', schedule, id)
redis.call('ZREM', dead, id)
redis.call('DEL', row, logs, result)
free_key(root, field[2], id)
-- The tokens of a new job begin at 1 again: under the same id, a worker that still believes in its claim of the old
-- job could settle the new one.
if field[1] ~= '0' then redis.call('ZADD', done, now() + retention, id) end
publish(root .. 'events', 'removed', id)
return 'OK'
