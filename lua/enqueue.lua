-- enqueue: admit jobs to the waiting place or the schedule, each id and each deduplication key once.
--
-- KEYS[1] rows      emq:{q}:job:<id>   hash    row created
-- KEYS[2] pending   emq:{q}:pending    zset    member added if it is due now and has no lane
-- KEYS[3] schedule  emq:{q}:schedule   zset    member added if it is due later
-- KEYS[4] done      emq:{q}:done       zset    read; an overdue marker of the same id is removed
-- KEYS[5] keys      emq:{q}:de:<key>   string  deduplication key taken
-- KEYS[6] marker    emq:{q}:marker     zset    set
-- KEYS[7] root      emq:{q}:<lanes>    lanes   member of its lane added
-- ARGV[1] nonce     of a client without a node number of its own, else empty
-- ARGV[2..] per job: id; due, empty for now, `+ms` from the server's now, or Unix ms; payload; how many fields of the row
--           follow; their names and values. `did` is the deduplication key, `group` the lane, and `expires` comes in ms
--           from the server's now
--
-- Answers one text per job, in order:
-- ENQUEUED   the job is admitted
-- DUPLICATE  <id> <nonce> of the job that is already here, by id or by key; nothing was written for this one
-- CONFLICT   <id> <nonce> the id is already here with another payload; nothing was written for this one
-- EMQKIND    error: an id isn't a job's; nothing was written for any
--
-- uses lib/clock, lib/guard, lib/waiting, lib/lanes

local rows, pending, schedule, done, keys, marker, root = unpack(KEYS)
local nonce = ARGV[1]
local time = now()

local jobs = {}
local at = 2
while ARGV[at] do
  local job = { id = ARGV[at], due = ARGV[at + 1], payload = ARGV[at + 2] }
  if #job.id ~= 14 or string.sub(job.id, 1, 3) ~= 'JOB' then
    return redis.error_reply('EMQKIND an id is not a job id (14 bytes that begin with JOB)')
  end
  local fields = tonumber(ARGV[at + 3]) * 2
  job.fields = { unpack(ARGV, at + 4, at + 3 + fields) }
  at = at + 4 + fields
  for i = 1, fields, 2 do
    local name = job.fields[i]
    if name == 'expires' then job.fields[i + 1] = string.format('%.0f', time + job.fields[i + 1]) end
    job[name] = job.fields[i + 1]
  end
  jobs[#jobs + 1] = job
end

local function already_here(job)
  -- By pcall: a key of another type, made by hand, must not stop the call after it has admitted the jobs before it.
  local row = redis.pcall('HMGET', rows .. job.id, 'state', 'payload', 'nonce', 'attempts')
  if row.err or row[1] or row[2] or row[4] then
    local word = row[2] == job.payload and 'DUPLICATE ' or 'CONFLICT '
    return word .. job.id .. ' ' .. (row[3] or '')
  end
  local forget = redis.call('ZSCORE', done, job.id)
  if forget and tonumber(forget) > time then return 'DUPLICATE ' .. job.id .. ' ' end
  job.overdue = forget
  local holder = job.did and redis.pcall('GET', keys .. job.did)
  return type(holder) == 'string' and read_row(rows, holder) and 'DUPLICATE ' .. holder .. ' '
end

-- Those for the flat line, score and id, which are put there together at the end.
local waiting = {}

local function admit(job)
  local row = { 'state', 'pending', 'attempts', '0', 'payload', job.payload, unpack(job.fields) }
  local function also(field, value)
    row[#row + 1] = field
    row[#row + 1] = value
  end
  local due = time
  if string.sub(job.due, 1, 1) == '+' then
    due = time + tonumber(string.sub(job.due, 2))
  elseif job.due ~= '' then
    due = tonumber(job.due)
  end
  if due > time then row[2] = 'scheduled' end
  if nonce ~= '' then also('nonce', nonce) end

  -- Refused by a server that is out of memory, as the first write of the call: then nothing at all was written.
  redis.call('HSET', rows .. job.id, unpack(row))
  if job.overdue then redis.call('ZREM', done, job.id) end
  if job.did then redis.call('SET', keys .. job.did, job.id) end
  if due > time then
    to_schedule(schedule, marker, job.id, due)
  elseif not job.group then
    waiting[#waiting + 1] = score_of(job.priority)
    waiting[#waiting + 1] = job.id
  else
    to_waiting(pending, root, marker, job.id, job.priority, job.group)
  end
  return 'ENQUEUED'
end

check_sets(pending, schedule)
local replies = {}
for i, job in ipairs(jobs) do
  replies[i] = already_here(job) or admit(job)
end
if #waiting > 0 then
  redis.call('ZADD', pending, unpack(waiting))
  wake(marker)
end
return replies
