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
  local spent = before and string.match(before, '^%d+ %d+ %d+ ([%d.]+)$')
  local spent_before = tonumber(spent)
  if spent and value ~= '' then value = value .. ' ' .. spent end
  -- The end of a wait that the rate has made; one that `hold` has made goes on.
  local held = lane ~= '' and tonumber(redis.call('ZSCORE', root .. 'held', lane))
  if spent_before and held and held <= spent_before + 1 then redis.call('ZREM', root .. 'held', lane) end
end
if value ~= '' then redis.call('HSET', key, field, value) end

if lane == '' then
  wake(marker)
else
  put_right(root, marker, lane)
end
return 'OK'
