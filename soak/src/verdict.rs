//! Holds the ledger and the server against the book.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::RangeInclusive,
    sync::atomic::Ordering,
};

use emq::{BoxError, Client, Counts, JobId, Place, Stored};

use crate::{
    book::{Book, Entry, Removal},
    jobs::{End, QUEUE},
    ledger::{Event, Ledger, What},
    watch,
};

/// A broken promise, and the job that it was broken to.
#[derive(Debug)]
pub(crate) struct Violation {
    pub(crate) job: Option<String>,
    pub(crate) what: String,
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) violations: Vec<Violation>,
    pub(crate) events: HashMap<String, Vec<Event>>,
    pub(crate) accepted: u64,
    pub(crate) duplicates: u64,
    pub(crate) removed: u64,
    pub(crate) expired: u64,
    pub(crate) waiting: u64,
    pub(crate) counts: Counts,
    pub(crate) runs: u64,
    pub(crate) repeated_runs: u64,
    pub(crate) found_done: u64,
    pub(crate) overtaken: u64,
    pub(crate) late_begins: u64,
}

impl Verdict {
    /// Draws it up, once all workers have ended.
    pub(crate) async fn draw_up(book: &Book, ledger: &Ledger, client: &Client, port: u16) -> Result<Self, BoxError> {
        let counts = client.queue(QUEUE)?.counts().await?;
        let waiting = watch::left(client, port).await.ok_or("the server doesn't say how many jobs wait")?;
        let mut verdict = Self { counts, waiting, ..Self::default() };
        for event in ledger.events().await? {
            verdict.events.entry(event.job.clone()).or_default().push(event);
        }
        let mut effects: HashMap<String, u64> = HashMap::new();
        for job in ledger.effects().await? {
            *effects.entry(job).or_default() += 1;
        }
        let dead = dead(client).await?;
        verdict.expired = dead.values().filter(|stored| has_expired(stored)).count() as u64;
        let (jobs, removals) = (book.jobs().clone(), book.removals().clone());
        verdict.sums(book, &jobs, &removals);
        verdict.fates(&jobs, &removals, &effects, &dead);
        verdict.runs();
        verdict.keys(book, &jobs, &removals);
        for (id, what) in book.violations() {
            verdict.add(id.as_ref().map(JobId::as_str), what);
        }
        if verdict.events.keys().any(|job| job.parse::<JobId>().is_err()) {
            verdict.add(None, "the ledger has a job whose id is none".into());
        }
        Ok(verdict)
    }

    pub(crate) fn add(&mut self, job: Option<&str>, what: String) {
        self.violations.push(Violation { job: job.map(str::to_owned), what });
    }

    /// What was accepted is done, dead, removed, or waits; and what the server has counted is that.
    fn sums(&mut self, book: &Book, jobs: &HashMap<JobId, Entry>, removals: &HashMap<JobId, Removal>) {
        let is_mortal = |id: &JobId| matches!(jobs.get(id), Some(Entry { end: End::Dead { .. }, .. }));
        let removed = |removal| removals.values().filter(|is| **is == removal).count() as u64;
        let mortal = jobs.keys().filter(|id| is_mortal(id)).count() as u64;
        let removed_dead = removals.keys().filter(|id| is_mortal(id)).count() as u64;
        let (certain, perhaps) = (removed(Removal::Certain), removed(Removal::Possible));
        let [revived, perhaps_revived] =
            [&book.revived, &book.perhaps_revived].map(|count| count.load(Ordering::Relaxed));
        self.accepted = jobs.len() as u64;
        self.duplicates = book.duplicates().len() as u64;
        self.removed = certain;
        let Counts { completed, dead, failed, .. } = self.counts;
        let (waiting, expired) = (self.waiting, self.expired);
        // Each way in which a job can end, once: whoever adds one adds it here, and to `End`. What has expired is dead.
        let somewhere = completed + dead + certain + waiting;
        let to_be_done = self.accepted - mortal - (certain - removed_dead) - expired;
        let to_be_dead = mortal - removed_dead + expired;
        let buried = mortal + revived + expired;
        self.check("jobs wait", waiting, 0..=0);
        self.check("jobs are done, dead, removed or wait", somewhere, self.accepted - perhaps..=self.accepted);
        self.check("jobs were done", completed, to_be_done - perhaps..=to_be_done);
        self.check("dead letters are kept", dead, to_be_dead..=to_be_dead);
        // A dead letter that was revived has died again.
        self.check("jobs were buried", failed, buried..=buried + perhaps_revived);
    }

    fn check(&mut self, what: &str, is: u64, should_be: RangeInclusive<u64>) {
        if !should_be.contains(&is) {
            let (least, most) = should_be.into_inner();
            self.add(None, format!("{is} {what}, and it should be {least} to {most}"));
        }
    }

