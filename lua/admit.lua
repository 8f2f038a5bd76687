-- admit: put plain jobs into the flat line, each id once; the short form of `enqueue`, for jobs that are to run at once.
--
-- KEYS[1] rows     emq:{q}:job:<id>  hash  row created
-- KEYS[2] pending  emq:{q}:pending   zset  member added
-- KEYS[3] done     emq:{q}:done      zset  read; an overdue marker of the same id is removed
-- KEYS[4] marker   emq:{q}:marker    zset  set
-- ARGV[1..] per job: id; name; payload
--
-- Answers `ENQUEUED` if that is so for all, else one text per job, in order:
-- ENQUEUED   the job is admitted
-- DUPLICATE  <id> <nonce> <behind> as `enqueue`; nothing was written for this one
-- CONFLICT   <id> <nonce> as `enqueue`; nothing was written for this one
-- EMQKIND    error: an id isn't a job's; nothing was written for any
--
-- uses lib/clock, lib/waiting, lib/known

-- A script of its own, and with few functions: of a call for one job, most of the server's time goes into the arguments, and
-- into the functions of the text, which are made anew with each call.
local rows, pending, done, marker = unpack(KEYS)

for at = 1, #ARGV, 3 do
  local id = ARGV[at]
  if #id ~= 14 or string.sub(id, 1, 3) ~= 'JOB' then
    return redis.error_reply('EMQKIND an id is not a job id (14 bytes that begin with JOB)')
  end
end

redis.call('ZCARD', pending)
local waiting, replies = {}, {}
for at = 1, #ARGV, 3 do
  local id, name, payload = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local answer, overdue = answer_if_known(rows, done, id, payload)
  if not answer then
    -- Refused by a server that is out of memory, as the first write of the call: then nothing at all was written.
    redis.call('HSET', rows .. id, 'state', 'pending', 'attempts', '0', 'payload', payload, 'name', name)
    if overdue then redis.call('ZREM', done, id) end
    local length = #waiting
    waiting[length + 1], waiting[length + 2] = '0', id
  end
  replies[#replies + 1] = answer or 'ENQUEUED'
end
if #waiting > 0 then
  redis.call('ZADD', pending, unpack(waiting))
  wake(marker)
end
return #waiting == 2 * #replies and 'ENQUEUED' or replies
