-- complete: end jobs as done, those whose tokens hold them.
--
-- KEYS[1] rows       emq:{q}:job:<id>           hash    row and logs deleted; result set with the retention as TTL
-- KEYS[2] active     emq:{q}:active             zset    members removed
-- KEYS[3] pending    emq:{q}:pending            zset    members removed, if the reaper had put them back
-- KEYS[4] done       emq:{q}:done               zset    members added, score = when they may be forgotten
-- KEYS[5] completed  emq:{q}:metrics:completed  hash    count
-- KEYS[6] events     emq:{q}:events             channel completed
-- KEYS[7] marker     emq:{q}:marker             zset    set if someone waited for a slot
-- KEYS[8] root       emq:{q}:<lanes>            lanes   slots and deduplication keys freed, or those passed on
-- ARGV[1..] per group of jobs that end alike: fencing token; retention in ms; result, encoded, or empty for none; something
--           if they were plain when they were claimed: no lane, and nothing of what few jobs have; how many; their ids. At
--           most 250 jobs
--
-- Answers one word per job, in order, or only one if that is OK for all:
-- OK         the job is done
-- STALE      the token doesn't hold the job; nothing was written for it
-- GONE       there is no such job; nothing was written for it
-- DONE       this was carried out before; nothing was written for it
-- CANCELLED  the job was cancelled and is gone; nothing was written for it
--
-- uses lib/clock, lib/guard, lib/marks, lib/waiting, lib/lanes, lib/unique, lib/events, lib/fence, lib/complete

local rows, active, pending, done, completed, events, marker, root = unpack(KEYS)

local queue = {
  rows = rows, active = active, pending = pending, done = done, completed = completed, events = events,
  marker = marker, root = root,
}
return complete(queue, ARGV, 1)
