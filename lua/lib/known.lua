-- How an enqueue is answered whose id is known: the job is here, or it has ended and isn't forgotten yet. Nothing for a
-- new one; then the second value says whether a marker of the same id is overdue.
local function answer_if_known(rows, done, id, payload)
  local row = rows .. id
  if redis.call('EXISTS', row) == 1 then
    -- By pcall: a key of another type, made by hand, must not stop the call after it has admitted the jobs before it.
    local field = redis.pcall('HMGET', row, 'payload', 'nonce', 'behind')
    local word = field[1] == payload and 'DUPLICATE ' or 'CONFLICT '
    return word .. id .. ' ' .. (field[2] or '') .. ' ' .. (field[3] or '')
  end
  local forget = redis.call('ZSCORE', done, id)
  if forget and tonumber(forget) > now() then return 'DUPLICATE ' .. id .. '  ' end
  return nil, forget
end
