-- log: add a line to the log of a job, if the token of the run holds it.
--
-- KEYS[1] row     emq:{q}:job:<id>       hash    logged = the stamp
-- KEYS[2] active  emq:{q}:active         zset    read
-- KEYS[3] logs    emq:{q}:job:<id>:logs  list    line added, the oldest beyond the limit removed
-- ARGV[1] id
-- ARGV[2] token  fencing token
-- ARGV[3] stamp  unique among the lines of the job
-- ARGV[4] limit  how many lines are kept
-- ARGV[5] line
--
-- OK     it is kept
-- STALE  the token doesn't hold the job, or it isn't active; nothing was written
-- DONE   this call has been carried out before; nothing was written

local row, active, logs = unpack(KEYS)
local id, token, stamp, limit, line = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]

local field = redis.call('HMGET', row, 'attempts', 'logged')
if field[1] ~= token or not redis.call('ZSCORE', active, id) then return 'STALE' end
if field[2] == stamp then return 'DONE' end
redis.call('RPUSH', logs, line)
local over = redis.call('LLEN', logs) - limit
if over > 0 then redis.call('LPOP', logs, math.min(over, 1000)) end
redis.call('HSET', row, 'logged', stamp)
return 'OK'
