-- enqueue: admit jobs to the waiting place or the schedule, each id and each deduplication key once.
--
-- KEYS[1] rows      emq:{q}:job:<id>   hash    row created; payload and so on of a job that takes them over
-- KEYS[2] pending   emq:{q}:pending    zset    member added if it is due now and has no lane
-- KEYS[3] schedule  emq:{q}:schedule   zset    member added if it is due later; moved if it is put off
-- KEYS[4] done      emq:{q}:done       zset    read; an overdue marker of the same id is removed
-- KEYS[5] keys      emq:{q}:de:<key>   string  deduplication key taken
-- KEYS[6] marker    emq:{q}:marker     zset    set
-- KEYS[7] root      emq:{q}:<lanes>    lanes   member of its lane, or of `parked`, added; `next:<key>`, `merged:<id>`
-- ARGV[1] nonce     of a client without a node number of its own, else empty
-- ARGV[2] memory    ms for which it is remembered that a job was merged into another
-- ARGV[3..] per job: id; due, empty for now, `+ms` from the server's now, or Unix ms; what to do if its key is held, words
--           of `replace`, `debounce` with ms, `then`; payload; how many fields of the row follow; their names and values.
--           `did` is the deduplication key, `unique` for how long it is held, `group` the lane; `expires`, and `for` in
--           `unique`, come in ms from the server's now
--
-- Answers one text per job, in order:
-- ENQUEUED   the job is admitted
-- PARKED     <id> the job is admitted, and waits until this one has ended, which holds its key
-- REPLACED   <id> this job, which holds the key or is parked behind it, took the payload over; there is no new job
-- DUPLICATE  <id> <nonce> <behind> of the job that is already here, by id or by key, and behind which job it was parked;
--            nothing was written for this one
-- CONFLICT   <id> <nonce> the id is already here with another payload; nothing was written for this one
-- EMQKIND    error: an id isn't a job's; nothing was written for any
--
-- uses lib/clock, lib/guard, lib/more, lib/waiting, lib/lanes, lib/unique, lib/events, lib/known

local rows, pending, schedule, done, keys, marker, root = unpack(KEYS)
local nonce, memory = ARGV[1], ARGV[2]

-- What is due at once has a due time of 0.
local function is_later(due)
  return due > 0 and due > now()
end

local function absolute(ms)
  return string.format('%.0f', now() + ms)
end

local function append(list, first, second)
  local length = #list
  list[length + 1], list[length + 2] = first, second
end

