//! Recurring jobs: what is registered, and what becomes of its slots. Which slots there are, others compute.

use emq::Overlap;

use super::{Holding, Job, Model, Place};
use crate::answer::{Answer, RepeatRecord};
use crate::verb::{FAR, Held, Key, Name, Repeat, Rules, Run, Slot, Spec, Template, Turn, When};

/// A recurring job as it stands.
#[derive(Clone, Debug)]
pub(crate) struct Recurring {
    pub(crate) template: Template,
    /// What its slots count from.
    pub(crate) start: i64,
    /// The slot it stands at; nothing after the last one.
    pub(crate) next: Option<i64>,
    /// The slot that waits until its last job has ended.
    pub(crate) held: Option<i64>,
    pub(crate) paused: bool,
    /// The last slot that ran, and its job.
    pub(crate) last: Option<(Option<i64>, Slot)>,
}

impl Model {
    pub(super) fn repeat(&mut self, repeat: &Repeat) -> Answer {
        match repeat {
            Repeat::Upsert { name, first, template } => self.upsert(*name, *first, template),
            Repeat::Pause(name) => self.pause_recurring(*name),
            Repeat::Resume { name, schedule, next } => self.resume_recurring(*name, *schedule, *next),
            Repeat::Remove { name, stands_at } => self.remove_recurring(*name, *stands_at),
            Repeat::Fire(turns) => Answer::Words(turns.iter().map(|turn| self.fire(turn)).collect()),
            Repeat::Due { offset, limit } => self.due_recurring(*offset, *limit),
            Repeat::Get(name) => {
                Answer::Recurring(self.recurring.get(name).map(|of| record(*name, of)).into_iter().collect())
            }
            Repeat::List { offset, count } => self.list_recurring(*offset, *count),
        }
    }

    fn upsert(&mut self, name: Name, first: i64, template: &Template) -> Answer {
        let before = self.recurring.get(&name).cloned();
        let known = before.is_some();
        let stays = before.as_ref().filter(|before| before.template.schedule == template.schedule);
        let stays = stays.and_then(|before| Some((before.start, before.next?, before.held)));
        if let (Some((_, next, _)), Some(before)) = (stays, &before)
            && before.template == *template
        {
            return words(["UNCHANGED".to_owned(), next.to_string()]);
        }
        let (start, next, held) = stays.unwrap_or((Repeat::start_of(first), first, None));
        let recurring = Recurring {
            template: template.clone(),
            start,
            next: Some(next),
            held,
            paused: before.as_ref().is_some_and(|before| before.paused),
            last: before.and_then(|before| before.last),
        };
        self.recurring.insert(name, recurring);
        self.marker = true;
        words([if known { "CHANGED" } else { "CREATED" }.to_owned(), next.to_string()])
    }

    fn pause_recurring(&mut self, name: Name) -> Answer {
        let Some(recurring) = self.recurring.get_mut(&name) else { return word("GONE") };
        recurring.paused = true;
        word("OK")
    }

    fn resume_recurring(&mut self, name: Name, schedule: u8, next: i64) -> Answer {
        let Some(recurring) = self.recurring.get_mut(&name) else { return word("GONE") };
        if !recurring.paused {
            return word("OK");
        }
        if recurring.template.schedule != schedule {
            return word("STALE");
        }
        recurring.paused = false;
        recurring.held = None;
        recurring.next = Some(next);
        self.marker = true;
        word("OK")
    }

    fn remove_recurring(&mut self, name: Name, stands_at: Option<i64>) -> Answer {
        let stands_elsewhere = |at: i64| self.recurring.get(&name).is_none_or(|recurring| recurring.next != Some(at));
        if stands_at.is_some_and(stands_elsewhere) {
            return word("STALE");
        }
        word(if self.recurring.remove(&name).is_some() { "OK" } else { "GONE" })
    }

