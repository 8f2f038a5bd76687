-- The server's clock in milliseconds: the only clock that a deadline is ever made from.
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
