-- renew_node: keep a client's node number.
--
-- KEYS[1] node  {emq}:node:<n>  string  TTL set, if the client holds it
-- ARGV[1] holder  the client
-- ARGV[2] ttl     ms
--
-- OK    the number is the client's for another TTL
-- LOST  it isn't the client's any more; nothing was written

if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'LOST' end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 'OK'
