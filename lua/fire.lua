-- fire: enqueue the jobs of slots that are due, and advance their recurring jobs, so that each slot is dealt with once.
--
-- KEYS[1] rows       emq:{q}:job:<id>       hash    row created
-- KEYS[2] pending    emq:{q}:pending        zset    member added, if the job has no lane
-- KEYS[3] done       emq:{q}:done           zset    read
-- KEYS[4] keys       emq:{q}:de:<key>       string  deduplication key taken: the name and the slot
-- KEYS[5] marker     emq:{q}:marker         zset    set
-- KEYS[6] recurring  emq:{q}:repeat         zset    score = next slot
-- KEYS[7] records    emq:{q}:repeat:<name>  hash    next, last, job, held
-- KEYS[8] root       emq:{q}:<lanes>        lanes   member of its lane added; `next:<key>` of the job that a slot waits for
-- ARGV[1] nonce  of a client without a node number of its own, else empty
-- ARGV[2..] per recurring job: name; the slot that it stands at, or empty to run it beside its slots; the slot that it is
--           to stand at then, or empty for none; how many slots run; an id and the slot of each, the oldest first
--
-- Answers one text per recurring job, in order:
-- FIRED    how many jobs were enqueued; none, if its last one hasn't ended and it isn't to overlap
-- HELD     its last job hasn't ended, and its slot waits for that
-- STALE    it stands at another slot, or is paused; nothing was written for it
-- TAKEN    <nonce> there is a job of one of these ids already; nothing was written for it
-- GONE     there is none of this name; nothing was written for it
-- EMQKIND  error: an id isn't a job's; nothing was written for any
--
-- uses lib/clock, lib/guard, lib/more, lib/waiting, lib/lanes, lib/unique

local rows, pending, done, keys, marker, recurring, records, root = unpack(KEYS)
local nonce = ARGV[1]
local time = now()

local turns = {}
local at = 2
while ARGV[at] do
  local turn = { name = ARGV[at], stands_at = ARGV[at + 1], next = ARGV[at + 2], jobs = {} }
  local last = at + 3 + 2 * tonumber(ARGV[at + 3])
  for i = at + 4, last, 2 do
    local job = { id = ARGV[i], slot = ARGV[i + 1] }
    if #job.id ~= 14 or string.sub(job.id, 1, 3) ~= 'JOB' then
      return redis.error_reply('EMQKIND an id is not a job id (14 bytes that begin with JOB)')
    end
    turn.jobs[#turn.jobs + 1] = job
  end
  turns[#turns + 1] = turn
  at = last + 1
end

-- With the slot in front of the others: a handler that makes up for one has to know which.
local function headers_of(job, headers)
  if job.slot == '' then return headers end
  local slot = '{"emq-slot":"' .. job.slot .. '"'
  return headers and slot .. ',' .. string.sub(headers, 2) or slot .. '}'
end

-- The fields of a record that each of its jobs gets.
local given = { 'payload', 'name', 'priority', 'group', 'max_attempts', 'headers', 'expires' }

-- Says that a slot waits for the end of the job of an earlier one: who ends that has the beat look at once.
local function await(name, slot)
  local awaited = root .. 'next:' .. name .. '.' .. (slot or '')
  redis.pcall('SET', awaited, 'slot', 'NX')
end

-- Takes that back, if somebody has ended the job who doesn't know of it.
local function await_no_longer(name, slot)
  local awaited = root .. 'next:' .. name .. '.' .. (slot or '')
  if redis.pcall('GET', awaited) == 'slot' then redis.call('DEL', awaited) end
end

local function is_unfinished(id)
  local state = id and redis.pcall('HGET', rows .. id, 'state')
  return type(state) == 'string' and state ~= 'dead'
end

-- Answers how many were enqueued, and the job of the slot: the new one, or the one that has been there.
local function admit(job, turn, record)
  local key = job.slot ~= '' and turn.name .. '.' .. job.slot
  local holder = key and holder_of(root, key, time)
  if holder then return 0, holder.id end
  local row = { 'state', 'pending', 'attempts', '0' }
  local function also(field, value)
    if not value or value == '' then return end
    row[#row + 1] = field
    row[#row + 1] = value
  end
  for _, field in ipairs(given) do
    if field ~= 'expires' and field ~= 'headers' then also(field, record[field]) end
  end
  local headers, wait = headers_of(job, record.headers), tonumber(record.expires)
  also('headers', headers)
  also('expires', wait and string.format('%.0f', time + wait))
  also('more', has_more({ did = key, headers = headers, max_attempts = record.max_attempts, expires = wait }) and '1')
  also('did', key)
  also('nonce', nonce)

  -- Refused by a server that is out of memory, as the first write.
  redis.call('HSET', rows .. job.id, unpack(row))
  if key then redis.call('SET', keys .. key, job.id) end
  to_waiting(pending, root, marker, job.id, record.priority, record.group)
  return 1, job.id
end

local function fire(turn)
  local key = records .. turn.name
  local fields = redis.pcall('HMGET', key, 'next', 'paused', 'overlap', 'job', 'held', 'last', unpack(given))
  if fields.err or not fields[7] then return 'GONE' end
  local record = { next = fields[1], overlap = fields[3], job = fields[4], held = fields[5], last = fields[6] }
  for i, field in ipairs(given) do record[field] = fields[6 + i] end
  local by_slot = turn.stands_at ~= ''
  if by_slot and (fields[2] or record.next ~= turn.stands_at) then return 'STALE' end
  for _, job in ipairs(turn.jobs) do
    local theirs = redis.pcall('HGET', rows .. job.id, 'nonce')
    if redis.call('EXISTS', rows .. job.id) == 1 or redis.call('ZSCORE', done, job.id) then
      return 'TAKEN ' .. (type(theirs) == 'string' and theirs or '')
    end
  end

  local run, next = #turn.jobs, turn.next
  local may_overlap = not by_slot or record.overlap ~= 'skip' and record.overlap ~= 'wait'
  local is_busy = not may_overlap and run > 0 and is_unfinished(record.job)
  if is_busy and record.overlap == 'wait' then
    await(turn.name, record.last)
    if record.held ~= turn.stands_at then redis.call('HSET', key, 'held', turn.stands_at) end
    return 'HELD'
  elseif is_busy then
    run = 0
  elseif not may_overlap and run > 1 then
    -- One at a time: the next waits for this one, or overlaps with it.
    run = 1
    if record.overlap == 'wait' then next = turn.jobs[2].slot end
  end

  local enqueued, latest = 0, nil
  for i = 1, run do
    local admitted, id = admit(turn.jobs[i], turn, record)
    enqueued, latest = enqueued + admitted, id
  end
  if by_slot then
    redis.call('HSET', key, 'next', next)
    if run > 0 then redis.call('HSET', key, 'last', turn.jobs[run].slot, 'job', latest) end
    if record.held then
      redis.call('HDEL', key, 'held')
      await_no_longer(turn.name, record.last)
    end
    if record.overlap == 'wait' and run > 0 and next ~= '' and tonumber(next) <= time then
      await(turn.name, turn.jobs[run].slot)
    end
    redis.call('ZADD', recurring, next ~= '' and next or '+inf', turn.name)
  end
  return 'FIRED ' .. enqueued
end

check_sets(pending, recurring, done)
local replies = {}
for i, turn in ipairs(turns) do replies[i] = fire(turn) end
return replies
