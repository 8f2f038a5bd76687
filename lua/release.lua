-- release: give a job back to its waiting place at once, without counting a failure, if the caller's token holds it.
--
-- KEYS[1] row      emq:{q}:job:<id>  hash  state, settled; worker and reaped removed
-- KEYS[2] active   emq:{q}:active    zset  member removed
-- KEYS[3] pending  emq:{q}:pending   zset  member added, if the job has no lane
-- KEYS[4] marker   emq:{q}:marker    zset  set
-- KEYS[5] root     emq:{q}:<lanes>   lanes slot freed, member of its lane added
-- ARGV[1] id
-- ARGV[2] token    fencing token
--
-- OK         the job waits
-- STALE      the token doesn't hold the job; nothing was written
-- GONE       there is no such job; nothing was written
-- DONE       this call has been carried out before; nothing was written
-- CANCELLED  somebody had asked for that, and so the job is gone instead
--
-- uses lib/clock, lib/guard, lib/marks, lib/waiting, lib/lanes, lib/unique, lib/events, lib/ending, lib/fence

local row, active, pending, marker, root = unpack(KEYS)
local id, token = ARGV[1], ARGV[2]
local settled = 'release ' .. token

check_sets(pending)
local job, refusal, before = fence(row, active, root, id, token)
if not job then return before == settled and 'DONE' or refusal end

if job.cancel then check_sets(root .. 'done') end
take_out(job, active, pending, root, marker)
if job.cancel then
  to_cancelled(root, id, job.key, job.cancel)
  return 'CANCELLED'
end
redis.call('HSET', row, 'state', 'pending', 'settled', settled)
redis.call('HDEL', row, 'worker', 'reaped')
to_waiting(pending, root, marker, id, job.priority, job.lane)
publish(root .. 'events', 'released', id)
return 'OK'
