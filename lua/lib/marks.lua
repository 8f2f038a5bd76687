-- What a job that was cancelled has beside the ms of its score in `done`. A completion has 1 to 1022 parts of 1024, made
-- from its token; a job that was removed has none.
local function cancelled_mark()
  return 1023 / 1024
end

-- Whether that is how this job ended, as long as it is remembered.
local function was_cancelled(done, id)
  local remembered = tonumber(redis.call('ZSCORE', done, id))
  return remembered and remembered % 1 == cancelled_mark()
end
