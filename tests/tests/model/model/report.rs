//! What a run tells of itself.

use super::Model;
use crate::answer::Answer;
use crate::verb::{LOG_LINES, Right, Slot};

impl Model {
    pub(super) fn progress(&mut self, right: Right, value: u8) -> Answer {
        let holds = self.holds_a_lease(right);
        let Some(job) = self.jobs.get_mut(&right.slot).filter(|_| holds) else { return word("STALE") };
        job.progress = Some(value);
        self.events.push(("progress", right.slot));
        word("OK")
    }

    pub(super) fn log(&mut self, right: Right, line: u8) -> Answer {
        let holds = self.holds_a_lease(right);
        let Some(job) = self.jobs.get_mut(&right.slot).filter(|_| holds) else { return word("STALE") };
        let stamp = Some((right.token, line));
        if job.logged == stamp {
            return word("DONE");
        }
        job.logged = stamp;
        job.log.push(line);
        job.log.drain(..job.log.len().saturating_sub(LOG_LINES));
        word("OK")
    }

    pub(super) fn logs(&self, slot: Slot) -> Answer {
        let log = self.jobs.get(&slot).map(|job| &job.log[..]).unwrap_or_default();
        Answer::Words(log.iter().map(|line| line_text(*line)).collect())
    }
}

pub(crate) fn line_text(line: u8) -> String {
    format!("line {line}")
}

fn word(word: &str) -> Answer {
    Answer::Words(vec![word.to_owned()])
}
