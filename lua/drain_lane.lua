-- drain_lane: delete jobs that wait in a lane, those that would run first in front.
--
-- KEYS[1] rows  emq:{q}:job:<id>  hash    rows, logs and results deleted
-- KEYS[2] done  emq:{q}:done      zset    members added that were ever claimed
-- KEYS[3] root  emq:{q}:<lanes>   lanes   members of the lane removed; the lane out of the ring, if it is empty
-- ARGV[1] lane
-- ARGV[2] limit      how many at most
-- ARGV[3] retention  ms for which the id of a job that was claimed stays taken
--
-- Answers how many were deleted, and how many are left.
--
-- uses lib/clock, lib/guard, lib/waiting, lib/lanes, lib/unique, lib/events

local rows, done, root = unpack(KEYS)
local lane, limit, retention = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local line = line_of(root, lane)
local until_then = now() + retention

check_sets(line, done)
local ids = redis.call('ZRANGE', line, 0, limit - 1)
local jobs = {}
for i, id in ipairs(ids) do jobs[i] = read_row(rows, id, 'did') or false end

if #ids > 0 then redis.call('ZREM', line, unpack(ids)) end
if count_line(root, lane) == 0 then leave_ring(root, lane) end
for i, id in ipairs(ids) do
  local row = jobs[i]
  if row then
    redis.call('DEL', rows .. id, rows .. id .. ':logs', rows .. id .. ':result')
    free_key(root, row[2], id)
    -- As after a removal: the tokens of a new job of the same id begin at 1 again.
    if row[1] ~= '0' then redis.call('ZADD', done, until_then, id) end
    publish(root .. 'events', 'removed', id)
  end
end
return { #ids, length_of(line) }
