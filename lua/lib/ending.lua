-- Makes a job that was taken from its place a dead letter; `reason` is what its row says as the last error.
local function to_dead(dead, root, failed, events, id, key, time, reason)
  redis.call('ZADD', dead, time, id)
  end_key(root, key, id, time)
  add(failed, 'count', 1)
  publish(events, 'dead', id, ',"reason":' .. cjson.encode(reason))
end

-- Ends a job as cancelled that was taken from its place: everything of it goes, and its id is remembered for so many ms.
local function to_cancelled(root, id, key, retention)
  local row = root .. 'job:' .. id
  redis.call('DEL', row, row .. ':logs', row .. ':result')
  free_key(root, key, id)
  redis.call('ZADD', root .. 'done', now() + count(retention) + cancelled_mark(), id)
  publish(root .. 'events', 'cancelled', id)
end
