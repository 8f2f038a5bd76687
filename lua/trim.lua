-- trim: forget what has been kept long enough, and put right what another implementation has left of lanes.
--
-- KEYS[1] rows    emq:{q}:job:<id>  hash  rows, logs and results of the trimmed dead letters deleted
-- KEYS[2] done    emq:{q}:done      zset  overdue members removed; ids of the trimmed dead letters added
-- KEYS[3] dead    emq:{q}:dead      zset  members beyond age or number removed, oldest first
-- KEYS[4] claims  emq:{q}:claims    hash  entries of long silent workers removed
-- KEYS[5] marker  emq:{q}:marker    zset  set if a lane was offered
-- KEYS[6] root    emq:{q}:<lanes>   lanes `slots` of jobs that aren't active and overdue `windows` removed; lanes counted and offered; events
-- ARGV[1] limit      how many of each at most
-- ARGV[2] dead_age   ms that a dead letter is kept
-- ARGV[3] dead_count how many dead letters are kept
-- ARGV[4] silent     ms after which a worker's last claim is forgotten
-- ARGV[5] retention  ms for which the id of a trimmed dead letter stays taken
--
-- Answers 1 if there is more to trim, else 0; how many markers were forgotten; how many dead letters were deleted.
--
-- uses lib/clock, lib/guard, lib/waiting, lib/lanes, lib/events

local rows, done, dead, claims, marker, root = unpack(KEYS)
local limit, dead_age, dead_count, silent, retention =
  tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local time = now()

local forgotten = redis.call('ZRANGEBYSCORE', done, '-inf', time, 'LIMIT', 0, limit)
-- EchoMQ writes dead letters with score 0, which says nothing of their age: they go by number alone.
local over = math.min(limit, redis.call('ZCARD', dead) - dead_count)
local letters = over > 0 and redis.call('ZRANGE', dead, 0, over - 1)
  or redis.call('ZRANGEBYSCORE', dead, '(0', time - dead_age, 'LIMIT', 0, limit)

if #forgotten > 0 then redis.call('ZREM', done, unpack(forgotten)) end
if #letters > 0 then redis.call('ZREM', dead, unpack(letters)) end
for _, id in ipairs(letters) do
  -- A letter whose row was lost, and whose id has been enqueued again, is no letter any more.
  local state = redis.pcall('HGET', rows .. id, 'state')
  if not state or state == 'dead' then
    redis.call('DEL', rows .. id, rows .. id .. ':logs', rows .. id .. ':result')
    redis.call('ZADD', done, time + retention, id)
    publish(root .. 'events', 'removed', id)
  end
end

-- By pcall from here on, since what is above is written by now: of a key of another type there is no entry.
local over_by_now = redis.pcall('ZRANGEBYSCORE', root .. 'windows', '-inf', time, 'LIMIT', 0, limit)
if #over_by_now > 0 then redis.call('ZREM', root .. 'windows', unpack(over_by_now)) end

-- A few at random each time: in the long run that finds every entry, and one call's cost doesn't grow with the workers, the
-- jobs or the lanes.
local entries = redis.pcall('HRANDFIELD', claims, 8, 'WITHVALUES')
for i = 1, #entries, 2 do
  local claimed = tonumber(string.match(entries[i + 1], '^[^|]*|(%d+)'))
  if not claimed or claimed < time - silent then redis.call('HDEL', claims, entries[i]) end
end

-- Who knows of no `slots` leaves them when it settles a job that was claimed here.
for _, id in ipairs(redis.pcall('HRANDFIELD', root .. 'slots', 32)) do
  if not redis.pcall('ZSCORE', root .. 'active', id) then redis.pcall('HDEL', root .. 'slots', id) end
end

-- Who raises a limit, or takes it away, and doesn't put the lane into the ring leaves that to others. Each may be a search.
local function look_after(lanes)
  for _, lane in ipairs(lanes) do
    count_line(root, lane)
    if can_serve(root, lane) then put_right(root, marker, lane) end
  end
end
look_after(redis.pcall('HRANDFIELD', root .. 'glimit', 8))
local lanes = redis.pcall('ZCARD', root .. 'lanes')
if type(lanes) == 'number' and lanes > 0 then
  -- Of a few, all.
  local from = lanes > 8 and time % lanes or 0
  look_after(redis.pcall('ZRANGE', root .. 'lanes', from, from + 7))
end

local more = (#forgotten == limit or #letters == limit or over > 0) and 1 or 0
return { more, #forgotten, #letters }
