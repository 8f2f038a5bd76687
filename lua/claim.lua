-- claim: move waiting jobs to the active set under a lease, and hand them to a worker with their fencing tokens.
--
-- KEYS[1] rows      emq:{q}:job:<id>        hash    attempts + 1, state, worker, group; reaped and settled removed
-- KEYS[2] pending   emq:{q}:pending         zset    members removed
-- KEYS[3] active    emq:{q}:active          zset    members added, score = end of the lease
-- KEYS[4] schedule  emq:{q}:schedule        zset    read
-- KEYS[5] dead      emq:{q}:dead            zset    members added that have expired, score = time of death
-- KEYS[6] marker    emq:{q}:marker          zset    set if work is left
-- KEYS[7] meta      emq:{q}:meta            hash    read: nothing is claimed while `paused` is there; rate, turn
-- KEYS[8] claims    emq:{q}:claims          hash    the worker's last request and what it took
-- KEYS[9] failed    emq:{q}:metrics:failed  hash    count + 1 for each expired
-- KEYS[10] events   emq:{q}:events          channel dead
-- KEYS[11] root     emq:{q}:<lanes>         lanes   served in turn; slots taken, the ring turned, deduplication keys freed
-- ARGV[1] n         how many at most
-- ARGV[2] lease     ms
-- ARGV[3] worker    unique among running workers
-- ARGV[4] request   unique among the worker's claims; the same again answers with the same jobs
--
-- Answers the request; 1 if work is left, else 0; ms until the next job falls due or loses its lease, a limit ends, or the
-- slot of a recurring job comes, or -1, also if work is left, or nothing is there; how many ids without a row were dropped;
-- how many jobs had expired; and three lists: id, token, payload and name of each job; of those with a lane, which job, counted
-- from 0, and the lane; of those that have more to tell a list each, which job, failures, stalled, max_attempts, headers.
--
-- uses lib/clock, lib/guard, lib/marks, lib/waiting, lib/lanes, lib/unique, lib/events, lib/ending, lib/turns, lib/claim

local rows, pending, active, schedule, dead, marker, meta, claims, failed, events, root = unpack(KEYS)
local n, lease, worker, request = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4]

-- Nothing waits, and nothing will by itself: an idle worker asks for that again and again.
local ring, held, recurring = root .. 'ring', root .. 'held', root .. 'repeat'
if redis.call('EXISTS', pending, active, schedule, ring, held, recurring) == 0 then
  return { request, 0, -1, 0, 0, {}, {}, {} }
end

local queue = {
  rows = rows, pending = pending, active = active, schedule = schedule, dead = dead, marker = marker, meta = meta,
  claims = claims, failed = failed, events = events, root = root,
}
check_sets(pending, active, schedule, held)
return claim(queue, n, lease, worker, request)
