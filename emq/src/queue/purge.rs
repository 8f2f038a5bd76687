//! Deleting many jobs: in slices, so that the server does other things in between.

use std::time::Duration;

use super::Queue;
use crate::{
    job::LaneName,
    store::{CallError, MAX_BATCH, Place, Store},
};

/// A deletion of many jobs, slice by slice; made by [`Queue::purge`], [`Queue::drain`] and [`Queue::obliterate`].
///
/// Each slice is one call of the server for at most 1 000 jobs. Nothing is done before the first.
///
/// # Examples
///
/// ```no_run
/// # async fn example(queue: emq::Queue) -> Result<(), emq::PurgeError> {
/// use std::time::Duration;
/// use emq::Place;
///
/// let mut purge = queue.purge(Place::Dead).older_than(Duration::from_secs(30 * 24 * 60 * 60));
/// while let Some(slice) = purge.next().await? {
///     println!("{} deleted so far", slice.total);
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "nothing is deleted until `next` or `all` is awaited"]
pub struct Purge {
    queue: Queue,
    what: What,
    older_than: Duration,
    force: bool,
    offset: u64,
    /// Those that were found and are to be looked at.
    lanes: Vec<LaneName>,
    total: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Place(Place),
    /// The flat line, and then the lanes.
    Line,
    Lanes,
    Everything,
    Nothing,
}

/// What a slice of a [`Purge`] has deleted.
///
/// # Examples
///
/// ```no_run
/// # async fn example(mut purge: emq::Purge) -> Result<(), emq::PurgeError> {
/// if let Some(slice) = purge.next().await? {
///     println!("{} deleted, {} in all", slice.removed, slice.total);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Purged {
    /// How many jobs this slice has deleted.
    pub removed: u64,
    /// How many the slices have deleted so far.
    pub total: u64,
}

/// Why jobs weren't deleted.
///
/// # Examples
///
/// ```
/// fn is_in_use(error: &emq::PurgeError) -> bool {
///     matches!(error, emq::PurgeError::Active)
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PurgeError {
    /// Workers hold jobs of the queue.
    #[error("workers hold jobs of the queue; stop them, or force it")]
    Active,
    /// The jobs of this place can't be deleted so.
    #[error(
        "jobs can't be purged from {place:?}; cancel those that run, and let the retention see to those that are finished"
    )]
    Place {
        /// The place.
        place: Place,
    },
    /// What is obliterated goes whole.
    #[error("an obliteration deletes everything, and not what is of some age; purge or drain the queue instead")]
    Age,
    /// The server didn't carry it out, or didn't say so. What earlier slices have deleted is gone.
    #[error(transparent)]
    Call(#[from] CallError),
}

impl Purge {
    fn new(queue: &Queue, what: What) -> Self {
        Self {
            queue: queue.clone(),
            what,
            older_than: Duration::ZERO,
            force: false,
            offset: 0,
            lanes: Vec::new(),
            total: 0,
        }
    }

    /// Only such as are at least so old: of dead letters since their death, of others since their ids were minted. It is for
    /// [`Queue::purge`] and [`Queue::drain`].
    ///
    /// ```no_run
    /// # fn example(queue: emq::Queue) {
    /// let purge = queue.purge(emq::Place::Dead).older_than(std::time::Duration::from_secs(86_400));
    /// # }
    /// ```
    pub fn older_than(mut self, age: Duration) -> Self {
        self.older_than = age;
        self
    }

    /// Also if workers hold jobs of the queue: their runs are dropped when they renew their leases, and nothing is written
    /// for them. It is for [`Queue::obliterate`].
    ///
    /// ```no_run
    /// # fn example(queue: emq::Queue) {
    /// let purge = queue.obliterate().force();
    /// # }
    /// ```
    pub fn force(mut self) -> Self {
        self.force = true;
        self
    }

