-- list_recurring: a page of the recurring jobs of a queue, in the order of their next slots; the paused ones come last.
--
-- KEYS[1] recurring  emq:{q}:repeat         zset  read
-- KEYS[2] records    emq:{q}:repeat:<name>  hash  read
-- ARGV[1] offset  how many to skip
-- ARGV[2] count   how many at most
--
-- Answers per recurring job its name and the fields of its record.
--
-- uses lib/recurring

local recurring, records = unpack(KEYS)
local offset = tonumber(ARGV[1])

local listed = {}
for _, name in ipairs(redis.call('ZRANGE', recurring, offset, offset + tonumber(ARGV[2]) - 1)) do
  listed[#listed + 1] = name
  listed[#listed + 1] = read_record(records .. name)
end
return listed
