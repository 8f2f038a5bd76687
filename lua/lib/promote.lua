-- Lets go on what has waited for its time; answers what `promote` answers.
local function promote(queue, limit)
  local time = now()

  check_sets(queue.pending, queue.root .. 'held', queue.root .. 'parked')
  -- Raises here if it isn't a list, and not after the writes.
  redis.call('LLEN', queue.root .. 'ring')
  local ids = redis.call('ZRANGEBYSCORE', queue.schedule, '-inf', time, 'LIMIT', 0, limit)
  local freed = redis.call('ZRANGEBYSCORE', queue.root .. 'held', '-inf', time, 'LIMIT', 0, limit)
  local due, dropped = {}, 0
  for _, id in ipairs(ids) do
    local row = read_row(queue.rows, id, 'priority', 'group')
    if row then
      due[#due + 1] = { id = id, priority = row[2], lane = row[3] }
    else
      dropped = dropped + 1
    end
  end

  if #ids > 0 then redis.call('ZREM', queue.schedule, unpack(ids)) end
  for _, job in ipairs(due) do
    redis.call('HSET', queue.rows .. job.id, 'state', 'pending')
    to_waiting(queue.pending, queue.root, queue.marker, job.id, job.priority, job.lane)
  end
  if #freed > 0 then
    redis.call('ZREM', queue.root .. 'held', unpack(freed))
    redis.pcall('HDEL', queue.root .. 'gheld', unpack(freed))
  end
  for _, lane in ipairs(freed) do offer(queue.root, queue.marker, lane) end
  look_after_parked(queue.root, time, limit)

  -- Whatever waits, and not only what was promoted: a marker that got lost, with the worker that took it or with a
  -- server that forgot it, is made good here.
  if redis.call('ZCARD', queue.pending) + redis.call('LLEN', queue.root .. 'ring') > 0 then wake(queue.marker) end

  local next_due = -1
  for _, set in ipairs({ queue.schedule, queue.root .. 'held' }) do
    local head = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')
    local ms = head[2] and math.max(0, tonumber(head[2]) - time) or -1
    if ms >= 0 and (next_due < 0 or ms < next_due) then next_due = ms end
  end
  return { #due, next_due, dropped }
end
