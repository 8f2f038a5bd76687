-- remove_recurring: forget a recurring job; the jobs of its past slots stay.
--
-- KEYS[1] record     emq:{q}:repeat:<name>  hash  deleted
-- KEYS[2] recurring  emq:{q}:repeat         zset  member removed
-- ARGV[1] name
-- ARGV[2] stands_at  the slot that it has to stand at, or empty for any
--
-- OK     it is gone
-- STALE  it stands at another slot; nothing was written
-- GONE   there is none of this name
--
-- uses lib/guard

local record, recurring = unpack(KEYS)
local name, stands_at = ARGV[1], ARGV[2]

check_sets(recurring)
if stands_at ~= '' and redis.call('HGET', record, 'next') ~= stands_at then return 'STALE' end
local known = redis.call('ZREM', recurring, name)
return redis.call('DEL', record) + known > 0 and 'OK' or 'GONE'
