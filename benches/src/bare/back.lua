-- The commands without which no job goes back to those that wait, whose time has come or whose lease ran out.
local rows, from, pending, marker = unpack(KEYS)
local clock = redis.call('TIME')
local time = clock[1] * 1000 + math.floor(clock[2] / 1000)

local ids, members = {}, {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', from, '-inf', time, 'LIMIT', 0, ARGV[1])) do
  if redis.call('HGET', rows .. id, 'attempts') then
    ids[#ids + 1] = id
    members[#members + 1] = 0
    members[#members + 1] = id
  end
end
if #ids > 0 then
  redis.call('ZREM', from, unpack(ids))
  for _, id in ipairs(ids) do redis.call('HSET', rows .. id, 'state', 'pending') end
  redis.call('ZADD', pending, unpack(members))
  redis.call('ZADD', marker, 0, '0')
end
return #ids
