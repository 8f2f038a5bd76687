-- Puts jobs into the active set; `leases` has the end of each lease and the id. A small set the server keeps as a list, which it
-- searches from its head for each member that comes or goes. A member that is too long for a list makes it an index,
-- and that it stays until it is empty.
local function add_leases(active, leases)
  if #leases < 32 then
    redis.call('ZADD', active, unpack(leases))
  else
    local long = string.rep('-', 100)
    redis.call('ZADD', active, 0, long, unpack(leases))
    redis.call('ZREM', active, long)
  end
end

-- Moves waiting jobs to the active set under a lease; answers what `claim` answers. What is claimed is gathered first and
-- written afterwards, so that what raises in between has taken nothing. The places have been checked.
local function claim(queue, n, lease, worker, request)
  local exact = clock()
  local time = math.floor(exact)
  -- As text: the server is quicker with that than with a number.
  local deadline = string.format('%.0f', time + lease)

  -- The row of a waiting job and, unless it is plain and this is its first claim, what else of it a claim has to know.
  local function read(id)
    local row = read_row(queue.rows, id, 'payload', 'name', 'more')
    if not row or row[1] == '0' and not row[4] then return row end
    local field = redis.call('HMGET', queue.rows .. id, 'failures', 'stalled', 'max_attempts', 'headers', 'group', 'reaped',
      'settled', 'expires', 'did', 'cancel', 'unique')
    return row, {
      failures = field[1], stalled = field[2], max_attempts = field[3], headers = field[4], lane = field[5] ~= '' and field[5],
      is_settled = field[6] or field[7], expires = field[8], key = field[9], cancel = field[10], unique = field[11],
    }
  end

  -- What is answered of the jobs: four values of each, the lanes of those that have one, and of those that have more to
  -- tell what that is.
  local jobs, lanes_told, further, handed = {}, {}, {}, 0
  local function hand(id, token, row, more, lane)
    local at = 4 * handed
    jobs[at + 1], jobs[at + 2], jobs[at + 3], jobs[at + 4] = id, token, row[2] or '', row[3]
    if lane then
      lanes_told[#lanes_told + 1] = handed
      lanes_told[#lanes_told + 1] = lane
    end
    if more then further[#further + 1] = { handed, more.failures, more.stalled, more.max_attempts, more.headers } end
    handed = handed + 1
  end

  local settings = redis.call('HMGET', queue.meta, 'paused', 'held', 'concurrency', 'rate', 'turn')
  local note = redis.call('HGET', queue.claims, worker)
  local room, rate = allowed(settings[4], exact)
  local resumes = tonumber(settings[2])
  if settings[1] or resumes and resumes > exact then room = 0 end
  if settings[3] then room = math.min(room, limit_of(settings[3]) - redis.call('ZCARD', queue.active)) end

  local expired, cancelled, dropped = {}, {}, 0
  -- A column each: a table for each job would take longer than all else that is done with it here.
  local taken, ids_taken, tokens, rows, mores, lanes_of_taken = 0, {}, {}, {}, {}, {}
  local lines = {}
  local left_to_look = math.max(n, 100)
  local function take(line, want)
    local got = 0
    while got < want and not line.is_used_up and left_to_look > 0 do
      local look = math.min(want - got, left_to_look)
      -- One more, which says whether that is all.
      local ids = redis.pcall('ZRANGE', line.place, line.from, line.from + look)
      line.is_used_up = #ids <= look
      if #ids > 0 and line.from == 0 then lines[#lines + 1] = line end
      for i = 1, math.min(#ids, look) do
        local id = ids[i]
        local row, more = read(id)
        if not row then
          dropped = dropped + 1
        elseif more and more.cancel then
          cancelled[#cancelled + 1] = { id = id, key = more.key, retention = more.cancel }
        elseif more and more.expires and count(row[1]) == 0 and count(more.expires) <= time then
          expired[#expired + 1] = { id = id, key = more.key }
        else
          taken, got = taken + 1, got + 1
          ids_taken[taken], rows[taken], mores[taken] = id, row, more or false
          tokens[taken] = row[1] == '0' and '1' or string.format('%.0f', count(row[1]) + 1)
          -- A job is of the lane in which it was found.
          lanes_of_taken[taken] = line.name or more and more.lane or false
        end
      end
      line.from = line.from + math.min(#ids, look)
      left_to_look = left_to_look - math.min(#ids, look)
    end
    line.got = line.got + got
    return got
  end

  -- The reply of this very request was lost: what it took is still the worker's, under a lease that begins again.
  local function again()
    for id, token in string.gmatch(note, '|([^|:]+):([^|]+)') do
      local row, more = read(id)
      if row and row[1] == token and redis.call('ZSCORE', queue.active, id) then
        redis.call('ZREM', queue.active, id)
        redis.call('ZADD', queue.active, deadline, id)
        hand(id, token, row, more, more and more.lane)
      end
    end
  end

  local function lease_out()
    local leases, mine = {}, { request, string.format('%.0f', time) }
    local slots, running = {}, {}
    for i = 1, taken do
      local id, token, lane, more = ids_taken[i], tokens[i], lanes_of_taken[i], mores[i]
      local key = queue.rows .. id
      if lane then
        redis.call('HSET', key, 'state', 'active', 'attempts', token, 'worker', worker, 'group', lane)
        slots[#slots + 1] = id
        slots[#slots + 1] = lane
        running[lane] = (running[lane] or 0) + 1
      else
        redis.call('HSET', key, 'state', 'active', 'attempts', token, 'worker', worker)
      end
      if more and more.is_settled then redis.call('HDEL', key, 'reaped', 'settled') end
      leases[2 * i - 1], leases[2 * i] = deadline, id
      mine[i + 2] = id .. ':' .. token
      hand(id, token, rows[i], more, lane)
    end
    add_leases(queue.active, leases)
    if #slots > 0 then take_slots(queue.root, slots, running) end
    for i = 1, taken do
      local more = mores[i]
      if more and more.unique == 'start' then free_key(queue.root, more.key, ids_taken[i]) end
    end
    redis.call('HSET', queue.claims, worker, table.concat(mine, '|'))
    if rate then redis.call('HSET', queue.meta, 'rate', (spend(rate, taken))) end
  end

  local function claim_new()
    local lanes = window(queue.root, n, exact)
    local fetched = #lanes
    local length = fetched > 0 and redis.call('LLEN', queue.root .. 'ring') or 0
    local flat = { place = queue.pending, from = 0, got = 0 }
    local turns = in_turn(lanes, length, flat, math.min(n, room), settings[5], take)
    if #expired > 0 then check_sets(queue.dead) end
    if #cancelled > 0 then check_sets(queue.root .. 'done') end
    -- Whatever was looked at goes, and that is the head of each line.
    for _, line in ipairs(lines) do redis.call('ZREMRANGEBYRANK', line.place, 0, line.from - 1) end
    if fetched > 0 then
      turn_ring(queue.root, lanes, fetched, turns, time)
      redis.call('HSET', queue.meta, 'turn', turn_text(turns, lanes))
    end
    if taken > 0 then lease_out() end
    for _, job in ipairs(expired) do
      redis.call('HSET', queue.rows .. job.id, 'state', 'dead', 'last_error', 'expired')
      to_dead(queue.dead, queue.root, queue.failed, queue.events, job.id, job.key, time, 'expired')
    end
    -- Asked for while a worker held the job; our own transitions see to it when it goes back.
    for _, job in ipairs(cancelled) do to_cancelled(queue.root, job.id, job.key, job.retention) end
    room = room - taken
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
  if rate and taken >= rate.room then
    local _, next_start = spend(rate, taken)
    expect(next_start)
  end

  return { request, more, next_event, dropped, #expired, jobs, lanes_told, further }
end
