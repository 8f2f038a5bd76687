//! What is on the server, in the words of the model: one fact per member, field or string, without what is another in
//! each run.

use std::collections::BTreeMap;
use std::fmt;

use support::Dump;

use crate::verb::Slot;

/// Where something stands: the key without the beginning that a queue's keys have in common, its type, and the field or
/// member.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot {
    pub(crate) key: String,
    pub(crate) kind: String,
    pub(crate) name: String,
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.key, self.kind, self.name)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Facts(pub(crate) BTreeMap<Spot, String>);

/// The texts that are shown as something shorter: the beginning of the keys, ids, names of workers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Short(pub(crate) Vec<(String, String)>);

impl Short {
    fn of(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (long, short)| text.replace(long, short))
    }
}

impl Facts {
    pub(crate) fn of(dump: &Dump, short: &Short) -> Self {
        let mut facts = Self::default();
        for line in dump.lines() {
            let line = short.of(&line);
            let (key, rest) = line.split_once(' ').unwrap_or((&line, ""));
            let (kind, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            let (name, value) = match kind {
                "zset" => rest.rsplit_once(" @ ").unwrap_or((rest, "")),
                "string" => ("", rest.strip_prefix("= ").unwrap_or(rest)),
                _ => rest.split_once(" = ").unwrap_or((rest, "")),
            };
            // Which call changed a job last: another text in each run.
            if kind == "hash" && name == "updated" {
                continue;
            }
            let spot = Spot { key: key.to_owned(), kind: kind.to_owned(), name: name.to_owned() };
            facts.0.insert(spot, value.to_owned());
        }
        facts
    }

    pub(crate) fn get(&self, key: &str, kind: &str, name: &str) -> Option<&str> {
        let spot = Spot { key: key.to_owned(), kind: kind.to_owned(), name: name.to_owned() };
        self.0.get(&spot).map(String::as_str)
    }

    /// The value of a field of a job's row.
    pub(crate) fn field(&self, slot: Slot, field: &str) -> Option<&str> {
        self.get(&row(slot), "hash", field)
    }

    pub(crate) fn has_row(&self, slot: Slot) -> bool {
        self.0.keys().any(|spot| spot.key == row(slot))
    }

    /// The score of a job in a set.
    pub(crate) fn score(&self, set: &str, slot: Slot) -> Option<f64> {
        self.get(set, "zset", &format!("{slot:?}"))?.parse().ok()
    }

    /// The time in a field of a hash: of a rate, when it lets the next job start.
    pub(crate) fn number(&self, key: &str, name: &str) -> Option<f64> {
        let words: Vec<f64> = self.get(key, "hash", name)?.split(' ').filter_map(|word| word.parse().ok()).collect();
        match words[..] {
            [at] => Some(at),
            [max, period, burst, tat] => Some(tat - (burst - 1.0) * period / max),
            _ => None,
        }
    }

    /// The lowest score of a set.
    pub(crate) fn first(&self, set: &str) -> Option<f64> {
        self.first_from(set, f64::NEG_INFINITY)
    }

    /// The lowest score of a set that isn't below this one.
    pub(crate) fn first_from(&self, set: &str, least: f64) -> Option<f64> {
        let members = self.0.iter().filter(|(spot, _)| spot.key == set && spot.kind == "zset");
        let scores = members.filter_map(|(_, score)| score.parse::<f64>().ok());
        scores.filter(|score| *score >= least).min_by(f64::total_cmp)
    }
}

pub(crate) fn row(slot: Slot) -> String {
    format!("job:{slot:?}")
}
