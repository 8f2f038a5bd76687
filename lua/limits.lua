-- limits: what a queue as a whole may do.
--
-- KEYS[1] meta  emq:{q}:meta  hash  read
--
-- Answers, each empty if there is none, its limit, its rate, and the time until which it is held back.

local meta = unpack(KEYS)

local set = redis.call('HMGET', meta, 'concurrency', 'rate', 'held')
return { set[1] or '', set[2] or '', set[3] or '' }
