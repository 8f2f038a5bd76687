//! What stands around a job, and what its parameters are called, changes nothing.
#![deny(warnings)]
#![allow(dead_code, non_upper_case_globals)]

struct S;
struct S2;
struct Send;
struct Sync;
struct Some;
struct Ok;
struct Self_;
struct String;
type Result<T> = std::result::Result<T, std::io::Error>;
type Option = u8;
mod core {}
mod std_ {}
mod serde {}
mod alloc {}

trait Job {}
trait Handler<T> {
    fn run(self) -> T;
}
impl<T> Handler<u8> for T {
    fn run(self) -> u8 {
        1
    }
}
trait Serialize {
    fn serialize(&self) {}
}
impl<T> Serialize for T {}
trait IntoOutcome {
    fn into_outcome(self) -> u8;
}
impl<T> IntoOutcome for T {
    fn into_outcome(self) -> u8 {
        1
    }
}

const scope: u8 = 2;
const value: u8 = 1;
static future: u8 = 1;

#[emq::job(unique = (__value0, __scope, limit))]
async fn enroll(
    enroll: u8,
    __value0: u8,
    mut __scope: u8,
    limit: u8,
    r#struct: u8,
    emq::State(__value5): emq::State<S3>,
    emq::State(_): emq::State<(S, S2)>,
    __value7: emq::JobContext,
) -> Result<u8> {
    __scope += enroll + __value0 + limit + r#struct;
    let _ = (__value5, __value7);
    std::result::Result::Ok(__scope)
}

#[derive(Clone)]
struct S3;

struct App;

impl emq::FromRef<App> for S3 {
    fn from_ref(_: &App) -> Self {
        Self
    }
}

impl emq::FromRef<App> for (S, S2) {
    fn from_ref(_: &App) -> Self {
        (S, S2)
    }
}

fn register<J: emq::Handler<App>>(_: J) {}

fn main() {
    register(EnrollJob { enroll: 1, __value0: 2, __scope: 3, limit: 4, r#struct: 5 });
    let json = serde_json::to_string(&EnrollJob { enroll: 1, __value0: 2, __scope: 3, limit: 4, r#struct: 5 }).unwrap();
    assert_eq!(json, r#"{"enroll":1,"__value0":2,"__scope":3,"limit":4,"struct":5}"#);
}
