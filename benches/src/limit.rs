//! `limit`: what this server can do with nothing but the needed commands, sent by a client that costs next to nothing.
//!
//! The scripts are those of `bare.rs`.

use emq::BoxError;

use crate::{
    bare::Script,
    lab::Lab,
    meter::Sample,
    pipe::Pipe,
    settings::Settings,
    trial::{Trial, compared, in_turn},
};

/// How many jobs one call of the server carries, in the tables.
const PER_CALL: [u64; 5] = [1, 4, 16, 64, 256];

/// About as many jobs are under way at once, whatever a call carries.
const UNDER_WAY: u64 = 256;

const KEYS: &str = "emq:{limit}:";

pub(crate) async fn run(settings: &Settings) -> Result<(), BoxError> {
    let jobs = settings.jobs(100_000);
    let enqueues: Vec<_> = PER_CALL.iter().map(|n| enqueue(settings, *n, 100, jobs)).collect();
    println!(
        "Enqueue, by the bare commands, 100 bytes of payload:\n\n{}",
        compared(&in_turn(settings, &enqueues).await)
    );
    let mut cycles: Vec<_> = PER_CALL.iter().map(|n| cycle(settings, *n, jobs)).collect();
    cycles.push(one_by_one(settings, settings.jobs(20_000)));
    println!("Settle and claim the next, by the bare commands:\n\n{}", compared(&in_turn(settings, &cycles).await));
    Ok(())
}

/// Enqueues by the bare commands.
pub(crate) fn enqueue(settings: &Settings, per_call: u64, payload: usize, jobs: u64) -> Trial<'_> {
    Trial::new(format!("limit, {per_call} a call"), move || async move {
        let lab = Lab::start(settings).await;
        let mut pipe = Pipe::open(lab.port()).await?;
        let script = Script::enqueue(&mut pipe, KEYS).await?;
        let meter = lab.meter().await;
        fill(&mut pipe, &script, per_call, payload, jobs).await?;
        Ok(meter.stop(jobs).await)
    })
}

/// Settles jobs and claims the next by the bare commands.
pub(crate) fn cycle(settings: &Settings, per_call: u64, jobs: u64) -> Trial<'_> {
    let label = format!("limit, {per_call} a call");
    Trial::new(label, move || work(settings, per_call, calls_under_way(per_call), jobs))
}

/// The same, one job after the other: a round trip for each.
pub(crate) fn one_by_one(settings: &Settings, jobs: u64) -> Trial<'_> {
    Trial::new("limit, one after the other", move || work(settings, 1, 1, jobs))
}

fn calls_under_way(per_call: u64) -> u64 {
    (UNDER_WAY / per_call).clamp(2, 128)
}

async fn fill(pipe: &mut Pipe, script: &Script, per_call: u64, payload: usize, jobs: u64) -> Result<(), BoxError> {
    let payload = vec![b'x'; payload];
    let (mut sent, mut calls) = (0, 0);
    loop {
        while sent < jobs && calls < calls_under_way(per_call) {
            let until = jobs.min(sent + per_call);
            let args: Vec<_> =
                (sent..until).flat_map(|n| [format!("JOB{n:011}").into_bytes(), payload.clone()]).collect();
            script.push(pipe, &args)?;
            sent = until;
            calls += 1;
        }
        if calls == 0 {
            return Ok(());
        }
        pipe.reply().await?;
        calls -= 1;
    }
}

/// Works a backlog off, with so many calls under way at once.
async fn work(settings: &Settings, per_call: u64, hands: u64, jobs: u64) -> Result<Sample, BoxError> {
    let lab = Lab::start(settings).await;
    let mut pipe = Pipe::open(lab.port()).await?;
    let script = Script::enqueue(&mut pipe, KEYS).await?;
    fill(&mut pipe, &script, 1_000, 100, jobs).await?;
    let script = Script::cycle(&mut pipe, KEYS).await?;
    let n = per_call.to_string().into_bytes();
    let call = |hand: u64, request: u64| {
        let [hand, request] = [hand, request].map(|number| number.to_string().into_bytes());
        vec![n.clone(), b"30000".to_vec(), hand, request]
    };
    let meter = lab.meter().await;
    for hand in 0..hands {
        script.push(&mut pipe, &call(hand, 0))?;
    }
    let (mut settled, mut replies) = (0, 0);
    // The last replies are of hands that have found nothing, and haven't been sent again.
    while settled < jobs {
        let reply = pipe.reply().await?;
        let (hand, request) = (replies % hands, replies / hands + 1);
        replies += 1;
        let mut args = call(hand, request);
        for job in reply.items() {
            args.extend(job.items()[..2].iter().map(|part| part.bytes().to_vec()));
            settled += 1;
        }
        script.push(&mut pipe, &args)?;
    }
    // Those that were counted when they were handed out are settled by what is still under way.
    for _ in 0..hands {
        pipe.reply().await?;
    }
    let sample = meter.stop(jobs).await;
    let done = pipe.call(&["HGET", &format!("{KEYS}metrics:completed"), "count"]).await?;
    if done.text() == jobs.to_string() { Ok(sample) } else { Err(format!("{done} jobs settled, of {jobs}").into()) }
}
