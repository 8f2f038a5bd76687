-- claim_plain: hand out plain jobs of the flat line; the short form of `claim`, for a queue that has nothing else.
--
-- KEYS[1] rows      emq:{q}:job:<id>   hash   attempts, state, worker
-- KEYS[2] pending   emq:{q}:pending    zset   members removed
-- KEYS[3] active    emq:{q}:active     zset   members added, score = end of the lease
-- KEYS[4] schedule  emq:{q}:schedule   zset   read
-- KEYS[5] marker    emq:{q}:marker     zset   set if work is left
-- KEYS[6] meta      emq:{q}:meta       hash   read
-- KEYS[7] claims    emq:{q}:claims     hash   the worker's last request and what it took
-- KEYS[8] root      emq:{q}:<lanes>    lanes  read
-- ARGV[1] n         how many at most, and at most 16
-- ARGV[2] lease     ms
-- ARGV[3] worker    as of claim
-- ARGV[4] request   as of claim
--
-- Answers what claim answers, or nothing if only claim can: the queue has lanes that can be served, a limit or a pause, or
-- recurring jobs, one of the jobs isn't plain or was claimed before, or the request is a repeated one. Then nothing was
-- written.
--
-- uses lib/clock, lib/guard, lib/waiting

-- As in `admit`, there are few functions and few commands: an idle worker that is handed a job has waited for all of it.
local rows, pending, active, schedule, marker, meta, claims, root = unpack(KEYS)
local n, lease, worker, request = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4]

-- One more, which says whether that is all.
local ids = redis.call('ZRANGE', pending, 0, n)
if #ids == 0 and redis.call('EXISTS', active, schedule, root .. 'ring', root .. 'held', root .. 'repeat') == 0 then
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
local due = redis.call('ZRANGE', schedule, 0, 0, 'WITHSCORES')[2]
local over = redis.call('ZRANGE', active, 0, 0, 'WITHSCORES')[2]
local soonest = math.min(tonumber(due) or math.huge, tonumber(over) or math.huge)

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

if taken > 0 then
  redis.call('ZREMRANGEBYRANK', pending, 0, taken - 1)
  for i = 1, taken do
    redis.call('HSET', rows .. ids[i], 'state', 'active', 'attempts', '1', 'worker', worker)
  end
  redis.call('ZADD', active, unpack(leases))
  redis.call('HSET', claims, worker, table.concat(mine, '|'))
  soonest = math.min(soonest, time + lease)
end
if #ids > n then
  wake(marker)
  return { request, 1, -1, 0, 0, jobs, {}, {} }
end
local next_event = soonest < math.huge and math.max(0, math.ceil(soonest - exact)) or -1
return { request, 0, next_event, 0, 0, jobs, {}, {} }
