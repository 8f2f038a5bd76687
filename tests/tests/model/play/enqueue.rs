//! How jobs are enqueued, one by one and many in one call.

use std::time::{Duration, UNIX_EPOCH};

use emq::{Admission, Draft, EnqueueError, Ticket, Unique};

use super::{Work, failed};
use crate::answer::{Admitted, Answer};
use crate::bench::{Stage, ms};
use crate::model::HEADER;
use crate::verb::{Held, Key, Meeting, Rules, Spec, When};

impl Stage<'_> {
    pub(super) async fn enqueue(&self, spec: &Spec) -> Result<Ticket, EnqueueError> {
        let mut enqueue = self.queue.enqueue(Work { n: spec.payload }).id(self.id(spec.slot)).priority(spec.priority);
        if let Some(key) = spec.key {
            enqueue = enqueue.unique(unique(key, spec.rules));
        }
        enqueue = match spec.when {
            When::Now => enqueue,
            When::After(wait) => enqueue.delay(ms(wait)),
            When::At(wait) => enqueue.at(UNIX_EPOCH + Duration::from_millis((self.now + wait).unsigned_abs())),
        };
        if let Some(max) = spec.max_attempts {
            enqueue = enqueue.max_attempts(max);
        }
        if spec.header {
            enqueue = enqueue.header("origin", HEADER);
        }
        if let Some(lane) = spec.lane {
            enqueue = enqueue.group(format!("{lane:?}"));
        }
        if let Some(wait) = spec.expires {
            enqueue = enqueue.expires_in(ms(wait));
        }
        enqueue.await.map(Ticket::typed)
    }

    pub(super) async fn enqueue_many(&self, specs: &[Spec]) -> Result<Answer, String> {
        let outcomes = match self.client.enqueue_many(specs.iter().map(|spec| self.draft(spec))).await {
            Ok(tickets) => tickets.into_iter().map(|ticket| Ok(ticket.typed())).collect(),
            Err(error) => error.outcomes,
        };
        let admitted: Result<_, _> = outcomes.into_iter().map(|outcome| self.admitted(outcome)).collect();
        Ok(Answer::Enqueued(admitted?))
    }

    fn draft(&self, spec: &Spec) -> Draft<Work> {
        let mut draft = Draft::of(Work { n: spec.payload }).queue(self.queue.name().as_str());
        draft = draft.id(self.id(spec.slot)).priority(spec.priority);
        if let Some(key) = spec.key {
            draft = draft.unique(unique(key, spec.rules));
        }
        draft = match spec.when {
            When::Now => draft,
            When::After(wait) => draft.delay(ms(wait)),
            When::At(wait) => draft.at(UNIX_EPOCH + Duration::from_millis((self.now + wait).unsigned_abs())),
        };
        if let Some(max) = spec.max_attempts {
            draft = draft.max_attempts(max);
        }
        if spec.header {
            draft = draft.header("origin", HEADER);
        }
        if let Some(lane) = spec.lane {
            draft = draft.group(format!("{lane:?}"));
        }
        if let Some(wait) = spec.expires {
            draft = draft.expires_in(ms(wait));
        }
        draft
    }

    pub(super) fn admitted(&self, outcome: Result<Ticket, EnqueueError>) -> Result<Admitted, String> {
        match outcome {
            Ok(ticket) => match ticket.admission() {
                Admission::Enqueued => Ok(Admitted::New),
                Admission::Duplicate(of) => Ok(Admitted::Duplicate(self.slot(of)?)),
                Admission::Replaced(of) => Ok(Admitted::Replaced(self.slot(of)?)),
                Admission::Parked(behind) => Ok(Admitted::Parked(self.slot(behind)?)),
                other => Err(format!("a strange outcome: {other:?}")),
            },
            Err(EnqueueError::Conflict { id }) => Ok(Admitted::Conflict(self.slot(id)?)),
            Err(error) => Err(failed(error)),
        }
    }
}

/// A key with its rules, as they are given to an enqueue.
fn unique(key: Key, rules: Rules) -> Unique {
    let unique = match (Unique::key(format!("{key:?}")), rules.held) {
        (unique, Held::UntilEnd) => unique,
        (unique, Held::UntilStart) => unique.until_start(),
        (unique, Held::For(window)) => unique.for_(ms(window)),
        (unique, Held::AfterEnd(rest)) => unique.after_end(ms(rest)),
    };
    let unique = match rules.meeting {
        Meeting::Keeps => unique,
        Meeting::Replaced => unique.replace_payload(),
        Meeting::Debounced { latest } => unique.debounce(ms(latest)),
    };
    if rules.then_once { unique.then_once() } else { unique }
}
