//! The plan of the strikes: what is done to the workers, the connections and the server, and when. A function of the seed
//! alone.

use std::time::Duration;

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};

use crate::workers::WORKERS;

/// All that can be done, and how often each is in one deck.
const DECK: [(Strike, usize); 24] = [
    (Strike::Kill, 22),
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
    (Strike::FillMemory, 3),
    (Strike::Demote, 3),
    (Strike::Pause, 7),
    (Strike::Revive, 5),
    (Strike::RemoveDead, 4),
    (Strike::Drain, 2),
    (Strike::Purge, 4),
    (Strike::Tune, 2),
    (Strike::Register, 3),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strike {
    // On a worker.
    Kill,
    Terminate,
    Freeze,
    FreezeOld,
    // On a line.
    Sever,
    CutReplies,
    CutRequests,
    LoseReply,
    Delay,
    Hold,
    BlackHole,
    Chop,
    // On the server.
    FlushScripts,
    KillClients,
    KillServer,
    /// No write that takes memory is accepted.
    FillMemory,
    /// No write at all is accepted, as after a failover.
    Demote,
    // By an operator of the queues.
    Pause,
    Revive,
    RemoveDead,
    Drain,
    Purge,
    /// Limits, weights and rates are set again.
    Tune,
    /// The recurring jobs are registered again.
    Register,
}

/// One strike of the plan. Each uses what it needs of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Blow {
    /// How long after the one before.
    pub(crate) pause: Duration,
    pub(crate) strike: Strike,
    /// Which worker; never the first, which is to get old.
    pub(crate) victim: usize,
    /// Which line.
    pub(crate) line: usize,
    /// How long it lasts.
    pub(crate) time: Duration,
    /// Which request is struck, or each so-manieth; which dead letter is taken, and how many; what is paused or purged.
    pub(crate) number: u64,
}

/// The strikes without end: deck after deck, each of them shuffled, so that even a short soak meets them all.
pub(crate) struct Strikes {
    chance: StdRng,
    deck: Vec<Strike>,
}

impl Strikes {
    pub(crate) fn new(seed: u64) -> Self {
        Self { chance: StdRng::seed_from_u64(seed), deck: Vec::new() }
    }

    fn draw(&mut self) -> Strike {
        if self.deck.is_empty() {
            self.deck = DECK.iter().flat_map(|(strike, times)| std::iter::repeat_n(*strike, *times)).collect();
            self.deck.shuffle(&mut self.chance);
        }
        self.deck.pop().unwrap_or(Strike::Kill)
    }

    pub(crate) fn next(&mut self) -> Blow {
        let strike = self.draw();
        let chance = &mut self.chance;
        Blow {
            pause: Duration::from_millis(chance.random_range(200..1_000)),
            strike,
            victim: chance.random_range(1..WORKERS),
            line: usize::from(chance.random_bool(0.3)),
            time: Duration::from_millis(chance.random_range(300..3_000)),
            number: chance.random_range(3..20),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(seed: u64, number: usize) -> Vec<Blow> {
        let mut strikes = Strikes::new(seed);
        std::iter::repeat_with(|| strikes.next()).take(number).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_strikes_and_another_seed_gives_others() {
        assert_eq!(first(7, 1_000), first(7, 1_000));
        assert_ne!(first(7, 10), first(8, 10));
    }

    #[test]
    fn each_deck_has_every_strike_as_often_as_it_should_be() {
        let size = DECK.iter().map(|(_, times)| times).sum();
        for deck in first(7, 3 * size).chunks(size) {
            for (strike, times) in DECK {
                assert_eq!(deck.iter().filter(|blow| blow.strike == strike).count(), times, "{strike:?}");
            }
        }
    }
}
