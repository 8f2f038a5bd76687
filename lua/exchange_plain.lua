-- exchange_plain: complete plain jobs and claim plain ones of the flat line; the short form of `exchange` and of `claim`.
--
-- KEYS[1] rows       emq:{q}:job:<id>           hash    removed; of what is claimed attempts, state, worker
-- KEYS[2] pending    emq:{q}:pending            zset    members removed
-- KEYS[3] active     emq:{q}:active             zset    members removed and added, score = end of the lease
-- KEYS[4] schedule   emq:{q}:schedule           zset    read
-- KEYS[5] done       emq:{q}:done               zset    members added, score = when the id may be forgotten
-- KEYS[6] marker     emq:{q}:marker             zset    set if work is left
-- KEYS[7] meta       emq:{q}:meta               hash    read
-- KEYS[8] claims     emq:{q}:claims             hash    the worker's last request and what it took
-- KEYS[9] completed  emq:{q}:metrics:completed  hash    +1
-- KEYS[10] events    emq:{q}:events             channel completed
-- KEYS[11] root      emq:{q}:<lanes>            lanes   read
-- ARGV[1] n          how many to claim at most, and at most 16
-- ARGV[2] lease      ms
-- ARGV[3] worker     as of claim
-- ARGV[4] request    as of claim
-- ARGV[5] retention  ms for which the ids of the completed jobs are remembered
-- ARGV[6..] the ids of the jobs to complete, at most 16; each was plain when it was claimed, under the token 1, and leaves no
-- result
--
-- Answers what claim answers, or nothing if only claim or exchange can: a job to complete isn't held by its token, the queue
-- has lanes that can be served, a limit or a pause, or recurring jobs, a job to claim isn't plain or was claimed before, or
-- the request is a repeated one. Then nothing was written.
--
-- uses lib/clock, lib/guard, lib/waiting, lib/events

-- As in `admit`, there are few functions and few commands: an idle worker that is handed a job has waited for all of it.
local rows, pending, active, schedule, done, marker, meta, claims, completed, events, root = unpack(KEYS)
local n, lease, worker, request, retention = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
local ended = { unpack(ARGV, 6) }

-- One more, which says whether that is all.
local ids = redis.call('ZRANGE', pending, 0, n)
local is_empty = #ids == 0 and #ended == 0
if is_empty and redis.call('EXISTS', active, schedule, root .. 'ring', root .. 'held', root .. 'repeat') == 0 then
  return { request, 0, -1, 0, 0, {}, {}, {} }
end
if redis.call('EXISTS', root .. 'ring', root .. 'held', root .. 'repeat') > 0 then return false end
local settings = redis.call('HMGET', meta, 'paused', 'held', 'concurrency', 'rate')
if settings[1] or settings[2] or settings[3] or settings[4] then return false end
local note = redis.call('HGET', claims, worker)
if note and string.sub(note, 1, #request + 1) == request .. '|' then return false end

local exact = clock()
local time = math.floor(exact)
local deadline = string.format('%.0f', time + lease)
-- What comes next is asked only where it is told.
local is_last = #ids <= n
local due = is_last and redis.call('ZRANGE', schedule, 0, 0, 'WITHSCORES')[2]
local over

local gone, markers = {}, {}
if #ended == 0 then
  over = redis.call('ZRANGE', active, 0, 0, 'WITHSCORES')[2]
else
  check_sets(done)
  local leases, seen = redis.call('ZMSCORE', active, unpack(ended)), {}
  -- With the mark of the token 1, as `lib/complete` makes it.
  local score = string.format('%.4f', time + tonumber(retention) + 2 / 1024)
  for i = 1, #ended do
    local id = ended[i]
    local row = rows .. id
    if not leases[i] or seen[id] or redis.pcall('HGET', row, 'attempts') ~= '1' then return false end
    seen[id] = true
    gone[2 * i - 1], gone[2 * i] = row, row .. ':logs'
    markers[2 * i - 1], markers[2 * i] = score, id
  end
end

local taken = math.min(n, #ids)
local jobs, leases, mine = {}, {}, { request, string.format('%.0f', time) }
for i = 1, taken do
  local id = ids[i]
  local row = read_row(rows, id, 'payload', 'name', 'more')
  if not row or row[1] ~= '0' or row[4] then return false end
  local at = 4 * i
  jobs[at - 3], jobs[at - 2], jobs[at - 1], jobs[at] = id, '1', row[2] or '', row[3]
  leases[2 * i - 1], leases[2 * i] = deadline, id
  mine[i + 2] = id
end

if #ended > 0 then
  redis.call('ZREM', active, unpack(ended))
  redis.call('DEL', unpack(gone))
  redis.call('ZADD', done, unpack(markers))
  add(completed, 'count', #ended)
  publish_all(events, 'completed', ended)
  over = is_last and redis.call('ZRANGE', active, 0, 0, 'WITHSCORES')[2]
end
if taken > 0 then
  redis.call('ZREMRANGEBYRANK', pending, 0, taken - 1)
  for i = 1, taken do
    redis.call('HSET', rows .. ids[i], 'state', 'active', 'attempts', '1', 'worker', worker)
  end
  redis.call('ZADD', active, unpack(leases))
  redis.call('HSET', claims, worker, table.concat(mine, '|'))
  over = math.min(tonumber(over) or math.huge, time + lease)
end
if not is_last then
  wake(marker)
  return { request, 1, -1, 0, 0, jobs, {}, {} }
end
local soonest = math.min(tonumber(due) or math.huge, tonumber(over) or math.huge)
local next_event = soonest < math.huge and math.max(0, math.ceil(soonest - exact)) or -1
return { request, 0, next_event, 0, 0, jobs, {}, {} }
