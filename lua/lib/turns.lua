-- Who is served next. The lanes of the ring take turns, and the flat line is one of them; a lane has as many jobs in one
-- turn as its weight says. A turn that a full batch cut short goes on with the next claim.

-- How many jobs a rate lets start now, and the rate itself: the generic cell rate algorithm, whose whole state is `tat`, the
-- time at which the next job is due if they come evenly. In no window of one period do more than `max + burst - 1` start.
local function allowed(text, time)
  local max, period, burst, tat = string.match(text or '', '^(%d+) (%d+) (%d+) ?([%d.]*)$')
  max, period, burst = tonumber(max), tonumber(period), tonumber(burst)
  if not max or max < 1 or period < 1 or burst < 1 then return math.huge end
  local rate = { text = max .. ' ' .. period .. ' ' .. burst, gap = period / max, slack = (burst - 1) * period / max }
  -- Later than that only on a clock that went back.
  rate.tat = math.min(math.max(tonumber(tat) or 0, time), time + burst * rate.gap)
  return math.max(0, math.floor((time + rate.slack - rate.tat) / rate.gap) + 1), rate
end

-- The text of a rate after these many jobs have started, and when it lets the next one start, in whole ms.
local function spend(rate, jobs)
  local tat = rate.tat + jobs * rate.gap
  return string.format('%s %.3f', rate.text, tat), math.ceil(tat - rate.slack)
end

-- The lanes at the head of the ring, each with what bounds its turn.
local function window(root, n, time)
  local names = redis.call('LRANGE', root .. 'ring', 0, n - 1)
  if #names == 0 then return {} end
  local paused = redis.call('SMISMEMBER', root .. 'paused', unpack(names))
  local limits = redis.call('HMGET', root .. 'glimit', unpack(names))
  local running = redis.call('HMGET', root .. 'gactive', unpack(names))
  local weights = redis.call('HMGET', root .. 'gweight', unpack(names))
  local rates = redis.call('HMGET', root .. 'grate', unpack(names))
  local lanes, seen = {}, {}
  for i, name in ipairs(names) do
    local room, rate = allowed(rates[i], time)
    local limit = tonumber(limits[i])
    if limit then room = math.min(room, limit - count(running[i])) end
    -- Nothing of ours puts a lane into the ring twice, or one that is paused.
    if paused[i] == 1 or seen[name] then room = 0 end
    seen[name] = true
    local weight = math.max(1, count(weights[i]))
    lanes[i] = { name = name, place = line_of(root, name), from = 0, weight = weight, room = room, rate = rate }
  end
  return lanes
end

-- Takes up to n jobs in turn. `take(line, want)` takes as many from one line and answers how many it got: fewer if the
-- line has no more. `state` is where the last claim left off: how many lanes have had their turn since the flat line's,
-- and what the first lane of the ring has left of its own.
local function in_turn(lanes, length, flat, n, state, take)
  local since, credit, whose = string.match(state or '', '^(%d+) ?(%d*) ?(.*)$')
  local turns = { since = count(since), head = 1, credit = nil }
  local fetched = #lanes
  if lanes[1] and lanes[1].name == whose then turns.credit = tonumber(credit) end
  while n > 0 do
    local lane = lanes[turns.head]
    if not flat.is_empty and turns.since >= length then
      local want = length == 0 and n or 1
      local got = take(flat, want)
      flat.is_empty = got < want
      n, turns.since = n - got, 0
    elseif not lane or turns.head > fetched and fetched < length then
      break
    else
      local turn = turns.credit or lane.weight
      local want = math.max(0, math.min(turn, lane.room, n))
      local got = want > 0 and take(lane, want) or 0
      n, lane.room = n - got, lane.room - got
      lane.is_off = lane.room <= 0 or got < want
      if not lane.is_off and got < turn then
        turns.credit = turn - got
        break
      end
      turns.head, turns.credit = turns.head + 1, nil
      if lane.is_off then
        length = length - 1
      else
        turns.since = turns.since + 1
        lanes[#lanes + 1] = lane
      end
    end
  end
  return turns
end

-- Writes down where the turns stand: lanes that had theirs go to the end of the ring, but for those that can't be served
-- any more. One that its rate holds back goes among the held, from where it comes back when its time has come.
local function turn_ring(root, lanes, fetched, turns, time)
  local first = lanes[turns.head]
  if turns.credit and turns.head <= fetched and redis.call('ZCARD', first.place) == 0 then
    turns.head, turns.credit = turns.head + 1, nil
  end
  local served = math.min(turns.head - 1, fetched)
  if served > 0 then redis.call('LPOP', root .. 'ring', served) end

  for i = 1, math.min(turns.head, fetched) do
    local lane = lanes[i]
    local text, next_start
    if lane.rate then text, next_start = spend(lane.rate, lane.got or 0) end
    if text and lane.got and lane.got > 0 then redis.call('HSET', root .. 'grate', lane.name, text) end
    if i <= served and text and next_start > time then redis.call('ZADD', root .. 'held', next_start, lane.name) end
  end

  local back = {}
  local function keep(lane)
    if lane.room > 0 and redis.call('ZCARD', lane.place) > 0 then back[#back + 1] = lane.name end
  end
  for i = math.max(turns.head, fetched + 1), #lanes do keep(lanes[i]) end
  -- What the batch was too full to look at.
  for i = 1, served do
    if lanes[i].is_off then keep(lanes[i]) end
  end
  if #back > 0 then redis.call('RPUSH', root .. 'ring', unpack(back)) end
end

-- What the next claim has to know of the turns.
local function turn_text(turns, lanes)
  local since = string.format('%.0f', turns.since)
  return turns.credit and since .. ' ' .. turns.credit .. ' ' .. lanes[turns.head].name or since
end
