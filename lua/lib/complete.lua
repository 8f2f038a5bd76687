-- Ends jobs as done whose tokens hold them, and answers a word for each, or one alone if that is `OK` for all. All are
-- checked first; what can be written for all of them at once is. `args` has them from `at` on, in groups of jobs that end
-- alike: token, retention, result, whether they are plain, how many, and their ids.
--
-- The score in `done` is in whole ms. Its fraction is made from the token, for there is no row any more that could tell
-- the completion that comes again from one of a worker that had lost the job.
local function complete(queue, args, at)
  local time = now()
  local rows = queue.rows
  local root = queue.root
  check_sets(queue.done)

  -- The ids of all, and what those of a group have in common, of which `last` is the number of the last one.
  local total, ids, groups, are_plain = 0, {}, {}, true
  while args[at] do
    local group = { token = args[at], retention = args[at + 1], result = args[at + 2], is_plain = args[at + 3] ~= '' }
    groups[#groups + 1] = group
    -- Never what the markers have that aren't of a completion, see `lib/marks`; 10 bits are exact beside the ms.
    group.mark = (count(group.token) % 1022 + 1) / 1024
    -- As text, of which four digits tell 10 bits apart: the server is quicker with that than with a number.
    group.score = string.format('%.4f', time + tonumber(group.retention) + group.mark)
    local last = at + 4 + tonumber(args[at + 4])
    for i = at + 5, last do
      total = total + 1
      ids[total] = args[i]
    end
    group.last = total
    are_plain = are_plain and group.is_plain
    at = last + 1
  end
  if total == 0 then return 'OK' end

  local leases = redis.call('ZMSCORE', queue.active, unpack(ids))
  local slots = {}
  if not are_plain and redis.call('EXISTS', root .. 'slots') == 1 then
    slots = redis.pcall('HMGET', root .. 'slots', unpack(ids))
  end
  local seen, refusals, refused = {}, {}, 0
  local ends, gone, markers, results, slot_ids, slot_lanes = 0, {}, {}, {}, {}, {}
  -- Those that don't just leave the active set, with what of their rows is needed.
  local others, waiting = {}, 0

  local deleted, from = 0, 1
  for g = 1, #groups do
    local group = groups[g]
    local token, score, result = group.token, group.score, group.result
    for i = from, group.last do
      local id = ids[i]
      local row = rows .. id
      -- By pcall: a row of another type is as good as none, and must not stop what else the call does. Nothing of what few
      -- jobs have comes to a job while it is active.
      local attempts, more, lane, refusal
      -- An earlier run may have logged, and one of another implementation doesn't say so. To ask whether this one has takes
      -- longer than to delete nothing, unless other fields are asked for, too.
      local may_have_logs = true
      if group.is_plain then
        attempts = redis.pcall('HGET', row, 'attempts')
      else
        local field = redis.pcall('HMGET', row, 'attempts', 'more', 'group', 'logged')
        attempts, more, lane = field[1], field[2], field[3]
        may_have_logs = field[4] or token ~= '1'
      end
      local is_plain = leases[i] and attempts == token and not more and not seen[id]
      -- The slot of a claim of another implementation is that of the job's lane.
      if not is_plain or lane and not slots[i] then
        local job
        job, refusal = fence_at(row, root, id, token, leases[i])
        local remembered = refusal == 'GONE' and tonumber(redis.call('ZSCORE', queue.done, id))
        if remembered then
          refusal = remembered % 1 == group.mark and 'DONE' or 'STALE'
        elseif job and seen[id] then
          refusal = 'DONE'
        elseif job then
          job.has_slot = slots[i]
          others[#others + 1] = job
          if job.where == 'waiting' then waiting = waiting + 1 end
        end
      end
      if refusal then
        refusals[i], refused = refusal, refused + 1
      else
        ends, deleted, seen[id] = ends + 1, deleted + 1, true
        gone[deleted] = row
        if may_have_logs then
          deleted = deleted + 1
          gone[deleted] = row .. ':logs'
        end
        markers[2 * ends - 1], markers[2 * ends] = score, id
        if result ~= '' then results[#results + 1] = { row = row, group = group } end
        if slots[i] and leases[i] then
          slot_ids[#slot_ids + 1], slot_lanes[#slot_lanes + 1] = id, slots[i]
        end
      end
    end
    from = group.last + 1
  end

  local ended = ids
  if refused > 0 then
    ended = {}
    for i = 1, total do
      if not refusals[i] then ended[#ended + 1] = ids[i] end
    end
  end

  if ends > 0 then
    -- Alone of those that the reaper has put back: jobs that are active have nothing to do with what waits.
    if waiting > 0 then check_sets(queue.pending) end

    redis.call('ZREM', queue.active, unpack(ended))
    if #slot_ids > 0 then free_slots(root, queue.marker, slot_ids, slot_lanes) end
    for _, job in ipairs(others) do
      if job.where == 'waiting' then
        leave_line(queue.pending, root, job.id, job.lane)
      elseif not job.has_slot then
        free_slot(root, queue.marker, job.id, job.lane)
      end
      end_key(root, job.key, job.id, time)
    end
    for _, one in ipairs(results) do
      local row, group = one.row, one.group
      redis.call('SET', row .. ':result', group.result, 'PX', group.retention)
    end
    redis.call('DEL', unpack(gone))
    if waiting < ends then left_active(root, queue.marker) end
    redis.call('ZADD', queue.done, unpack(markers))
    add(queue.completed, 'count', ends)
    publish_all(queue.events, 'completed', ended)
  end

  if refused == 0 then return 'OK' end
  for i = 1, total do refusals[i] = refusals[i] or 'OK' end
  return refusals
end
