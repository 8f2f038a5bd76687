//! The server's clock jumps. What a server has written by its clock is then as far off as the clock itself, and nothing
//! else is: so each test moves what was written, and where there is a libfaketime, it moves the clock of a server, too.

use std::{fs, path::PathBuf, time::Duration};

use emq::{Completion, Counts, JobContext, JobState};
use support::Server;
use tokio::sync::watch;

use crate::errand::{Does, Errand, Place, Running, Told, ms, start, telling, tells};

const HOUR: i64 = 60 * 60;

/// Moves all times of a queue, in one step.
const MOVE: &str = "
for _, set in ipairs({ 'active', 'schedule', 'done', 'dead' }) do
    for _, id in ipairs(redis.call('ZRANGE', KEYS[1] .. set, 0, -1)) do
        redis.call('ZINCRBY', KEYS[1] .. set, ARGV[1], id)
    end
end
return redis.status_reply('OK')
";

/// How the clock is made to jump.
enum Clock {
    /// The times that were written move the other way.
    Written,
    /// The server reads its clock through a library, which reads from this file how far it is off.
    Preloaded(PathBuf),
}

impl Clock {
    async fn jump(&self, place: &Place, seconds: i64) {
        match self {
            Self::Written => {
                let by = (-seconds * 1_000).to_string();
                let moved = place.raw().await.command(&["EVAL", MOVE, "1", &place.key(""), &by]).await;
                assert!(!moved.is_error(), "{moved}");
            }
            Self::Preloaded(file) => {
                let before = seconds_of(place).await;
                // Renamed, so that it is never read half written.
                let next = file.with_extension("next");
                fs::write(&next, format!("{seconds:+}")).unwrap();
                fs::rename(&next, file).unwrap();
                place.until(async || (seconds_of(place).await - before).abs() > HOUR / 2).await;
            }
        }
    }
}

async fn seconds_of(place: &Place) -> i64 {
    place.raw().await.line("TIME").await.items()[0].text().parse().unwrap()
}

/// A library that a server's clock can be moved with.
fn faketime() -> Option<PathBuf> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let named = std::env::var_os("EMQ_FAKETIME").map(PathBuf::from);
    let folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"];
    let installed = folders.iter().map(|folder| PathBuf::from(folder).join("faketime/libfaketimeMT.so.1"));
    named.into_iter().chain(installed).find(|path| path.is_file())
}

/// Runs a scene for each way in which a clock can be made to jump here.
async fn on_each_clock(label: &str, scene: impl AsyncFn(&Place, Clock)) {
    let server = Server::start().await;
    scene(&Place::on(&server, label).await, Clock::Written).await;
    let Some(library) = faketime() else {
        eprintln!("left out: a jump of a real server's clock, since there is no libfaketime");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("off-by");
    fs::write(&file, "+0").unwrap();
    let server = Server::builder()
        .env("LD_PRELOAD", library.to_str().unwrap())
        .env("FAKETIME_TIMESTAMP_FILE", file.to_str().unwrap())
        .env("FAKETIME_NO_CACHE", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .start()
        .await;
    scene(&Place::on(&server, label).await, Clock::Preloaded(file)).await;
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

async fn counts(place: &Place) -> Counts {
    place.queue.counts().await.unwrap()
}

#[tokio::test]
async fn a_clock_that_jumps_back_delays_what_was_to_come_by_the_jump_and_nothing_else() {
    on_each_clock("back", async |place, clock| {
        // A job in a hand that is gone, one in hand, and two to come.
        place.errand(20).await.unwrap();
        let orphan = place.queue.claimer("gone").lease(ms(60_000)).claim(1).await.unwrap().jobs[0].lease.id();
        let (worker, mut told, go) = a_worker(place, ms(900));
        place.errand(0).await.unwrap();
        assert_eq!(told.next().await, (0, 1));
        let scheduled = place.errand(21).delay(ms(60_000)).await.unwrap().id();

        clock.jump(place, -HOUR).await;
        // What is enqueued from now on is on the new time.
        place.errand(30).await.unwrap();
        assert_eq!(told.next().await, (30, 1));
        place.errand(31).delay(ms(200)).await.unwrap();
        assert_eq!(told.next().await, (31, 1));
        // What is in hand is renewed, to the new time, and never given to another.
        let id = place.queue.claimer("gone");
        drop(id);
        tokio::time::sleep(ms(2_000)).await;
        go.send_replace(true);
        place.completed(3).await;
        assert_eq!(worker.stats().lost, 0);
        // The others stand where they stood.
        assert_eq!(place.queue.state(orphan).await.unwrap(), Some(JobState::Active));
        assert_eq!(place.queue.state(scheduled).await.unwrap(), Some(JobState::Scheduled));
        assert!(told.rest().is_empty());

        // An hour later.
        clock.jump(place, if matches!(clock, Clock::Written) { HOUR + 61 } else { 61 }).await;
        let mut late = [told.next().await, told.next().await];
        late.sort_unstable();
        assert_eq!(late, [(20, 2), (21, 1)]);
        place.completed(5).await;
        let stats = worker.stop().await;
        assert_eq!((stats.completed, stats.lost, stats.stale), (5, 0, 0));
        assert_eq!(counts(place).await.unfinished(), 0);
    })
    .await;
}

#[tokio::test]
async fn a_clock_that_jumps_on_ends_leases_early_which_is_a_stall_and_loses_nothing() {
    on_each_clock("on", async |place, clock| {
        let (worker, mut told, go) = a_worker(place, ms(20_000));
        place.errand(0).await.unwrap();
        assert_eq!(told.next().await, (0, 1));
        let scheduled = place.errand(20).delay(Duration::from_secs(30 * 60)).await.unwrap().id();
        let later = place.errand(21).delay(Duration::from_secs(2 * 60 * 60)).await.unwrap().id();

        clock.jump(place, HOUR).await;
        // It is taken back, and claimed again; what fell due runs.
        let mut next = [told.next().await, told.next().await];
        next.sort_unstable();
        assert_eq!(next, [(0, 2), (20, 1)]);
        assert_eq!(place.queue.get(place_id(place, 0).await).await.unwrap().unwrap().stalled, 1);
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
