-- The commands without which no job is settled under its token, and the next not claimed under a lease.
local rows, pending, active, done, claims, completed = unpack(KEYS)
local n, lease, worker, request = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4]
local clock = redis.call('TIME')
local time = clock[1] * 1000 + math.floor(clock[2] / 1000)

local ids, keys, finished = {}, {}, {}
for i = 5, #ARGV, 2 do
  local id, key = ARGV[i], rows .. ARGV[i]
  if redis.call('HGET', key, 'attempts') == ARGV[i + 1] and redis.call('ZSCORE', active, id) then
    ids[#ids + 1] = id
    keys[#keys + 1] = key
    finished[#finished + 1] = time + 3600000
    finished[#finished + 1] = id
  end
end
if #ids > 0 then
  redis.call('ZREM', active, unpack(ids))
  redis.call('DEL', unpack(keys))
  redis.call('ZADD', done, unpack(finished))
  redis.call('HINCRBY', completed, 'count', #ids)
end

local jobs, leases, note = {}, {}, { request }
local next = n > 0 and redis.call('ZRANGE', pending, 0, n - 1) or {}
for i, id in ipairs(next) do
  local key = rows .. id
  local row = redis.call('HMGET', key, 'attempts', 'payload', 'name')
  local token = string.format('%.0f', row[1] + 1)
  redis.call('HSET', key, 'state', 'active', 'attempts', token)
  leases[#leases + 1] = time + lease
  leases[#leases + 1] = id
  note[#note + 1] = id .. ':' .. token
  jobs[i] = { id, token, row[2], row[3] }
end
if #next > 0 then
  redis.call('ZREM', pending, unpack(next))
  redis.call('ZADD', active, unpack(leases))
  redis.call('HSET', claims, worker, table.concat(note, '|'))
end
return jobs
