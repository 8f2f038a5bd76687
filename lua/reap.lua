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
-- uses lib/clock, lib/guard, lib/marks, lib/waiting, lib/lanes, lib/unique, lib/events, lib/ending

local rows, active, pending, dead, marker, failed, events, root = unpack(KEYS)
local max_stalled, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = now()

check_sets(pending, dead)
local ids = redis.call('ZRANGEBYSCORE', active, '-inf', time, 'LIMIT', 0, limit + 1)
local more = #ids > limit and 1 or 0
if more == 1 then ids[#ids] = nil end

local stalled, rowless, is_cancelled = {}, {}, false
for _, id in ipairs(ids) do
  local row = read_row(rows, id, 'stalled', 'priority', 'did', 'group', 'cancel')
  if row then
    local stalls = count(row[2]) + 1
    local job = { id = id, token = row[1] or '', stalls = stalls, priority = row[3], key = row[4], lane = row[5],
      cancel = row[6] }
    stalled[#stalled + 1] = job
    is_cancelled = is_cancelled or row[6]
  else
    rowless[#rowless + 1] = id
  end
end

if is_cancelled then check_sets(root .. 'done') end
if #ids > 0 then
  redis.call('ZREM', active, unpack(ids))
  left_active(root, marker)
end
-- Whose row is lost still has a slot.
for _, id in ipairs(rowless) do
  local lane = redis.pcall('HGET', root .. 'slots', id)
  free_slot(root, marker, id, type(lane) == 'string' and lane)
end
local recovered, buried, cancelled = {}, {}, {}
for _, job in ipairs(stalled) do
  local row = rows .. job.id
  redis.call('HDEL', row, 'worker', 'settled')
  free_slot(root, marker, job.id, job.lane)
  if job.cancel then
    to_cancelled(root, job.id, job.key, job.cancel)
    cancelled[#cancelled + 1] = job.id
  elseif max_stalled and job.stalls >= max_stalled then
    redis.call('HSET', row, 'state', 'dead', 'stalled', job.stalls, 'last_error', 'stalled')
    to_dead(dead, root, failed, events, job.id, job.key, time, 'stalled')
    buried[#buried + 1] = job.id
  else
    redis.call('HSET', row, 'state', 'pending', 'stalled', job.stalls, 'reaped', job.token)
    to_waiting(pending, root, marker, job.id, job.priority, job.lane)
    publish(events, 'stalled', job.id)
    recovered[#recovered + 1] = job.id
  end
end
return { more, #rowless, recovered, buried, cancelled }
