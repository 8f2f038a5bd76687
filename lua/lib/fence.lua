-- Where the job stands for the holder of this token: 'active', or 'waiting' if the lease ran out and the reaper put
-- the job back but nobody has claimed it since. For any other caller nil, the refusal, and how this token settled.
local function fence(row, active, id, token)
  local field = redis.call('HMGET', row, 'attempts', 'reaped', 'settled')
  if not field[1] and redis.call('EXISTS', row) == 0 then return nil, 'GONE' end
  if field[1] ~= token then return nil, 'STALE' end
  if redis.call('ZSCORE', active, id) then return 'active' end
  if field[2] == token then return 'waiting' end
  return nil, 'STALE', field[3]
end

-- Takes the job from where its holder had it. ZREM is allowed on a server that is out of memory, and what a script has
-- begun it may finish: that is why each settling script writes here first.
local function take_out(where, active, pending, id)
  redis.call('ZREM', where == 'active' and active or pending, id)
end
