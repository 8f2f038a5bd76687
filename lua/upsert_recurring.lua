-- upsert_recurring: register a recurring job, or change it; the same again changes nothing.
--
-- KEYS[1] record     emq:{q}:repeat:<name>  hash  written anew; whether it is paused, and its last job, stay
-- KEYS[2] recurring  emq:{q}:repeat         zset  member added, score = its next slot, or infinite while it is paused
-- KEYS[3] marker     emq:{q}:marker         zset  set
-- ARGV[1] name
-- ARGV[2] digest    of all that follows, but for the start and the first slot
-- ARGV[3] schedule  as Rust spells it
-- ARGV[4] start     ms, what the slots of a new schedule count from
-- ARGV[5] first     ms, the first slot of a new schedule
-- ARGV[6..] names and values of the fields that say what each slot's job gets, and what to do when a slot can't be kept
--
-- Answers a word, and the next slot.
-- CREATED    there was none of this name
-- CHANGED    it is another from its next slot on; with the same schedule, that slot stays
-- UNCHANGED  it is just so already; nothing was written
--
-- uses lib/guard, lib/waiting

local record, recurring, marker = unpack(KEYS)
local name, digest, schedule, start, first = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

check_sets(recurring)
local before = redis.call('HMGET', record, 'schedule', 'digest', 'start', 'next', 'held', 'paused', 'last', 'job')
local stays = before[1] == schedule and tonumber(before[4])
if stays and before[2] == digest then return { 'UNCHANGED', before[4] } end
if stays then start, first = before[3] or start, before[4] end

local fields = { 'digest', digest, 'schedule', schedule, 'start', start, 'next', first }
for i = 6, #ARGV do fields[#fields + 1] = ARGV[i] end
for i, field in ipairs({ 'held', 'paused', 'last', 'job' }) do
  local value = before[4 + i]
  if value and (stays or field ~= 'held') then
    fields[#fields + 1] = field
    fields[#fields + 1] = value
  end
end
redis.call('DEL', record)
redis.call('HSET', record, unpack(fields))
redis.call('ZADD', recurring, before[6] and '+inf' or first, name)
wake(marker)
return { before[1] and 'CHANGED' or 'CREATED', first }
