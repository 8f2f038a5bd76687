-- retry: put a failed job on the schedule, if the caller's token still holds it.
--
-- KEYS[1] row       emq:{q}:job:<id>  hash  failures + 1, last_error, state, settled; worker and reaped removed
-- KEYS[2] active    emq:{q}:active    zset  member removed
-- KEYS[3] pending   emq:{q}:pending   zset  member removed, if the reaper had put it back
-- KEYS[4] schedule  emq:{q}:schedule  zset  member added
-- KEYS[5] marker    emq:{q}:marker    zset  set if no job is due earlier, or someone waited for the slot
-- KEYS[6] root      emq:{q}:<lanes>   lanes slot freed
-- ARGV[1] id
-- ARGV[2] token     fencing token
-- ARGV[3] delay     ms from the server's now
-- ARGV[4] text      text of the failure
--
-- OK         the job is on the schedule
-- STALE      the token doesn't hold the job; nothing was written
-- GONE       there is no such job; nothing was written
-- DONE       this call has been carried out before; nothing was written
-- CANCELLED  somebody had asked for that, and so the job is gone instead
--
-- uses lib/clock, lib/guard, lib/marks, lib/waiting, lib/lanes, lib/unique, lib/events, lib/ending, lib/fence

local row, active, pending, schedule, marker, root = unpack(KEYS)
local id, token, delay, text = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local settled = 'retry ' .. token

check_sets(schedule)
local job, refusal, before = fence(row, active, root, id, token)
if not job then return before == settled and 'DONE' or refusal end

if job.cancel then check_sets(root .. 'done') end
take_out(job, active, pending, root, marker)
if job.cancel then
  to_cancelled(root, id, job.key, job.cancel)
  return 'CANCELLED'
end
add(row, 'failures', 1)
redis.call('HSET', row, 'state', 'scheduled', 'last_error', text, 'settled', settled)
redis.call('HDEL', row, 'worker', 'reaped')
to_schedule(schedule, marker, id, now() + delay)
publish(root .. 'events', 'retried', id)
return 'OK'
