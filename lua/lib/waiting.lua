-- Wakes one worker that waits for this queue. The marker is one member: a hundred jobs set it once, and the worker
-- that takes it sets it again if it leaves work behind. By pcall: a marker that can't be set costs a worker the time
-- until it looks by itself, and must not stop a transition half way.
local function wake(marker)
  redis.pcall('ZADD', marker, '0', '0')
end

-- Puts a job on the schedule. A worker that sleeps until the job that was due next has to learn of an earlier one.
local function to_schedule(schedule, marker, id, due)
  redis.call('ZADD', schedule, due, id)
  if redis.call('ZRANGE', schedule, 0, 0)[1] == id then wake(marker) end
end
