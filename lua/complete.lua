-- complete: end a job as done, if the caller's token still holds it.
--
-- KEYS[1] row        emq:{q}:job:<id>           hash    deleted
-- KEYS[2] logs       emq:{q}:job:<id>:logs      list    deleted
-- KEYS[3] result_key emq:{q}:job:<id>:result    string  set with the retention as TTL, if there is a result
-- KEYS[4] active     emq:{q}:active             zset    member removed
-- KEYS[5] pending    emq:{q}:pending            zset    member removed, if the reaper had put it back
-- KEYS[6] done       emq:{q}:done               zset    member added, score = when it may be forgotten; see below
-- KEYS[7] keys       emq:{q}:de:<key>           string  deduplication key deleted, if it points at this job
-- KEYS[8] completed  emq:{q}:metrics:completed  hash    count + 1
-- KEYS[9] events     emq:{q}:events             channel completed
-- KEYS[10] marker    emq:{q}:marker             zset    set if someone waited for the slot
-- KEYS[11] root      emq:{q}:<lanes>            lanes   slot freed
-- ARGV[1] id
-- ARGV[2] token      fencing token
-- ARGV[3] retention  ms
-- ARGV[4] result     encoded, or empty for none
--
-- OK     the job is done
-- STALE  the token doesn't hold the job; nothing was written
-- GONE   there is no such job; nothing was written
-- DONE   this call has been carried out before; nothing was written
--
-- The score in `done` is in whole ms. Its fraction is made from the token, for there is no row any more that could tell
-- the completion that comes again from one of a worker that had lost the job.
--
-- uses lib/clock, lib/guard, lib/waiting, lib/lanes, lib/fence, lib/ending

local row, logs, result_key, active, pending, done, keys, completed, events, marker, root = unpack(KEYS)
local id, token, retention, result = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]

-- Never 0, which is what the markers have that aren't of a completion; 10 bits are exact beside the ms.
local mark = (count(token) % 1023 + 1) / 1024

local remembered = tonumber(redis.call('ZSCORE', done, id))
local job, refusal = fence(row, active, id, token)
if not job then
  if refusal == 'GONE' and remembered then return remembered % 1 == mark and 'DONE' or 'STALE' end
  return refusal
end

take_out(job, active, pending, root, marker)
redis.call('DEL', row, logs)
release_key(keys, job.key, id)
redis.call('ZADD', done, now() + retention + mark, id)
if result ~= '' then redis.call('SET', result_key, result, 'PX', retention) end
add_one(completed, 'count')
publish(events, 'completed', id)
return 'OK'
