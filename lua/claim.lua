-- claim: move waiting jobs to the active set under a lease, and hand them to a worker with their fencing tokens.
--
-- KEYS[1] rows      emq:{q}:job:<id>        hash    attempts + 1, state, worker; reaped and settled removed
-- KEYS[2] pending   emq:{q}:pending         zset    members removed
-- KEYS[3] active    emq:{q}:active          zset    members added, score = end of the lease
-- KEYS[4] schedule  emq:{q}:schedule        zset    read
-- KEYS[5] dead      emq:{q}:dead            zset    members added that have expired, score = time of death
-- KEYS[6] marker    emq:{q}:marker          zset    set if work is left
-- KEYS[7] meta      emq:{q}:meta            hash    read: nothing is claimed while `paused` is there; rate, turn
-- KEYS[8] claims    emq:{q}:claims          hash    the worker's last request and what it took
-- KEYS[9] keys      emq:{q}:de:<key>        string  deduplication keys of the expired deleted
-- KEYS[10] failed   emq:{q}:metrics:failed  hash    count + 1 for each expired
-- KEYS[11] events   emq:{q}:events          channel dead
-- KEYS[12] root     emq:{q}:<lanes>         lanes   served in turn; slots taken, the ring turned
-- ARGV[1] n         how many at most
-- ARGV[2] lease     ms
-- ARGV[3] worker    unique among running workers
-- ARGV[4] request   unique among the worker's claims; the same again answers with the same jobs
--
-- Answers the request; 1 if work is left, else 0; ms until the next job falls due or loses its lease, or a limit ends, or
-- -1; how many ids without a row were dropped; how many jobs had expired; then per job its id, token, payload, name,
-- failures, stalled, max_attempts, headers, group.
--
-- uses lib/clock, lib/guard, lib/waiting, lib/lanes, lib/ending, lib/turns

local rows, pending, active, schedule, dead, marker, meta, claims, keys, failed, events, root = unpack(KEYS)
local n, lease, worker, request = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4]
local exact = clock()
local time = math.floor(exact)
local deadline = time + lease

local function read(id)
  return read_row(rows, id, 'payload', 'name', 'failures', 'stalled', 'max_attempts', 'headers', 'group', 'reaped',
    'settled', 'expires', 'did')
end

local jobs, expired, dropped = {}, {}, 0
local function hand(id, token, row)
  jobs[#jobs + 1] = { id, token, row[2] or '', row[3], row[4], row[5], row[6], row[7], row[8] }
end

check_sets(active, schedule)
local settings = redis.call('HMGET', meta, 'paused', 'held', 'concurrency', 'rate', 'turn')
local note = redis.call('HGET', claims, worker)
local room, rate = allowed(settings[4], exact)
local resumes = tonumber(settings[2])
if settings[1] or resumes and resumes > exact then room = 0 end
if settings[3] then room = math.min(room, count(settings[3]) - redis.call('ZCARD', active)) end

local taken, lines = {}, {}
local left_to_look = math.max(n, 100)
local function take(line, want)
  local got = 0
  while got < want and left_to_look > 0 do
    local page = math.min(want - got, left_to_look)
    local ids = redis.call('ZRANGE', line.place, line.from, line.from + page - 1)
    if #ids == 0 then break end
    if not line.ids then
      lines[#lines + 1], line.ids, line.got = line, {}, 0
    end
    line.from = line.from + #ids
    left_to_look = left_to_look - #ids
    for _, id in ipairs(ids) do
      local row = read(id)
      line.ids[#line.ids + 1] = id
      if not row then
        dropped = dropped + 1
      elseif row[11] and count(row[1]) == 0 and count(row[11]) <= time then
        expired[#expired + 1] = { id = id, key = row[12] }
      else
        local token = string.format('%.0f', count(row[1]) + 1)
        taken[#taken + 1] = { id = id, token = token, row = row, lane = line.name or row[8] ~= '' and row[8] }
        got, line.got = got + 1, line.got + 1
      end
    end
  end
  return got
end

-- The reply of this very request was lost: what it took is still the worker's, under a lease that begins again.
local function again()
  for id, token in string.gmatch(note, '|([^|:]+):([^|]+)') do
    local row = read(id)
    if row and row[1] == token and redis.call('ZSCORE', active, id) then
      redis.call('ZREM', active, id)
      redis.call('ZADD', active, deadline, id)
      hand(id, token, row)
    end
  end
end

local function lease_out()
  local running, leases, slots, mine = {}, {}, {}, { request, string.format('%.0f', time) }
  for _, job in ipairs(taken) do
    local key = rows .. job.id
    redis.call('HSET', key, 'state', 'active', 'attempts', job.token, 'worker', worker)
    if job.row[9] or job.row[10] then redis.call('HDEL', key, 'reaped', 'settled') end
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
  redis.call('ZADD', active, unpack(leases))
  if #slots > 0 then redis.call('HSET', root .. 'slots', unpack(slots)) end
  for lane, jobs_of_it in pairs(running) do redis.pcall('HINCRBY', root .. 'gactive', lane, jobs_of_it) end
  redis.call('HSET', claims, worker, table.concat(mine, '|'))
  if rate then redis.call('HSET', meta, 'rate', (spend(rate, #taken))) end
end

local function claim_new()
  local lanes, length = window(root, n, exact), redis.call('LLEN', root .. 'ring')
  local fetched = #lanes
  local turns = in_turn(lanes, length, { place = pending, from = 0 }, math.min(n, room), settings[5], take)
  if #expired > 0 then check_sets(dead) end
  for _, line in ipairs(lines) do redis.call('ZREM', line.place, unpack(line.ids)) end
  if fetched > 0 then
    turn_ring(root, lanes, fetched, turns, time)
    redis.call('HSET', meta, 'turn', turn_text(turns, lanes))
  end
  if #taken > 0 then lease_out() end
  for _, job in ipairs(expired) do
    redis.call('HSET', rows .. job.id, 'state', 'dead', 'last_error', 'expired')
    to_dead(dead, keys, failed, events, job.id, job.key, time)
  end
  room = room - #taken
end

if note and string.sub(note, 1, #request + 1) == request .. '|' then
  again()
elseif room > 0 then
  claim_new()
end

local more = 0
if room > 0 and redis.call('ZCARD', pending) + redis.call('LLEN', root .. 'ring') > 0 then
  more = 1
  wake(marker)
end

local next_event = -1
local function expect(at)
  local ms = math.max(0, math.ceil(at - exact))
  if next_event < 0 or ms < next_event then next_event = ms end
end
for _, set in ipairs({ schedule, active, root .. 'held' }) do
  local head = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')
  if head[2] then expect(tonumber(head[2])) end
end
if resumes and resumes > exact then expect(resumes) end
if rate and room <= 0 then
  local _, next_start = spend(rate, #taken)
  if next_start > exact then expect(next_start) end
end

return { request, more, next_event, dropped, #expired, unpack(jobs) }
