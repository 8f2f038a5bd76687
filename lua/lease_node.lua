-- lease_node: take a free Snowflake node number for a client.
--
-- KEYS[1] nodes  {emq}:node:<n>  string  set to the holder, with a TTL
-- ARGV[1] holder  the client
-- ARGV[2] ttl     ms
-- ARGV[3] first   the number to try first, so that clients that start together seldom try the same ones
--
-- Answers the number, or -1 if all 1 024 are taken.

for i = 0, 1023 do
  local node = (tonumber(ARGV[3]) + i) % 1024
  if redis.call('SET', KEYS[1] .. node, ARGV[1], 'NX', 'PX', ARGV[2]) then return node end
end
return -1
