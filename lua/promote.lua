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
-- uses lib/clock, lib/guard, lib/waiting, lib/lanes, lib/unique

local rows, schedule, pending, marker, root = unpack(KEYS)
local limit, time = tonumber(ARGV[1]), now()

check_sets(pending, root .. 'held', root .. 'parked')
-- Raises here if it isn't a list, and not after the writes.
redis.call('LLEN', root .. 'ring')
local ids = redis.call('ZRANGEBYSCORE', schedule, '-inf', time, 'LIMIT', 0, limit)
local freed = redis.call('ZRANGEBYSCORE', root .. 'held', '-inf', time, 'LIMIT', 0, limit)
local due, dropped = {}, 0
for _, id in ipairs(ids) do
  local row = read_row(rows, id, 'priority', 'group')
  if row then
    due[#due + 1] = { id = id, priority = row[2], lane = row[3] }
  else
    dropped = dropped + 1
  end
end

if #ids > 0 then redis.call('ZREM', schedule, unpack(ids)) end
for _, job in ipairs(due) do
  redis.call('HSET', rows .. job.id, 'state', 'pending')
  to_waiting(pending, root, marker, job.id, job.priority, job.lane)
end
if #freed > 0 then
  redis.call('ZREM', root .. 'held', unpack(freed))
  redis.pcall('HDEL', root .. 'gheld', unpack(freed))
end
for _, lane in ipairs(freed) do offer(root, marker, lane) end
look_after_parked(root, time, limit)

-- Whatever waits, and not only what was promoted: a marker that got lost, with the worker that took it or with a
-- server that forgot it, is made good here.
if redis.call('ZCARD', pending) + redis.call('LLEN', root .. 'ring') > 0 then wake(marker) end

local next_due = -1
for _, set in ipairs({ schedule, root .. 'held' }) do
  local head = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')
  local ms = head[2] and math.max(0, tonumber(head[2]) - time) or -1
  if ms >= 0 and (next_due < 0 or ms < next_due) then next_due = ms end
end
return { #due, next_due, dropped }
