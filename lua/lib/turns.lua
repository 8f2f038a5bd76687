-- Who is served next. The lanes of the ring take turns, and the flat line is one of them; a lane has as many jobs in one
-- turn as its weight says. A turn that a full batch cut short goes on with the next claim.

-- How many jobs a rate lets start now, and the rate itself: the generic cell rate algorithm, whose whole state is `tat`, the
-- time at which the next job is due if they come evenly. In no window of one period do more than `max + burst - 1` start.
local function allowed(text, time)
  if not text then return math.huge end
  local words, tat = string.match(text, '^(%d+ %d+ %d+) ?([%d.]*)$')
  local max, period, burst = string.match(words or '', '(%d+) (%d+) (%d+)')
  max, period, burst = tonumber(max), tonumber(period), tonumber(burst)
  if not max or max < 1 or period < 1 or burst < 1 then return math.huge end
  local rate = { words = words, gap = period / max, slack = (burst - 1) * period / max }
  rate.tat = math.max(tonumber(tat) or 0, time)
  -- No spending leads there: the clock went back, or the rate was another. One job may start, and the rest comes evenly.
  if rate.tat > time + burst * rate.gap + 1 then rate.tat = time + rate.slack end
  rate.room = math.max(0, math.floor((time + rate.slack - rate.tat) / rate.gap) + 1)
  return rate.room, rate
end

-- The text of a rate after these many jobs have started, and when it lets the next one start, in whole ms.
local function spend(rate, jobs)
  local tat = rate.tat + jobs * rate.gap
  return string.format('%s %.3f', rate.words, tat), math.ceil(tat - rate.slack)
end

-- The lanes at the head of the ring, each with what bounds its turn.
local function window(root, n, time)
  local names = redis.call('LRANGE', root .. 'ring', 0, n - 1)
  if #names == 0 then return {} end
  local paused = redis.call('EXISTS', root .. 'paused') == 1 and redis.call('SMISMEMBER', root .. 'paused', unpack(names)) or {}
  local limits, running = values_of(root .. 'glimit', names), values_of(root .. 'gactive', names)
  local weights, rates = values_of(root .. 'gweight', names), values_of(root .. 'grate', names)
  local lanes, seen = {}, {}
  for i, name in ipairs(names) do
    local room, rate = allowed(rates[i], time)
    room = math.min(room, limit_of(limits[i]) - count(running[i]))
    -- Nothing of ours puts a lane into the ring twice, or one that is paused.
    if paused[i] == 1 or seen[name] then room = 0 end
    local weight = math.max(1, count(weights[i]))
    lanes[i] = {
      name = name, place = line_of(root, name), from = 0, got = 0, weight = weight, room = room, rate = rate,
      is_there_twice = seen[name],
    }
    seen[name] = true
  end
  return lanes
end

-- Takes up to n jobs in turn. `take(line, want)` takes as many from one line and answers how many it got: fewer if the
-- line has no more, or enough was looked at. `state` is where the last claim left off: how many lanes come before the
-- flat line, and what the first lane of the ring has left of its turn.
local function in_turn(lanes, length, flat, n, state, take)
  local ahead, credit, whose = string.match(state or '', '^(%d+) ?(%d*) ?(.*)$')
  local fetched, sees_all = #lanes, #lanes >= length
  local turns = { head = 1, ahead = math.min(tonumber(ahead) or length, length) }
  if lanes[1] and lanes[1].name == whose then turns.credit = tonumber(credit) end
  while n > 0 do
    local lane = lanes[turns.head]
    if turns.ahead == 0 and not flat.is_used_up then
      local want = length == 0 and n or 1
      local got = take(flat, want)
      n = n - got
      if got < want and not flat.is_used_up then break end
      turns.ahead = length
    elseif not lane or turns.head > fetched and not sees_all then
      break
    else
      local turn = math.min(turns.credit or lane.weight, lane.weight)
      local want = math.max(0, math.min(turn, lane.room, n))
      local got = want > 0 and take(lane, want) or 0
      n, lane.room = n - got, lane.room - got
      local goes_on = lane.room > 0 and not lane.is_used_up
      turns.credit = goes_on and got < turn and turn - got or nil
      if turns.credit then break end
      turns.head, turns.ahead = turns.head + 1, math.max(0, turns.ahead - 1)
      if goes_on then
        lanes[#lanes + 1] = lane
      else
        length = length - 1
      end
    end
  end
  return turns
end

-- Turns the ring: lanes that had their turn go to its end, but for those that can't be served any more. One that its rate
-- holds back goes among the held, from where it comes back when its time has come.
local function turn_ring(root, lanes, fetched, turns, time)
  local served = math.min(turns.head - 1, fetched)
  if served > 0 then redis.call('LPOP', root .. 'ring', served) end
  local changed = {}
  for i = 1, math.min(turns.head, fetched) do
    local lane = lanes[i]
    if not lane.is_there_twice then changed[#changed + 1] = lane end
    if lane.rate then
      local text, next_start = spend(lane.rate, lane.got)
      if lane.got > 0 then redis.call('HSET', root .. 'grate', lane.name, text) end
      if i <= served and lane.got >= lane.rate.room then
        redis.call('ZADD', root .. 'held', math.max(next_start, time + 1), lane.name)
      end
    end
  end
  count_lines(root, changed)
  local back = {}
  for i = math.max(turns.head, fetched + 1), #lanes do back[#back + 1] = lanes[i].name end
  if #back > 0 then redis.call('RPUSH', root .. 'ring', unpack(back)) end
end

-- What the next claim has to know of the turns.
local function turn_text(turns, lanes)
  if not turns.credit then return string.format('%.0f', turns.ahead) end
  return string.format('%.0f %.0f %s', turns.ahead, turns.credit, lanes[turns.head].name)
end
