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

local ids, keys = {}, {}
for i = 1, #ARGV / 3 do
  local id = ARGV[3 * i - 2]
  if #id ~= 14 or string.sub(id, 1, 3) ~= 'JOB' then
    return redis.error_reply('EMQKIND an id is not a job id (14 bytes that begin with JOB)')
  end
  ids[i] = id
  keys[i] = rows .. id
end

-- All are looked for at once, and one by one only if that finds any.
local is_any_here = redis.call('EXISTS', unpack(keys)) > 0
local remembered = redis.call('ZMSCORE', done, unpack(ids))
local answers, waiting, new = {}, {}, 0
for i = 1, #ids do
  if is_any_here or remembered[i] then answers[i] = answer_if_known(rows, done, ids[i], ARGV[3 * i]) end
  if not answers[i] then
    waiting[2 * new + 1], waiting[2 * new + 2] = '0', ids[i]
    new = new + 1
  end
end

if new > 0 then
  -- Refused by a server that is out of memory, as the first write of the call: then nothing at all was written.
  local is_each_once = redis.call('ZADD', pending, unpack(waiting)) == new
  for i = 1, #ids do
    local payload = ARGV[3 * i]
    if not answers[i] and not is_each_once then answers[i] = answer_if_known(rows, done, ids[i], payload) end
    if not answers[i] then
      redis.call('HSET', keys[i], 'state', 'pending', 'attempts', '0', 'payload', payload, 'name', ARGV[3 * i - 1])
      if remembered[i] then redis.call('ZREM', done, ids[i]) end
    end
  end
  wake(marker)
end
if not next(answers) then return 'ENQUEUED' end
for i = 1, #ids do answers[i] = answers[i] or 'ENQUEUED' end
return answers
