//! The recurring jobs on the beat: those that the worker's jobs declare are registered, and the slots of all that are due
//! get their jobs.
//!
//! No worker is in charge: each one looks, and `lua/fire.lua` lets the first of them deal with a slot.

use std::collections::HashSet;

use super::line::Line;
use crate::{
    client::Client,
    job::{Job, JobId, LaneName},
    recurring::{Due, How, Missed, Recurrence, RecurringError, Schedule, due, register},
    store::{CallError, Definition, Fired, MAX_BATCH, Record, Run, Template, Turn},
};

/// How long a declared recurring job stays due before it is forgotten: no worker that registers its type is there any more.
const FORGOTTEN_AFTER: i64 = 24 * 60 * 60 * 1_000;

/// What one queue's beat knows of recurring jobs.
pub(super) struct Recurrences {
    client: Client,
    /// Of the jobs that this worker registers, in this queue.
    declared: Vec<Declared>,
    are_registered: bool,
    /// Those that this program can't read, so that each is complained of once.
    unreadable: HashSet<String>,
}

/// A job whose type says that it recurs.
#[derive(Clone, Debug)]
pub(crate) struct Declared {
    pub(crate) name: &'static str,
    pub(crate) definition: Definition,
}

impl Declared {
    /// What a job's type declares, or what is wrong with that.
    pub(super) fn of<J: Job>(recurrence: Recurrence) -> Result<Self, String> {
        LaneName::new(J::NAME).map_err(|error| error.to_string())?;
        recurrence.schedule.slots(0).map_err(|error| error.to_string())?;
        let payload = serde_json::from_str::<J>("{}").and_then(|job| serde_json::to_vec(&job));
        let payload = payload.map_err(|error| {
            format!("nobody gives it a payload, and it has no default one: {error}; register it with a payload by `queue.recurring()`")
        })?;
        let template = Template {
            name: J::NAME,
            payload: payload.into(),
            priority: 0,
            group: None,
            max_attempts: None,
            headers: None,
            expires_in: None,
        };
        Ok(Self { name: J::NAME, definition: Definition { recurrence, declared: true, template } })
    }
}

/// What is to be done about a recurring job that is due.
enum Step {
    Take(Turn),
    /// Another worker may be able to.
    Leave,
    Forget,
}

impl Recurrences {
    pub(super) fn new(client: Client, declared: Vec<Declared>) -> Self {
        Self { client, declared, are_registered: false, unreadable: HashSet::new() }
    }

    /// Registers what the jobs' types declare: once at the start, when this worker's word counts, and from then on only
    /// what has got lost, as a server may that comes back empty.
    pub(super) async fn register(&mut self, line: &Line) -> Result<(), CallError> {
        let how = if self.are_registered { How::IfMissing } else { How::Anyway };
        for Declared { name, definition } in &self.declared {
            match register(&line.store, name, definition, how).await {
                Ok(_) => {}
                Err(RecurringError::Call(error)) => return Err(error),
                // The builder has checked everything else.
                Err(error) => tracing::warn!(%error, job = name, "a recurring job can't be registered"),
            }
        }
        self.are_registered = true;
        Ok(())
    }

    pub(super) fn are_registered(&self) -> bool {
        self.are_registered
    }

    /// Whether there is any to register.
    pub(super) fn are_declared(&self) -> bool {
        !self.declared.is_empty()
    }

    /// Enqueues the jobs of all slots that are due, and says when the next one is.
    pub(super) async fn fire(&mut self, line: &Line) -> Result<(), CallError> {
        let mut passed_over = 0;
        loop {
            let due = line.store.due_recurring(passed_over, MAX_BATCH).await?;
            line.expect(due.next);
            let is_page = due.records.len() == MAX_BATCH;
            let mut is_more = false;
            let mut turns: Vec<Turn> = Vec::new();
            for (name, record) in due.records {
                let stands_at = record.next;
                match self.step(name.clone(), &record, due.now) {
                    Step::Take(turn) => {
                        is_more |= turn.next.is_some_and(|next| next <= due.now);
                        turns.push(turn);
                    }
                    Step::Leave => passed_over += 1,
                    Step::Forget => {
                        let queue = line.store.name();
                        tracing::info!(%queue, name, "forgot a recurring job that no worker declares any more");
                        line.store.remove_recurring(&name, stands_at).await?;
                    }
                }
                if turns.iter().map(|turn| turn.runs.len()).sum::<usize>() >= MAX_BATCH {
                    passed_over += self.take(line, &std::mem::take(&mut turns)).await?;
                }
            }
            if !turns.is_empty() {
                passed_over += self.take(line, &turns).await?;
            }
            if !is_page && !is_more {
                return Ok(());
            }
        }
    }

    /// Carries turns out, and answers how many of them are due still.
    async fn take(&self, line: &Line, turns: &[Turn]) -> Result<usize, CallError> {
        let (_, nonce) = self.client.node().identity();
        let fired = line.store.fire(nonce, turns).await?;
        if fired.iter().any(|fired| matches!(fired, Fired::Enqueued(jobs) if *jobs > 0)) {
            line.heat();
        }
        let is_due_still = |fired: &&Fired| matches!(fired, Fired::Held | Fired::Taken { .. } | Fired::Gone);
        Ok(fired.iter().filter(is_due_still).count())
    }

    fn step(&mut self, name: String, record: &Record, now: i64) -> Step {
        let (Some(text), Some(next)) = (&record.schedule, record.next) else { return Step::Leave };
        if record.declared && !self.declared.iter().any(|declared| declared.name == name) {
            return if now.saturating_sub(next) > FORGOTTEN_AFTER { Step::Forget } else { Step::Leave };
        }
        let slots = text.parse::<Schedule>().and_then(|schedule| schedule.slots(record.start.unwrap_or(next)));
        let slots = match slots {
            Ok(slots) => slots,
            Err(error) => {
                if self.unreadable.insert(name.clone()) {
                    tracing::warn!(%error, name, "a recurring job is left to other workers");
                }
                return Step::Leave;
            }
        };
        let is_held = record.held == Some(next);
        let Due { slots, next: after } = due(&slots, next, now, record.missed, is_held, MAX_BATCH);
        if record.missed == Missed::Skip && slots.is_empty() {
            tracing::info!(name, "the slots that were missed are skipped");
        }
        let run = |slot| Run { id: self.mint(), slot: Some(slot) };
        Step::Take(Turn { name, stands_at: Some(next), next: after, runs: slots.into_iter().map(run).collect() })
    }

    fn mint(&self) -> JobId {
        self.client.mint()
    }
}
