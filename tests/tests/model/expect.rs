//! What the model says has to be on the server, and whether it is: every key, its type, its members, fields and scores, and
//! nothing else.

mod repeat;

use std::collections::BTreeMap;

use crate::facts::{Facts, Spot, row};
use crate::model::{Hold, Job, Model, Moment, NAME, Note, Place, Spent, headers, line_text, payload, state_text};
use crate::verb::{HOUR, Lane, Slot};

/// Between which two times of the server's clock each verb was carried out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Brackets(Vec<(i64, i64)>);

impl Brackets {
    /// Of the next verb.
    pub(crate) fn push(&mut self, before: i64, after: i64) {
        self.0.push((before, after));
    }

    /// Between which two times on the server's clock a moment has to be by now. The model's clock is ahead of the
    /// server's by `clock`: all that time was made to pass by taking it off what is on the server.
    pub(crate) fn of(&self, moment: Moment, clock: i64) -> (i64, i64) {
        let (before, after) = self.0[moment.step as usize - 1];
        (before + moment.at - clock, after + moment.at - clock)
    }
}

enum Want {
    Text(String),
    /// A whole number of ms, and a fraction that says something of its own.
    Time {
        between: (i64, i64),
        fraction: f64,
    },
    /// A time that is computed from the exact clock.
    About((i64, i64)),
    Rate {
        words: String,
        tat: Option<(i64, i64)>,
    },
    Note {
        request: u64,
        between: (i64, i64),
        took: String,
    },
}

impl Want {
    fn fits(&self, value: &str) -> bool {
        match self {
            Self::Text(text) => text == value,
            Self::Time { between: (from, to), fraction } => value.parse::<f64>().is_ok_and(|time| {
                let ms = time.floor() as i64;
                time - time.floor() == *fraction && (*from..=*to).contains(&ms)
            }),
            Self::About(between) => is_about(value, *between),
            Self::Rate { words, tat: None } => words == value,
            Self::Rate { words, tat: Some(between) } => value
                .strip_prefix(words)
                .and_then(|tat| tat.strip_prefix(' '))
                .is_some_and(|tat| is_about(tat, *between)),
            Self::Note { request, between: (from, to), took } => {
                let mut parts = value.splitn(3, '|');
                parts.next() == Some(&request.to_string())
                    && parts.next().is_some_and(|at| at.parse().is_ok_and(|at: i64| (*from..=*to).contains(&at)))
                    && parts.next() == Some(took)
            }
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::About((from, to)) => format!("about {from} to {to}"),
            Self::Rate { words, tat } => format!("{words}, and {tat:?}"),
            Self::Time { between: (from, to), fraction } => format!("{from} to {to}, plus {fraction}"),
            Self::Note { request, between: (from, to), took } => format!("{request}|{from} to {to}|{took}"),
        }
    }
}

/// Whether a time lies there, to the fraction of a ms by which the exact clock may be ahead of the whole one.
fn is_about(value: &str, (from, to): (i64, i64)) -> bool {
    value.parse::<f64>().is_ok_and(|time| (from as f64..=(to + 1) as f64).contains(&time))
}

/// Says where the server differs from the model, a line each.
pub(crate) fn differences(model: &Model, brackets: &Brackets, facts: &Facts) -> Vec<String> {
    let wanted = Wanted { model, brackets, wants: BTreeMap::new() }.all();
    let mut lines = Vec::new();
    for (spot, want) in &wanted {
        match facts.0.get(spot) {
            None => lines.push(format!("{spot} is missing; the model has {}", want.shown())),
            Some(value) if !want.fits(value) => {
                lines.push(format!("{spot} is {value}; the model has {}", want.shown()));
            }
            Some(_) => {}
        }
    }
    // What is in `windows` stays for a while when a key has gone earlier; the invariants say what has to be there.
    let extra = facts.0.iter().filter(|(spot, _)| !wanted.contains_key(spot) && spot.key != "windows");
    lines.extend(extra.map(|(spot, value)| format!("{spot} is {value}; the model has none")));
    lines
}

struct Wanted<'a> {
    model: &'a Model,
    brackets: &'a Brackets,
    wants: BTreeMap<Spot, Want>,
}

