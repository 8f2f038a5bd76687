-- obliterate: delete a slice of everything that there is of a queue, and at last what it has besides jobs.
--
-- KEYS[1] rows       emq:{q}:job:<id>           hash    rows, logs and results deleted
-- KEYS[2] pending    emq:{q}:pending            zset    members removed
-- KEYS[3] active     emq:{q}:active             zset    members removed, if that is forced
-- KEYS[4] schedule   emq:{q}:schedule           zset    members removed
-- KEYS[5] dead       emq:{q}:dead               zset    members removed
-- KEYS[6] done       emq:{q}:done               zset    members removed
-- KEYS[7] marker     emq:{q}:marker             zset    deleted
-- KEYS[8] meta       emq:{q}:meta               hash    paused; deleted at last
-- KEYS[9] claims     emq:{q}:claims             hash    deleted
-- KEYS[10] completed emq:{q}:metrics:completed  hash    deleted
-- KEYS[11] failed    emq:{q}:metrics:failed     hash    deleted
-- KEYS[12] recurring emq:{q}:repeat             zset    members removed
-- KEYS[13] records   emq:{q}:repeat:<name>      hash    deleted
-- KEYS[14] root      emq:{q}:<lanes>            lanes   members of lanes, `parked` and `windows` removed; what is known of lanes deleted at last
-- ARGV[1] limit  how many jobs at most
-- ARGV[2] force  1 to delete jobs that workers hold, too, else 0
--
-- Answers how many were deleted, and 1 if there is more, else 0.
-- EMQLOCK  error: workers hold jobs; nothing was written
--
-- uses lib/clock, lib/guard, lib/waiting, lib/lanes, lib/unique

local rows, pending, active, schedule, dead, done, marker, meta, claims, completed, failed, recurring, records, root = unpack(KEYS)
local limit, force = tonumber(ARGV[1]), ARGV[2] == '1'

check_sets(pending, schedule, dead, done, recurring, root .. 'parked', root .. 'lanes', root .. 'windows')
local ring = redis.call('LRANGE', root .. 'ring', 0, limit - 1)
if redis.call('ZCARD', active) > 0 and not force then
  return redis.error_reply('EMQLOCK the queue is active: workers hold jobs of it')
end

local removed = 0
local function wipe(place)
  local ids = removed < limit and redis.call('ZRANGE', place, 0, limit - removed - 1) or {}
  if #ids == 0 then return end
  redis.call('ZREM', place, unpack(ids))
  for _, id in ipairs(ids) do
    local field = redis.pcall('HMGET', rows .. id, 'did', 'group')
    local key = field[1]
    if place == active then
      local owner = redis.pcall('HGET', root .. 'slots', id)
      free_slot(root, marker, id, type(owner) == 'string' and owner or field[2])
    end
    redis.call('DEL', rows .. id, rows .. id .. ':logs', rows .. id .. ':result')
    if type(key) == 'string' then free_key(root, key, id) end
  end
  removed = removed + #ids
end

-- So that nothing starts between the slices.
redis.call('ZREM', marker, '0')
redis.call('HSET', meta, 'paused', '1')
-- The parked first: who is gone can't follow.
for _, place in ipairs({ root .. 'parked', pending, schedule, dead, active, done }) do wipe(place) end
-- Lanes that only others have put jobs into.
for _, lane in ipairs(ring) do count_line(root, lane) end
local lanes = redis.call('ZRANGE', root .. 'lanes', 0, limit - 1)
for _, lane in ipairs(lanes) do
  if removed < limit then
    wipe(line_of(root, lane))
    count_line(root, lane)
  end
end
local names = redis.call('ZRANGE', recurring, 0, limit - 1)
if #names > 0 then redis.call('ZREM', recurring, unpack(names)) end
for _, name in ipairs(names) do
  local record = records .. name
  -- A slot may wait for the end of a job that had its key no more.
  local last = redis.pcall('HGET', record, 'last')
  local awaited = root .. 'next:' .. name .. '.' .. (type(last) == 'string' and last or '')
  redis.call('DEL', record, awaited)
end
-- Deduplication keys that have outlived their jobs.
local windows = redis.call('ZRANGE', root .. 'windows', 0, limit - 1)
if #windows > 0 then redis.call('ZREM', root .. 'windows', unpack(windows)) end
for _, key in ipairs(windows) do redis.call('DEL', root .. 'de:' .. key) end
if removed >= limit or #lanes >= limit or #names >= limit or #windows >= limit then return { removed, 1 } end

redis.call('DEL', marker, meta, claims, completed, failed)
for _, name in ipairs({ 'ring', 'wake', 'paused', 'glimit', 'gactive', 'gweight', 'grate', 'held', 'gheld', 'slots', 'lanes' }) do
  redis.call('DEL', root .. name)
end
return { removed, 0 }
