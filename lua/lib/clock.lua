-- The server's clock in milliseconds, with a fraction down to the microsecond: the only clock that anything is timed by. A
-- transition takes place at one moment, and asks for it once.
local moment
local function clock()
  if not moment then
    local time = redis.call('TIME')
    moment = time[1] * 1000 + time[2] / 1000
  end
  return moment
end

-- The same in whole milliseconds, of which every deadline is made.
local function now()
  return math.floor(clock())
end
