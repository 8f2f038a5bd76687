-- What is told of a recurring job, as its record has it. A key of another type, made by hand, is as good as none.
local function read_record(record)
  local fields = redis.pcall('HMGET', record, 'schedule', 'start', 'next', 'missed', 'overlap', 'held', 'declared',
    'paused', 'last', 'job', 'name', 'priority', 'group')
  return fields.err and {} or fields
end
