-- tune: set or take away a limit of a queue, or a limit or the weight of one lane of it.
--
-- KEYS[1] marker   emq:{q}:marker   zset   set, for the queue, or if the lane can be served
-- KEYS[2] root     emq:{q}:<lanes>  lanes  the setting; the lane in the ring exactly if it can be served
-- ARGV[1] lane     or empty for the queue
-- ARGV[2] setting  concurrency, rate, or, of a lane, weight
-- ARGV[3] value    or empty for none
--
-- OK  it is set
--
-- uses lib/guard, lib/waiting, lib/lanes

local marker, root = unpack(KEYS)
local lane, setting, value = ARGV[1], ARGV[2], ARGV[3]

local hashes = { concurrency = 'glimit', weight = 'gweight', rate = 'grate' }
local key = root .. (lane == '' and 'meta' or hashes[setting])
local field = lane == '' and setting or lane

check_sets(root .. 'held')
local before = redis.call('HGET', key, field)
redis.call('HDEL', key, field)
if setting == 'rate' then
  -- How much is spent counts on, or a rate that is set again and again would be none.
  local spent = value ~= '' and before and string.match(before, '^%d+ %d+ %d+ ([%d.]+)$')
  if spent then value = value .. ' ' .. spent end
  -- A lane waits for its rate no longer, but still for a limit elsewhere.
  if lane ~= '' then
    redis.call('ZREM', root .. 'held', lane)
    local resumes = count(redis.pcall('HGET', root .. 'gheld', lane))
    if resumes > 0 then redis.call('ZADD', root .. 'held', resumes, lane) end
  end
end
if value ~= '' then redis.call('HSET', key, field, value) end

if lane == '' then
  wake(marker)
else
  put_right(root, marker, lane)
end
return 'OK'
