-- Gives a deduplication key back, if it still points at this job.
local function release_key(keys, key, id)
  if key and redis.pcall('GET', keys .. key) == id then redis.call('DEL', keys .. key) end
end

-- Tells who listens. Last of all and by pcall: a user who may not publish must not break a transition half way.
local function publish(channel, event, id)
  redis.pcall('PUBLISH', channel, cjson.encode({ event = event, job = id }))
end
