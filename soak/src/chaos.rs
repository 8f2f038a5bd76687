//! The driver: it carries out the strikes of the plan, and undoes what is to pass.

use std::{collections::BTreeMap, pin::pin, sync::Arc, time::Duration};

use emq::BoxError;
use support::{
    Proxy, Raw, Server,
    proxy::{When, any},
};
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::{JoinError, JoinHandle, JoinSet},
    time::{Instant, sleep, timeout},
};

use crate::{
    book::Book,
    ledger::{Ledger, LedgerError},
    strikes::{Blow, Strike, Strikes},
    worker::LEASE,
    workers::Workers,
};

/// How long the server may take to answer the driver.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long it may take until everything is undone at the end.
const UNDO: Duration = Duration::from_secs(60);

/// A proxy, and when it is to work again.
struct Line {
    proxy: Proxy,
    clear_at: Option<Instant>,
}

/// Somebody who does what the driver says, and may have to wait until it lets the server be written to.
pub(crate) struct Hand {
    strikes: &'static [Strike],
    tell: UnboundedSender<Blow>,
    end: JoinHandle<()>,
}

impl Hand {
    /// Has these strikes done by what `begin` makes of the way to be told of them.
    pub(crate) fn of<F: Future<Output = ()> + Send + 'static>(
        strikes: &'static [Strike],
        begin: impl FnOnce(UnboundedReceiver<Blow>) -> F,
    ) -> Self {
        let (tell, told) = unbounded_channel();
        Self { strikes, tell, end: tokio::spawn(begin(told)) }
    }
}

pub(crate) struct Chaos {
    server: Arc<Server>,
    /// The lines of the workers, and of one producer.
    lines: [Line; 2],
    pub(crate) workers: Workers,
    hands: Vec<Hand>,
    /// What was done to the server, and when it is to be undone.
    passing: BTreeMap<Strike, Instant>,
    ending: JoinSet<Result<(), String>>,
    strikes: Strikes,
    ledger: Ledger,
    book: Arc<Book>,
    pub(crate) done: BTreeMap<Strike, u64>,
}

impl Chaos {
    pub(crate) fn new(
        server: Arc<Server>,
        proxies: [Proxy; 2],
        workers: Workers,
        hands: Vec<Hand>,
        (ledger, book): (Ledger, Arc<Book>),
        seed: u64,
    ) -> Self {
        Self {
            server,
            lines: proxies.map(|proxy| Line { proxy, clear_at: None }),
            workers,
            hands,
            passing: BTreeMap::new(),
            ending: JoinSet::new(),
            strikes: Strikes::new(seed),
            ledger,
            book,
            done: BTreeMap::new(),
        }
    }

    /// Strikes once, after a pause.
    pub(crate) async fn step(&mut self) -> Result<(), LedgerError> {
        let blow = self.strikes.next();
        let until = Instant::now() + blow.pause;
        while Instant::now() < until {
            sleep(Duration::from_millis(50)).await;
            self.mend(false).await;
        }
        *self.done.entry(blow.strike).or_default() += 1;
        let Blow { strike, victim, line, time, number, .. } = &blow;
        let what = format!("{strike:?} (worker {victim}, line {line}, {time:?}, number {number})");
        let ledger = self.ledger.clone();
        let mut noting = pin!(ledger.strike(what));
        // A worker that is frozen may have locked the ledger.
        loop {
            match timeout(Duration::from_millis(50), &mut noting).await {
                Ok(noted) => break noted?,
                Err(_) => self.mend(false).await,
            }
        }
        self.strike(&blow).await;
        while let Some(ended) = self.ending.try_join_next() {
            self.ended(ended);
        }
        Ok(())
    }

