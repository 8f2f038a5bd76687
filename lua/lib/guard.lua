-- Raises, before anything is written, if one of these keys isn't a sorted set: a job must not be taken out of one place
-- when it can't be put into the next.
local function check_sets(...)
  local keys = { ... }
  for i = 1, #keys do
    local key = keys[i]
    redis.call('ZCARD', key)
  end
end

-- `attempts` and other fields of the row of an id that was found in a set, or nil if there is no such job. A key of
-- another type and an id that isn't a job's are as good as none: neither may hold up the jobs behind it.
local function read_row(rows, id, ...)
  if #id ~= 14 or not string.find(id, '^JOB%w+$') then return nil end
  local row = redis.pcall('HMGET', rows .. id, 'attempts', ...)
  if not row[1] and (row.err or redis.call('EXISTS', rows .. id) == 0) then return nil end
  return row
end

-- A count that somebody may have tampered with: what isn't a number that can be counted on exactly is none.
local function count(text)
  local n = tonumber(text)
  return n and n >= 0 and n < 2 ^ 52 and math.floor(n) or 0
end

-- Adds to a counter. What else may stand there must not stop a transition half way.
local function add(key, field, n)
  if type(redis.pcall('HINCRBY', key, field, n)) == 'table' then redis.pcall('HSET', key, field, n) end
end
