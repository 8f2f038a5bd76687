-- Ends jobs as done whose tokens hold them, and answers a word for each. All are checked first; what can be written for all
-- of them at once is.
--
-- The score in `done` is in whole ms. Its fraction is made from the token, for there is no row any more that could tell
-- the completion that comes again from one of a worker that had lost the job.
local function complete(queue, jobs)
  local time = now()

  -- Never what the markers have that aren't of a completion, see `lib/marks`; 10 bits are exact beside the ms.
  local function mark(token)
    return (count(token) % 1022 + 1) / 1024
  end

  -- As text, and made once: it is the same for most of the jobs.
  local scores = {}
  local function score(retention, token)
    local name = retention .. ' ' .. token
    if not scores[name] then scores[name] = string.format('%.10f', time + tonumber(retention) + mark(token)) end
    return scores[name]
  end

  local replies, accepted, seen, active_ids, markers = {}, {}, {}, {}, {}
  local function check(job, is_active)
    local held, refusal = fence_at(queue.rows .. job.id, queue.root, job.id, job.token, is_active)
    if held and seen[job.id] then return 'DONE' end
    if held then
      seen[job.id], accepted[#accepted + 1], held.result, held.retention = true, held, job.result, job.retention
      if held.where == 'active' then active_ids[#active_ids + 1] = job.id end
      markers[#markers + 1] = score(job.retention, job.token)
      markers[#markers + 1] = job.id
      return 'OK'
    end
    local remembered = refusal == 'GONE' and tonumber(redis.call('ZSCORE', queue.done, job.id))
    if remembered then return remembered % 1 == mark(job.token) and 'DONE' or 'STALE' end
    return refusal
  end

  check_sets(queue.done)
  if #jobs == 0 then return replies end
  local ids = {}
  for i, job in ipairs(jobs) do ids[i] = job.id end
  local leases = redis.call('ZMSCORE', queue.active, unpack(ids))
  for i, job in ipairs(jobs) do replies[i] = check(job, leases[i]) end
  if #accepted == 0 then return replies end
  -- Alone of those that the reaper has put back: jobs that are active have nothing to do with what waits.
  if #active_ids < #accepted then check_sets(queue.pending) end

  if #active_ids > 0 then redis.call('ZREM', queue.active, unpack(active_ids)) end
  local gone = {}
  for _, job in ipairs(accepted) do
    local row = queue.rows .. job.id
    if job.where == 'active' then
      free_slot(queue.root, queue.marker, job.id, job.lane)
    else
      leave_line(queue.pending, queue.root, job.id, job.lane)
    end
    gone[#gone + 1] = row
    gone[#gone + 1] = row .. ':logs'
    end_key(queue.root, job.key, job.id, time)
    if job.result ~= '' then redis.call('SET', row .. ':result', job.result, 'PX', job.retention) end
  end
  redis.call('DEL', unpack(gone))
  if #active_ids > 0 then left_active(queue.root, queue.marker) end
  redis.call('ZADD', queue.done, unpack(markers))
  add(queue.completed, 'count', #accepted)
  for _, job in ipairs(accepted) do publish(queue.events, 'completed', job.id) end
  return replies
end
