-- promote: move scheduled jobs that are due to their waiting place.
--
-- KEYS[1] rows      emq:{q}:job:<id>  hash  state
-- KEYS[2] schedule  emq:{q}:schedule  zset  members removed
-- KEYS[3] pending   emq:{q}:pending   zset  members added
-- KEYS[4] marker    emq:{q}:marker    zset  set if any job waits
-- ARGV[1] limit     how many at most
--
-- Answers how many were promoted; ms until the next is due, 0 if more are due now, or -1 if none is scheduled; how many
-- ids without a row were dropped.
--
-- uses lib/clock, lib/guard, lib/waiting

local rows, schedule, pending, marker = unpack(KEYS)
local time = now()

check_sets(pending)
local ids = redis.call('ZRANGEBYSCORE', schedule, '-inf', time, 'LIMIT', 0, tonumber(ARGV[1]))
local due, dropped = {}, 0
for _, id in ipairs(ids) do
  local row = read_row(rows, id, 'priority')
  if row then
    due[#due + 1] = { id = id, priority = row[2] }
  else
    dropped = dropped + 1
  end
end

if #ids > 0 then redis.call('ZREM', schedule, unpack(ids)) end
for _, job in ipairs(due) do
  redis.call('HSET', rows .. job.id, 'state', 'pending')
  to_waiting(pending, marker, job.id, job.priority)
end

-- Whatever waits, and not only what was promoted: a marker that got lost, with the worker that took it or with a
-- server that forgot it, is made good here.
if redis.call('ZCARD', pending) > 0 then wake(marker) end

local head = redis.call('ZRANGE', schedule, 0, 0, 'WITHSCORES')
return { #due, head[2] and math.max(0, tonumber(head[2]) - time) or -1, dropped }
