//! The gatekeeper: pauses a queue or a lane for a while, and sees whether anything starts meanwhile.

use std::{collections::HashSet, sync::Arc, time::Duration};

use emq::{BoxError, CallError, Client, JobId, Lane, Place, Queue};
use tokio::{
    sync::mpsc::UnboundedReceiver,
    time::{Instant, sleep},
};

use crate::{
    book::{Book, Paused},
    jobs::{QUEUE, SCRAP},
    lanes::{LANES, LIMITED},
    ledger::now,
    operator::is_passing,
    strikes::Blow,
    worker,
};

/// The wait between two looks, and between two tries.
const PAUSE: Duration = Duration::from_millis(40);

/// What is paused.
struct Gate {
    queue: Queue,
    lane: Option<(Lane, &'static str)>,
}

#[derive(Clone, Copy, Debug)]
enum Turn {
    Pause,
    Resume,
}

pub(crate) struct Gatekeeper {
    client: Client,
    book: Arc<Book>,
}

impl Gatekeeper {
    /// Not through a proxy: what a line held back would be carried out long after it was given up.
    pub(crate) async fn connect(url: &str, book: Arc<Book>) -> Result<Self, BoxError> {
        let client = worker::builder(url).retry_for(Duration::ZERO).connect().await?;
        Ok(Self { client, book })
    }

    /// Does what it is told, one after the other, until nobody is left to tell it anything.
    pub(crate) async fn run(self, mut told: UnboundedReceiver<Blow>) {
        while let Some(blow) = told.recv().await {
            match self.gate(blow.number) {
                Ok(gate) => self.close(&gate, blow.time).await,
                Err(error) => self.book.violation(format!("nothing can be paused: {error}")),
            }
        }
    }

    /// Half of the time the queue, and else a lane of it or the other queue.
    fn gate(&self, number: u64) -> Result<Gate, BoxError> {
        let queue = self.client.queue(QUEUE)?;
        Ok(match number % 4 {
            0 => Gate { queue: self.client.queue(SCRAP)?, lane: None },
            1 => {
                let lanes: Vec<_> = LANES.iter().filter(|lane| lane.name != LIMITED).collect();
                let name = lanes[usize::try_from(number / 4)? % lanes.len()].name;
                Gate { lane: Some((queue.lane(name)?, name)), queue }
            }
            _ => Gate { queue, lane: None },
        })
    }

    async fn close(&self, gate: &Gate, time: Duration) {
        self.turn(gate, Turn::Pause).await;
        let (from, over) = (now(), Instant::now() + time);
        let mut before: Option<HashSet<JobId>> = None;
        let mut started = Vec::new();
        while Instant::now() < over {
            if let Ok(active) = gate.queue.list(Place::Active, 0, 1_000).await {
                let active = active.into_iter().map(|listed| listed.id);
                match &before {
                    None => before = Some(active.collect()),
                    Some(before) => started.extend(active.filter(|id| !before.contains(id))),
                }
            }
            sleep(PAUSE).await;
        }
        let to = now();
        self.turn(gate, Turn::Resume).await;
        started.sort_unstable();
        started.dedup();
        let queue = if gate.queue.name().as_str() == SCRAP { SCRAP } else { QUEUE };
        self.book.pause(Paused { queue, lane: gate.lane.as_ref().map(|(_, name)| *name), from, to, started });
    }

    /// Until the server says that it is done.
    async fn turn(&self, gate: &Gate, turn: Turn) {
        loop {
            match gate.turn(turn).await {
                Ok(()) => return,
                Err(error) if is_passing(&error) => sleep(PAUSE).await,
                Err(error) => return self.book.violation(format!("{turn:?} failed for good: {error}")),
            }
        }
    }
}

impl Gate {
    async fn turn(&self, turn: Turn) -> Result<(), CallError> {
        match (turn, &self.lane) {
            (Turn::Pause, Some((lane, _))) => lane.pause().await,
            (Turn::Pause, None) => self.queue.pause().await,
            (Turn::Resume, Some((lane, _))) => lane.resume().await,
            (Turn::Resume, None) => self.queue.resume().await,
        }
    }
}
