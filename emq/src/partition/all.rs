//! What is done with a partitioned queue as a whole: in all partitions that it ever had, at the same time.

use futures_util::future::{join_all, try_join_all};

use super::{LimitError, Partitioned, merge};
use crate::{
    queue::{Events, Purge, Queue},
    store::{CallError, Counts, Listed, ListedLane, MAX_BATCH, Place, Rate},
};

impl Partitioned {
    /// How many jobs stand in each place, over all partitions. It is paused if all of them are.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server can't be asked.
    ///
    /// ```no_run
    /// # async fn example(mail: emq::Partitioned) -> Result<(), emq::CallError> {
    /// println!("{} wait", mail.counts().await?.pending);
    /// # Ok(()) }
    /// ```
    pub async fn counts(&self) -> Result<Counts, CallError> {
        Ok(merge::counts(&self.each(|queue| async move { queue.counts().await }).await?))
    }

    /// Up to `count` (at most 1 000) jobs of one place, after the first `offset`, in the order in which they would stand in
    /// one queue. Each partition is asked for its first `offset + count`: to page far is dear.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server can't be asked.
    ///
    /// ```no_run
    /// # async fn example(mail: emq::Partitioned) -> Result<(), emq::CallError> {
    /// let newest = mail.list(emq::Place::Dead, 0, 20).await?;
    /// # Ok(()) }
    /// ```
    pub async fn list(&self, place: Place, offset: u64, count: usize) -> Result<Vec<Listed>, CallError> {
        let count = count.clamp(1, MAX_BATCH);
        let list = |queue: Queue| {
            head(offset, count, move |offset, count| {
                let queue = queue.clone();
                async move { queue.list(place, offset, count).await }
            })
        };
        let heads = self.each(list).await?;
        Ok(merge::page(merge::jobs(heads), offset, count))
    }

