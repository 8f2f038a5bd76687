-- counts: how many jobs stand in each place of a queue.
--
-- KEYS[1] pending    emq:{q}:pending            zset  read
-- KEYS[2] active     emq:{q}:active             zset  read
-- KEYS[3] schedule   emq:{q}:schedule           zset  read
-- KEYS[4] dead       emq:{q}:dead               zset  read
-- KEYS[5] done       emq:{q}:done               zset  read
-- KEYS[6] completed  emq:{q}:metrics:completed  hash  read
-- KEYS[7] failed     emq:{q}:metrics:failed     hash  read
-- KEYS[8] meta       emq:{q}:meta               hash  read
-- KEYS[9] root       emq:{q}:<lanes>            lanes read
--
-- Answers the numbers of pending, active, scheduled, dead and remembered jobs, the counters completed and failed, 1 if the
-- queue is paused, else 0, in how many lanes jobs wait, and the number of parked jobs.
--
-- uses lib/guard

local pending, active, schedule, dead, done, completed, failed, meta, root = unpack(KEYS)

local sizes = {}
for i, set in ipairs({ pending, active, schedule, dead, done }) do sizes[i] = redis.call('ZCARD', set) end
for i, counter in ipairs({ completed, failed }) do sizes[5 + i] = count(redis.call('HGET', counter, 'count')) end
sizes[1] = sizes[1] + count(redis.call('HGET', meta, 'in_lanes'))
sizes[8] = redis.call('HEXISTS', meta, 'paused')
sizes[9] = redis.call('ZCARD', root .. 'lanes')
sizes[10] = redis.call('ZCARD', root .. 'parked')
return sizes
