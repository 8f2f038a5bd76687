-- What belongs to a lane stands behind `root`, the beginning of all keys of the queue. A lane is in the ring if, and only
-- if, it can be served. So whoever changes that knows whether it is there without a search: no cost here grows with the
-- number of lanes, but for that of the two functions which say so.

-- The waiting place of a lane.
local function line_of(root, lane)
  return root .. 'g:' .. lane .. ':pending'
end

-- Fields of a hash that most queues don't have, for which they needn't be asked one by one.
local function values_of(key, names)
  return redis.call('EXISTS', key) == 1 and redis.call('HMGET', key, unpack(names)) or {}
end

-- How many jobs wait in a line; none in one that is of another type, made by hand.
local function length_of(line)
  local length = redis.pcall('ZCARD', line)
  return type(length) == 'number' and length or 0
end

-- Where a job of this lane waits: a lane that can't be one, made by hand, is none.
local function waiting_place(pending, root, lane)
  if not lane or lane == '' then return pending end
  local line = line_of(root, lane)
  return type(redis.pcall('ZCARD', line)) == 'number' and line or pending
end

-- How many a limit allows; what isn't a number, NaN among it, is no limit.
local function limit_of(text)
  local limit = tonumber(text)
  return limit == limit and limit and math.floor(limit) or math.huge
end

-- Whether a lane has jobs, isn't paused, is below its limit, and isn't held back.
local function can_serve(root, lane)
  if length_of(line_of(root, lane)) == 0 then return false end
  if redis.pcall('SISMEMBER', root .. 'paused', lane) == 1 then return false end
  if type(redis.pcall('ZSCORE', root .. 'held', lane)) == 'string' then return false end
  return count(redis.pcall('HGET', root .. 'gactive', lane)) < limit_of(redis.pcall('HGET', root .. 'glimit', lane))
end

-- Puts a lane that isn't in the ring at its end, if it can be served. All by pcall: it is the last step of a transition,
-- which must not stop half way.
local function offer(root, marker, lane)
  if not can_serve(root, lane) then return end
  redis.pcall('RPUSH', root .. 'ring', lane)
  -- What the consumers of other implementations wait on.
  redis.pcall('RPUSH', root .. 'wake', '1')
  redis.pcall('LTRIM', root .. 'wake', 0, 63)
  wake(marker)
end

-- Takes a lane out of the ring, wherever it stands: a search.
local function leave_ring(root, lane)
  redis.pcall('LREM', root .. 'ring', 0, lane)
end

-- Brings the ring into line with a lane that was changed from outside: a search.
local function put_right(root, marker, lane)
  if not can_serve(root, lane) then
    leave_ring(root, lane)
  elseif type(redis.pcall('LPOS', root .. 'ring', lane)) == 'number' then
    wake(marker)
  else
    offer(root, marker, lane)
  end
end

