//! Holds the ledger and the server against the book.

use std::collections::{BTreeMap, HashMap, HashSet};

use emq::{BoxError, Client, Counts, JobId, Place, Stored};

use crate::{
    book::Book,
    jobs::QUEUE,
    ledger::{Event, Ledger, What},
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
    pub(crate) counts: Counts,
    pub(crate) runs: u64,
    pub(crate) repeated_runs: u64,
    pub(crate) found_done: u64,
    pub(crate) overtaken: u64,
    pub(crate) late_begins: u64,
}

impl Verdict {
    /// Draws it up, once all workers have ended.
    pub(crate) async fn draw_up(book: &Book, ledger: &Ledger, client: &Client) -> Result<Self, BoxError> {
        let mut verdict = Self { counts: client.queue(QUEUE)?.counts().await?, ..Self::default() };
        for event in ledger.events().await? {
            verdict.events.entry(event.job.clone()).or_default().push(event);
        }
        let mut effects: HashMap<String, u64> = HashMap::new();
        for job in ledger.effects().await? {
            *effects.entry(job).or_default() += 1;
        }
        let dead = dead(client).await?;
        verdict.sums(book);
        verdict.fates(book, &effects, &dead);
        verdict.runs();
        verdict.keys(book);
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

    /// What was accepted is done, dead, or waits; and what the server has counted is that.
    fn sums(&mut self, book: &Book) {
        let jobs = book.jobs().clone();
        self.accepted = jobs.len() as u64;
        self.duplicates = book.duplicates().len() as u64;
        let mortal = jobs.values().filter(|entry| entry.dies_after.is_some()).count() as u64;
        let Counts { completed, dead, failed, .. } = self.counts;
        let waiting = self.counts.unfinished();
        let sums = [
            ("jobs wait", waiting, 0),
            ("jobs are done, dead or wait", completed + dead + waiting, self.accepted),
            ("jobs were done", completed, self.accepted - mortal),
            ("dead letters are kept", dead, mortal),
            ("jobs were buried", failed, mortal),
        ];
        for (what, is, should_be) in sums {
            if is != should_be {
                self.add(None, format!("{is} {what}, and it should be {should_be}"));
            }
        }
    }

    /// Each job has come to what it was meant to come to.
    fn fates(&mut self, book: &Book, effects: &HashMap<String, u64>, dead: &HashMap<JobId, Stored>) {
        let jobs = book.jobs().clone();
        for (id, entry) in &jobs {
            let (job, what) = (Some(id.as_str()), &entry.what);
            let times = effects.get(id.as_str()).copied().unwrap_or(0);
            let wanted = u64::from(entry.dies_after.is_none());
            if times != wanted {
                self.add(job, format!("{id} ({what}) had its effect {times} times, and not {wanted}"));
            }
            match (dead.get(id), entry.dies_after) {
                (None, None) => {}
                (Some(stored), Some(failures)) if stored.failures == failures => {}
                (Some(stored), Some(failures)) => {
                    let has = stored.failures;
                    self.add(job, format!("{id} ({what}) is dead after {has} failures, and not {failures}"));
                }
                (Some(stored), None) => {
                    self.add(job, format!("{id} ({what}) is dead, and was to succeed: {:?}", stored.last_error));
                }
                (None, Some(_)) => self.add(job, format!("{id} ({what}) isn't dead, and was to be")),
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
    fn keys(&mut self, book: &Book) {
        let jobs = book.jobs().clone();
        let mut by_key: BTreeMap<&str, Vec<(i64, i64, JobId)>> = BTreeMap::new();
        for (id, entry) in &jobs {
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
