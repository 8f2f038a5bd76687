-- Tells who listens. Last of all and by pcall: a user who may not publish must not break a transition half way. An id
-- is 14 letters and digits, which JSON takes as they are.
local function publish(channel, event, id)
  redis.pcall('PUBLISH', channel, '{"event":"' .. event .. '","job":"' .. id .. '"}')
end

-- Makes a job that was taken from its place a dead letter.
local function to_dead(dead, root, failed, events, id, key, time)
  redis.call('ZADD', dead, time, id)
  end_key(root, key, id, time)
  add(failed, 'count', 1)
  publish(events, 'dead', id)
end

-- Ends a job as cancelled that was taken from its place: everything of it goes, and its id is remembered for so many ms.
local function to_cancelled(root, id, key, retention)
  local row = root .. 'job:' .. id
  redis.call('DEL', row, row .. ':logs', row .. ':result')
  free_key(root, key, id)
  redis.call('ZADD', root .. 'done', now() + count(retention) + cancelled_mark(), id)
  publish(root .. 'events', 'cancelled', id)
end
