-- read_recurring: what is registered under a name.
--
-- KEYS[1] record  emq:{q}:repeat:<name>  hash  read
--
-- Answers the server's now in ms, and the fields of the record; all of them empty if there is none.
--
-- uses lib/clock, lib/recurring

return { now(), read_record(KEYS[1]) }
