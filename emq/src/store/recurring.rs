use std::time::Duration;

use bytes::Bytes;
use fred::types::Value;

use super::{
    Store,
    error::CallError,
    reply::{Reply, unexpected, word},
    script::{Script, millis, number, script, sha1_hex},
};
use crate::{
    job::{JobId, LaneName},
    recurring::{Missed, Overlap, Recurrence},
};

pub(super) static UPSERT: Script<3, 5> = script!("upsert_recurring", uses "guard", "waiting");
pub(super) static READ: Script<1, 0> = script!("read_recurring", uses "clock", "recurring");
pub(super) static LIST: Script<2, 2> = script!("list_recurring", uses "recurring");
pub(super) static DUE: Script<2, 2> = script!("due_recurring", uses "clock", "recurring");
pub(super) static PAUSE: Script<2, 1> = script!("pause_recurring", uses "guard");
pub(super) static RESUME: Script<3, 3> = script!("resume_recurring", uses "guard", "waiting");
pub(super) static REMOVE: Script<2, 2> = script!("remove_recurring", uses "guard");

/// What became of a registration.
///
/// # Examples
///
/// ```no_run
/// # #[derive(serde::Serialize, serde::Deserialize)] struct PingJob {}
/// # impl emq::Job for PingJob { const NAME: &'static str = "ping"; }
/// # async fn example(queue: emq::Queue) -> Result<(), emq::RecurringError> {
/// use std::time::Duration;
/// use emq::{Schedule, Upserted};
///
/// let each_minute = Schedule::every(Duration::from_secs(60));
/// if queue.recurring().upsert("ping", each_minute, PingJob {}).await? == Upserted::Unchanged {
///     println!("it is the same as before");
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Upserted {
    /// There was none of this name.
    Created,
    /// It is another from its next slot on.
    Changed,
    /// It was just so already; also the answer if a lost reply had made the client send it twice.
    Unchanged,
}

/// What is to be registered under a name.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub(crate) recurrence: Recurrence,
    /// Whether a job's type says so, which only workers that know the type can run.
    pub(crate) declared: bool,
    pub(crate) template: Template,
}

/// What the jobs of all slots have in common.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    pub(crate) name: &'static str,
    pub(crate) payload: Bytes,
    pub(crate) priority: i32,
    pub(crate) group: Option<LaneName>,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) headers: Option<String>,
    pub(crate) expires_in: Option<Duration>,
}

/// What the server knows of a recurring job. Somebody may have tampered with it, so nothing is sure to be there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) schedule: Option<String>,
    pub(crate) start: Option<i64>,
    pub(crate) next: Option<i64>,
    pub(crate) missed: Missed,
    pub(crate) overlap: Overlap,
    pub(crate) held: Option<i64>,
    pub(crate) declared: bool,
    pub(crate) paused: bool,
    pub(crate) last: Option<i64>,
    pub(crate) job: Option<JobId>,
    pub(crate) job_name: Option<String>,
    pub(crate) priority: i32,
    pub(crate) group: Option<String>,
}

/// The recurring jobs that have a slot which is due.
#[derive(Clone, Debug)]
pub(crate) struct DueRecords {
    /// The server's, in Unix ms.
    pub(crate) now: i64,
    /// How long until the next slot of one that isn't due.
    pub(crate) next: Option<Duration>,
    pub(crate) records: Vec<(String, Record)>,
}

impl Store {
    /// Registers or changes a recurring job, whose slots count from `start` and begin with `first` if its schedule is new.
    pub(crate) async fn upsert_recurring(
        &self,
        name: &str,
        definition: &Definition,
        start: i64,
        first: i64,
    ) -> Result<Upserted, CallError> {
        let keys = &self.keys;
        let schedule = definition.recurrence.schedule.to_string();
        let fields = definition.fields();
        let mut all = schedule.clone().into_bytes();
        for (field, value) in &fields {
            // With its length, so that the end of one isn't taken for the beginning of the next.
            all.extend(format!("\n{field} {} ", value.len()).bytes());
            all.extend_from_slice(value);
        }
        let more = fields.into_iter().flat_map(|(field, value)| [field.into(), value.into()]).collect();
        let call = UPSERT.with_more(
            [keys.record(name), keys.recurring.clone(), keys.marker.clone()],
            [name.into(), sha1_hex(&all).into(), schedule.into(), number(start), number(first)],
            more,
        );
        let mut reply = Reply::list("upsert_recurring", self.connection.call(call).await?.value)?;
        let answered = reply.text()?;
        match answered.as_str() {
            "CREATED" => Ok(Upserted::Created),
            "CHANGED" => Ok(Upserted::Changed),
            "UNCHANGED" => Ok(Upserted::Unchanged),
            _ => Err(unexpected("upsert_recurring", &answered.into())),
        }
    }

    /// The server's now in Unix ms, and what is registered under a name.
    pub(crate) async fn read_recurring(&self, name: &str) -> Result<(i64, Option<Record>), CallError> {
        let call = READ.with([self.keys.record(name)], []);
        let mut reply = Reply::list("read_recurring", self.connection.call(call).await?.value)?;
        let now = reply.integer()?;
        let record = Record::read(reply.list_part()?)?;
        Ok((now, Some(record).filter(|record| record.schedule.is_some())))
    }

