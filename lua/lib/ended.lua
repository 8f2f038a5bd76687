-- How a job without a row has ended, as far as that is remembered.
local function ended_as(done, id)
  local remembered = tonumber(redis.call('ZSCORE', done, id))
  if not remembered then return 'GONE' end
  if remembered % 1 == 0 then return 'REMOVED' end
  return remembered % 1 == cancelled_mark() and 'CANCELLED' or 'DONE'
end