impl Wanted<'_> {
    fn all(mut self) -> BTreeMap<Spot, Want> {
        let model = self.model;
        for (slot, job) in &model.jobs {
            let id = format!("{slot:?}");
            match job.place {
                Place::Pending => self.text(&line(job.lane), "zset", &id, &job.priority),
                Place::Active { until } => {
                    self.time("active", &id, until, 0.0);
                    if let Some(lane) = job.lane {
                        self.text("slots", "hash", &id, &format!("{lane:?}"));
                    }
                }
                Place::Scheduled { due } => self.time("schedule", &id, due, 0.0),
                Place::Parked { look } => self.time("parked", &id, look, 0.0),
                Place::Dead { since } => self.time("dead", &id, since, 0.0),
            }
            self.row(&row(*slot), job);
        }
        for (slot, finished) in &model.done {
            // The fraction tells which token completed the job; a whole number says that none did.
            let fraction = finished.how.mark() as f64 / 1024.0;
            self.time("done", &format!("{slot:?}"), finished.until, fraction);
        }
        for (slot, (result, _)) in &model.results {
            let key = format!("{}:result", row(*slot));
            self.text(&key, "string", "", result);
            self.text(&key, "(expires)", "", &"");
        }
        for (key, holder) in &model.keys {
            let name = format!("de:{key:?}");
            self.text(&name, "string", "", &format!("{:?}", holder.by));
            if holder.until.is_some() {
                self.text(&name, "(expires)", "", &"");
            }
        }
        for (key, parked) in &model.next {
            self.text(&format!("next:{key:?}"), "string", "", &format!("{parked:?}"));
        }
        for (slot, (into, _)) in &model.merged {
            let name = format!("merged:{slot:?}");
            self.text(&name, "string", "", &format!("{into:?} "));
            self.text(&name, "(expires)", "", &"");
        }
        for (worker, note) in model.workers.iter().enumerate().filter_map(|(n, w)| Some((n, w.note.as_ref()?))) {
            self.note(worker, note);
        }
        if model.marker {
            self.text("marker", "zset", "0", &0);
        }
        for key in &model.awaited {
            self.text(&format!("next:{key:?}"), "string", "", &"slot");
        }
        if model.slot_is_due {
            self.text("held", "zset", "*", &0);
        }
        self.recurring();
        self.meta();
        Lane::all().for_each(|lane| self.lane(lane));
        for (n, lane) in model.ring.iter().enumerate() {
            self.text("ring", "list", &format!("[{n}]"), &format!("{lane:?}"));
        }
        for n in 0..model.wakes {
            self.text("wake", "list", &format!("[{n}]"), &1);
        }
        for (key, count) in [("metrics:completed", model.completed), ("metrics:failed", model.failed)] {
            if count > 0 {
                self.text(key, "hash", "count", &count);
            }
        }
        self.wants
    }

    fn meta(&mut self) {
        let model = self.model;
        let mut field = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                self.text("meta", "hash", name, &value);
            }
        };
        let in_lanes: usize = model.depths().values().sum();
        field("paused", model.whole.paused.then(|| "1".to_owned()));
        field("concurrency", model.whole.concurrency.map(|limit| limit.to_string()));
        field("partitions", model.partitions.map(|partitions| partitions.to_string()));
        field("in_lanes", (in_lanes > 0).then(|| in_lanes.to_string()));
        field(
            "turn",
            model.turn.as_ref().map(|turn| match turn.credit {
                Some((lane, credit)) => format!("{} {credit} {lane:?}", turn.ahead),
                None => turn.ahead.to_string(),
            }),
        );
        if let Some(held) = model.whole.held {
            let between = self.brackets.of(held, model.clock);
            self.want("meta", "hash", "held", Want::Time { between, fraction: 0.0 });
        }
        if let Some(spent) = model.whole.rate {
            self.rate("meta", "rate", spent);
        }
    }

    fn lane(&mut self, lane: Lane) {
        let (model, name) = (self.model, format!("{lane:?}"));
        let settings = model.settings(lane);
        if settings.paused {
            self.text("paused", "set", &name, &"");
        }
        if let Some(limit) = settings.concurrency {
            self.text("glimit", "hash", &name, &limit);
        }
        if let Some(weight) = settings.weight {
            self.text("gweight", "hash", &name, &weight);
        }
        if let Some(spent) = settings.rate {
            self.rate("grate", &name, spent);
        }
        if let Some(held) = settings.held {
            let between = self.brackets.of(held, model.clock);
            self.want("held", "zset", &name, Want::About(between));
        }
        if let Some(held) = settings.held_by_job {
            let between = self.brackets.of(held, model.clock);
            self.want("gheld", "hash", &name, Want::Time { between, fraction: 0.0 });
        }
        let (running, waiting) = (model.running(lane), model.waiting(Some(lane)).len());
        if running > 0 {
            self.text("gactive", "hash", &name, &running);
        }
        if waiting > 0 {
            self.text("lanes", "zset", &name, &waiting);
        }
    }

    fn rate(&mut self, key: &str, field: &str, spent: Spent) {
        let words = format!("{} {} {}", spent.rate.max, spent.rate.period, spent.rate.burst);
        let tat = spent.tat.map(|tat| self.brackets.of(tat, self.model.clock));
        self.want(key, "hash", field, Want::Rate { words, tat });
    }

    fn row(&mut self, row: &str, job: &Job) {
        let mut field = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                self.text(row, "hash", name, &value);
            }
        };
        field("state", Some(state_text(job.place).to_owned()));
        field("attempts", Some(job.attempts.to_string()));
        field("payload", Some(payload(job)));
        field("name", Some(NAME.to_owned()));
        field("max_attempts", job.max_attempts.map(|max| max.to_string()));
        field("headers", headers(job));
        field("more", job.has_more.then(|| "1".to_owned()));
        field("priority", (job.priority != 0 || job.priority_is_written).then(|| job.priority.to_string()));
        field("did", job.key.map(|key| format!("{key:?}")));
        field("failures", (job.failures > 0).then(|| job.failures.to_string()));
        field("stalled", (job.stalled > 0).then(|| job.stalled.to_string()));
        field("last_error", job.last_error.clone());
        field("worker", job.worker.map(|worker| format!("w{worker}")));
        field("reaped", job.reaped.map(|token| token.to_string()));
        field("settled", job.settled.clone());
        field("cancel", job.cancel.then(|| HOUR.to_string()));
        field("progress", job.progress.map(|value| value.to_string()));
        field("logged", job.logged.map(|(token, line)| format!("{token} {line}")));
        field("group", job.lane.map(|lane| format!("{lane:?}")));
        field("behind", job.behind.map(|behind| format!("{behind:?}")));
        for (name, moment) in [("expires", job.expires), ("latest", job.latest), ("due", job.due)] {
            if let Some(moment) = moment {
                let between = self.brackets.of(moment, self.model.clock);
                self.want(row, "hash", name, Want::Time { between, fraction: 0.0 });
            }
        }
        self.hold(row, job);
        for (n, line) in job.log.iter().enumerate() {
            self.text(&format!("{row}:logs"), "list", &format!("[{n}]"), &line_text(*line));
        }
    }

    fn hold(&mut self, row: &str, job: &Job) {
        match job.hold {
            _ if job.key.is_none() => {}
            Hold::UntilEnd => {}
            Hold::UntilStart => self.text(row, "hash", "unique", &"start"),
            Hold::AfterEnd(rest) => self.text(row, "hash", "unique", &format!("after {rest}")),
            Hold::Until(until) => {
                let tat = Some(self.brackets.of(until, self.model.clock));
                self.want(row, "hash", "unique", Want::Rate { words: "for".to_owned(), tat });
            }
        }
    }

    fn note(&mut self, worker: usize, note: &Note) {
        // A first claim is noted without its token.
        let noted = |(slot, token): &(Slot, u64)| match token {
            1 => format!("{slot:?}"),
            token => format!("{slot:?}:{token}"),
        };
        let took: Vec<String> = note.took.iter().map(noted).collect();
        let between = self.brackets.of(note.at, self.model.clock);
        let want = Want::Note { request: note.request, between, took: took.join("|") };
        self.want("claims", "hash", &format!("w{worker}"), want);
    }

    fn time(&mut self, key: &str, name: &str, moment: Moment, fraction: f64) {
        let between = self.brackets.of(moment, self.model.clock);
        self.want(key, "zset", name, Want::Time { between, fraction });
    }

    fn text(&mut self, key: &str, kind: &str, name: &str, value: &impl ToString) {
        self.want(key, kind, name, Want::Text(value.to_string()));
    }

    fn want(&mut self, key: &str, kind: &str, name: &str, want: Want) {
        let spot = Spot { key: key.to_owned(), kind: kind.to_owned(), name: name.to_owned() };
        self.wants.insert(spot, want);
    }
}

/// Where jobs of a lane wait.
pub(crate) fn line(lane: Option<Lane>) -> String {
    lane.map_or_else(|| "pending".to_owned(), |lane| format!("g:{lane:?}:pending"))
}
