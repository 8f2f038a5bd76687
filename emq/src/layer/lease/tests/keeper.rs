use std::{
    sync::{Arc, Mutex},
    task::{Context, Wake, Waker},
    time::Duration,
};

use tokio::time::{Instant, advance, sleep};

use super::{SECOND, Server, away, delivery, delivery_wanting};
use crate::{
    job::JobOptions,
    layer::{Delivery, Due, Outcome, lease::held::Kept},
    store::Extended,
    testing,
};

fn is_lost(delivery: &Delivery) -> bool {
    delivery.lease_state().lost().is_closed()
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_every_third_of_it_until_it_is_let_go() {
    let server = Server::that_renews();
    let (keeper, delivery) = (server.keeper(), delivery());
    let kept = keeper.keep(&delivery);
    sleep(95 * SECOND).await;
    assert_eq!(server.seconds(), [10, 20, 30, 40, 50, 60, 70, 80, 90]);
    assert!(!is_lost(&delivery));
    drop(kept);
    sleep(95 * SECOND).await;
    assert_eq!(server.calls().len(), 9);
    assert!(keeper.in_hand().is_empty());
}

#[tokio::test(start_paused = true)]
async fn all_jobs_of_a_queue_go_into_one_call_per_beat() {
    let server = Server::that_renews();
    let keeper = server.keeper();
    let mut kept = Vec::new();
    for (queue, count) in [("mail", 40), ("money", 2)] {
        for _ in 0..count {
            // Some are claimed later than others, and are renewed along with them.
            sleep(SECOND / 10).await;
            kept.push(keeper.keep(&testing::delivery_with("any", JobOptions::new().queue(queue))));
        }
    }
    sleep(10 * SECOND).await;
    let calls = server.calls();
    assert_eq!(calls.iter().filter(|call| call.queue == "mail").map(|call| call.jobs).collect::<Vec<_>>(), [40]);
    assert_eq!(calls.iter().filter(|call| call.queue == "money").map(|call| call.jobs).collect::<Vec<_>>(), [2]);
}

#[tokio::test(start_paused = true)]
async fn what_is_due_in_more_than_half_a_beat_isnt_renewed_along() {
    let server = Server::that_renews();
    let keeper = server.keeper();
    let _first = keeper.keep(&delivery());
    sleep(6 * SECOND).await;
    let _second = keeper.keep(&delivery());
    sleep(11 * SECOND).await;
    let calls: Vec<_> = server.calls().iter().map(|call| (call.at.as_secs(), call.jobs)).collect();
    assert_eq!(calls, [(10, 1), (16, 2)]);
}

#[tokio::test(start_paused = true)]
async fn the_shorter_a_lease_the_sooner_it_is_asked_for_again() {
    for (lease, at_least) in [(30 * SECOND, 2), (3 * SECOND, 8), (SECOND, 12)] {
        let server = Server::that_is_away();
        let keeper = server.keeper();
        let _kept = keeper.keep(&delivery_wanting(lease));
        sleep(12 * SECOND).await;
        let calls = server.calls().len();
        assert!((at_least..=at_least + 4).contains(&calls), "{lease:?}: {calls} calls");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_takes_no_more_than_the_server_allows() {
    let server = Server::that_renews();
    let keeper = server.keeper();
    let kept: Vec<Kept> = (0..2_001).map(|_| keeper.keep(&delivery())).collect();
    sleep(11 * SECOND).await;
    assert_eq!(server.calls().iter().map(|call| call.jobs).collect::<Vec<_>>(), [1_000, 1_000, 1]);
    drop(kept);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_wants_another_lease_gets_it_at_once() {
    for (wanted, renewed_at) in [(3 * SECOND, vec![0, 1, 2, 3]), (300 * SECOND, vec![0])] {
        let server = Server::that_renews();
        let (keeper, delivery) = (server.keeper(), delivery_wanting(wanted));
        let _kept = keeper.keep(&delivery);
        sleep(SECOND * 7 / 2).await;
        assert_eq!(server.seconds(), renewed_at, "{wanted:?}");
        assert!(!is_lost(&delivery));
    }
}

#[tokio::test(start_paused = true)]
async fn a_short_lease_that_comes_while_the_keeper_sleeps_is_not_forgotten() {
    let server = Server::that_renews();
    let keeper = server.keeper();
    let _long = keeper.keep(&delivery());
    sleep(SECOND).await;
    let short = delivery_wanting(3 * SECOND);
    let _short = keeper.keep(&short);
    sleep(SECOND * 5 / 2).await;
    assert_eq!(server.seconds(), [1, 2, 3]);
    assert!(!is_lost(&short));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_comes_after_a_long_pause_is_renewed_in_time() {
    let server = Server::that_renews();
    let keeper = server.keeper();
    sleep(SECOND * 62).await;
    let long = keeper.keep(&delivery());
    sleep(SECOND * 11).await;
    assert_eq!(server.seconds(), [72]);
    drop(long);
    sleep(SECOND * 62).await;
    let _short = keeper.keep(&delivery_wanting(3 * SECOND));
    sleep(SECOND * 3 / 2).await;
    assert_eq!(server.seconds(), [72, 135, 136]);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_runs_out_unrenewed_is_given_up_then_and_not_before() {
    let server = Server::that_is_away();
    let (keeper, delivery) = (server.keeper(), delivery());
    let _kept = keeper.keep(&delivery);
    sleep(SECOND * 299 / 10).await;
    assert!(!is_lost(&delivery));
    sleep(SECOND * 2 / 10).await;
    assert!(is_lost(&delivery));
    let calls = server.calls().len();
    assert!((10..=30).contains(&calls), "asked {calls} times");
    sleep(60 * SECOND).await;
    assert_eq!(server.calls().len(), calls, "what was given up is not asked for again");
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_failed_is_asked_for_again_soon() {
    // One beat is missed by a whole 12 s of absence; the lease of 30 s isn't.
    let server = Server::new(|call, _| {
        std::future::ready(if call.at < 22 * SECOND { Err(away()) } else { Ok(vec![Extended::Renewed; call.jobs]) })
    });
    let (keeper, delivery) = (server.keeper(), delivery());
    let _kept = keeper.keep(&delivery);
    sleep(23 * SECOND).await;
    let last = server.calls().last().unwrap().at;
    assert!(last >= 22 * SECOND && last <= 23 * SECOND, "{last:?}");
    sleep(60 * SECOND).await;
    assert!(!is_lost(&delivery));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_hangs_holds_up_neither_the_next_beat_nor_other_queues() {
    let server = Server::new(|call, n| {
        let (hangs, answer) = (n == 0 || call.queue == "mute", Ok(vec![Extended::Renewed; call.jobs]));
        async move { if hangs { std::future::pending().await } else { answer } }
    });
    let keeper = server.keeper();
    let fine = testing::delivery_with("any", JobOptions::new().queue("fine"));
    let mute = testing::delivery_with("any", JobOptions::new().queue("mute"));
    let _kept = (keeper.keep(&fine), keeper.keep(&mute));
    sleep(31 * SECOND).await;
    assert!(!is_lost(&fine));
    assert!(is_lost(&mute));
}

#[tokio::test(start_paused = true)]
async fn answers_that_overtake_each_other_dont_shorten_a_lease() {
    // The first answer comes 19 s late, after the second.
    let server = Server::new(|call, n| {
        let (wait, answer) =
            (if n == 0 { 19 * SECOND } else { Duration::ZERO }, Ok(vec![Extended::Renewed; call.jobs]));
        async move {
            sleep(wait).await;
            answer
        }
    });
    let (keeper, delivery) = (server.keeper(), delivery());
    let _kept = keeper.keep(&delivery);
    sleep(SECOND * 295 / 10).await;
    assert_eq!(delivery.lease_state().until() - server.start, 50 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_shorter_lease_whose_answer_was_lost_isnt_relied_on_for_longer() {
    let server = Server::that_is_away();
    let (keeper, delivery) = (server.keeper(), delivery_wanting(3 * SECOND));
    let _kept = keeper.keep(&delivery);
    sleep(SECOND * 31 / 10).await;
    assert!(is_lost(&delivery), "the server may have taken the shorter term");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_the_server_refuses_is_lost_alone() {
    let server = Server::new(|call, _| {
        let answers = (0..call.jobs).map(|n| if n == 0 { Extended::Lost } else { Extended::Renewed });
        std::future::ready(Ok(answers.collect()))
    });
    let keeper = server.keeper();
    let deliveries = [delivery(), delivery(), delivery()];
    let kept = deliveries.each_ref().map(|delivery| keeper.keep(delivery));
    sleep(11 * SECOND).await;
    assert_eq!(deliveries.iter().filter(|delivery| is_lost(delivery)).count(), 1);
    assert_eq!(keeper.in_hand().len(), 2, "it isn't asked for again");
    drop(kept);
}

#[tokio::test(start_paused = true)]
async fn once_it_is_being_settled_the_fence_decides_and_not_the_keeper() {
    for server in [Server::that_refuses(), Server::that_is_away()] {
        let (keeper, delivery) = (server.keeper(), delivery());
        let _kept = keeper.keep(&delivery);
        delivery.lease_state().settling();
        sleep(40 * SECOND).await;
        assert!(!is_lost(&delivery));
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_slept_past_its_leases_gives_them_up_without_asking() {
    let server = Server::that_renews();
    let (keeper, delivery) = (server.keeper(), delivery());
    let _kept = keeper.keep(&delivery);
    sleep(SECOND).await;
    advance(30 * SECOND).await;
    sleep(SECOND).await;
    assert!(is_lost(&delivery));
    assert!(server.calls().is_empty(), "a job that was given up must not be held");
}

#[tokio::test(start_paused = true)]
async fn a_lease_without_end_is_kept() {
    let server = Server::that_renews();
    let (keeper, delivery) = (server.keeper(), delivery_wanting(Duration::MAX));
    let _kept = keeper.keep(&delivery);
    sleep(60 * SECOND).await;
    assert!(!is_lost(&delivery));
}

#[tokio::test(start_paused = true)]
async fn the_last_keeper_dropped_ends_the_renewing() {
    let server = Server::that_renews();
    let (keeper, delivery) = (server.keeper(), delivery());
    let clone = keeper.clone();
    let _kept = keeper.keep(&delivery);
    drop(keeper);
    sleep(11 * SECOND).await;
    assert_eq!(server.calls().len(), 1, "a clone is the same keeper");
    drop(clone);
    sleep(60 * SECOND).await;
    assert_eq!(server.calls().len(), 1);
    assert_eq!(Arc::strong_count(&server.calls), 1, "nothing of it is left running");
}

/// Lets go of another lease in the very moment in which it is told that one was lost.
struct LetsGo(Mutex<Option<Kept>>);

impl Wake for LetsGo {
    fn wake(self: Arc<Self>) {
        self.0.lock().unwrap().take();
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_told_of_a_loss_may_let_go_of_leases_there_and_then() {
    for server in [Server::that_is_away(), Server::that_refuses()] {
        let (keeper, delivery, other) = (server.keeper(), delivery(), delivery_wanting(40 * SECOND));
        let _kept = keeper.keep(&delivery);
        let waker: Waker = Arc::new(LetsGo(Mutex::new(Some(keeper.keep(&other))))).into();
        let mut lost = Box::pin(delivery.lease_state().lost().closed());
        assert!(lost.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        sleep(31 * SECOND).await;
        assert!(is_lost(&delivery));
        assert!(keeper.in_hand().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_past_its_time_and_cant_be_dropped_is_failed_and_its_lease_not_renewed() {
    let server = Server::that_renews();
    let keeper = server.keeper();
    let options = JobOptions::new().timeout(5 * SECOND);
    let (blocked, other) = (testing::delivery_with("any", options), delivery());
    let (kept, _other) = (keeper.keep(&blocked), keeper.keep(&other));
    let due = Due::at(&blocked, Instant::now() + 12 * SECOND);
    sleep(35 * SECOND).await;
    assert_eq!(server.calls().iter().map(|call| call.jobs).collect::<Vec<_>>(), [2, 1, 1]);
    let failed = server.failed.lock().unwrap().clone();
    assert!(matches!(failed.as_slice(), [(id, Outcome::Retry { .. })] if *id == blocked.id()), "{failed:?}");
    assert_eq!((keeper.stuck().count(), blocked.context().is_cancelled(), is_lost(&blocked)), (1, true, false));
    // It returns.
    drop((due, kept));
    assert_eq!(keeper.stuck().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_somebody_has_cancelled_is_told_so_and_its_lease_not_renewed() {
    let server = Server::new(|call, _| std::future::ready(Ok(vec![Extended::Cancelled; call.jobs])));
    let (keeper, delivery) = (server.keeper(), delivery());
    let _kept = keeper.keep(&delivery);
    sleep(SECOND).await;
    assert!(!delivery.lease_state().cancelled().is_closed());
    // Somebody has said so.
    keeper.ask_now(delivery.queue(), Some(delivery.id()));
    sleep(SECOND).await;
    assert!(delivery.lease_state().cancelled().is_closed() && !is_lost(&delivery));
    sleep(60 * SECOND).await;
    assert_eq!(server.seconds(), [1]);
}
