//! The server's clock jumps.
//!
//! What a server has written by its clock is then as far off as the clock, and nothing else is. So each test moves what was
//! written, and, where that can be done, also the clock of a server.

use std::time::Duration;

use emq::{Completion, JobContext, JobId, JobState};
use support::Server;
use tokio::sync::watch;

use crate::errand::{Does, Place, Running, Told, ms, start, telling};

const HOUR: i64 = 60 * 60;

/// Moves the times of a queue that are written here, in one step.
const MOVE: &str = "
for _, set in ipairs({ 'active', 'schedule', 'done', 'dead' }) do
    for _, id in ipairs(redis.call('ZRANGE', KEYS[1] .. set, 0, -1)) do
        redis.call('ZINCRBY', KEYS[1] .. set, ARGV[1], id)
    end
end
return redis.status_reply('OK')
";

/// What is moved.
enum Clock {
    /// The times that were written, the other way.
    Written,
    /// The clock of the server's process.
    Real(support::Clock),
}

impl Clock {
    async fn jump(&self, place: &Place, seconds: i64) {
        match self {
            Self::Written => {
                let by = (-seconds * 1_000).to_string();
                let moved = place.raw().await.command(&["EVAL", MOVE, "1", &place.key(""), &by]).await;
                assert!(!moved.is_error(), "{moved}");
            }
            Self::Real(clock) => {
                let before = now(place).await;
                clock.jump(seconds);
                // A server reads its clock when it begins to serve a round of clients.
                place.until(async || (now(place).await - before).abs() > seconds.abs() * 900).await;
            }
        }
    }
}

/// The server's clock in ms.
async fn now(place: &Place) -> i64 {
    let time = place.raw().await.line("TIME").await;
    let part = |at: usize| time.items()[at].text().parse::<i64>().unwrap();
    part(0) * 1_000 + part(1) / 1_000
}

/// When a job's lease ends, in ms from now on.
async fn lease_left(place: &Place, id: JobId) -> i64 {
    let end = place.raw().await.line(&format!("ZSCORE {} {id}", place.key("active"))).await;
    end.text().parse::<i64>().unwrap() - now(place).await
}

/// Runs a scene with each clock that can be moved here.
async fn on_each_clock(label: &str, scene: impl AsyncFn(&Place, Clock)) {
    let server = Server::start().await;
    scene(&Place::on(&server, label).await, Clock::Written).await;
    let Some(clock) = support::Clock::new() else {
        eprintln!("left out: a server whose clock jumps, which takes Linux and a C compiler");
        return;
    };
    let server = Server::builder().clock(&clock).start().await;
    let place = Place::on(&server, label).await;
    let before = now(&place).await;
    clock.jump(-HOUR);
    let mut moved = false;
    for _ in 0..20 {
        moved = moved || now(&place).await < before;
    }
    clock.jump(HOUR);
    if moved {
        place.until(async || now(&place).await >= before).await;
        scene(&place, Clock::Real(clock)).await;
    } else {
        eprintln!("left out: a server whose clock jumps, since this one doesn't use the system's C library");
    }
}

/// Jobs below 10 end when the test says so, and all others at once.
fn a_worker(place: &Place, lease: Duration) -> (Running, Told<(u64, u64)>, watch::Sender<bool>) {
    let (tell, told) = telling();
    let (go, may_go) = watch::channel(false);
    let does = Does::new(move |n, ctx: JobContext| {
        tell.tell((n, ctx.fence()));
        let mut may_go = may_go.clone();
        async move {
            if n < 10 {
                // An error means that the test is over.
                let _ = may_go.wait_for(|go| *go).await;
            }
            Ok(Completion::empty())
        }
    });
    (start(place.worker(does).lease(lease).beat(ms(100))), told, go)
}

#[tokio::test]
async fn a_clock_that_jumps_back_delays_what_was_to_come_by_the_jump_and_nothing_else() {
    on_each_clock("back", async |place, clock| {
        // A job in a hand that is gone, one in hand, and two to come.
        place.errand(20).await.unwrap();
        let orphan = place.queue.claimer("gone").lease(ms(60_000)).claim(1).await.unwrap().jobs[0].lease.id();
        let (worker, mut told, go) = a_worker(place, ms(900));
        let in_hand = place.errand(0).await.unwrap().id();
        assert_eq!(told.next().await, (0, 1));
        let scheduled = place.errand(21).delay(ms(60_000)).await.unwrap().id();

        clock.jump(place, -HOUR).await;
        // What is enqueued from now on is on the new time.
        place.errand(30).await.unwrap();
        assert_eq!(told.next().await, (30, 1));
        place.errand(31).delay(ms(200)).await.unwrap();
        assert_eq!(told.next().await, (31, 1));
        // What is in hand is renewed on the new time, and stays in hand.
        place.until(async || lease_left(place, in_hand).await < 60_000).await;
        go.send_replace(true);
        place.completed(3).await;
        assert_eq!(worker.stats().lost, 0);
        // The others stand where they stood.
        assert_eq!(place.queue.state(orphan).await.unwrap(), Some(JobState::Active));
        assert_eq!(place.queue.state(scheduled).await.unwrap(), Some(JobState::Scheduled));
        assert!(told.rest().is_empty());

        // An hour and a minute later.
        clock.jump(place, HOUR + 61).await;
        let mut late = [told.next().await, told.next().await];
        late.sort_unstable();
        assert_eq!(late, [(20, 2), (21, 1)]);
        place.completed(5).await;
        let stats = worker.stop().await;
        assert_eq!((stats.completed, stats.lost, stats.stale), (5, 0, 0));
        assert_eq!(place.queue.counts().await.unwrap().unfinished(), 0);
    })
    .await;
}

#[tokio::test]
async fn a_clock_that_jumps_on_ends_leases_early_which_is_a_stall_and_loses_nothing() {
    on_each_clock("on", async |place, clock| {
        let (worker, mut told, go) = a_worker(place, ms(20_000));
        let in_hand = place.errand(0).await.unwrap().id();
        assert_eq!(told.next().await, (0, 1));
        let scheduled = place.errand(20).delay(Duration::from_secs(30 * 60)).await.unwrap().id();
        let later = place.errand(21).delay(Duration::from_secs(2 * 60 * 60)).await.unwrap().id();

        clock.jump(place, HOUR).await;
        // It is taken back, and claimed again; what fell due runs.
        let mut next = [told.next().await, told.next().await];
        next.sort_unstable();
        assert_eq!(next, [(0, 2), (20, 1)]);
        assert_eq!(place.queue.get(in_hand).await.unwrap().unwrap().stalled, 1);
        go.send_replace(true);
        place.completed(2).await;
        assert_eq!(place.queue.state(scheduled).await.unwrap(), Some(JobState::Finished));
        assert_eq!(place.queue.state(later).await.unwrap(), Some(JobState::Scheduled));
        place.until(async || worker.stats().in_hand == 0).await;
        let stats = worker.stop().await;
        assert_eq!((stats.claimed, stats.completed), (3, 2), "each was done once");
        assert_eq!(stats.lost + stats.stale, 1, "and the first run wrote nothing");
    })
    .await;
}
