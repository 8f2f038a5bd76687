-- bury: make a job a dead letter, if the caller's token still holds it.
--
-- KEYS[1] row      emq:{q}:job:<id>        hash    failures + 1, last_error, state, settled; worker and reaped removed
-- KEYS[2] active   emq:{q}:active          zset    member removed
-- KEYS[3] pending  emq:{q}:pending         zset    member removed, if the reaper had put it back
-- KEYS[4] dead     emq:{q}:dead            zset    member added, score = time of death
-- KEYS[5] failed   emq:{q}:metrics:failed  hash    count + 1
-- KEYS[6] events   emq:{q}:events          channel dead, with the text
-- KEYS[7] marker   emq:{q}:marker          zset    set if someone waited for the slot
-- KEYS[8] root     emq:{q}:<lanes>         lanes   slot and deduplication key freed, or that passed on
-- ARGV[1] id
-- ARGV[2] token    fencing token
-- ARGV[3] text     text of the failure
--
-- OK         the job is dead
-- STALE      the token doesn't hold the job; nothing was written
-- GONE       there is no such job; nothing was written
-- DONE       this call has been carried out before; nothing was written
-- CANCELLED  somebody had asked for that, and so the job is gone instead
--
-- uses lib/clock, lib/guard, lib/marks, lib/waiting, lib/lanes, lib/unique, lib/events, lib/ending, lib/fence

local row, active, pending, dead, failed, events, marker, root = unpack(KEYS)
local id, token, text = ARGV[1], ARGV[2], ARGV[3]
local settled = 'bury ' .. token

check_sets(dead)
local job, refusal, before = fence(row, active, root, id, token)
if not job then return before == settled and 'DONE' or refusal end

if job.cancel then check_sets(root .. 'done') end
take_out(job, active, pending, root, marker)
if job.cancel then
  to_cancelled(root, id, job.key, job.cancel)
  return 'CANCELLED'
end
add(row, 'failures', 1)
redis.call('HSET', row, 'state', 'dead', 'last_error', text, 'settled', settled)
redis.call('HDEL', row, 'worker', 'reaped')
to_dead(dead, root, failed, events, id, job.key, now(), text)
return 'OK'
