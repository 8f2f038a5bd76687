-- reassign: put a job that isn't active into another lane, or into none.
--
-- KEYS[1] row      emq:{q}:job:<id>  hash   group
-- KEYS[2] active   emq:{q}:active    zset   read
-- KEYS[3] pending  emq:{q}:pending   zset   member removed or added, if the job waits and had or gets no lane
-- KEYS[4] marker   emq:{q}:marker    zset   set, if the job waits
-- KEYS[5] root     emq:{q}:<lanes>   lanes  member of its lane moved, if the job waits
-- ARGV[1] id
-- ARGV[2] lane     or empty for none
--
-- OK       the job is of this lane
-- GONE     there is no such job; nothing was written
-- EMQLOCK  error: a worker holds the job; nothing was written
--
-- uses lib/guard, lib/waiting, lib/lanes

local row, active, pending, marker, root = unpack(KEYS)
local id, lane = ARGV[1], ARGV[2]

check_sets(pending)
local field = redis.call('HMGET', row, 'attempts', 'priority', 'group')
if not field[1] and redis.call('EXISTS', row) == 0 then return 'GONE' end
if redis.call('ZSCORE', active, id) then
  return redis.error_reply('EMQLOCK the job is active: a worker holds it')
end
if (field[3] or '') == lane then return 'OK' end

local waits = leave_line(pending, root, id, field[3])
if lane == '' then
  redis.call('HDEL', row, 'group')
else
  redis.call('HSET', row, 'group', lane)
end
if waits then to_waiting(pending, root, marker, id, field[2], lane) end
return 'OK'