    /// Up to `count` (at most 1 000) lanes in which jobs wait, after the first `offset`; that with the most in front. As with
    /// [`list`](Self::list), to page far is dear.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server can't be asked.
    ///
    /// ```no_run
    /// # async fn example(mail: emq::Partitioned) -> Result<(), emq::CallError> {
    /// for lane in mail.lanes(0, 20).await? {
    ///     println!("{:6} {}", lane.waiting, lane.name);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn lanes(&self, offset: u64, count: usize) -> Result<Vec<ListedLane>, CallError> {
        let count = count.clamp(1, MAX_BATCH);
        let list = |queue: Queue| {
            head(offset, count, move |offset, count| {
                let queue = queue.clone();
                async move { queue.lanes(offset, count).await }
            })
        };
        let heads = self.each(list).await?;
        Ok(merge::page(merge::lanes(heads), offset, count))
    }

    /// Lets nothing more be claimed; as [`Queue::pause`], in each partition. Partitions that come later aren't paused.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server didn't carry it out in all partitions, or didn't say so.
    ///
    /// ```no_run
    /// # async fn example(mail: emq::Partitioned) -> Result<(), emq::CallError> {
    /// mail.pause().await?;
    /// # Ok(()) }
    /// ```
    pub async fn pause(&self) -> Result<(), CallError> {
        self.in_all(|queue| async move { queue.pause().await }).await
    }

    /// Lets it go on after a [`pause`](Self::pause), and ends holds; as [`Queue::resume`], in each partition.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server didn't carry it out in all partitions, or didn't say so.
    ///
    /// ```no_run
    /// # async fn example(mail: emq::Partitioned) -> Result<(), emq::CallError> {
    /// mail.resume().await?;
    /// # Ok(()) }
    /// ```
    pub async fn resume(&self) -> Result<(), CallError> {
        self.in_all(|queue| async move { queue.resume().await }).await
    }

    /// How many jobs may be active at a time, over all workers and partitions; any number by default, and none with
    /// `Some(0)`.
    ///
    /// The limit is never exceeded: it is split, and each partition has its share, those that take new jobs no more, too. So
    /// it isn't used up while some partitions have no work. Set it again when the number of partitions has changed: a new one
    /// has no limit.
    ///
    /// # Errors
    ///
    /// [`LimitError`] if it is too low to be split, or the server didn't say that it is set in all partitions.
    ///
    /// ```no_run
    /// # async fn example(mail: emq::Partitioned) -> Result<(), emq::LimitError> {
    /// mail.set_concurrency(320).await?;
    /// # Ok(()) }
    /// ```
    pub async fn set_concurrency(&self, limit: impl Into<Option<u32>>) -> Result<(), LimitError> {
        let limit = limit.into();
        let queues = self.partitions().await?;
        let partitions = u32::try_from(queues.len()).unwrap_or(u32::MAX);
        if let Some(limit) = limit.filter(|limit| (1..partitions).contains(limit)) {
            return Err(LimitError::TooLow { limit, partitions });
        }
        let shares = (0..partitions).map(|at| limit.map(|limit| merge::share(limit, partitions, at)));
        let set = queues.iter().zip(shares).map(|(queue, share)| queue.set_concurrency(share));
        Ok(all_of(join_all(set).await)?)
    }

    /// How many jobs may start in some time, over all workers and partitions; any number by default.
    ///
    /// It is never exceeded but for bursts: each partition has its share of the rate, and may start one job at the same
    /// moment as the others. So the burst of the whole is at least the number of partitions. As with
    /// [`set_concurrency`](Self::set_concurrency), it isn't used up while some partitions have no work, and has to be set
    /// again when their number has changed.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server didn't say that it is set in all partitions.
    ///
    /// ```no_run
    /// # async fn example(mail: emq::Partitioned) -> Result<(), emq::CallError> {
    /// use std::time::Duration;
    /// use emq::Rate;
    ///
    /// mail.set_rate(Rate::per(5_000, Duration::from_secs(1)).burst(64)).await?;
    /// # Ok(()) }
    /// ```
    pub async fn set_rate(&self, rate: impl Into<Option<Rate>>) -> Result<(), CallError> {
        let rate = rate.into();
        let queues = self.partitions().await?;
        let share = rate.map(|rate| merge::share_of_rate(rate, u32::try_from(queues.len()).unwrap_or(u32::MAX)));
        all_of(join_all(queues.iter().map(|queue| queue.set_rate(share))).await)
    }

    /// What becomes of its jobs, as it happens, in all partitions that it has by now; as [`Queue::events`]. The events of one
    /// job come in their order.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server can't be reached, or doesn't let this user listen.
    ///
    /// ```no_run
    /// # async fn example(mail: emq::Partitioned) -> Result<(), emq::CallError> {
    /// let mut events = mail.events().await?;
    /// println!("{:?}", events.next().await);
    /// # Ok(()) }
    /// ```
    pub async fn events(&self) -> Result<Events, CallError> {
        let events = self.each(|queue| async move { queue.events().await }).await?;
        Ok(Events::merged(events))
    }

    /// Deletes the jobs of one place in all partitions, one partition after the other; as [`Queue::purge`].
    ///
    /// ```no_run
    /// # async fn example(mail: emq::Partitioned) -> Result<(), emq::PurgeError> {
    /// let deleted = mail.purge(emq::Place::Dead).all().await?;
    /// # Ok(()) }
    /// ```
    pub fn purge(&self, place: Place) -> Purge {
        self.first().purge(place).of_all(self.clone())
    }

    /// Deletes all jobs that wait, one partition after the other; as [`Queue::drain`].
    ///
    /// ```no_run
    /// # async fn example(mail: emq::Partitioned) -> Result<(), emq::PurgeError> {
    /// let deleted = mail.drain().all().await?;
    /// # Ok(()) }
    /// ```
    pub fn drain(&self) -> Purge {
        self.first().drain().of_all(self.clone())
    }

    /// Deletes everything of it, one partition after the other, and at last how many it ever had: what clients and workers
    /// that run now say of it counts from then on. As [`Queue::obliterate`].
    ///
    /// It refuses, unless [forced](Purge::force), before anything is deleted if workers hold jobs of any partition then; and
    /// in the middle if they have claimed some of a later one meanwhile, so [`pause`](Self::pause) it first.
    ///
    /// ```no_run
    /// # async fn example(mail: emq::Partitioned) -> Result<(), emq::PurgeError> {
    /// let deleted = mail.obliterate().all().await?;
    /// # Ok(()) }
    /// ```
    pub fn obliterate(&self) -> Purge {
        self.first().obliterate().of_all(self.clone())
    }

    /// Looks into all partitions at once.
    async fn each<T, F>(&self, look: impl Fn(Queue) -> F) -> Result<Vec<T>, CallError>
    where
        F: Future<Output = Result<T, CallError>>,
    {
        try_join_all(self.partitions().await?.into_iter().map(look)).await
    }

    /// Does something in all partitions at once; what fails in one doesn't keep it from the others.
    async fn in_all<F>(&self, act: impl Fn(Queue) -> F) -> Result<(), CallError>
    where
        F: Future<Output = Result<(), CallError>>,
    {
        all_of(join_all(self.partitions().await?.into_iter().map(act)).await)
    }
}

fn all_of(outcomes: Vec<Result<(), CallError>>) -> Result<(), CallError> {
    outcomes.into_iter().collect()
}

/// The first `offset + count` of what one partition lists, page by page.
async fn head<T, F>(offset: u64, count: usize, list: impl Fn(u64, usize) -> F) -> Result<Vec<T>, CallError>
where
    F: Future<Output = Result<Vec<T>, CallError>>,
{
    let wanted = offset.saturating_add(count as u64);
    let (mut head, mut looked_at) = (Vec::new(), 0);
    while looked_at < wanted {
        let size = (wanted - looked_at).min(MAX_BATCH as u64);
        let page = list(looked_at, size as usize).await?;
        if page.is_empty() {
            break;
        }
        head.extend(page);
        looked_at += size;
    }
    Ok(head)
}