local jobs = {}
local at = 3
-- Whether any of them may have to do with what is parked.
local has_key = false
while ARGV[at] do
  local job = { id = ARGV[at], due = ARGV[at + 1], conflict = ARGV[at + 2], payload = ARGV[at + 3] }
  if #job.id ~= 14 or string.sub(job.id, 1, 3) ~= 'JOB' then
    return redis.error_reply('EMQKIND an id is not a job id (14 bytes that begin with JOB)')
  end
  local fields = tonumber(ARGV[at + 4]) * 2
  job.fields = { unpack(ARGV, at + 5, at + 4 + fields) }
  at = at + 5 + fields
  for i = 1, fields, 2 do
    local name, value = job.fields[i], job.fields[i + 1]
    if name == 'expires' then value = absolute(value) end
    if name == 'unique' then value = string.gsub(value, '^for (%d+)$', function(ms) return 'for ' .. absolute(ms) end) end
    job.fields[i + 1], job[name] = value, value
  end
  if job.due == '' then
    job.due = 0
  elseif string.sub(job.due, 1, 1) == '+' then
    job.due = now() + tonumber(string.sub(job.due, 2))
  else
    job.due = tonumber(job.due) or 0
  end
  if job.conflict ~= '' then
    local latest = string.match(job.conflict, 'debounce (%d+)')
    job.latest = latest and absolute(latest)
  end
  has_key = has_key or job.did
  jobs[#jobs + 1] = job
end

-- Those for the flat line, score and id, which are put there together at the end.
local waiting = {}

-- The row of a job as it was enqueued.
local function row_of(job, state)
  local row = { 'state', state, 'attempts', '0', 'payload', job.payload, unpack(job.fields) }
  if nonce ~= '' then append(row, 'nonce', nonce) end
  if job.latest then append(row, 'latest', job.latest) end
  if has_more(job) then append(row, 'more', '1') end
  return row
end

local function admit(job)
  local due = math.min(job.due, tonumber(job.latest) or job.due)
  -- Refused by a server that is out of memory, as the first write of the call: then nothing at all was written.
  redis.call('HSET', rows .. job.id, unpack(row_of(job, is_later(due) and 'scheduled' or 'pending')))
  if job.overdue then redis.call('ZREM', done, job.id) end
  if job.did then redis.call('SET', keys .. job.did, job.id) end
  if is_later(due) then
    to_schedule(schedule, marker, job.id, due)
  elseif not job.group then
    append(waiting, score_of(job.priority), job.id)
  else
    to_waiting(pending, root, marker, job.id, job.priority, job.group)
  end
  return 'ENQUEUED'
end

-- What becomes of a job whose key is held; nothing if it isn't. The functions that this takes are inside, so that a call whose
-- jobs have no key needn't make them.
local function meet_holder(job)
  local function park(holder)
    local row = row_of(job, 'parked')
    append(row, 'behind', holder.id)
    local due = math.min(job.due, tonumber(job.latest) or job.due)
    if is_later(due) then append(row, 'due', string.format('%.0f', due)) end
    redis.call('HSET', rows .. job.id, unpack(row))
    if job.overdue then redis.call('ZREM', done, job.id) end
    redis.call('SET', root .. 'next:' .. job.did, job.id)
    redis.call('ZADD', root .. 'parked', now() + parked_for(), job.id)
    publish(root .. 'events', 'parked', job.id, ',"behind":"' .. holder.id .. '"')
    return 'PARKED ' .. holder.id
  end

  -- What a job takes over from another: all but its id, its place in line, and how it holds its key.
  local function take_over(id)
    local set, gone = { 'payload', job.payload, 'more', '1' }, { 'reaped' }
    for _, field in ipairs({ 'name', 'headers', 'max_attempts', 'expires' }) do
      if job[field] then
        append(set, field, job[field])
      else
        gone[#gone + 1] = field
      end
    end
    redis.call('HSET', rows .. id, unpack(set))
    -- A worker that had lost the job to the reaper could still complete it, and what it hasn't seen would be lost.
    redis.call('HDEL', rows .. id, unpack(gone))
    -- So that the same call again, whose answer was lost, doesn't do it twice.
    redis.call('SET', root .. 'merged:' .. job.id, id .. ' ' .. nonce, 'PX', memory)
    publish(root .. 'events', 'replaced', id)
    return 'REPLACED ' .. id
  end

  -- Puts a job off to a later time, but never beyond its latest. One that was claimed keeps the time of its retry, and one
  -- whose time has come isn't held up any more.
  local function put_off(holder)
    local stands_at = tonumber(redis.call('ZSCORE', schedule, holder.id))
    if not holder.is_fresh or not stands_at or stands_at <= now() then return end
    local latest = tonumber(holder.latest) or tonumber(job.latest)
    local due = math.min(job.due, latest)
    local row = redis.call('HMGET', rows .. holder.id, 'priority', 'group')
    redis.call('ZREM', schedule, holder.id)
    redis.call('HSET', rows .. holder.id, 'latest', string.format('%.0f', latest), 'state', is_later(due) and 'scheduled' or 'pending')
    if is_later(due) then
      to_schedule(schedule, marker, holder.id, due)
    else
      to_waiting(pending, root, marker, holder.id, row[1], row[2])
    end
  end

  -- The same for a job that is parked, with the time from which it may run.
  local function take_over_parked(id)
    local latest = tonumber(redis.call('HGET', rows .. id, 'latest') or job.latest)
    local answer = take_over(id)
    if not job.latest and not string.find(job.conflict, 'then') then return answer end
    local due = math.min(job.due, latest or job.due)
    if latest then redis.call('HSET', rows .. id, 'latest', string.format('%.0f', latest)) end
    if is_later(due) then
      redis.call('HSET', rows .. id, 'due', string.format('%.0f', due))
    else
      redis.call('HDEL', rows .. id, 'due')
    end
    return answer
  end

  local merged = job.conflict ~= '' and redis.pcall('GET', root .. 'merged:' .. job.id)
  local into, whose = string.match(type(merged) == 'string' and merged or '', '^(%w+) (.*)$')
  if into and whose == nonce then return 'REPLACED ' .. into end

  local holder = holder_of(root, job.did, now())
  if not holder and follow(root, job.did) then holder = holder_of(root, job.did, now()) end
  if not holder then return nil end
  if not holder.is_there or job.conflict == '' then return 'DUPLICATE ' .. holder.id .. '  ' end
  local parked = redis.pcall('GET', root .. 'next:' .. job.did)
  if parked_row(root, parked) then return take_over_parked(parked) end
  if not holder.is_active and (job.latest or string.find(job.conflict, 'replace')) then
    local answer = take_over(holder.id)
    if job.latest then put_off(holder) end
    return answer
  end
  if string.find(job.conflict, 'then') and (holder.is_active or holder.is_reaped) then return park(holder) end
  return 'DUPLICATE ' .. holder.id .. '  '
end

check_sets(pending, schedule)
if has_key then check_sets(root .. 'parked') end
local replies = {}
for i, job in ipairs(jobs) do
  local answer
  answer, job.overdue = answer_if_known(rows, done, job.id, job.payload)
  replies[i] = answer or job.did and meet_holder(job) or admit(job)
end
if #waiting > 0 then
  redis.call('ZADD', pending, unpack(waiting))
  wake(marker)
end
return replies