    async fn strike(&mut self, blow: &Blow) {
        let &Blow { strike, victim, time, .. } = blow;
        match strike {
            Strike::Kill => self.workers.kill(victim).await,
            Strike::Terminate => {
                let ended = self.workers.terminate(victim);
                self.ending.spawn(ended);
            }
            Strike::Freeze => self.workers.freeze(victim, LEASE + time),
            Strike::FreezeOld => self.workers.freeze(0, LEASE + time),
            Strike::FlushScripts => _ = self.tell("SCRIPT FLUSH").await,
            Strike::KillClients => _ = self.tell("CLIENT KILL TYPE normal SKIPME yes").await,
            Strike::KillServer => {
                self.server.kill().await;
                sleep(time / 2).await;
                self.server.restart().await;
            }
            Strike::FillMemory => self.pass(strike, "CONFIG SET maxmemory 1", time).await,
            // Of a primary that isn't there.
            Strike::Demote => self.pass(strike, "REPLICAOF 127.0.0.1 1", time).await,
            Strike::Pause
            | Strike::Revive
            | Strike::RemoveDead
            | Strike::Drain
            | Strike::Purge
            | Strike::Tune
            | Strike::Register => {
                for hand in self.hands.iter().filter(|hand| hand.strikes.contains(&strike)) {
                    // It is missed at the end if it has panicked.
                    let _ = hand.tell.send(blow.clone());
                }
            }
            Strike::Sever
            | Strike::CutReplies
            | Strike::CutRequests
            | Strike::LoseReply
            | Strike::Delay
            | Strike::Hold
            | Strike::BlackHole
            | Strike::Chop => self.lines[blow.line].strike(blow),
        }
    }

    /// Undoes everything that passes, and waits for the hands and for the workers that were asked to end.
    pub(crate) async fn stop(&mut self) -> Result<(), BoxError> {
        let deadline = Instant::now() + UNDO;
        loop {
            self.mend(true).await;
            if self.passing.is_empty() {
                break;
            }
            if Instant::now() > deadline {
                return Err(format!("the server doesn't let {:?} be undone", self.passing.keys()).into());
            }
            sleep(Duration::from_millis(100)).await;
        }
        for Hand { strikes, tell, end } in std::mem::take(&mut self.hands) {
            drop(tell);
            let ended = timeout(UNDO, end).await.map_err(|_| format!("{strikes:?} wait for an answer for ever"))?;
            self.ended(ended.map(Ok));
        }
        while let Some(ended) = self.ending.join_next().await {
            self.ended(ended);
        }
        Ok(())
    }

    fn ended(&self, ended: Result<Result<(), String>, JoinError>) {
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(why)) => self.book.violation(why),
            Err(error) => self.book.violation(error.to_string()),
        }
    }

    /// Undoes what is over, or all. What the server doesn't do now, the next time.
    async fn mend(&mut self, all: bool) {
        self.workers.thaw(all);
        let is_over = |at: Instant| all || at <= Instant::now();
        for line in &mut self.lines {
            if line.clear_at.is_some_and(is_over) {
                line.proxy.clear();
                line.clear_at = None;
            }
        }
        let over: Vec<_> = self.passing.iter().filter(|(_, at)| is_over(**at)).map(|(strike, _)| *strike).collect();
        for strike in over {
            if self.tell(undoing(strike)).await {
                self.passing.remove(&strike);
            }
        }
    }

    /// Does something that is undone after a time.
    async fn pass(&mut self, strike: Strike, command: &str, time: Duration) {
        // Also if there is no answer: it may have been done.
        self.passing.insert(strike, Instant::now() + time);
        self.tell(command).await;
    }

    /// Returns whether the server has done it.
    async fn tell(&self, command: &str) -> bool {
        let port = self.server.port();
        let words: Vec<_> = command.split(' ').collect();
        let told = async { Raw::open(port).await?.try_command(&words).await };
        matches!(timeout(PATIENCE, told).await, Ok(Ok(reply)) if !reply.is_error())
    }
}

fn undoing(strike: Strike) -> &'static str {
    match strike {
        Strike::FillMemory => "CONFIG SET maxmemory 0",
        Strike::Demote => "REPLICAOF NO ONE",
        _ => "PING",
    }
}

impl Line {
    fn strike(&mut self, &Blow { strike, time, number, .. }: &Blow) {
        let proxy = &self.proxy;
        match strike {
            Strike::CutReplies => proxy.cut_reply(any(), When::Every(number)),
            Strike::CutRequests => proxy.cut_request(any(), When::Every(number)),
            Strike::LoseReply => proxy.lose_reply(any(), When::Nth(number)),
            Strike::Delay => proxy.delay(time / 10),
            Strike::Hold => proxy.hold(),
            Strike::BlackHole => proxy.black_hole(),
            Strike::Chop => proxy.chop(),
            _ => proxy.sever(),
        }
        self.clear_at = Some(Instant::now() + time);
    }
}
