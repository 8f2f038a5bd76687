-- Ends jobs as done whose tokens hold them, and answers a word for each, or one alone if that is `OK` for all. All are
-- checked first; what can be written for all of them at once is. Those of a group have token, retention and result alike.
--
-- The score in `done` is in whole ms. Its fraction is made from the token, for there is no row any more that could tell
-- the completion that comes again from one of a worker that had lost the job.
local function complete(queue, alike)
  local time = now()
  check_sets(queue.done)

  local total, ids, groups = 0, {}, {}
  for _, group in ipairs(alike) do
    -- Never what the markers have that aren't of a completion, see `lib/marks`; 10 bits are exact beside the ms.
    group.mark = (count(group.token) % 1022 + 1) / 1024
    -- As text, of which four digits tell 10 bits apart: the server is quicker with that than with a number.
    group.score = string.format('%.4f', time + tonumber(group.retention) + group.mark)
    for _, id in ipairs(group.ids) do
      total = total + 1
      ids[total], groups[total] = id, group
    end
  end
  if total == 0 then return 'OK' end

  local leases = redis.call('ZMSCORE', queue.active, unpack(ids))
  local slots = {}
  if redis.call('EXISTS', queue.root .. 'slots') == 1 then slots = redis.pcall('HMGET', queue.root .. 'slots', unpack(ids)) end
  local seen, words, refused = {}, {}, 0
  local ended, ends, gone, markers, results, slot_ids, slot_lanes = {}, 0, {}, {}, {}, {}, {}
  -- Those that don't just leave the active set, with what of their rows is needed.
  local others, waiting = {}, 0

  local function look_closer(i, row)
    local id, group = ids[i], groups[i]
    local job, refusal = fence_at(row, queue.root, id, group.token, leases[i])
    if job and seen[id] then return 'DONE' end
    if job then
      job.has_slot = slots[i]
      others[#others + 1] = job
      if job.where == 'waiting' then waiting = waiting + 1 end
      return 'OK'
    end
    local remembered = refusal == 'GONE' and tonumber(redis.call('ZSCORE', queue.done, id))
    if remembered then return remembered % 1 == group.mark and 'DONE' or 'STALE' end
    return refusal
  end

  for i = 1, total do
    local id, group, row = ids[i], groups[i], queue.rows .. ids[i]
    -- By pcall: a row of another type is as good as none, and must not stop what else the call does.
    local field = redis.pcall('HMGET', row, 'attempts', 'more', 'group', 'logged')
    local is_plain = leases[i] and field[1] == group.token and not field[2] and not seen[id]
    -- The slot of a claim of another implementation is that of the job's lane.
    local is_where_it_says = slots[i] or not field[3]
    local word = is_plain and is_where_it_says and 'OK' or look_closer(i, row)
    words[i] = word
    if word == 'OK' then
      ends, seen[id] = ends + 1, true
      ended[ends] = id
      gone[#gone + 1] = row
      -- Of most jobs there are none, and to look for what isn't there costs the server as much as to find it. Other
      -- implementations don't say that an earlier run has logged.
      if field[4] or group.token ~= '1' then gone[#gone + 1] = row .. ':logs' end
      markers[2 * ends - 1], markers[2 * ends] = group.score, id
      if group.result ~= '' then results[#results + 1] = { row = row, group = group } end
      if slots[i] and leases[i] then
        slot_ids[#slot_ids + 1], slot_lanes[#slot_lanes + 1] = id, slots[i]
      end
    else
      refused = refused + 1
    end
  end
  if ends == 0 then return words end
  -- Alone of those that the reaper has put back: jobs that are active have nothing to do with what waits.
  if waiting > 0 then check_sets(queue.pending) end

  redis.call('ZREM', queue.active, unpack(ended))
  if #slot_ids > 0 then free_slots(queue.root, queue.marker, slot_ids, slot_lanes) end
  for _, job in ipairs(others) do
    if job.where == 'waiting' then
      leave_line(queue.pending, queue.root, job.id, job.lane)
    elseif not job.has_slot then
      free_slot(queue.root, queue.marker, job.id, job.lane)
    end
    end_key(queue.root, job.key, job.id, time)
  end
  for _, one in ipairs(results) do
    local row, group = one.row, one.group
    redis.call('SET', row .. ':result', group.result, 'PX', group.retention)
  end
  redis.call('DEL', unpack(gone))
  if waiting < ends then left_active(queue.root, queue.marker) end
  redis.call('ZADD', queue.done, unpack(markers))
  add(queue.completed, 'count', ends)
  publish_all(queue.events, 'completed', ended)
  return refused == 0 and 'OK' or words
end
