-- reap: take jobs whose lease ran out from the active set, back to their waiting place or, at the limit, to the dead.
--
-- KEYS[1] rows     emq:{q}:job:<id>        hash    stalled + 1, state; reaped = the token that held it, or last_error
-- KEYS[2] active   emq:{q}:active          zset    members removed
-- KEYS[3] pending  emq:{q}:pending         zset    members added that have no lane
-- KEYS[4] dead     emq:{q}:dead            zset    members added, score = time of death
-- KEYS[5] marker   emq:{q}:marker          zset    set if any was recovered, or someone waited for a slot
-- KEYS[6] failed   emq:{q}:metrics:failed  hash    count + 1 for each dead
-- KEYS[7] events   emq:{q}:events          channel stalled, dead
-- KEYS[8] root     emq:{q}:<lanes>         lanes   slots freed, members of lanes added; deduplication keys as bury
-- ARGV[1] max_stalled  the stall at which a job is buried, or empty for never
-- ARGV[2] limit        how many at most
--
-- Answers 1 if more have lost their lease, else 0; how many ids without a row were dropped; the ids that wait again;
-- the ids that are dead; the ids that are gone, since somebody had cancelled them.
--
-- uses lib/clock, lib/guard, lib/marks, lib/waiting, lib/lanes, lib/unique, lib/events, lib/ending, lib/reap

local rows, active, pending, dead, marker, failed, events, root = unpack(KEYS)
local max_stalled, limit = tonumber(ARGV[1]), tonumber(ARGV[2])

local queue = {
  rows = rows, active = active, pending = pending, dead = dead, marker = marker, failed = failed, events = events, root = root,
}
return reap(queue, max_stalled, limit)
