//! The driver: it kills, freezes and cuts by chance. The same seed gives the same strikes in the same order.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use support::{
    Proxy, Raw, Server,
    proxy::{When, any},
};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use crate::{
    book::Book,
    ledger::{Ledger, LedgerError},
    worker::LEASE,
    workers::{WORKERS, Workers},
};

/// What the driver can do. The number is how often it does, of the sum of all.
const STRIKES: [(Strike, u32); 15] = [
    (Strike::Kill, 24),
    (Strike::Terminate, 6),
    (Strike::Freeze, 8),
    (Strike::FreezeOld, 3),
    (Strike::Sever, 8),
    (Strike::CutReplies, 9),
    (Strike::CutRequests, 6),
    (Strike::LoseReply, 6),
    (Strike::Delay, 6),
    (Strike::Hold, 4),
    (Strike::BlackHole, 4),
    (Strike::Chop, 3),
    (Strike::FlushScripts, 6),
    (Strike::KillClients, 6),
    (Strike::KillServer, 4),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strike {
    Kill,
    Terminate,
    Freeze,
    FreezeOld,
    Sever,
    CutReplies,
    CutRequests,
    LoseReply,
    Delay,
    Hold,
    BlackHole,
    Chop,
    FlushScripts,
    KillClients,
    KillServer,
}

/// A proxy, and when it is to work again.
struct Line {
    proxy: Proxy,
    clear_at: Option<Instant>,
}

pub(crate) struct Chaos {
    server: Arc<Server>,
    /// The lines of the workers, and of one producer.
    lines: [Line; 2],
    pub(crate) workers: Workers,
    ending: JoinSet<Result<(), String>>,
    chance: StdRng,
    ledger: Ledger,
    book: Arc<Book>,
    pub(crate) done: BTreeMap<Strike, u64>,
}

impl Chaos {
    pub(crate) fn new(
        server: Arc<Server>,
        proxies: [Proxy; 2],
        workers: Workers,
        ledger: Ledger,
        book: Arc<Book>,
        seed: u64,
    ) -> Self {
        let lines = proxies.map(|proxy| Line { proxy, clear_at: None });
        let chance = StdRng::seed_from_u64(seed);
        Self { server, lines, workers, ending: JoinSet::new(), chance, ledger, book, done: BTreeMap::new() }
    }

    /// Strikes once, after a pause.
    pub(crate) async fn step(&mut self) -> Result<(), LedgerError> {
        let until = Instant::now() + Duration::from_millis(self.chance.random_range(200..1_000));
        while Instant::now() < until {
            sleep(Duration::from_millis(50)).await;
            self.mend(false);
        }
        let strike = self.choose();
        let victim = self.chance.random_range(1..WORKERS);
        let line = usize::from(self.chance.random_bool(0.3));
        let time = Duration::from_millis(self.chance.random_range(300..3_000));
        let every = self.chance.random_range(3..20);
        *self.done.entry(strike).or_default() += 1;
        self.ledger.strike(format!("{strike:?} (worker {victim}, line {line}, {time:?}, every {every})")).await?;
        match strike {
            Strike::Kill => self.workers.kill(victim).await,
            Strike::Terminate => {
                let ended = self.workers.terminate(victim);
                self.ending.spawn(ended);
            }
            Strike::Freeze => self.workers.freeze(victim, LEASE + time),
            Strike::FreezeOld => self.workers.freeze(0, LEASE + time),
            Strike::FlushScripts => self.tell_server(&["SCRIPT", "FLUSH"]).await,
            Strike::KillClients => self.tell_server(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).await,
            Strike::KillServer => {
                self.server.kill().await;
                sleep(time / 2).await;
                self.server.restart().await;
            }
            _ => self.lines[line].strike(strike, time, every),
        }
        while let Some(ended) = self.ending.try_join_next() {
            self.ended(ended);
        }
        Ok(())
    }

    /// Undoes everything that passes, and waits for the workers that were asked to end.
    pub(crate) async fn stop(&mut self) {
        self.mend(true);
        while let Some(ended) = self.ending.join_next().await {
            self.ended(ended);
        }
    }

    fn ended(&self, ended: Result<Result<(), String>, tokio::task::JoinError>) {
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(why)) => self.book.violation(why),
            Err(error) => self.book.violation(error.to_string()),
        }
    }

    fn mend(&mut self, all: bool) {
        self.workers.thaw(all);
        for line in &mut self.lines {
            if line.clear_at.is_some_and(|at| all || at <= Instant::now()) {
                line.proxy.clear();
                line.clear_at = None;
            }
        }
    }

    fn choose(&mut self) -> Strike {
        let sum = STRIKES.iter().map(|(_, weight)| weight).sum();
        let mut chance: u32 = self.chance.random_range(0..sum);
        for (strike, weight) in STRIKES {
            if chance < weight {
                return strike;
            }
            chance -= weight;
        }
        Strike::Kill
    }

    /// Nothing is lost if that fails: there are more strikes.
    async fn tell_server(&self, command: &[&str]) {
        let port = self.server.port();
        let told = async { Raw::open(port).await?.try_command(command).await };
        let _ = timeout(Duration::from_secs(5), told).await;
    }
}

impl Line {
    fn strike(&mut self, strike: Strike, time: Duration, every: u64) {
        let proxy = &self.proxy;
        match strike {
            Strike::CutReplies => proxy.cut_reply(any(), When::Every(every)),
            Strike::CutRequests => proxy.cut_request(any(), When::Every(every)),
            Strike::LoseReply => proxy.lose_reply(any(), When::Nth(every)),
            Strike::Delay => proxy.delay(time / 10),
            Strike::Hold => proxy.hold(),
            Strike::BlackHole => proxy.black_hole(),
            Strike::Chop => proxy.chop(),
            _ => proxy.sever(),
        }
        self.clear_at = Some(Instant::now() + time);
    }
}
