-- extend: renew the leases of jobs that are still held under their tokens.
--
-- KEYS[1] rows    emq:{q}:job:<id>  hash  read
-- KEYS[2] active  emq:{q}:active    zset  scores of the held jobs set to the end of the new lease
-- ARGV[1..] per job: id, fencing token, lease in ms
--
-- Answers one word per job, in order:
-- OK      the lease is renewed
-- CANCEL  the job is to be dropped: somebody has cancelled it; the lease isn't renewed
-- LOST    the token doesn't hold the job, or it isn't active; nothing was written for it
--
-- uses lib/clock

local rows, active = unpack(KEYS)
local time = now()

local replies, leases = {}, {}
for i = 1, #ARGV, 3 do
  local id, token, lease = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2])
  local row = redis.call('ZSCORE', active, id) and redis.pcall('HMGET', rows .. id, 'attempts', 'cancel')
  local held = row and row[1] == token
  replies[#replies + 1] = not held and 'LOST' or row[2] and 'CANCEL' or 'OK'
  if held and not row[2] then
    leases[#leases + 1] = time + lease
    leases[#leases + 1] = id
  end
end

if #leases > 0 then
  -- Removes nothing. A server that is out of memory refuses ZADD, but not in a script that has already written: work
  -- in hand must keep its leases to get finished, which is what frees memory.
  redis.call('ZREM', active, '')
  redis.call('ZADD', active, 'XX', unpack(leases))
end
return replies
