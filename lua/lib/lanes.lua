-- What belongs to a lane stands behind `root`, the beginning of all keys of the queue. A lane is in the ring if, and only
-- if, it can be served. So whoever changes that knows whether it is there without a search: no cost here grows with the
-- number of lanes.

-- The waiting place of a lane.
local function line_of(root, lane)
  return root .. 'g:' .. lane .. ':pending'
end

-- Where a job of this lane waits: a lane that can't be one, made by hand, is none.
local function waiting_place(pending, root, lane)
  if not lane or lane == '' then return pending end
  local line = line_of(root, lane)
  return type(redis.pcall('ZCARD', line)) == 'number' and line or pending
end

-- Whether a lane has jobs, isn't paused, is below its limit, and isn't held back by its rate.
local function can_serve(root, lane)
  local waiting = redis.pcall('ZCARD', line_of(root, lane))
  if type(waiting) ~= 'number' or waiting == 0 then return false end
  if redis.pcall('SISMEMBER', root .. 'paused', lane) == 1 then return false end
  if type(redis.pcall('ZSCORE', root .. 'held', lane)) == 'string' then return false end
  local limit = tonumber(redis.pcall('HGET', root .. 'glimit', lane))
  return not limit or count(redis.pcall('HGET', root .. 'gactive', lane)) < limit
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

-- The score of a job where it waits: the lower priority runs first, then the older id.
local function score_of(priority)
  local score = tonumber(priority)
  -- What isn't a number, NaN among it, is no priority.
  return score and score == score and score or 0
end

-- Puts a job where it can be claimed, and wakes a worker.
local function to_waiting(pending, root, marker, id, priority, lane)
  local place = waiting_place(pending, root, lane)
  redis.call('ZADD', place, score_of(priority), id)
  if place == pending then
    wake(marker)
  elseif redis.call('ZCARD', place) == 1 then
    offer(root, marker, lane)
  else
    wake(marker)
  end
end

-- Takes a waiting job from its place. The one search of the ring: a lane that this leaves empty may stand anywhere in it.
local function leave_line(pending, root, id, lane)
  local place = waiting_place(pending, root, lane)
  local removed = redis.call('ZREM', place, id)
  if place ~= pending and removed == 1 and redis.call('ZCARD', place) == 0 then
    redis.pcall('LREM', root .. 'ring', 0, lane)
  end
  if place ~= pending then redis.call('ZREM', pending, id) end
end

-- Frees the slot of its lane that a job held which was active until now. A lane that was at its limit can be served again.
-- Whose slot it is, the claim wrote down; for a claim of another implementation it is that of the job's lane.
local function free_slot(root, marker, id, lane)
  if lane and lane ~= '' then
    local owner = redis.pcall('HGET', root .. 'slots', id)
    if type(owner) == 'string' then
      lane = owner
      redis.call('HDEL', root .. 'slots', id)
    end
    local left = redis.pcall('HINCRBY', root .. 'gactive', lane, -1)
    if type(left) == 'number' then
      if left <= 0 then redis.pcall('HDEL', root .. 'gactive', lane) end
      local limit = tonumber(redis.pcall('HGET', root .. 'glimit', lane))
      if limit and left + 1 >= limit and left < limit then offer(root, marker, lane) end
    end
  end
end

-- Wakes a worker if fewer jobs are active now, and that is what others waited for.
local function left_active(root, marker)
  if redis.pcall('HEXISTS', root .. 'meta', 'concurrency') == 1 then wake(marker) end
end
