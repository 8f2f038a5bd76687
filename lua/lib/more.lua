-- What a claim or a completion has to know of a job beyond its payload, name and token, few jobs have. The row of one that has
-- says so in the field `more`, so that these needn't look for it with each job.
local function has_more(job)
  return job.did or job.headers or job.max_attempts or job.expires
end
