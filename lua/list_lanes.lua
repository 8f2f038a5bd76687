-- list_lanes: a page of the lanes in which jobs wait, that with the most in front.
--
-- KEYS[1] root    emq:{q}:<lanes>  lanes  read
-- ARGV[1] offset  how many to skip
-- ARGV[2] count   how many at most
--
-- Answers per lane its name and how many of its jobs wait.

local root = unpack(KEYS)
local offset = tonumber(ARGV[1])
return redis.call('ZRANGE', root .. 'lanes', offset, offset + tonumber(ARGV[2]) - 1, 'REV', 'WITHSCORES')
