use crate::store::MAX_BATCH;

/// How many jobs to claim at once for a stack whose layers may have less room than the worker, and say so only when they
/// are asked. What they have no room for was claimed in vain, and has to be given back.
///
/// As in TCP's slow start (RFC 5681): twice as many after each success, until the first refusal shows where the limit
/// is; from then on a few more at a time.
#[derive(Debug)]
pub(super) struct Appetite {
    jobs: usize,
    has_been_refused: bool,
}

impl Appetite {
    /// A stack without layers of the user's always has room.
    pub(super) fn of_stack(has_user_layers: bool) -> Self {
        Self { jobs: if has_user_layers { 1 } else { MAX_BATCH }, has_been_refused: false }
    }

    /// Whether all that a claim can bring is welcome.
    pub(super) fn is_whole(&self) -> bool {
        self.jobs == MAX_BATCH
    }

    pub(super) fn jobs(&self) -> usize {
        self.jobs
    }

    /// The stack took all of `jobs`.
    pub(super) fn was_sated_by(&mut self, jobs: usize) {
        if jobs >= self.jobs {
            let more = if self.has_been_refused { self.jobs.div_ceil(8) } else { self.jobs };
            self.jobs = (self.jobs + more).min(MAX_BATCH);
        }
    }

    /// The stack took `jobs`, and had no room for the next.
    pub(super) fn was_refused_after(&mut self, jobs: usize) {
        self.has_been_refused = true;
        self.jobs = jobs.max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_layers_of_the_users_a_batch_is_as_large_as_it_can_be() {
        assert_eq!(Appetite::of_stack(false).jobs(), MAX_BATCH);
    }

    #[test]
    fn it_doubles_until_the_first_refusal_and_grows_slowly_after() {
        let mut appetite = Appetite::of_stack(true);
        for expected in [1, 2, 4, 8, 16] {
            assert_eq!(appetite.jobs(), expected);
            appetite.was_sated_by(expected);
        }
        appetite.was_refused_after(20);
        appetite.was_sated_by(20);
        assert_eq!(appetite.jobs(), 23);
        appetite.was_refused_after(0);
        assert_eq!(appetite.jobs(), 1, "there is always one more to try");
    }

    #[test]
    fn a_queue_with_few_jobs_says_nothing_about_the_stack() {
        let mut appetite = Appetite::of_stack(true);
        appetite.was_sated_by(1);
        appetite.was_sated_by(1);
        assert_eq!(appetite.jobs(), 2);
    }

    #[test]
    fn it_never_exceeds_a_batch() {
        let mut appetite = Appetite::of_stack(true);
        (0..20).for_each(|_| appetite.was_sated_by(MAX_BATCH));
        assert_eq!(appetite.jobs(), MAX_BATCH);
    }
}
