-- Tells who listens what became of a job, with further fields of the event if there are any. Last of all and by pcall: a
-- user who may not publish must not break a transition half way. An id is 14 letters and digits, which JSON takes as they
-- are.
local function publish(channel, event, id, fields)
  redis.pcall('PUBLISH', channel, '{"event":"' .. event .. '","job":"' .. id .. '"' .. (fields or '') .. '}')
end

-- The same of many jobs, without further fields.
local function publish_all(channel, event, ids)
  local head = '{"event":"' .. event .. '","job":"'
  for i = 1, #ids do redis.pcall('PUBLISH', channel, head .. ids[i] .. '"}') end
end
