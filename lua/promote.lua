-- promote: let go on what has waited for its time: scheduled jobs, held lanes, parked jobs with nobody in front.
--
-- KEYS[1] rows      emq:{q}:job:<id>  hash  state
-- KEYS[2] schedule  emq:{q}:schedule  zset  members removed
-- KEYS[3] pending   emq:{q}:pending   zset  members added that have no lane
-- KEYS[4] marker    emq:{q}:marker    zset  set if any job waits
-- KEYS[5] root      emq:{q}:<lanes>   lanes members of lanes added, held lanes offered, members of `parked` looked at
-- ARGV[1] limit     how many at most
--
-- Answers how many were promoted; ms until the next is due, 0 if more are due now, or -1 if there is none; how many
-- ids without a row were dropped.
--
-- uses lib/clock, lib/guard, lib/waiting, lib/lanes, lib/unique, lib/promote

local rows, schedule, pending, marker, root = unpack(KEYS)
local limit = tonumber(ARGV[1])

return promote({ rows = rows, schedule = schedule, pending = pending, marker = marker, root = root }, limit)
