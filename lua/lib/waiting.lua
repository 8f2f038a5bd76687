-- Wakes one worker that waits for this queue. The marker is one member: a hundred jobs set it once, and the worker
-- that takes it sets it again if it leaves work behind.
local function wake(marker)
  redis.call('ZADD', marker, 0, '0')
end

-- Puts a job where it can be claimed; the lower priority runs first, then the older id.
local function to_waiting(pending, marker, id, priority)
  redis.call('ZADD', pending, priority or 0, id)
  wake(marker)
end

-- Puts a job on the schedule. A worker that sleeps until the job that was due next has to learn of an earlier one.
local function to_schedule(schedule, marker, id, due)
  redis.call('ZADD', schedule, due, id)
  if redis.call('ZRANGE', schedule, 0, 0)[1] == id then wake(marker) end
end
