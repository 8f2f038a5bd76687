-- cancel: end a job as cancelled, or ask the worker that holds it to drop it.
--
-- KEYS[1] row       emq:{q}:job:<id>  hash    deleted; `cancel` while a worker holds the job
-- KEYS[2] active    emq:{q}:active    zset    read; member removed, if its holder calls
-- KEYS[3] pending   emq:{q}:pending   zset    member removed
-- KEYS[4] schedule  emq:{q}:schedule  zset    member removed
-- KEYS[5] dead      emq:{q}:dead      zset    member removed
-- KEYS[6] marker    emq:{q}:marker    zset    set if someone waited for the slot
-- KEYS[7] control   emq:{q}:control   channel cancel, for the worker that holds the job
-- KEYS[8] root      emq:{q}:<lanes>   lanes   slot freed, member of its lane removed; and what else there is of the job
-- ARGV[1] id
-- ARGV[2] retention  ms for which the id stays taken
-- ARGV[3] token      fencing token of the holder, who has dropped the run; empty for anybody else
--
-- OK         the job is gone
-- ASKED      a worker holds the job and has been asked to drop it; it won't run again in any case
-- STALE      the token doesn't hold the job; nothing was written
-- GONE       there is no such job; nothing was written
-- CANCELLED  the job was cancelled before; nothing was written
-- DONE       the same, for its holder
--
-- uses lib/clock, lib/guard, lib/marks, lib/waiting, lib/lanes, lib/unique, lib/events, lib/ending, lib/fence

local row, active, pending, schedule, dead, marker, control, root = unpack(KEYS)
local id, retention, token = ARGV[1], ARGV[2], ARGV[3]

check_sets(pending, schedule, dead, root .. 'done')
if token ~= '' then
  local job, refusal = fence(row, active, root, id, token)
  if not job then return refusal == 'CANCELLED' and 'DONE' or refusal end
  take_out(job, active, pending, root, marker)
  to_cancelled(root, id, job.key, retention)
  return 'OK'
end

local field = redis.call('HMGET', row, 'attempts', 'did', 'group')
if not field[1] and redis.call('EXISTS', row) == 0 then
  return was_cancelled(root .. 'done', id) and 'CANCELLED' or 'GONE'
end
if redis.call('ZSCORE', active, id) then
  -- Allowed when the server is out of memory, and what has begun it may finish.
  redis.call('HDEL', row, 'cancel')
  redis.call('HSET', row, 'cancel', retention)
  publish(control, 'cancel', id)
  return 'ASKED'
end

leave_line(pending, root, id, field[3])
redis.call('ZREM', schedule, id)
redis.call('ZREM', dead, id)
to_cancelled(root, id, field[2], retention)
return 'OK'
