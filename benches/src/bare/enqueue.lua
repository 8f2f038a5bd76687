-- The commands without which no job is admitted: none twice, each with its row and its place.
local rows, pending, done, marker = unpack(KEYS)
local members = {}
for i = 1, #ARGV, 2 do
  local id = ARGV[i]
  if redis.call('EXISTS', rows .. id) == 0 and not redis.call('ZSCORE', done, id) then
    redis.call('HSET', rows .. id, 'state', 'pending', 'attempts', '0', 'payload', ARGV[i + 1], 'name', 'noop')
    members[#members + 1] = 0
    members[#members + 1] = id
  end
end
redis.call('ZADD', pending, unpack(members))
redis.call('ZADD', marker, 0, '0')
