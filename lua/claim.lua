-- claim: move waiting jobs to the active set under a lease, and hand them to a worker with their fencing tokens.
--
-- KEYS[1] rows      emq:{q}:job:<id>   hash    attempts + 1, state, worker; reaped and settled removed
-- KEYS[2] pending   emq:{q}:pending    zset    members removed
-- KEYS[3] active    emq:{q}:active     zset    members added, score = end of the lease
-- KEYS[4] schedule  emq:{q}:schedule   zset    read
-- KEYS[5] marker    emq:{q}:marker     zset    set if work is left
-- KEYS[6] meta      emq:{q}:meta       hash    read: nothing is claimed while `paused` is there
-- KEYS[7] claims    emq:{q}:claims     hash    the worker's last request and what it took
-- ARGV[1] n         how many at most
-- ARGV[2] lease     ms
-- ARGV[3] worker    unique among running workers
-- ARGV[4] request   unique among the worker's claims; the same again answers with the same jobs
--
-- Answers the request; 1 if work is left, else 0; ms until the next job falls due or loses its lease, or -1; how many
-- ids without a row were dropped; then per job its id, token, payload, name, failures, stalled, max_attempts, headers.
--
-- uses lib/clock, lib/guard, lib/waiting

local rows, pending, active, schedule, marker, meta, claims = unpack(KEYS)
local n, lease, worker, request = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4]
local time = now()
local deadline = time + lease

local function read(id)
  return read_row(rows, id, 'payload', 'name', 'failures', 'stalled', 'max_attempts', 'headers', 'reaped', 'settled')
end

local function handed(id, token, row)
  return { id, token, row[2] or '', row[3], row[4], row[5], row[6], row[7] }
end

local jobs, dropped = {}, 0

local function take()
  local ids = redis.call('ZRANGE', pending, 0, n - 1)
  if #ids == 0 then return end
  local taken = {}
  for _, id in ipairs(ids) do
    local row = read(id)
    if row then
      local token = string.format('%.0f', count(row[1]) + 1)
      taken[#taken + 1] = { id = id, token = token, row = row }
    else
      dropped = dropped + 1
    end
  end
  redis.call('ZREM', pending, unpack(ids))
  if #taken == 0 then return end

  local leases, note = {}, { request, string.format('%.0f', time) }
  for i, job in ipairs(taken) do
    local key = rows .. job.id
    redis.call('HSET', key, 'state', 'active', 'attempts', job.token, 'worker', worker)
    if job.row[8] or job.row[9] then redis.call('HDEL', key, 'reaped', 'settled') end
    leases[#leases + 1] = deadline
    leases[#leases + 1] = job.id
    note[#note + 1] = job.id .. ':' .. job.token
    jobs[i] = handed(job.id, job.token, job.row)
  end
  redis.call('ZADD', active, unpack(leases))
  redis.call('HSET', claims, worker, table.concat(note, '|'))
end

-- The reply of this very request was lost: what it took is still the worker's, under a lease that begins again.
local function again(note)
  for id, token in string.gmatch(note, '|([^|:]+):([^|]+)') do
    local row = read(id)
    if row and row[1] == token and redis.call('ZSCORE', active, id) then
      redis.call('ZREM', active, id)
      redis.call('ZADD', active, deadline, id)
      jobs[#jobs + 1] = handed(id, token, row)
    end
  end
end

check_sets(active, schedule)
local note = redis.call('HGET', claims, worker)
local paused = redis.call('HEXISTS', meta, 'paused') == 1
if note and string.sub(note, 1, #request + 1) == request .. '|' then
  again(note)
elseif not paused then
  take()
end

local more = 0
if not paused and redis.call('ZCARD', pending) > 0 then
  more = 1
  wake(marker)
end

local next_event = -1
for _, set in ipairs({ schedule, active }) do
  local head = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')
  if head[2] then
    local ms = math.max(0, tonumber(head[2]) - time)
    if next_event < 0 or ms < next_event then next_event = ms end
  end
end

return { request, more, next_event, dropped, unpack(jobs) }
