-- Moves waiting jobs to the active set under a lease; answers what `claim` answers. What is claimed is gathered first and
-- written afterwards, so that what raises in between has taken nothing. The places have been checked.
local function claim(queue, n, lease, worker, request)
  local exact = clock()
  local time = math.floor(exact)
  -- As text: the server is quicker with that than with a number.
  local deadline = string.format('%.0f', time + lease)

  local function read(id)
    return read_row(queue.rows, id, 'payload', 'name', 'failures', 'stalled', 'max_attempts', 'headers', 'group', 'reaped',
      'settled', 'expires', 'did', 'cancel', 'unique')
  end

  local jobs, expired, cancelled, dropped = {}, {}, {}, 0
  local function hand(id, token, row)
    local job = { id, token, row[2] or '', row[3] }
    -- Most jobs have nothing more to tell, and an answer of half the size.
    if row[4] or row[5] or row[6] or row[7] or row[8] then
      for i = 4, 8 do job[i + 1] = row[i] end
    end
    jobs[#jobs + 1] = job
  end

  local settings = redis.call('HMGET', queue.meta, 'paused', 'held', 'concurrency', 'rate', 'turn')
  local note = redis.call('HGET', queue.claims, worker)
  local room, rate = allowed(settings[4], exact)
  local resumes = tonumber(settings[2])
  if settings[1] or resumes and resumes > exact then room = 0 end
  if settings[3] then room = math.min(room, limit_of(settings[3]) - redis.call('ZCARD', queue.active)) end

  local taken, lines = {}, {}
  local left_to_look = math.max(n, 100)
  local function take(line, want)
    local got = 0
    line.size = line.size or length_of(line.place)
    while got < want and line.from < line.size and left_to_look > 0 do
      local ids = redis.call('ZRANGE', line.place, line.from, line.from + math.min(want - got, left_to_look) - 1)
      if not line.ids then
        lines[#lines + 1], line.ids = line, {}
      end
      line.from = line.from + #ids
      left_to_look = left_to_look - #ids
      for _, id in ipairs(ids) do
        local row = read(id)
        line.ids[#line.ids + 1] = id
        if not row then
          dropped = dropped + 1
        elseif row[13] then
          cancelled[#cancelled + 1] = { id = id, key = row[12], retention = row[13] }
        elseif row[11] and count(row[1]) == 0 and count(row[11]) <= time then
          expired[#expired + 1] = { id = id, key = row[12] }
        else
          local token = string.format('%.0f', count(row[1]) + 1)
          taken[#taken + 1] = { id = id, token = token, row = row, lane = line.name or row[8] ~= '' and row[8] }
          got = got + 1
        end
      end
    end
    line.got = line.got + got
    return got
  end

  -- The reply of this very request was lost: what it took is still the worker's, under a lease that begins again.
  local function again()
    for id, token in string.gmatch(note, '|([^|:]+):([^|]+)') do
      local row = read(id)
      if row and row[1] == token and redis.call('ZSCORE', queue.active, id) then
        redis.call('ZREM', queue.active, id)
        redis.call('ZADD', queue.active, deadline, id)
        hand(id, token, row)
      end
    end
  end

  local function lease_out()
    local running, leases, slots, mine = {}, {}, {}, { request, string.format('%.0f', time) }
    for _, job in ipairs(taken) do
      local key = queue.rows .. job.id
      redis.call('HSET', key, 'state', 'active', 'attempts', job.token, 'worker', worker)
      if job.row[9] or job.row[10] then redis.call('HDEL', key, 'reaped', 'settled') end
      -- A job is of the lane in which it was found.
      if job.lane and job.lane ~= job.row[8] then
        redis.call('HSET', key, 'group', job.lane)
        job.row[8] = job.lane
      end
      leases[#leases + 1] = deadline
      leases[#leases + 1] = job.id
      if job.lane then
        slots[#slots + 1] = job.id
        slots[#slots + 1] = job.lane
        running[job.lane] = (running[job.lane] or 0) + 1
      end
      mine[#mine + 1] = job.id .. ':' .. job.token
      hand(job.id, job.token, job.row)
    end
    redis.call('ZADD', queue.active, unpack(leases))
    if #slots > 0 then redis.pcall('HSET', queue.root .. 'slots', unpack(slots)) end
    for lane, jobs_of_it in pairs(running) do redis.pcall('HINCRBY', queue.root .. 'gactive', lane, jobs_of_it) end
    for _, job in ipairs(taken) do
      if job.row[14] == 'start' then free_key(queue.root, job.row[12], job.id) end
    end
    redis.call('HSET', queue.claims, worker, table.concat(mine, '|'))
    if rate then redis.call('HSET', queue.meta, 'rate', (spend(rate, #taken))) end
  end

  local function claim_new()
    local lanes = window(queue.root, n, exact)
    local fetched = #lanes
    local length = fetched > 0 and redis.call('LLEN', queue.root .. 'ring') or 0
    local flat = { place = queue.pending, from = 0, got = 0 }
    local turns = in_turn(lanes, length, flat, math.min(n, room), settings[5], take)
    if #expired > 0 then check_sets(queue.dead) end
    if #cancelled > 0 then check_sets(queue.root .. 'done') end
    for _, line in ipairs(lines) do redis.call('ZREM', line.place, unpack(line.ids)) end
    if fetched > 0 then
      turn_ring(queue.root, lanes, fetched, turns, time)
      redis.call('HSET', queue.meta, 'turn', turn_text(turns, lanes))
    end
    if #taken > 0 then lease_out() end
    for _, job in ipairs(expired) do
      redis.call('HSET', queue.rows .. job.id, 'state', 'dead', 'last_error', 'expired')
      to_dead(queue.dead, queue.root, queue.failed, queue.events, job.id, job.key, time, 'expired')
    end
    -- Asked for while a worker held the job; our own transitions see to it when it goes back.
    for _, job in ipairs(cancelled) do to_cancelled(queue.root, job.id, job.key, job.retention) end
    room = room - #taken
  end

  if note and string.sub(note, 1, #request + 1) == request .. '|' then
    again()
  elseif room > 0 then
    claim_new()
  end

  local more = 0
  if room > 0 and (redis.call('ZCARD', queue.pending) > 0 or redis.call('LLEN', queue.root .. 'ring') > 0) then
    more = 1
    wake(queue.marker)
  end

  local next_event = -1
  local function expect(at)
    local ms = math.max(0, math.ceil(at - exact))
    if next_event < 0 or ms < next_event then next_event = ms end
  end
  -- Who has more to claim looks again before long; until then the beat does.
  if more == 0 then
    for _, set in ipairs({ queue.schedule, queue.active, queue.root .. 'held' }) do
      local head = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')
      if head[2] then expect(tonumber(head[2])) end
    end
    -- Slots that are due already are looked at on the beat: it may be that no worker here can run them.
    local after = string.format('(%.0f', time)
    local slot = redis.pcall('ZRANGEBYSCORE', queue.root .. 'repeat', after, '(+inf', 'LIMIT', 0, 1, 'WITHSCORES')
    if slot[2] then expect(tonumber(slot[2])) end
  end
  if resumes and resumes > exact then expect(resumes) end
  if rate and #taken >= rate.room then
    local _, next_start = spend(rate, #taken)
    expect(next_start)
  end

  return { request, more, next_event, dropped, #expired, unpack(jobs) }
end
