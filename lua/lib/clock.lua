-- The server's clock in milliseconds, with a fraction down to the microsecond: the only clock that anything is timed by.
local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000 + time[2] / 1000
end

-- The same in whole milliseconds, of which every deadline is made.
local function now()
  return math.floor(clock())
end