-- Writes down how many jobs wait in each of these lanes, and in all lanes together, which nobody could count. It goes by the
-- lines themselves, so that what others have done to them is made good whenever a transition comes by; a line that
-- `is_used_up` has none.
local function count_lines(root, lines)
  local names, waiting, empty, more = {}, {}, {}, 0
  for i, line in ipairs(lines) do names[i] = line.name end
  local known = redis.pcall('ZMSCORE', root .. 'lanes', unpack(names))
  for i, line in ipairs(lines) do
    line.waiting = line.is_used_up and 0 or length_of(line.place)
    local before = count(known[i])
    more = more + line.waiting - before
    if line.waiting == 0 then
      empty[#empty + 1] = line.name
    elseif line.waiting ~= before then
      waiting[#waiting + 1] = line.waiting
      waiting[#waiting + 1] = line.name
    end
  end
  if #waiting > 0 then redis.pcall('ZADD', root .. 'lanes', unpack(waiting)) end
  if #empty > 0 then redis.pcall('ZREM', root .. 'lanes', unpack(empty)) end
  if more ~= 0 and redis.pcall('HINCRBY', root .. 'meta', 'in_lanes', more) == 0 then
    redis.pcall('HDEL', root .. 'meta', 'in_lanes')
  end
end

-- The same for one lane; answers how many jobs wait in it.
local function count_line(root, lane)
  local line = { name = lane, place = line_of(root, lane) }
  count_lines(root, { line })
  return line.waiting
end

-- The score of a job where it waits: the lower priority runs first, then the older id.
local function score_of(priority)
  local score = tonumber(priority)
  -- What isn't a number, NaN among it, is no priority.
  return score and score == score and score or 0
end

-- Puts a job where it can be claimed, and wakes a worker.
local function to_waiting(pending, root, marker, id, priority, lane)
  local place = waiting_place(pending, root, lane)
  local is_new = redis.call('ZADD', place, score_of(priority), id) == 1
  if place ~= pending and count_line(root, lane) == 1 and is_new then
    offer(root, marker, lane)
  else
    wake(marker)
  end
end

-- Takes a waiting job from its place, and says whether it was there. A lane that this leaves empty may stand anywhere in
-- the ring.
local function leave_line(pending, root, id, lane)
  local place = waiting_place(pending, root, lane)
  local removed = redis.call('ZREM', place, id)
  if place == pending then return removed == 1 end
  if removed == 1 and count_line(root, lane) == 0 then leave_ring(root, lane) end
  return redis.call('ZREM', pending, id) + removed > 0
end

-- Keeps a lane from being served until then, since a job of it has met a limit elsewhere: `gheld` tells such a wait from
-- one for the lane's own rate. A lane that is held back isn't in the ring, and needn't be looked for.
local function hold_back(root, lane, resumes)
  if count(redis.pcall('HGET', root .. 'gheld', lane)) < resumes then
    redis.pcall('HSET', root .. 'gheld', lane, string.format('%.0f', resumes))
  end
  local known = redis.call('ZSCORE', root .. 'held', lane)
  if not known then leave_ring(root, lane) end
  if not known or tonumber(known) < resumes then redis.call('ZADD', root .. 'held', resumes, lane) end
end

-- Takes slots: `slots` has ids, each with its lane behind it, `running` how many of each lane.
local function take_slots(root, slots, running)
  local names, sums = {}, {}
  for lane in pairs(running) do names[#names + 1] = lane end
  local before = redis.pcall('HMGET', root .. 'gactive', unpack(names))
  for i, lane in ipairs(names) do
    sums[#sums + 1] = lane
    sums[#sums + 1] = string.format('%.0f', count(before[i]) + running[lane])
  end
  redis.pcall('HSET', root .. 'slots', unpack(slots))
  redis.pcall('HSET', root .. 'gactive', unpack(sums))
end

-- Frees the slots of jobs that were active until now; `lanes` says in whose slot each of them is. A lane that was at its limit
-- can be served again.
local function free_slots(root, marker, ids, lanes)
  local names, freed = {}, {}
  for _, lane in ipairs(lanes) do
    if not freed[lane] then names[#names + 1] = lane end
    freed[lane] = (freed[lane] or 0) + 1
  end
  local running = redis.pcall('HMGET', root .. 'gactive', unpack(names))
  local limits = redis.pcall('HMGET', root .. 'glimit', unpack(names))
  local less, none, open = {}, {}, {}
  for i, lane in ipairs(names) do
    local before = count(running[i])
    local left, limit = before - freed[lane], limit_of(limits[i])
    if left > 0 then
      less[#less + 1] = lane
      less[#less + 1] = string.format('%.0f', left)
    else
      none[#none + 1] = lane
    end
    if before >= limit and left < limit then open[#open + 1] = lane end
  end
  redis.pcall('HDEL', root .. 'slots', unpack(ids))
  if #less > 0 then redis.pcall('HSET', root .. 'gactive', unpack(less)) end
  if #none > 0 then redis.pcall('HDEL', root .. 'gactive', unpack(none)) end
  for _, lane in ipairs(open) do offer(root, marker, lane) end
end

-- The same for one job of this lane, if it has one. Whose slot it is, the claim wrote down; for a claim of another
-- implementation it is that of the job's lane.
local function free_slot(root, marker, id, lane)
  if not lane or lane == '' then return end
  local owner = redis.pcall('HGET', root .. 'slots', id)
  free_slots(root, marker, { id }, { type(owner) == 'string' and owner or lane })
end

-- Wakes a worker if fewer jobs are active now, and that is what others waited for.
local function left_active(root, marker)
  if redis.pcall('HEXISTS', root .. 'meta', 'concurrency') == 1 then wake(marker) end
end
