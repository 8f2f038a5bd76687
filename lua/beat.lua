-- beat: what time does to a queue, in one call: reap, promote, and whether a recurring job has a slot that is due.
--
-- KEYS[1] rows       emq:{q}:job:<id>        hash    as reap and promote
-- KEYS[2] active     emq:{q}:active          zset    as reap
-- KEYS[3] schedule   emq:{q}:schedule        zset    as promote
-- KEYS[4] pending    emq:{q}:pending         zset    as reap and promote
-- KEYS[5] dead       emq:{q}:dead            zset    as reap
-- KEYS[6] marker     emq:{q}:marker          zset    as reap and promote
-- KEYS[7] failed     emq:{q}:metrics:failed  hash    as reap
-- KEYS[8] events     emq:{q}:events          channel as reap
-- KEYS[9] recurring  emq:{q}:repeat          zset    read
-- KEYS[10] root      emq:{q}:<lanes>         lanes   as reap and promote
-- ARGV[1] max_stalled  as of reap
-- ARGV[2] limit        as of reap and promote
--
-- Answers what reap answers; what promote answers; ms until the next slot, 0 if one is due, or -1 if there is none; and of
-- how many kinds there is something that time may do something to. For a transition that raised there is an empty list:
-- called by itself, it says why.
--
-- uses lib/clock, lib/guard, lib/marks, lib/waiting, lib/lanes, lib/unique, lib/events, lib/ending, lib/reap, lib/promote

local rows, active, schedule, pending, dead, marker, failed, events, recurring, root = unpack(KEYS)
local max_stalled, limit = tonumber(ARGV[1]), tonumber(ARGV[2])

local queue = {
  rows = rows, active = active, schedule = schedule, pending = pending, dead = dead, marker = marker, failed = failed,
  events = events, root = root,
}
-- One that raises must not keep the other from its work.
local is_reaped, reaped = pcall(reap, queue, max_stalled, limit)
local is_promoted, promoted = pcall(promote, queue, limit)

local head = redis.pcall('ZRANGE', recurring, 0, 0, 'WITHSCORES')
-- What isn't a sorted set is looked at, too, so that who looks is told.
local slot = head.err and 0 or tonumber(head[2]) or math.huge
local wait = slot < math.huge and math.max(0, slot - now()) or -1
local kinds = redis.call('EXISTS', active, schedule, pending, recurring, root .. 'held', root .. 'parked', root .. 'ring')
return { is_reaped and reaped or {}, is_promoted and promoted or {}, wait, kinds }
