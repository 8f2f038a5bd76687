-- progress: keep how far a run is, if its token holds the job.
--
-- KEYS[1] row     emq:{q}:job:<id>  hash    progress
-- KEYS[2] active  emq:{q}:active    zset    read
-- KEYS[3] events  emq:{q}:events    channel progress, with the value
-- ARGV[1] id
-- ARGV[2] token  fencing token
-- ARGV[3] value  JSON
--
-- OK     it is kept
-- STALE  the token doesn't hold the job, or it isn't active; nothing was written
--
-- uses lib/events

local row, active, events = unpack(KEYS)
local id, token, value = ARGV[1], ARGV[2], ARGV[3]

if redis.call('HGET', row, 'attempts') ~= token or not redis.call('ZSCORE', active, id) then return 'STALE' end
redis.call('HSET', row, 'progress', value)
publish(events, 'progress', id, ',"progress":' .. value)
return 'OK'
