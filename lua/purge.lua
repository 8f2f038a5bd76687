-- purge: look at a slice of one place, and delete the jobs of it that are old enough.
--
-- KEYS[1] rows   emq:{q}:job:<id>  hash    rows, logs and results deleted
-- KEYS[2] place  emq:{q}:dead      zset    members removed; or pending, schedule, parked, the line of a lane
-- KEYS[3] done   emq:{q}:done      zset    members added that were ever claimed
-- KEYS[4] events emq:{q}:events    channel removed
-- KEYS[5] root   emq:{q}:<lanes>   lanes   deduplication keys freed or passed on; the lane out of the ring, if it is empty
-- ARGV[1] offset     how many to skip
-- ARGV[2] limit      how many to look at
-- ARGV[3] age        ms since its death, if the scores are that, or since its id was minted; 0 for any
-- ARGV[4] dies       1 if the scores of the place are times of death, else 0
-- ARGV[5] retention  ms for which the id of a job that was claimed stays taken
-- ARGV[6] lane       whose line the place is, or empty
--
-- Answers how many were looked at, and how many of them were deleted.
--
-- uses lib/clock, lib/guard, lib/waiting, lib/lanes, lib/unique, lib/events

local rows, place, done, events, root = unpack(KEYS)
local offset, limit, age, dies, retention, lane =
  tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1', tonumber(ARGV[5]), ARGV[6]
local time = now()

-- The time in the number that the last eleven digits of an id are, to base 62.
local function minted(id)
  local n = 0
  for _, byte in ipairs({ string.byte(id, 4, 14) }) do
    n = n * 62 + byte - (byte < 58 and 48 or byte < 91 and 55 or 61)
  end
  return math.floor(n / 4194304) + 1704067200000
end

check_sets(done)
local found = redis.call('ZRANGE', place, offset, offset + limit - 1, 'WITHSCORES')
local going, jobs = {}, {}
for i = 1, #found, 2 do
  local id = found[i]
  local row = read_row(rows, id, 'did')
  if not row or age == 0 or (dies and tonumber(found[i + 1]) ~= 0 and tonumber(found[i + 1]) or minted(id)) <= time - age then
    going[#going + 1] = id
    if row then jobs[#jobs + 1] = { id = id, key = row[2], was_claimed = row[1] ~= '0' } end
  end
end

if #going > 0 then redis.call('ZREM', place, unpack(going)) end
if lane ~= '' and count_line(root, lane) == 0 then leave_ring(root, lane) end
for _, job in ipairs(jobs) do
  redis.call('DEL', rows .. job.id, rows .. job.id .. ':logs', rows .. job.id .. ':result')
  free_key(root, job.key, job.id)
  -- As after a removal: the tokens of a new job of the same id begin at 1 again.
  if job.was_claimed then redis.call('ZADD', done, time + retention, job.id) end
  publish(events, 'removed', job.id)
end
return { #found / 2, #going }
