-- revive: bring a dead letter back to its waiting place with a fresh budget.
--
-- KEYS[1] row      emq:{q}:job:<id>  hash    state, settled; failures, stalled, expires and cancel removed
-- KEYS[2] dead     emq:{q}:dead      zset    member removed
-- KEYS[3] pending  emq:{q}:pending   zset    member added, if the job has no lane
-- KEYS[4] marker   emq:{q}:marker    zset    set
-- KEYS[5] keys     emq:{q}:de:<key>  string  deduplication key taken again, if no other job holds it
-- KEYS[6] root     emq:{q}:<lanes>   lanes   member of its lane added; who is parked behind the key is read
-- ARGV[1] id
--
-- OK        the job waits
-- GONE      there is no such job; nothing was written
-- DONE      the job was revived before and hasn't been claimed since; nothing was written
-- EMQSTATE  error: the job isn't dead; nothing was written
--
-- uses lib/clock, lib/guard, lib/waiting, lib/lanes, lib/unique, lib/events

local row, dead, pending, marker, keys, root = unpack(KEYS)
local id, time = ARGV[1], now()

check_sets(pending)
local field = redis.call('HMGET', row, 'priority', 'did', 'settled', 'group', 'unique')
if redis.call('EXISTS', row) == 0 then return 'GONE' end
if not redis.call('ZSCORE', dead, id) then
  if field[3] == 'revive' then return 'DONE' end
  return redis.error_reply('EMQSTATE the job is not dead')
end
local key = field[2]
local over = tonumber(string.match(field[5] or '', '^for (%d+)$'))
local takes = key and not (over and over <= time)

redis.call('ZREM', dead, id)
redis.call('HDEL', row, 'failures', 'stalled', 'expires', 'cancel')
redis.call('HSET', row, 'state', 'pending', 'settled', 'revive')
if takes then
  local holder = holder_of(root, key, time)
  if not holder and follow(root, key) or holder and holder.id ~= id then takes = false end
end
if takes then redis.call('SET', keys .. key, id) end
to_waiting(pending, root, marker, id, field[1], field[4])
publish(root .. 'events', 'revived', id)
return 'OK'
