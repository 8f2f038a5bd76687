-- Puts jobs into the active set; `leases` has the end of each lease and the id. A small set the server keeps as a list, which it
-- searches from its head for each member that comes or goes. A member that is too long for a list makes it an index,
-- and that it stays until it is empty.
local function add_leases(active, leases)
  if #leases <= 32 then
    redis.call('ZADD', active, unpack(leases))
  else
    local long = string.rep('-', 100)
    redis.call('ZADD', active, 0, long, unpack(leases))
    redis.call('ZREM', active, long)
  end
end

-- What else of a job a claim has to know, unless it is plain and this is its first claim.
local function read_further(rows, id)
  local field = redis.call('HMGET', rows .. id, 'failures', 'stalled', 'max_attempts', 'headers', 'group', 'reaped',
    'settled', 'expires', 'did', 'cancel', 'unique')
  return {
    failures = field[1], stalled = field[2], max_attempts = field[3], headers = field[4], lane = field[5] ~= '' and field[5],
    is_settled = field[6] or field[7], expires = field[8], key = field[9], cancel = field[10], unique = field[11],
  }
end

-- How a job that a request took is noted: nearly always it is the first claim of that job.
local function noted(id, token)
  return token == '1' and id or id .. ':' .. token
end

-- Moves waiting jobs to the active set under a lease; answers what `claim` answers. What is claimed is gathered first and
-- written afterwards, so that what raises in between has taken nothing. The places have been checked.
local function claim(queue, n, lease, worker, request)
  local rows = queue.rows
  local exact = clock()
  local time = math.floor(exact)
  -- As text: the server is quicker with that than with a number.
  local deadline = string.format('%.0f', time + lease)

  -- What is answered of the jobs: four values of each, the lanes of those that have one, and of those that have more to
  -- tell what that is. A table for each job would take longer than all else that is done with it here.
  local handed, jobs, lanes_told, further = 0, {}, {}, {}
  -- By the number of the job, where there is one.
  local lane_of, more_of = {}, {}
  local function hand(id, token, row, more, lane)
    local at = 4 * handed
    jobs[at + 1], jobs[at + 2], jobs[at + 3], jobs[at + 4] = id, token, row[2] or '', row[3]
    if lane then
      lanes_told[#lanes_told + 1] = handed
      lanes_told[#lanes_told + 1] = lane
    end
    if more then further[#further + 1] = { handed, more.failures, more.stalled, more.max_attempts, more.headers } end
    handed = handed + 1
    -- To set nothing would make an entry, too.
    if lane then lane_of[handed] = lane end
    if more then more_of[handed] = more end
  end

  local settings = redis.call('HMGET', queue.meta, 'paused', 'held', 'concurrency', 'rate', 'turn')
  local note = redis.call('HGET', queue.claims, worker)
  local room, rate = allowed(settings[4], exact)
  local resumes = tonumber(settings[2])
  if settings[1] or resumes and resumes > exact then room = 0 end
  if settings[3] then room = math.min(room, limit_of(settings[3]) - redis.call('ZCARD', queue.active)) end

  local expired, cancelled, dropped = {}, {}, 0
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
      look = math.min(look, #ids)
      for i = 1, look do
        local id = ids[i]
        local row = read_row(rows, id, 'payload', 'name', 'more')
        local more = row and (row[1] ~= '0' or row[4]) and read_further(rows, id)
        if not row then
          dropped = dropped + 1
        elseif more and more.cancel then
          cancelled[#cancelled + 1] = { id = id, key = more.key, retention = more.cancel }
        elseif more and more.expires and count(row[1]) == 0 and count(more.expires) <= time then
          expired[#expired + 1] = { id = id, key = more.key }
        else
          got = got + 1
          local token = row[1] == '0' and '1' or string.format('%.0f', count(row[1]) + 1)
          -- A job is of the lane in which it was found.
          hand(id, token, row, more, line.name or more and more.lane)
        end
      end
      line.from = line.from + look
      left_to_look = left_to_look - look
    end
    line.got = line.got + got
    return got
  end

  local flat = { place = queue.pending, from = 0, got = 0 }
  local taken = 0
  if note and string.sub(note, 1, #request + 1) == request .. '|' then
    -- The reply of this very request was lost: what it took is still the worker's, under a lease that begins again.
    for entry in string.gmatch(note, '|([^|]+)') do
      local id = string.sub(entry, 1, 14)
      local row = read_row(rows, id, 'payload', 'name', 'more')
      local more = row and (row[1] ~= '0' or row[4]) and read_further(rows, id)
      if row and noted(id, row[1] or '') == entry and redis.call('ZSCORE', queue.active, id) then
        redis.call('ZREM', queue.active, id)
        redis.call('ZADD', queue.active, deadline, id)
        hand(id, row[1], row, more, more and more.lane)
      end
    end
  elseif room > 0 then
    local lanes = window(queue.root, n, exact)
    local fetched = #lanes
    local length = fetched > 0 and redis.call('LLEN', queue.root .. 'ring') or 0
    local turns = in_turn(lanes, length, flat, math.min(n, room), settings[5], take)
    taken = handed
    if #expired > 0 then check_sets(queue.dead) end
    if #cancelled > 0 then check_sets(queue.root .. 'done') end

    -- Whatever was looked at goes, and that is the head of each line.
    for _, line in ipairs(lines) do redis.call('ZREMRANGEBYRANK', line.place, 0, line.from - 1) end
    if fetched > 0 then
      turn_ring(queue.root, lanes, fetched, turns, time)
      redis.call('HSET', queue.meta, 'turn', turn_text(turns, lanes))
    end
    local leases, mine = {}, { request, string.format('%.0f', time) }
    local slots, running, started = {}, {}, {}
    for i = 1, taken do
      local id, token, lane, more = jobs[4 * i - 3], jobs[4 * i - 2], lane_of[i], more_of[i]
      local key = rows .. id
      if lane then
        redis.call('HSET', key, 'state', 'active', 'attempts', token, 'worker', worker, 'group', lane)
        slots[#slots + 1] = id
        slots[#slots + 1] = lane
        running[lane] = (running[lane] or 0) + 1
      else
        redis.call('HSET', key, 'state', 'active', 'attempts', token, 'worker', worker)
      end
      if more then
        if more.is_settled then redis.call('HDEL', key, 'reaped', 'settled') end
        if more.unique == 'start' then started[#started + 1] = { id = id, key = more.key } end
      end
      leases[2 * i - 1], leases[2 * i] = deadline, id
      mine[i + 2] = noted(id, token)
    end
    if taken > 0 then
      add_leases(queue.active, leases)
      if #slots > 0 then take_slots(queue.root, slots, running) end
      for _, job in ipairs(started) do free_key(queue.root, job.key, job.id) end
      redis.call('HSET', queue.claims, worker, table.concat(mine, '|'))
      if rate then redis.call('HSET', queue.meta, 'rate', (spend(rate, taken))) end
    end
    for _, job in ipairs(expired) do
      redis.call('HSET', rows .. job.id, 'state', 'dead', 'last_error', 'expired')
      to_dead(queue.dead, queue.root, queue.failed, queue.events, job.id, job.key, time, 'expired')
    end
    -- Asked for while a worker held the job; our own transitions see to it when it goes back.
    for _, job in ipairs(cancelled) do to_cancelled(queue.root, job.id, job.key, job.retention) end
    room = room - taken
  end

  local more = 0
  local is_more_seen = flat.is_used_up == false
  if room > 0 and (is_more_seen or redis.call('ZCARD', queue.pending) > 0 or redis.call('LLEN', queue.root .. 'ring') > 0) then
    more = 1
    wake(queue.marker)
  end

  local soonest = math.huge
  -- Who has more to claim looks again before long; until then the beat does.
  if more == 0 then
    local function look_at(head)
      soonest = math.min(soonest, tonumber(head[2]) or soonest)
    end
    look_at(redis.call('ZRANGE', queue.active, 0, 0, 'WITHSCORES'))
    local held = queue.root .. 'held'
    local recurring = queue.root .. 'repeat'
    -- Most queues have none of these.
    if redis.call('EXISTS', queue.schedule, held, recurring) > 0 then
      look_at(redis.call('ZRANGE', queue.schedule, 0, 0, 'WITHSCORES'))
      look_at(redis.call('ZRANGE', held, 0, 0, 'WITHSCORES'))
      -- Slots that are due already are looked at on the beat: it may be that no worker here can run them.
      local after = string.format('(%.0f', time)
      look_at(redis.pcall('ZRANGEBYSCORE', recurring, after, '(+inf', 'LIMIT', 0, 1, 'WITHSCORES'))
    end
  end
  if resumes and resumes > exact then soonest = math.min(soonest, resumes) end
  if rate and taken >= rate.room then
    local _, next_start = spend(rate, taken)
    soonest = math.min(soonest, next_start)
  end
  local next_event = soonest < math.huge and math.max(0, math.ceil(soonest - exact)) or -1

  return { request, more, next_event, dropped, #expired, jobs, lanes_told, further }
end
