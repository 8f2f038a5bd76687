-- The job that this token holds: where it stands, 'active', or 'waiting' if its lease ran out and the reaper put it back
-- but nobody has claimed it since; and what of its row the transitions need. For any other caller nil, the refusal, and
-- how this token settled. `is_active` says whether the job is in the active set.
local function fence_at(row, root, id, token, is_active)
  -- By pcall: a row of another type is as good as none, and must not stop what else the call does.
  local field = redis.pcall('HMGET', row, 'attempts', 'group', 'priority', 'did', 'cancel')
  if field.err then return nil, 'GONE' end
  if not field[1] and redis.call('EXISTS', row) == 0 then
    return nil, was_cancelled(root .. 'done', id) and 'CANCELLED' or 'GONE'
  end
  if field[1] ~= token then return nil, 'STALE' end
  if not is_active then
    local reaped, settled = unpack(redis.call('HMGET', row, 'reaped', 'settled'))
    if reaped ~= token then return nil, 'STALE', settled end
  end
  return {
    id = id,
    where = is_active and 'active' or 'waiting',
    lane = field[2],
    priority = field[3],
    key = field[4],
    cancel = field[5],
  }
end

local function fence(row, active, root, id, token)
  return fence_at(row, root, id, token, redis.call('ZSCORE', active, id))
end

-- Takes the job from where its holder had it, and frees what it held there. ZREM is allowed on a server that is out of
-- memory, and what a script has begun it may finish: that is why each settling script writes here first.
local function take_out(job, active, pending, root, marker)
  if job.where == 'active' then
    redis.call('ZREM', active, job.id)
    free_slot(root, marker, job.id, job.lane)
    left_active(root, marker)
  else
    leave_line(pending, root, job.id, job.lane)
  end
end