    /// Deletes the next slice; `None` when there is no more.
    ///
    /// # Errors
    ///
    /// [`PurgeError`] if workers hold jobs of a queue that is to be obliterated, or an age was said for that, or the server
    /// didn't carry the slice out or didn't say so. It can be called again.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves it unknown whether the slice was deleted; going on is harmless.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue) -> Result<(), emq::PurgeError> {
    /// let mut drain = queue.drain();
    /// while let Some(slice) = drain.next().await? {
    ///     println!("{} deleted", slice.total);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn next(&mut self) -> Result<Option<Purged>, PurgeError> {
        let store = self.queue.store();
        let removed = match self.what {
            What::Nothing => return Ok(None),
            What::Place(place @ (Place::Active | Place::Finished)) => return Err(PurgeError::Place { place }),
            What::Place(place) => {
                let slice = store.purge(place, self.offset, self.older_than).await?;
                self.offset += slice.looked_at - slice.removed;
                if slice.looked_at == 0 {
                    self.what = What::Nothing;
                }
                slice.removed
            }
            What::Line => {
                let slice = store.purge(Place::Pending, self.offset, self.older_than).await?;
                self.offset += slice.looked_at - slice.removed;
                if slice.looked_at == 0 {
                    self.lanes = lanes(store).await?;
                    (self.what, self.offset) = (What::Lanes, 0);
                }
                slice.removed
            }
            What::Lanes => self.next_of_lanes().await?,
            What::Everything if !self.older_than.is_zero() => return Err(PurgeError::Age),
            What::Everything => {
                let (removed, more) = store.obliterate(self.force).await?.ok_or(PurgeError::Active)?;
                if !more {
                    self.what = What::Nothing;
                }
                removed
            }
        };
        self.total += removed;
        Ok((removed > 0 || self.what != What::Nothing).then_some(Purged { removed, total: self.total }))
    }

    async fn next_of_lanes(&mut self) -> Result<u64, CallError> {
        let store = self.queue.store();
        let Some(lane) = self.lanes.last() else {
            // Jobs may have come meanwhile. Of those that are kept for their age, the lanes stay.
            self.lanes = if self.older_than.is_zero() { lanes(store).await? } else { Vec::new() };
            if self.lanes.is_empty() {
                self.what = What::Nothing;
            }
            return Ok(0);
        };
        let slice = store.purge_lane(lane, self.offset, self.older_than).await?;
        self.offset += slice.looked_at - slice.removed;
        if slice.looked_at < MAX_BATCH as u64 {
            self.lanes.pop();
            self.offset = 0;
        }
        Ok(slice.removed)
    }

    /// Deletes all slices, and answers how many jobs that were.
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves it unknown how much was deleted; doing it again is harmless.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue) -> Result<(), emq::PurgeError> {
    /// println!("{} jobs deleted", queue.drain().all().await?);
    /// # Ok(()) }
    /// ```
    pub async fn all(mut self) -> Result<u64, PurgeError> {
        while self.next().await?.is_some() {}
        Ok(self.total)
    }
}

/// The lanes in which jobs wait.
async fn lanes(store: &Store) -> Result<Vec<LaneName>, CallError> {
    let mut names = Vec::new();
    loop {
        let page = store.list_lanes(names.len() as u64, MAX_BATCH).await?;
        let is_last = page.len() < MAX_BATCH;
        for lane in page {
            let bad = |error: crate::job::NameError| CallError::UnexpectedReply {
                call: "list_lanes",
                detail: error.to_string(),
            };
            names.push(LaneName::new(&lane.name).map_err(bad)?);
        }
        if is_last {
            return Ok(names);
        }
    }
}

impl Queue {
    /// Deletes the jobs of one place, [`Pending`](Place::Pending), [`Scheduled`](Place::Scheduled),
    /// [`Parked`](Place::Parked) or [`Dead`](Place::Dead): all, or those of an age. Await it slice by slice. Ids that were ever
    /// claimed stay taken for an hour, as after [`remove`](Self::remove).
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue) -> Result<(), emq::PurgeError> {
    /// let deleted = queue.purge(emq::Place::Scheduled).all().await?;
    /// # Ok(()) }
    /// ```
    pub fn purge(&self, place: Place) -> Purge {
        Purge::new(self, What::Place(place))
    }

    /// Deletes all jobs that wait, in the flat line and in all lanes, or those [of an age](Purge::older_than); what runs, is
    /// scheduled or dead stays. Await it slice by slice. It ends only if jobs don't come faster than they are deleted: pause
    /// the producers, or the queue, first.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue) -> Result<(), emq::PurgeError> {
    /// let deleted = queue.drain().all().await?;
    /// # Ok(()) }
    /// ```
    pub fn drain(&self) -> Purge {
        Purge::new(self, What::Line)
    }

    /// Deletes everything of this queue: all jobs, what is remembered of finished ones, counts, settings, lanes. Await it
    /// slice by slice. The queue is paused from the first slice to the last. It refuses a queue of which workers hold jobs,
    /// unless it is [forced](Purge::force).
    ///
    /// Nothing is remembered of ids, so a worker that still believes in a job of before could settle a new job of the same
    /// id: let no id be used again that was there before.
    ///
    /// ```no_run
    /// # async fn example(queue: emq::Queue) -> Result<(), emq::PurgeError> {
    /// let deleted = queue.obliterate().all().await?;
    /// # Ok(()) }
    /// ```
    pub fn obliterate(&self) -> Purge {
        Purge::new(self, What::Everything)
    }
}
