-- Deduplication keys. `de:<key>` names the job that holds a key, `next:<key>` the one that is parked until that has ended,
-- or says `slot` if a recurring job waits for that with its next slot.
-- For how long a job holds its key is in the field `unique` of its row: nothing for as long as it is unfinished, `start`
-- until it is first claimed, `for` with the time until which it does in any case, `after` with how many ms beyond its end.
--
-- What an unfinished job holds has no TTL. Only a key that outlives its job has one: it goes by itself. No row leads to
-- such a key any more, but `windows` does.

-- How often a parked job is looked at, in ms: the one in front may have been ended by somebody who knows of no parked ones.
local function parked_for()
  return 60000
end

-- The job that holds this key, and what of its row who meets it has to know; only the id, if the key has outlived the job.
-- A key whose job is gone, or is a dead letter, or had it for a time that is over, is nobody's.
local function holder_of(root, key, time)
  local id = redis.pcall('GET', root .. 'de:' .. key)
  if type(id) ~= 'string' then return nil end
  local row = read_row(root .. 'job:', id, 'state', 'unique', 'reaped', 'latest', 'did')
  local outlives = (not row or row[6] ~= key or row[2] == 'dead') and redis.call('PTTL', root .. 'de:' .. key) >= 0
  if outlives then return { id = id } end
  -- A job that says nothing of a key may be another implementation's. One of another key has an id that came again.
  if not row or row[2] == 'dead' or row[6] and row[6] ~= key then return nil end
  local over = tonumber(string.match(row[3] or '', '^for (%d+)$'))
  -- Who is parked would otherwise be forgotten by the next holder.
  if over and over <= time and redis.call('EXISTS', root .. 'next:' .. key) == 0 then return nil end
  return {
    id = id,
    is_fresh = count(row[1]) == 0,
    is_active = type(redis.pcall('ZSCORE', root .. 'active', id)) == 'string',
    is_reaped = row[4],
    latest = row[5],
    is_there = true,
  }
end

-- Gives a key to a parked job, which goes to its place: on the schedule if it has a time, else where it can be claimed.
local function go_on(root, key, id, row, time)
  local due = tonumber(row[4]) or 0
  redis.call('ZREM', root .. 'parked', id)
  redis.call('HDEL', root .. 'job:' .. id, 'due')
  redis.call('HSET', root .. 'job:' .. id, 'state', due > time and 'scheduled' or 'pending')
  if key then redis.call('SET', root .. 'de:' .. key, id) end
  if due > time then
    to_schedule(root .. 'schedule', root .. 'marker', id, due)
  else
    to_waiting(root .. 'pending', root, root .. 'marker', id, row[2], row[3])
  end
end

-- What `go_on` has to know of a parked job, if it is one and can be put where it belongs.
local function parked_row(root, id)
  for _, set in ipairs({ 'parked', 'pending', 'schedule' }) do
    if type(redis.pcall('ZCARD', root .. set)) ~= 'number' then return nil end
  end
  if type(id) ~= 'string' or not redis.call('ZSCORE', root .. 'parked', id) then return nil end
  return read_row(root .. 'job:', id, 'priority', 'group', 'due', 'did')
end

-- Lets the job go on that is parked behind this key, and says whether there was one.
local function follow(root, key)
  local id = redis.pcall('GET', root .. 'next:' .. key)
  if id == 'slot' then
    -- No lane is called so: a claim tells the beat that something is due, and the beat fires the slot.
    redis.pcall('ZADD', root .. 'held', 0, '*')
    wake(root .. 'marker')
  end
  local row = parked_row(root, id)
  if not row then
    -- Whose row was lost is nobody who waits.
    if type(id) == 'string' and not read_row(root .. 'job:', id) then redis.call('DEL', root .. 'next:' .. key) end
    return false
  end
  redis.call('DEL', root .. 'next:' .. key)
  go_on(root, key, id, row, now())
  return true
end

-- Frees the key of a job that was taken away before its end, or has started: as if the job had never had it.
local function free_key(root, key, id)
  if not key then return end
  redis.pcall('ZREM', root .. 'parked', id)
  if redis.pcall('GET', root .. 'next:' .. key) == id then redis.call('DEL', root .. 'next:' .. key) end
  if redis.pcall('GET', root .. 'de:' .. key) ~= id then return end
  if not follow(root, key) then redis.call('DEL', root .. 'de:' .. key) end
end

-- The same for a job that has ended by itself, which may keep its key for a while. Its row is still there.
local function end_key(root, key, id, time)
  if not key or redis.pcall('GET', root .. 'de:' .. key) ~= id then return end
  if follow(root, key) then return end
  local how, ms = string.match(redis.call('HGET', root .. 'job:' .. id, 'unique') or '', '^(%a+) (%d+)$')
  local left = how == 'for' and tonumber(ms) - time or how == 'after' and tonumber(ms) or 0
  if left > 0 then
    redis.pcall('PEXPIRE', root .. 'de:' .. key, string.format('%.0f', left))
    redis.pcall('ZADD', root .. 'windows', time + left, key)
  else
    redis.call('DEL', root .. 'de:' .. key)
  end
end

-- Lets parked jobs go on whose key nobody holds any more: what no transition of ours saw end.
local function look_after_parked(root, time, limit)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', root .. 'parked', '-inf', time, 'LIMIT', 0, limit)) do
    local row = parked_row(root, id)
    local key = row and row[5]
    redis.call('ZREM', root .. 'parked', id)
    if key and holder_of(root, key, time) then
      redis.call('ZADD', root .. 'parked', time + parked_for(), id)
    elseif row then
      if key then redis.call('DEL', root .. 'next:' .. key) end
      go_on(root, key, id, row, time)
    end
  end
end