    /// Up to `count` (at most 1 000) recurring jobs, after the first `offset`.
    pub(crate) async fn list_recurring(&self, offset: u64, count: usize) -> Result<Vec<(String, Record)>, CallError> {
        let keys = &self.keys;
        let (offset, count) = (offset.min(u64::from(u32::MAX)), count.clamp(1, super::MAX_BATCH) as u64);
        let call = LIST.with([keys.recurring.clone(), keys.records.clone()], [number(offset), number(count)]);
        named(Reply::list("list_recurring", self.connection.call(call).await?.value)?)
    }

    /// Up to `limit` recurring jobs with a slot that is due, after the first `offset` of these.
    pub(crate) async fn due_recurring(&self, offset: usize, limit: usize) -> Result<DueRecords, CallError> {
        let keys = &self.keys;
        let limit = limit.clamp(1, super::MAX_BATCH) as u64;
        let call = DUE.with([keys.recurring.clone(), keys.records.clone()], [number(offset as u64), number(limit)]);
        let mut reply = Reply::list("due_recurring", self.connection.call(call).await?.value)?;
        Ok(DueRecords { now: reply.integer()?, next: reply.wait()?, records: named(reply)? })
    }

    /// Lets the slots of a recurring job pass; `false` if there is none of this name.
    pub(crate) async fn pause_recurring(&self, name: &str) -> Result<bool, CallError> {
        let call = PAUSE.with([self.keys.record(name), self.keys.recurring.clone()], [name.into()]);
        match word("pause_recurring", &self.connection.call(call).await?.value)?.as_str() {
            "OK" => Ok(true),
            "GONE" => Ok(false),
            other => Err(unexpected("pause_recurring", &other.into())),
        }
    }

    /// Lets it go on with the slot `next`; `None` if it has another schedule by now than the one this was computed by.
    pub(crate) async fn resume_recurring(
        &self,
        name: &str,
        schedule: &str,
        next: i64,
    ) -> Result<Option<bool>, CallError> {
        let keys = &self.keys;
        let call = RESUME.with(
            [keys.record(name), keys.recurring.clone(), keys.marker.clone()],
            [name.into(), schedule.into(), number(next)],
        );
        match word("resume_recurring", &self.connection.call(call).await?.value)?.as_str() {
            "OK" => Ok(Some(true)),
            "GONE" => Ok(Some(false)),
            "STALE" => Ok(None),
            other => Err(unexpected("resume_recurring", &other.into())),
        }
    }

    /// Forgets a recurring job if it stands at this slot, or at any; `false` if it didn't, or if there was none.
    pub(crate) async fn remove_recurring(&self, name: &str, stands_at: Option<i64>) -> Result<bool, CallError> {
        let keys = &self.keys;
        let stands_at = stands_at.map_or_else(|| Value::from(""), number);
        let call = REMOVE.with([keys.record(name), keys.recurring.clone()], [name.into(), stands_at]);
        let answer = self.connection.call(call).await?;
        match word("remove_recurring", &answer.value)?.as_str() {
            "OK" => Ok(true),
            // An earlier try of this very call may have removed it.
            "GONE" => Ok(answer.repeated),
            "STALE" => Ok(false),
            other => Err(unexpected("remove_recurring", &other.into())),
        }
    }
}

impl Definition {
    /// The fields of the record that say what is registered, beside the schedule.
    fn fields(&self) -> Vec<(&'static str, Bytes)> {
        let Recurrence { missed, overlap, .. } = &self.recurrence;
        let job = &self.template;
        let text = |value: Value| Bytes::from(value.as_string().unwrap_or_default());
        let fields = [
            ("missed", Some(missed.to_string().into())),
            ("overlap", Some(overlap.to_string().into())),
            ("declared", self.declared.then(|| "1".into())),
            ("payload", Some(job.payload.clone())),
            ("name", Some(job.name.into())),
            ("priority", (job.priority != 0).then(|| job.priority.to_string().into())),
            ("group", job.group.as_ref().map(|group| group.as_str().to_owned().into())),
            ("max_attempts", job.max_attempts.map(|max| max.to_string().into())),
            ("headers", job.headers.clone().map(Into::into)),
            ("expires", job.expires_in.map(|wait| text(millis(wait)))),
        ];
        fields.into_iter().filter_map(|(field, value)| Some((field, value?))).collect()
    }
}

impl Record {
    /// The fields in the order of `lua/lib/recurring.lua`; none at all if there is no record.
    fn read(mut fields: Reply) -> Result<Self, CallError> {
        if fields.len() == 0 {
            return Ok(Self::default());
        }
        Ok(Self {
            schedule: fields.lenient_text()?,
            start: fields.lenient_number()?,
            next: fields.lenient_number()?,
            missed: Missed::read(&fields.lenient_text()?.unwrap_or_default()),
            overlap: Overlap::read(&fields.lenient_text()?.unwrap_or_default()),
            held: fields.lenient_number()?,
            declared: fields.optional_bytes()?.is_some(),
            paused: fields.optional_bytes()?.is_some(),
            last: fields.lenient_number()?,
            job: fields.lenient_id()?,
            job_name: fields.lenient_text()?,
            priority: fields.lenient_number()?.unwrap_or_default(),
            group: fields.lenient_text()?,
        })
    }
}

fn named(mut reply: Reply) -> Result<Vec<(String, Record)>, CallError> {
    let mut records = Vec::with_capacity(reply.len() / 2);
    while reply.len() > 0 {
        records.push((reply.lenient_text()?.unwrap_or_default(), Record::read(reply.list_part()?)?));
    }
    Ok(records)
}
