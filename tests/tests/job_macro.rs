//! What `#[job]` and `#[derive(Job)]` make, seen by the code that uses it.

use std::time::Duration;

use emq::{
    Backoff, Completion, Handler, Job, JobContext, JobError, JobErrorKind, JobOptions, State,
    inject::{FromContext, Scope},
    job,
};
use producer::SendEmail;

#[derive(Clone)]
struct Greeting(&'static str);

/// Greets somebody.
#[job]
async fn greet(
    name: String,
    #[serde(default)] times: u8,
    State(greeting): State<Greeting>,
    ctx: JobContext,
) -> Result<String, JobError> {
    if name.is_empty() {
        return Err(JobError::permanent("nobody to greet"));
    }
    Ok(format!("{} {name} x{times} #{}", greeting.0, ctx.fence()))
}

/// Runs a job as a worker would.
async fn run<S, J: Handler<S>>(job: J, state: S) -> Result<Completion, JobError> {
    job.run(Scope::new(JobContext::for_test(), state)).await
}

/// Runs a job and decodes its result.
async fn result<S, J: Handler<S>>(job: J, state: S) -> serde_json::Value {
    let completion = run(job, state).await.expect("the job succeeds");
    completion.result().map_or(serde_json::Value::Null, |json| serde_json::from_slice(json).unwrap())
}

#[tokio::test]
async fn the_function_stays_callable() {
    let greeting = greet("Ada".into(), 2, State(Greeting("Hello")), JobContext::for_test()).await.unwrap();
    assert_eq!(greeting, "Hello Ada x2 #1");
}

#[tokio::test]
async fn a_worker_runs_it_with_the_context_and_the_state() {
    let job = GreetJob { name: "Ada".into(), times: 2 };
    assert_eq!(result(job, Greeting("Hello")).await, "Hello Ada x2 #1");
    let error = run(GreetJob { name: String::new(), times: 0 }, Greeting("Hello")).await.unwrap_err();
    assert_eq!(error.kind(), JobErrorKind::Permanent);
}

#[test]
fn serde_attributes_reach_the_field_so_that_old_payloads_decode() {
    let job: GreetJob = serde_json::from_str(r#"{"name":"Ada"}"#).unwrap();
    assert_eq!((job.name.as_str(), job.times), ("Ada", 0));
    assert_eq!(serde_json::to_string(&job).unwrap(), r#"{"name":"Ada","times":0}"#);
}

#[test]
fn a_job_without_options_has_the_functions_name_and_the_defaults() {
    assert_eq!(GreetJob::NAME, "greet");
    assert_eq!(GreetJob::ALIASES, &[] as &[&str]);
    assert_eq!(GreetJob::OPTIONS, JobOptions::new());
    assert_eq!(GreetJob { name: "Ada".into(), times: 1 }.unique_key(), None);
}

#[test]
fn the_location_is_that_of_the_attribute() {
    let (line, column) = (line!() + 1, 5);
    #[job]
    async fn here() {}
    assert_eq!(HereJob::LOCATION, format!("{}:{line}:{column}", file!()));
}

#[test]
fn options_land_in_the_job() {
    #[job(
        name = "course.enroll",
        queue = "enrollments",
        max_attempts = 5,
        priority = -10,
        timeout = "1m 30s",
        lease = "2m",
        retention = "1day",
        backoff = exponential("1s", max = "10m", jitter = 0.5),
        unique = (student, course),
        was = ["enroll", "enrol"],
        args = Enroll,
        derive(Clone, Debug, PartialEq),
    )]
    async fn enroll(student: u32, course: String, note: Option<String>) {
        let _ = (student, course, note);
    }
    let seconds = Duration::from_secs;
    let options = JobOptions::new()
        .queue("enrollments")
        .max_attempts(5)
        .priority(-10)
        .timeout(seconds(90))
        .lease(seconds(120))
        .retention(seconds(86_400))
        .backoff(Backoff::exponential(seconds(1), seconds(600)).jitter(0.5));
    assert_eq!(Enroll::OPTIONS, options);
    assert_eq!(Enroll::NAME, "course.enroll");
    assert_eq!(Enroll::ALIASES, ["enroll", "enrol"]);
    let job = Enroll { student: 7, course: "logic".into(), note: None };
    assert_eq!(job.unique_key().unwrap(), r#"course.enroll [7,"logic"]"#);
    assert_eq!(job.clone(), job);
    drop(enroll(1, String::new(), None));
}

#[test]
fn every_shape_of_backoff_is_understood() {
    let seconds = Duration::from_secs;
    #[job(backoff = fixed("5s"))]
    async fn steady() {}
    assert_eq!(SteadyJob::OPTIONS.backoff, Backoff::fixed(seconds(5)));
    #[job(backoff = fixed("5s", jitter = 0))]
    async fn exact() {}
    assert_eq!(ExactJob::OPTIONS.backoff, Backoff::fixed(seconds(5)).jitter(0.0));
    #[job(backoff = exponential("250ms"))]
    async fn growing() {}
    assert_eq!(GrowingJob::OPTIONS.backoff, Backoff::exponential(Duration::from_millis(250), seconds(86_400)));
}

#[test]
fn a_single_field_may_be_unique_without_parentheses() {
    #[job(unique = invoice)]
    async fn charge(invoice: u32) {
        let _ = invoice;
    }
    assert_eq!(ChargeJob { invoice: 42 }.unique_key().unwrap(), "charge [42]");
}

#[tokio::test]
async fn a_job_without_a_payload_has_an_empty_object() {
    #[job]
    async fn ping() {}
    assert_eq!(serde_json::to_string(&PingJob {}).unwrap(), "{}");
    assert!(serde_json::from_str::<PingJob>("{}").is_ok());
    assert!(run(PingJob {}, ()).await.unwrap().result().is_none());
}

struct Tenant(String);

impl<S> FromContext<S> for Tenant {
    fn from_context(scope: &Scope<S>) -> Result<Self, JobError> {
        let tenant = scope.context().header("tenant").ok_or_else(|| JobError::permanent("no tenant"))?;
        Ok(Self(tenant.to_owned()))
    }
}

#[tokio::test]
async fn any_type_can_be_injected_by_mark() {
    #[job]
    async fn whose(#[inject] Tenant(tenant): Tenant, what: String) -> Result<String, JobError> {
        Ok(format!("{tenant}'s {what}"))
    }
    let context = JobContext::for_test().with_header("tenant", "north");
    let job = || WhoseJob { what: "bill".into() };
    let completion = job().run(Scope::new(context, ())).await.unwrap();
    assert_eq!(completion.result().unwrap(), &br#""north's bill""#[..]);
    assert_eq!(run(job(), ()).await.unwrap_err().to_string(), "no tenant");
}

mod handler {
    use super::{Greeting, SendEmail, State};

    /// The handler of a job whose struct is another crate's.
    #[emq::job]
    pub(super) async fn send(
        #[payload] SendEmail { to, body }: SendEmail,
        State(greeting): State<Greeting>,
    ) -> Result<String, emq::JobError> {
        Ok(format!("{} {to}: {body}", greeting.0))
    }
}

#[tokio::test]
async fn a_struct_of_another_crate_is_handled_by_a_newtype_of_this_one() {
    use handler::SendJob;
    assert_eq!(SendEmail::NAME, "send_email");
    assert_eq!(SendEmail::OPTIONS, JobOptions::new().queue("mail").max_attempts(3));
    assert_eq!(SendJob::NAME, SendEmail::NAME);
    assert_eq!(SendJob::ALIASES, ["mail.send"]);
    assert_eq!(SendJob::OPTIONS, SendEmail::OPTIONS);
    assert!(SendEmail::LOCATION.contains("producer"), "{}", SendEmail::LOCATION);
    assert!(SendJob::LOCATION.contains("job_macro.rs"), "{}", SendJob::LOCATION);

    let mail = SendEmail { to: "ada@example.org".into(), body: "Hi".into() };
    let enqueued = serde_json::to_string(&mail).unwrap();
    assert_eq!(SendJob::from(mail.clone()).unique_key(), mail.unique_key());
    assert_eq!(mail.unique_key().unwrap(), r#"send_email ["ada@example.org"]"#);
    let claimed: SendJob = serde_json::from_str(&enqueued).unwrap();
    assert_eq!(serde_json::to_string(&claimed).unwrap(), enqueued);
    assert_eq!(result(claimed, Greeting("To")).await, "To ada@example.org: Hi");
}
