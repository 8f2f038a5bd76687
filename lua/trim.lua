-- trim: forget what has been kept long enough: completion markers, dead letters, claims of workers that are gone.
--
-- KEYS[1] rows    emq:{q}:job:<id>  hash  rows, logs and results of the trimmed dead letters deleted
-- KEYS[2] done    emq:{q}:done      zset  overdue members removed; ids of the trimmed dead letters added
-- KEYS[3] dead    emq:{q}:dead      zset  members beyond age or number removed, oldest first
-- KEYS[4] claims  emq:{q}:claims    hash  entries of long silent workers removed
-- ARGV[1] limit      how many of each at most
-- ARGV[2] dead_age   ms that a dead letter is kept
-- ARGV[3] dead_count how many dead letters are kept
-- ARGV[4] silent     ms after which a worker's last claim is forgotten
-- ARGV[5] retention  ms for which the id of a trimmed dead letter stays taken
--
-- Answers 1 if there is more to trim, else 0; how many markers were forgotten; how many dead letters were deleted.
--
-- uses lib/clock

local rows, done, dead, claims = unpack(KEYS)
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
  end
end

-- A few at random each time: in the long run that finds every entry, and one call's cost doesn't grow with the workers.
-- By pcall, since what is above is written by now: of a key of another type there is no entry.
local entries = redis.pcall('HRANDFIELD', claims, 8, 'WITHVALUES')
for i = 1, #entries, 2 do
  local claimed = tonumber(string.match(entries[i + 1], '^[^|]*|(%d+)'))
  if not claimed or claimed < time - silent then redis.call('HDEL', claims, entries[i]) end
end

local more = (#forgotten == limit or #letters == limit or over > 0) and 1 or 0
return { more, #forgotten, #letters }