    /// Each slot is dealt with once: by who comes first.
    fn fire(&mut self, turn: &Turn) -> String {
        let Some(mut recurring) = self.recurring.get(&turn.name).cloned() else { return "GONE".to_owned() };
        if turn.stands_at.is_some() && (recurring.paused || recurring.next != turn.stands_at) {
            return "STALE".to_owned();
        }
        if turn.runs.iter().any(|run| self.jobs.contains_key(&run.job) || self.done.contains_key(&run.job)) {
            return "TAKEN ".to_owned();
        }
        let overlap = if turn.stands_at.is_some() { recurring.template.overlap } else { Overlap::Allow };
        let is_busy = recurring.last.is_some_and(|(_, job)| self.is_unfinished(job));
        let awaited = recurring.last.and_then(|(slot, _)| Some(Key::Slot(turn.name, slot?)));
        let (runs, next) = match overlap {
            Overlap::Skip if is_busy => (&turn.runs[..0], turn.next),
            Overlap::Skip => (&turn.runs[..turn.runs.len().min(1)], turn.next),
            Overlap::Wait if is_busy && !turn.runs.is_empty() => {
                self.awaited.extend(awaited);
                self.recurring.insert(turn.name, Recurring { held: turn.stands_at, ..recurring });
                return "HELD".to_owned();
            }
            Overlap::Wait if turn.runs.len() > 1 => (&turn.runs[..1], turn.runs[1].slot),
            _ => (&turn.runs[..], turn.next),
        };
        let mut enqueued = 0;
        for run in runs {
            let job = self.run_slot(turn.name, &recurring.template, *run);
            enqueued += usize::from(job == run.job);
            if turn.stands_at.is_some() {
                recurring.last = Some((run.slot, job));
            }
        }
        if turn.stands_at.is_some() {
            if let (Some(_), Some(awaited)) = (recurring.held, awaited) {
                self.awaited.remove(&awaited);
            }
            let is_more = overlap == Overlap::Wait && next.is_some_and(|next| next < FAR);
            let last = runs.last().and_then(|run| Some(Key::Slot(turn.name, run.slot?)));
            self.awaited.extend(last.filter(|_| is_more));
            self.recurring.insert(turn.name, Recurring { next, held: None, ..recurring });
        }
        format!("FIRED {enqueued}")
    }

    fn is_unfinished(&self, job: Slot) -> bool {
        self.jobs.get(&job).is_some_and(|job| !matches!(job.place, Place::Dead { .. }))
    }

    /// Answers the job of the slot: the new one, or the one that has been there.
    fn run_slot(&mut self, name: Name, template: &Template, run: Run) -> Slot {
        let key = run.slot.map(|slot| Key::Slot(name, slot));
        if let Some((holder, _)) = key.and_then(|key| self.holder(key)) {
            return holder;
        }
        let spec = Spec {
            slot: run.job,
            payload: template.payload,
            key,
            rules: Rules { held: Held::UntilEnd, ..Rules::default() },
            when: When::Now,
            priority: template.priority,
            max_attempts: template.max_attempts,
            header: template.header,
            lane: template.lane,
            expires: template.expires,
        };
        let job = Job { slot: run.slot, ..self.job_of(&spec) };
        self.jobs.insert(run.job, job);
        self.keys.extend(key.map(|key| (key, Holding { by: run.job, until: None })));
        self.put_waiting(run.job);
        run.job
    }

    fn due_recurring(&self, offset: usize, limit: usize) -> Answer {
        let due = self.by_slot().into_iter().filter(|(slot, _)| slot.is_some_and(|slot| slot < FAR));
        Answer::DueSlots(due.skip(offset).take(limit).map(|(slot, name)| (name, slot)).collect())
    }

    fn list_recurring(&self, offset: u64, count: usize) -> Answer {
        let listed = self.by_slot().into_iter().skip(offset as usize).take(count);
        Answer::Recurring(listed.map(|(_, name)| record(name, &self.recurring[&name])).collect())
    }

    /// The next slot in front; those that have none, or are paused, at the end.
    fn by_slot(&self) -> Vec<(Option<i64>, Name)> {
        let slots = self.recurring.iter().map(|(name, of)| (of.next.filter(|_| !of.paused), *name));
        let mut slots: Vec<_> = slots.collect();
        slots.sort_by_key(|(slot, name)| (slot.unwrap_or(i64::MAX), *name));
        slots
    }
}

fn record(name: Name, recurring: &Recurring) -> RepeatRecord {
    let Recurring { template, next, paused, last, .. } = recurring;
    RepeatRecord {
        name: format!("{name:?}"),
        schedule: Template::schedule_text(template.schedule),
        next: next.filter(|_| !paused),
        last: last.and_then(|(slot, _)| slot),
        last_job: last.map(|(_, job)| job),
        missed: template.missed,
        overlap: template.overlap,
        priority: template.priority,
        lane: template.lane.map(|lane| format!("{lane:?}")),
        paused: *paused,
    }
}

fn word(word: &str) -> Answer {
    words([word.to_owned()])
}

fn words<const N: usize>(words: [String; N]) -> Answer {
    Answer::Words(words.into())
}
