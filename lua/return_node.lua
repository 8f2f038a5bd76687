-- return_node: give a client's node number back.
--
-- KEYS[1] node  {emq}:node:<n>  string  deleted, if the client holds it
-- ARGV[1] holder  the client
--
-- OK    the number is free
-- LOST  it isn't the client's any more; nothing was written

if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'LOST' end
redis.call('DEL', KEYS[1])
return 'OK'
