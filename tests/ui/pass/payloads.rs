//! What serde can do with a field, it can do with a parameter.
#![deny(warnings)]

use std::{borrow::Cow, collections::HashMap, time::Duration};

use emq::{Job, JobContext, job};
use serde::{Deserialize, Serialize};

struct Opaque(u8);

mod opaque {
    pub fn serialize<S: serde::Serializer>(value: &super::Opaque, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(value.0)
    }

    pub fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<super::Opaque, D::Error> {
        serde::Deserialize::deserialize(deserializer).map(super::Opaque)
    }
}

fn five() -> u8 {
    5
}

#[derive(Serialize, Deserialize)]
struct Rest {
    more: u8,
}

#[job]
async fn everything(
    #[serde(rename = "who")] to: String,
    #[serde(default = "five")] times: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")] note: Option<String>,
    #[serde(with = "opaque")] opaque: Opaque,
    #[serde(skip)] skipped: Option<std::sync::Arc<std::sync::Mutex<u8>>>,
    #[serde(flatten)] rest: Rest,
    text: Cow<'static, str>,
    map: HashMap<String, Vec<(u8, [u8; 4])>>,
    wait: Duration,
    #[allow(unused_variables)] unused: u8,
    ctx: JobContext,
) {
    let _ = (to, times, note, opaque.0, skipped, rest.more, text, map, wait, ctx);
}

/// A unit struct and a tuple struct are payloads too.
#[derive(Serialize, Deserialize, Job)]
struct Unit;

#[derive(Serialize, Deserialize, Job)]
#[job(name = "tuple")]
struct Tuple(u8, String);

#[job]
async fn unit(#[payload] _: Unit) {}

#[job(args = HandleTuple)]
async fn tuple(#[payload] Tuple(number, text): Tuple) {
    let _ = (number, text);
}

fn register<J: emq::Handler<()>>() {}

fn main() {
    register::<EverythingJob>();
    register::<UnitJob>();
    register::<HandleTuple>();
    let old = r#"{"who":"ada","opaque":7,"more":1,"text":"t","map":{},"wait":{"secs":1,"nanos":0},"unused":0}"#;
    let job: EverythingJob = serde_json::from_str(old).unwrap();
    assert_eq!((job.times, job.opaque.0, job.rest.more), (5, 7, 1));
    assert_eq!(serde_json::to_string(&job).unwrap(), old.replace(r#""opaque""#, r#""times":5,"opaque""#));
    assert_eq!(<HandleTuple as Job>::NAME, "tuple");
}
