//! The lanes that jobs wait in, and what is set of them and of the queues.

use std::time::Duration;

use emq::{BoxError, Client, Rate};

use crate::jobs::{QUEUE, SCRAP};

/// A lane: its name, the most of its jobs that may be active at a time, and its weight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lane {
    pub(crate) name: &'static str,
    pub(crate) limit: Option<u32>,
    weight: u32,
}

/// The lanes of both queues.
pub(crate) const LANES: [Lane; 8] = [
    lane("a", None, 1),
    lane("b", None, 3),
    lane("c", Some(1), 1),
    lane("d", Some(3), 2),
    lane("e", Some(4), 1),
    lane("f", None, 1),
    lane(RATED, None, 1),
    lane(LIMITED, None, 1),
];

/// The lane with a rate.
pub(crate) const RATED: &str = "g";

/// The lane of the jobs that are told that they come too often. It is never paused, since a resume would let it go on.
pub(crate) const LIMITED: &str = "h";

/// The rate: so many, per so long, and so many at once.
pub(crate) const RATE: (u32, Duration, u32) = (12, Duration::from_secs(1), 3);

/// How many jobs of [`SCRAP`] may be active at a time.
pub(crate) const SCRAP_LIMIT: u32 = 4;

const fn lane(name: &'static str, limit: Option<u32>, weight: u32) -> Lane {
    Lane { name, limit, weight }
}

/// The limit of a lane.
pub(crate) fn limit(lane: &str) -> Option<u32> {
    LANES.iter().find(|each| each.name == lane)?.limit
}

/// Sets everything, or sets it again: that changes nothing.
pub(crate) async fn set(client: &Client) -> Result<(), BoxError> {
    for queue in [QUEUE, SCRAP] {
        let queue = client.queue(queue)?;
        for Lane { name, limit, weight } in LANES {
            let lane = queue.lane(name)?;
            lane.set_concurrency(limit).await?;
            lane.set_weight(weight).await?;
        }
        let (max, period, burst) = RATE;
        queue.lane(RATED)?.set_rate(Rate::per(max, period).burst(burst)).await?;
    }
    client.queue(SCRAP)?.set_concurrency(SCRAP_LIMIT).await?;
    Ok(())
}
