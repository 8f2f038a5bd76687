-- Tells who listens what became of a job, with further fields of the event if there are any. Last of all and by pcall: a
-- user who may not publish must not break a transition half way. An id is 14 letters and digits, which JSON takes as they
-- are.
local function publish(channel, event, id, fields)
  redis.pcall('PUBLISH', channel, '{"event":"' .. event .. '","job":"' .. id .. '"' .. (fields or '') .. '}')
end
