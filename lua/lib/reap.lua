-- Takes jobs whose lease ran out from the active set; answers what `reap` answers.
local function reap(queue, max_stalled, limit)
  local time = now()

  check_sets(queue.pending, queue.dead)
  local ids = redis.call('ZRANGEBYSCORE', queue.active, '-inf', time, 'LIMIT', 0, limit + 1)
  local more = #ids > limit and 1 or 0
  if more == 1 then ids[#ids] = nil end

  local stalled, rowless, is_cancelled = {}, {}, false
  for _, id in ipairs(ids) do
    local row = read_row(queue.rows, id, 'stalled', 'priority', 'did', 'group', 'cancel')
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

  if is_cancelled then check_sets(queue.root .. 'done') end
  if #ids > 0 then
    redis.call('ZREM', queue.active, unpack(ids))
    left_active(queue.root, queue.marker)
  end
  -- Whose row is lost still has a slot.
  for _, id in ipairs(rowless) do
    local lane = redis.pcall('HGET', queue.root .. 'slots', id)
    free_slot(queue.root, queue.marker, id, type(lane) == 'string' and lane)
  end
  local recovered, buried, cancelled = {}, {}, {}
  for _, job in ipairs(stalled) do
    local row = queue.rows .. job.id
    redis.call('HDEL', row, 'worker', 'settled')
    free_slot(queue.root, queue.marker, job.id, job.lane)
    if job.cancel then
      to_cancelled(queue.root, job.id, job.key, job.cancel)
      cancelled[#cancelled + 1] = job.id
    elseif max_stalled and job.stalls >= max_stalled then
      redis.call('HSET', row, 'state', 'dead', 'stalled', job.stalls, 'last_error', 'stalled')
      to_dead(queue.dead, queue.root, queue.failed, queue.events, job.id, job.key, time, 'stalled')
      buried[#buried + 1] = job.id
    else
      redis.call('HSET', row, 'state', 'pending', 'stalled', job.stalls, 'reaped', job.token)
      to_waiting(queue.pending, queue.root, queue.marker, job.id, job.priority, job.lane)
      publish(queue.events, 'stalled', job.id)
      recovered[#recovered + 1] = job.id
    end
  end
  return { more, #rowless, recovered, buried, cancelled }
end
