-- pause_recurring: let the slots of a recurring job pass.
--
-- KEYS[1] record     emq:{q}:repeat:<name>  hash  paused
-- KEYS[2] recurring  emq:{q}:repeat         zset  score = infinite
-- ARGV[1] name
--
-- OK    it is paused, or was so already
-- GONE  there is none of this name; nothing was written
--
-- uses lib/guard

local record, recurring = unpack(KEYS)

check_sets(recurring)
if redis.call('HEXISTS', record, 'schedule') == 0 then return 'GONE' end
redis.call('ZREM', recurring, ARGV[1])
redis.call('HSET', record, 'paused', '1')
redis.call('ZADD', recurring, '+inf', ARGV[1])
return 'OK'
