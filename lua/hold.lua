-- hold: give a job back to its waiting place, if the caller's token holds it, and let its lane, or else its queue, wait.
--
-- KEYS[1] row      emq:{q}:job:<id>  hash   state, settled; worker and reaped removed
-- KEYS[2] active   emq:{q}:active    zset   member removed
-- KEYS[3] pending  emq:{q}:pending   zset   member added, if the job has no lane
-- KEYS[4] meta     emq:{q}:meta      hash   held, if the job has no lane
-- KEYS[5] marker   emq:{q}:marker    zset   set
-- KEYS[6] root     emq:{q}:<lanes>   lanes  slot freed, member of its lane added, the lane held back
-- ARGV[1] id
-- ARGV[2] token    fencing token
-- ARGV[3] delay    ms from the server's now
--
-- OK         the job waits
-- STALE      the token doesn't hold the job; nothing was written
-- GONE       there is no such job; nothing was written
-- DONE       this call has been carried out before; nothing was written
-- CANCELLED  somebody had asked for that, and so the job is gone instead
--
-- uses lib/clock, lib/guard, lib/marks, lib/waiting, lib/lanes, lib/unique, lib/events, lib/ending, lib/fence

local row, active, pending, meta, marker, root = unpack(KEYS)
local id, token, delay = ARGV[1], ARGV[2], tonumber(ARGV[3])
local settled = 'hold ' .. token

check_sets(pending, root .. 'held')
local known = count(redis.call('HGET', meta, 'held'))
local job, refusal, before = fence(row, active, root, id, token)
if not job then return before == settled and 'DONE' or refusal end

local resumes = now() + delay
if job.cancel then check_sets(root .. 'done') end
take_out(job, active, pending, root, marker)
if job.cancel then
  to_cancelled(root, id, job.key, job.cancel)
  return 'CANCELLED'
end
redis.call('HSET', row, 'state', 'pending', 'settled', settled)
redis.call('HDEL', row, 'worker', 'reaped')
if waiting_place(pending, root, job.lane) ~= pending then
  hold_back(root, job.lane, resumes)
elseif known < resumes then
  redis.call('HSET', meta, 'held', string.format('%.0f', resumes))
end
to_waiting(pending, root, marker, id, job.priority, job.lane)
publish(root .. 'events', 'released', id)
return 'OK'
