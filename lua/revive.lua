-- revive: bring a dead letter back to its waiting place with a fresh budget.
--
-- KEYS[1] row      emq:{q}:job:<id>  hash    state; failures, stalled and settled removed
-- KEYS[2] dead     emq:{q}:dead      zset    member removed
-- KEYS[3] pending  emq:{q}:pending   zset    member added
-- KEYS[4] marker   emq:{q}:marker    zset    set
-- KEYS[5] rows     emq:{q}:job:<id>  hash    read: the holder of the deduplication key
-- KEYS[6] keys     emq:{q}:de:<key>  string  deduplication key taken again, if no other job holds it
-- ARGV[1] id
--
-- OK        the job waits
-- GONE      there is no such job; nothing was written
-- EMQSTATE  error: the job isn't dead; nothing was written
--
-- uses lib/waiting

local row, dead, pending, marker, rows, keys = unpack(KEYS)
local id = ARGV[1]

local field = redis.call('HMGET', row, 'state', 'priority', 'did')
if not field[1] then return 'GONE' end
if not redis.call('ZSCORE', dead, id) then
  return redis.error_reply('EMQSTATE the job is ' .. field[1] .. ', not dead')
end
local key = field[3]
local holder = key and redis.call('GET', keys .. key)
local free = key and (not holder or redis.call('EXISTS', rows .. holder) == 0)

redis.call('ZREM', dead, id)
redis.call('HDEL', row, 'failures', 'stalled', 'settled')
redis.call('HSET', row, 'state', 'pending')
if free then redis.call('SET', keys .. key, id) end
to_waiting(pending, marker, id, field[2])
return 'OK'
