-- update: change a job that waits, is scheduled or is parked: what it is to do, its priority, when it is due.
--
-- KEYS[1] row       emq:{q}:job:<id>  hash  payload, priority, state, due, updated = the call; reaped removed
-- KEYS[2] active    emq:{q}:active    zset  read
-- KEYS[3] pending   emq:{q}:pending   zset  member added or removed, or its score changed, if the job has no lane
-- KEYS[4] schedule  emq:{q}:schedule  zset  member added or removed, or its score changed
-- KEYS[5] dead      emq:{q}:dead      zset  read
-- KEYS[6] marker    emq:{q}:marker    zset  set if the job can run now, or is due before all others
-- KEYS[7] root      emq:{q}:<lanes>   lanes the same for a job that has a lane
-- ARGV[1] id
-- ARGV[2] call       unique among the updates of the job
-- ARGV[3] due        empty to leave it, `now`, `+ms` from the server's now, or Unix ms
-- ARGV[4..] names and values of the fields of the row that are changed
--
-- OK        the job is as it was to be
-- GONE      there is no such job; nothing was written
-- DONE      this call has been carried out before; nothing was written
-- EMQLOCK   error: a worker holds the job; nothing was written
-- EMQSTATE  error: the job is dead, or waits for its children; nothing was written
--
-- uses lib/clock, lib/guard, lib/waiting, lib/lanes

local row, active, pending, schedule, dead, marker, root = unpack(KEYS)
local id, call, due = ARGV[1], ARGV[2], ARGV[3]
local time = now()

check_sets(pending, schedule, root .. 'parked')
local field = redis.call('HMGET', row, 'group', 'priority', 'updated', 'due', 'state')
if redis.call('EXISTS', row) == 0 then return 'GONE' end
if field[3] == call then return 'DONE' end
if redis.call('ZSCORE', active, id) then return redis.error_reply('EMQLOCK the job is active: a worker holds it') end
if redis.call('ZSCORE', dead, id) then return redis.error_reply('EMQSTATE the job is dead: revive it first') end

-- A parent of another implementation.
if field[5] == 'awaiting_children' then return redis.error_reply('EMQSTATE the job waits for its children') end

local lane, priority = field[1], field[2]
for i = 4, #ARGV, 2 do
  if ARGV[i] == 'priority' then priority = ARGV[i + 1] end
end
local scheduled = redis.call('ZSCORE', schedule, id)
local parked = redis.call('ZSCORE', root .. 'parked', id)
local at = tonumber(scheduled or parked and field[4])
if due == 'now' then
  at = nil
elseif string.sub(due, 1, 1) == '+' then
  at = time + tonumber(string.sub(due, 2))
elseif due ~= '' then
  at = tonumber(due)
end

-- First of all a write that a server allows when it is out of memory.
-- A worker that had lost the job to the reaper could still settle it, without having seen what it is now.
redis.call('HDEL', row, 'updated', 'reaped')
if parked then
  -- Its place stays: it goes on when the job in front has ended, and not before it is due.
  redis.call('HDEL', row, 'due')
  if at and at > time then redis.call('HSET', row, 'due', string.format('%.0f', at)) end
  redis.call('HSET', row, 'updated', call, unpack(ARGV, 4))
  return 'OK'
end
if scheduled then
  redis.call('ZREM', schedule, id)
else
  leave_line(pending, root, id, lane)
end
redis.call('HSET', row, 'state', at and at > time and 'scheduled' or 'pending', 'updated', call, unpack(ARGV, 4))
if at and at > time then
  to_schedule(schedule, marker, id, at)
else
  to_waiting(pending, root, marker, id, priority, lane)
end
return 'OK'
