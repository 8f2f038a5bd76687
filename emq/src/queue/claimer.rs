use std::time::Duration;

use crate::{
    clock::NEVER,
    store::{Batch, CallError, ClaimCall, Done, MOST_PLAIN, Settled, Store, Waiter, are_plain},
};

/// For how many claims the short form of the script isn't tried again where it hasn't done: most queues are plain at all
/// times, or never.
const UNTRIED: u32 = 32;

/// How long the server waits for a sign of life of a claimed job, unless set: 30 s.
pub const DEFAULT_LEASE: Duration = Duration::from_secs(30);

/// Claims jobs from one queue under the name of a worker.
///
/// It takes `&mut self`, because its claims come one after the other: each names its request, and a claim whose answer
/// was lost is asked for again under the same name, so that the jobs it took are found and no others are taken.
///
/// # Examples
///
/// ```no_run
/// # async fn example(queue: emq::Queue) -> Result<(), emq::CallError> {
/// use std::time::Duration;
///
/// let mut claimer = queue.claimer("nightly-import").lease(Duration::from_secs(120));
/// let batch = claimer.claim(10).await?;
/// for job in &batch.jobs {
///     println!("{:?} {}", job.name, job.lease.id());
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Claimer {
    store: Store,
    worker: String,
    lease: Duration,
    request: u64,
    /// Whether the answer to the current request is still owed.
    owed: bool,
    /// How many more claims are made without a try of the short form.
    untried: u32,
}

impl Claimer {
    pub(crate) fn new(store: Store, worker: &str) -> Self {
        // What a request took is kept under this name. Two processes of one configured name must not find each
        // other's jobs there.
        let worker = format!("{worker}.{:016x}", rand::random::<u64>());
        Self { store, worker, lease: DEFAULT_LEASE, request: 0, owed: false, untried: 0 }
    }

    /// How long the server waits for a sign of life of a job it hands out; 30 s by default. Rounded up to whole ms.
    ///
    /// ```no_run
    /// # fn example(queue: emq::Queue) {
    /// let claimer = queue.claimer("nightly-import").lease(std::time::Duration::from_secs(120));
    /// # }
    /// ```
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease.clamp(Duration::from_millis(1), NEVER);
        self
    }

    /// The name under which its jobs are held: the given one, and a random part.
    ///
    /// ```no_run
    /// # fn example(queue: emq::Queue) {
    /// assert!(queue.claimer("nightly-import").worker().starts_with("nightly-import."));
    /// # }
    /// ```
    #[must_use]
    pub fn worker(&self) -> &str {
        &self.worker
    }

    /// Claims up to `max` jobs that can run now; 0 counts as 1, and more than 1 000 as 1 000.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server didn't carry it out or didn't say so. The next claim then begins with what this one
    /// may have taken, and `max` may be exceeded by that.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: the next claim finds what this one took.
    ///
    /// ```no_run
    /// # async fn example(mut claimer: emq::Claimer) -> Result<(), emq::CallError> {
    /// let batch = claimer.claim(10).await?;
    /// println!("{} jobs, and more wait: {}", batch.jobs.len(), batch.more);
    /// # Ok(()) }
    /// ```
    pub async fn claim(&mut self, max: usize) -> Result<Batch, CallError> {
        self.exchange(&[], max).await.map(|(_, batch)| batch)
    }

    /// Claims when the queue's marker is set, or after `longest`; as [`claim`](Self::claim), but that the wait isn't repeated.
    pub(crate) async fn claim_when_woken(
        &mut self,
        waiter: &Waiter,
        max: usize,
        longest: Duration,
    ) -> Result<Batch, CallError> {
        let is_plain = self.tries_plain(max);
        let request = self.next_request();
        let claim = ClaimCall { worker: &self.worker, request: &request, max, lease: self.lease };
        let batch = match self.store.claim_when_woken(waiter, &claim, is_plain, longest).await? {
            Some(batch) => batch,
            None => {
                self.untried = UNTRIED;
                self.store.claim(&claim).await?
            }
        };
        self.owed = false;
        Ok(batch)
    }

    /// Whether the next request is to be tried by the short form: not one that the server may know.
    fn tries_plain(&mut self, max: usize) -> bool {
        let tries = max <= MOST_PLAIN && self.untried == 0 && !self.owed;
        self.untried = self.untried.saturating_sub(1);
        tries
    }

    /// Completes jobs, if there are any, and claims others in the same call; as [`claim`](Self::claim).
    pub(crate) async fn exchange(&mut self, jobs: &[Done], max: usize) -> Result<(Vec<Settled>, Batch), CallError> {
        let is_plain = jobs.len() <= MOST_PLAIN && are_plain(jobs) && self.tries_plain(max);
        let request = self.next_request();
        let claim = ClaimCall { worker: &self.worker, request: &request, max, lease: self.lease };
        let mut plain = None;
        if is_plain {
            plain = self.store.exchange_plain(jobs, &claim).await?;
            self.untried = if plain.is_some() { 0 } else { UNTRIED };
        }
        let answer = match plain {
            Some(batch) => (vec![Settled::Accepted; jobs.len()], batch),
            None if jobs.is_empty() => (Vec::new(), self.store.claim(&claim).await?),
            None => self.store.exchange(jobs, &claim).await?,
        };
        self.owed = false;
        Ok(answer)
    }

    /// The name of the next request: that of the last one, if its answer is still owed.
    fn next_request(&mut self) -> String {
        if !self.owed {
            self.request += 1;
            self.owed = true;
        }
        self.request.to_string()
    }

    /// Whether the server may have given jobs to this claimer that it doesn't know of.
    pub(crate) fn is_owed(&self) -> bool {
        self.owed
    }

    /// Says goodbye: the server forgets this claimer's last request. Jobs in hand stay claimed.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server can't be told; it forgets by itself after an hour.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves it unknown whether the server was told.
    ///
    /// ```no_run
    /// # async fn example(claimer: emq::Claimer) -> Result<(), emq::CallError> {
    /// claimer.leave().await?;
    /// # Ok(()) }
    /// ```
    pub async fn leave(self) -> Result<(), CallError> {
        self.store.forget_claims(&self.worker).await
    }
}
