//! What is done with recurring jobs: by the scripts where a slot is named, for in the public API the clock says which.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use emq::RecurringJob;
use support::Reply;

use super::{
    Played, failed,
    script::{Script, words},
};
use crate::answer::{Answer, RepeatRecord};
use crate::bench::Stage;
use crate::verb::{Name, Repeat, Template, Turn};

impl Stage<'_> {
    pub(super) async fn repeat(&mut self, repeat: &Repeat) -> Result<Played, String> {
        let recurring = self.queue.recurring();
        let answer = match repeat {
            Repeat::Upsert { name, first, template } => {
                let schedule = Template::schedule_text(template.schedule);
                let start = Repeat::start_of(*first).to_string();
                let mut args = vec![format!("{name:?}"), template.digest(), schedule, start, first.to_string()];
                args.extend(template.fields().into_iter().flat_map(|(field, value)| [field.to_owned(), value]));
                self.answered("upsert_recurring", Some(*name), args).await
            }
            Repeat::Pause(name) => {
                let paused = recurring.pause(&format!("{name:?}")).await.map_err(failed)?;
                Answer::Words(vec![if paused { "OK" } else { "GONE" }.to_owned()])
            }
            Repeat::Resume { name, schedule, next } => {
                let args = vec![format!("{name:?}"), Template::schedule_text(*schedule), next.to_string()];
                self.answered("resume_recurring", Some(*name), args).await
            }
            Repeat::Remove { name, stands_at } => {
                self.answered("remove_recurring", Some(*name), vec![format!("{name:?}"), text(*stands_at)]).await
            }
            Repeat::Fire(turns) => {
                let args = std::iter::once(String::new()).chain(turns.iter().flat_map(|turn| self.turn(turn)));
                let args = args.collect();
                self.answered("fire", None, args).await
            }
            Repeat::Due { offset, limit } => return self.due(*offset, *limit).await,
            Repeat::Get(name) => {
                let found = recurring.get(&format!("{name:?}")).await.map_err(failed)?;
                self.records(found.into_iter().collect())?
            }
            Repeat::List { offset, count } => self.records(recurring.list(*offset, *count).await.map_err(failed)?)?,
        };
        Ok((answer, None))
    }

    async fn answered(&mut self, script: &str, name: Option<Name>, args: Vec<String>) -> Answer {
        let name = name.map(|name| format!("{name:?}")).unwrap_or_default();
        Answer::Words(words(&self.call(&Script::read(script), &name, args).await))
    }

    fn turn(&self, turn: &Turn) -> Vec<String> {
        let mut args =
            vec![format!("{:?}", turn.name), text(turn.stands_at), text(turn.next), turn.runs.len().to_string()];
        args.extend(turn.runs.iter().flat_map(|run| [self.id(run.job).to_string(), text(run.slot)]));
        args
    }

    async fn due(&mut self, offset: usize, limit: usize) -> Result<Played, String> {
        let args = vec![offset.to_string(), limit.to_string()];
        let reply = self.call(&Script::read("due_recurring"), "", args).await;
        let Reply::Array(items) = reply else { return Err(failed(reply)) };
        let [_now, wait, due @ ..] = &items[..] else { return Err(format!("a short answer: {items:?}")) };
        let name = |text: &str| Name::all().find(|name| format!("{name:?}") == text).ok_or("a strange name");
        let slot = |fields: &Reply| fields.items()[2].text().parse().ok();
        let due: Result<Vec<_>, _> = due.chunks(2).map(|due| Ok((name(due[0].text())?, slot(&due[1])))).collect();
        let wait = u64::try_from(wait.int()).ok().map(Duration::from_millis);
        Ok((Answer::DueSlots(due.map_err(str::to_owned)?), Some(wait)))
    }

    fn records(&self, found: Vec<RecurringJob>) -> Result<Answer, String> {
        let record = |found: RecurringJob| -> Result<RepeatRecord, String> {
            Ok(RepeatRecord {
                name: found.name,
                schedule: found.schedule.map(|schedule| schedule.to_string()).unwrap_or_default(),
                next: found.next.map(unix_ms),
                last: found.last.map(unix_ms),
                last_job: found.last_job.map(|id| self.slot(id)).transpose()?,
                missed: found.missed,
                overlap: found.overlap,
                priority: found.priority,
                lane: found.group,
                paused: found.paused,
            })
        };
        let records: Result<_, _> = found.into_iter().map(record).collect();
        Ok(Answer::Recurring(records?))
    }
}

fn text(slot: Option<i64>) -> String {
    slot.map(|slot| slot.to_string()).unwrap_or_default()
}

fn unix_ms(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as i64
}