    /// Each job has come to what it was meant to come to.
    fn fates(
        &mut self,
        jobs: &HashMap<JobId, Entry>,
        removals: &HashMap<JobId, Removal>,
        effects: &HashMap<String, u64>,
        dead: &HashMap<JobId, Stored>,
    ) {
        for (id, entry) in jobs {
            let (job, what) = (Some(id.as_str()), &entry.what);
            let times = effects.get(id.as_str()).copied().unwrap_or(0);
            let removal = removals.get(id);
            // A run may have had it before the job was removed.
            let wanted = match (entry.end, removal) {
                (End::Done, None) => 1..=1,
                (End::Done, Some(_)) => 0..=1,
                (End::DoneOrExpired, _) => {
                    if dead.contains_key(id) {
                        0..=0
                    } else {
                        1..=1
                    }
                }
                (End::Discarded | End::Dead { .. }, _) => 0..=0,
            };
            if !wanted.contains(&times) {
                let wanted = wanted.start();
                self.add(job, format!("{id} ({what}) had its effect {times} times, and not {wanted}"));
            }
            match (dead.get(id), entry.end) {
                (Some(_), _) if removal == Some(&Removal::Certain) => {
                    self.add(job, format!("{id} ({what}) is dead, and was removed"));
                }
                (Some(stored), End::Dead { failures }) => {
                    let Stored { failures: has, attempts, .. } = stored;
                    if *has != failures {
                        self.add(job, format!("{id} ({what}) is dead after {has} failures, and not {failures}"));
                    }
                    let newest = self.newest_token(id);
                    if *attempts < newest {
                        self.add(
                            job,
                            format!("{id} ({what}) has run under {newest}, and was claimed {attempts} times"),
                        );
                    }
                }
                (Some(stored), End::DoneOrExpired) if has_expired(stored) => {
                    if self.events.contains_key(id.as_str()) {
                        self.add(job, format!("{id} ({what}) has expired, though a run had begun"));
                    }
                }
                (Some(stored), End::Done | End::Discarded | End::DoneOrExpired) => {
                    self.add(job, format!("{id} ({what}) is dead, and was to succeed: {:?}", stored.last_error));
                }
                (None, End::Dead { .. }) if removal.is_none() => {
                    self.add(job, format!("{id} ({what}) isn't dead, and was to be"));
                }
                (None, _) => {}
            }
        }
        for job in self.events.keys().filter(|job| !job.parse().is_ok_and(|id: JobId| jobs.contains_key(&id))) {
            let what = format!("{job} has run, and was never enqueued");
            self.violations.push(Violation { job: Some(job.clone()), what });
        }
        for id in dead.keys().filter(|id| !jobs.contains_key(id)) {
            self.violations
                .push(Violation { job: Some(id.to_string()), what: format!("{id} is dead, and was never enqueued") });
        }
    }

    fn newest_token(&self, id: &JobId) -> u64 {
        let events = self.events.get(id.as_str()).map_or(&[][..], Vec::as_slice);
        events.iter().map(|event| event.fence).max().unwrap_or(0)
    }

    /// No token is used twice, and no effect is had under an old one.
    fn runs(&mut self) {
        let mut found = Vec::new();
        for (job, events) in &self.events {
            let mut begun = HashSet::new();
            let mut newest = 0;
            for event in events {
                let fence = event.fence;
                match event.what {
                    What::Begin => {
                        self.runs += 1;
                        self.late_begins += u64::from(fence < newest);
                        if !begun.insert(fence) {
                            found.push((job.clone(), format!("{job} ran twice under the token {fence}")));
                        }
                        newest = newest.max(fence);
                    }
                    What::Effect if fence < newest => {
                        found.push((job.clone(), format!("{job} had its effect under {fence}, after {newest} began")));
                    }
                    What::FoundDone => self.found_done += 1,
                    What::Overtaken => self.overtaken += 1,
                    What::Effect | What::Snooze | What::End => {}
                }
            }
            self.repeated_runs += (begun.len() as u64).saturating_sub(1);
        }
        for (job, what) in found {
            self.add(Some(&job), what);
        }
    }

    /// Of the jobs with one key, each has begun after the one before it had its effect; and who is called a holder is one.
    ///
    /// One that was removed has let go of its key, though somebody who had lost it may still have been at it.
    fn keys(&mut self, book: &Book, jobs: &HashMap<JobId, Entry>, removals: &HashMap<JobId, Removal>) {
        let mut by_key: BTreeMap<&str, Vec<(i64, i64, JobId)>> = BTreeMap::new();
        for (id, entry) in jobs.iter().filter(|(id, _)| !removals.contains_key(id)) {
            let Some(key) = &entry.key else { continue };
            let events = self.events.get(id.as_str()).map_or(&[][..], Vec::as_slice);
            let effect = events.iter().find(|event| event.what == What::Effect);
            if let (Some(first), Some(effect)) = (events.first(), effect) {
                by_key.entry(key).or_default().push((first.seq, effect.seq, *id));
            }
        }
        for (key, mut spans) in by_key {
            spans.sort_unstable();
            for pair in spans.windows(2) {
                let [(_, effect, earlier), (begin, _, later)] = pair else { continue };
                if begin < effect {
                    self.add(Some(later.as_str()), format!("{earlier} and {later} had the key {key} at once"));
                    self.add(Some(earlier.as_str()), "is the other one".into());
                }
            }
        }
        for (key, holder) in book.duplicates() {
            if jobs.get(&holder).is_none_or(|entry| entry.key.as_ref() != Some(&key)) {
                self.add(Some(holder.as_str()), format!("{holder} was named as the holder of {key}, and isn't"));
            }
        }
    }
}

fn has_expired(stored: &Stored) -> bool {
    stored.last_error.as_deref() == Some("expired")
}

/// All dead letters.
async fn dead(client: &Client) -> Result<HashMap<JobId, Stored>, BoxError> {
    let queue = client.queue(QUEUE)?;
    let mut dead = HashMap::new();
    let mut offset = 0;
    loop {
        let page = queue.list(Place::Dead, offset, 1_000).await?;
        if page.is_empty() {
            return Ok(dead);
        }
        offset += page.len() as u64;
        for listed in page {
            let stored = queue.get(listed.id).await?;
            let stored = stored.ok_or_else(|| format!("the dead letter {} has no row", listed.id))?;
            dead.insert(listed.id, stored);
        }
    }
}
