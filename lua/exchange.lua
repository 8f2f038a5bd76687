-- exchange: complete the jobs that a worker has done, and claim its next ones.
--
-- KEYS[1] rows        emq:{q}:job:<id>           hash    as complete and claim
-- KEYS[2] pending     emq:{q}:pending            zset    as complete and claim
-- KEYS[3] active      emq:{q}:active             zset    as complete and claim
-- KEYS[4] schedule    emq:{q}:schedule           zset    as claim
-- KEYS[5] dead        emq:{q}:dead               zset    as claim
-- KEYS[6] done        emq:{q}:done               zset    as complete
-- KEYS[7] marker      emq:{q}:marker             zset    as complete and claim
-- KEYS[8] meta        emq:{q}:meta               hash    as claim
-- KEYS[9] claims      emq:{q}:claims             hash    as claim
-- KEYS[10] completed  emq:{q}:metrics:completed  hash    as complete
-- KEYS[11] failed     emq:{q}:metrics:failed     hash    as claim
-- KEYS[12] events     emq:{q}:events             channel as complete and claim
-- KEYS[13] root       emq:{q}:<lanes>            lanes   as complete and claim
-- ARGV[1] n         how many to claim at most
-- ARGV[2] lease     ms
-- ARGV[3] worker    as of claim
-- ARGV[4] request   as of claim
-- ARGV[5..] the jobs to complete, as of complete
--
-- Answers what claim answers, behind what complete answers:
-- OK         the job is done
-- STALE      the token doesn't hold the job; nothing was written for it
-- GONE       there is no such job; nothing was written for it
-- DONE       this was carried out before; nothing was written for it
-- CANCELLED  the job was cancelled and is gone; nothing was written for it
--
-- uses lib/clock, lib/guard, lib/marks, lib/waiting, lib/lanes, lib/unique, lib/events, lib/ending, lib/fence, lib/complete, lib/turns, lib/claim

local rows, pending, active, schedule, dead, done, marker, meta, claims, completed, failed, events, root = unpack(KEYS)
local n, lease, worker, request = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4]

local queue = {
  rows = rows, pending = pending, active = active, schedule = schedule, dead = dead, done = done, marker = marker,
  meta = meta, claims = claims, completed = completed, failed = failed, events = events, root = root,
}
-- Before anything is completed: what the claim would raise for later.
check_sets(pending, active, schedule, root .. 'held')
local words = complete(queue, ARGV, 5)
-- What is done is done, and has to be told. What the claim raises for, the next one will raise for, too.
local is_claimed, batch = pcall(claim, queue, n, lease, worker, request)
if not is_claimed then batch = { request, 1, -1, 0, 0, {}, {}, {} } end
return { words, unpack(batch) }
