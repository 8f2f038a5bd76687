-- due_recurring: the recurring jobs that have a slot which is due.
--
-- KEYS[1] recurring  emq:{q}:repeat         zset  read
-- KEYS[2] records    emq:{q}:repeat:<name>  hash  read
-- ARGV[1] offset  how many to skip, which the caller can't do anything about
-- ARGV[2] limit   how many at most
--
-- Answers the server's now in ms; ms until the next slot of one that isn't due yet, or -1; then per recurring job its name
-- and the fields of its record.
--
-- uses lib/clock, lib/recurring

local recurring, records = unpack(KEYS)
local offset, limit, time = tonumber(ARGV[1]), tonumber(ARGV[2]), now()

local names = redis.call('ZRANGEBYSCORE', recurring, '-inf', time, 'LIMIT', offset, limit)
local later = redis.call('ZRANGEBYSCORE', recurring, string.format('(%.0f', time), '(+inf', 'LIMIT', 0, 1, 'WITHSCORES')
local due = { time, later[2] and tonumber(later[2]) - time or -1 }
for _, name in ipairs(names) do
  due[#due + 1] = name
  due[#due + 1] = read_record(records .. name)
end
return due
