//! Carries out a verb: through the public API, or by its script, where that has no call of its own.

mod beat;
mod claim;
mod enqueue;
mod repeat;
mod script;

use std::time::{Duration, UNIX_EPOCH};

use emq::{CallError, Completion, Job, Keep, Lease, Place, PurgeError, Stored};
use serde::{Deserialize, Serialize};

use crate::answer::{Answer, LaneRecord, Record};
use crate::bench::{Stage, ms};
use crate::model::{NAME, error_text};
use crate::verb::{Lane, Rate, Right, Settling, Shelf, Slot, Tuning, Verb, When};

#[derive(Debug, Serialize, Deserialize)]
struct Work {
    n: u8,
}

impl Job for Work {
    const NAME: &'static str = NAME;
}

/// What a call answered, and how long there is nothing to do, if it says that.
pub(crate) type Played = (Answer, Option<Option<Duration>>);

/// A call that fails: no verb of a sequence may.
fn failed(error: impl std::fmt::Display) -> String {
    format!("it failed: {error}")
}

impl Stage<'_> {
    pub(crate) async fn play(&mut self, verb: &Verb) -> Result<Played, String> {
        let answer = match verb {
            Verb::Enqueue(spec) => Answer::Enqueued(vec![self.admitted(self.enqueue(spec).await)?]),
            Verb::EnqueueMany(specs) => self.enqueue_many(specs).await?,
            Verb::Claim { worker, max, lease, lost } => return self.claim(*worker, *max, *lease, *lost).await,
            Verb::Leave { worker } => {
                if let Some(claimer) = self.renew(*worker) {
                    claimer.leave().await.map_err(failed)?;
                }
                Answer::None
            }
            Verb::Complete(done) => {
                let completion = match done.result {
                    Some(result) => Completion::of(&result).map_err(failed)?,
                    None => Completion::empty(),
                };
                let settled = self.queue.complete_for(&self.lease(done.right), completion, ms(done.retention)).await;
                Answer::Settled(settled.map_err(failed)?)
            }
            Verb::CompleteMany(done) => self.complete_many(done).await?,
            Verb::Exchange { done, max, lease, lost } => return self.exchange(done, *max, *lease, *lost).await,
            Verb::Progress { .. } | Verb::Log { .. } => self.report(verb).await,
            Verb::Logs(slot) => Answer::Words(self.queue.logs(self.id(*slot)).await.map_err(failed)?),
            Verb::Settle { right, how } => {
                let lease = self.lease(*right);
                let settled = match how {
                    Settling::Retry { delay, error } => self.queue.retry(&lease, ms(*delay), &error_text(*error)).await,
                    Settling::Bury { error } => self.queue.bury(&lease, &error_text(*error)).await,
                    Settling::Snooze { delay } => self.queue.snooze(&lease, ms(*delay)).await,
                    Settling::Hold { delay } => self.queue.hold(&lease, ms(*delay)).await,
                    Settling::Cancel => self.queue.cancel_held(&lease).await,
                    Settling::Release => self.queue.release(&lease).await,
                };
                Answer::Settled(settled.map_err(failed)?)
            }
            Verb::Extend { rights, term } => {
                let leases: Vec<Lease> = rights.iter().map(|right| self.lease(*right)).collect();
                Answer::Extended(self.queue.extend(&leases, ms(*term)).await.map_err(failed)?)
            }
            Verb::Promote => {
                let promoted = self.queue.promote().await.map_err(failed)?;
                none_dropped(promoted.dropped)?;
                return Ok((Answer::Promoted(promoted.count), Some(promoted.next_due)));
            }
            Verb::Reap { max_stalled } => {
                let reaped = self.queue.reap(*max_stalled).await.map_err(failed)?;
                none_dropped(reaped.dropped)?;
                if reaped.more {
                    return Err("it left leases that ran out".to_owned());
                }
                Answer::Reaped {
                    recovered: self.slots(reaped.recovered)?,
                    dead: self.slots(reaped.dead)?,
                    cancelled: self.slots(reaped.cancelled)?,
                }
            }
            Verb::Beat { max_stalled } => return self.beat(*max_stalled).await,
            Verb::Revive(slot) => Answer::Revived(self.queue.revive(self.id(*slot)).await.map_err(failed)?),
            Verb::Cancel(slot) => Answer::Cancelled(self.queue.cancel(self.id(*slot)).await.map_err(failed)?),
            Verb::Update { slot, payload, priority, when } => {
                let mut update = self.queue.update(self.id(*slot));
                if let Some(n) = payload {
                    update = update.payload(&Work { n: *n });
                }
                if let Some(priority) = priority {
                    update = update.priority(*priority);
                }
                update = match when {
                    None => update,
                    Some(When::Now) => update.now(),
                    Some(When::After(wait)) => update.delay(ms(*wait)),
                    Some(When::At(wait)) => {
                        update.at(UNIX_EPOCH + Duration::from_millis((self.now + wait).unsigned_abs()))
                    }
                };
                Answer::Updated(update.await.map_err(failed)?)
            }
            Verb::Remove(slot) => Answer::Removed(self.queue.remove(self.id(*slot)).await.map_err(failed)?),
            Verb::Trim { age, count } => {
                let trimmed = self.queue.trim(Keep { age: ms(*age), count: *count }).await.map_err(failed)?;
                Answer::Trimmed { forgotten: trimmed.forgotten, dead: trimmed.dead, more: trimmed.more }
            }
            Verb::Counts => {
                let counts = self.queue.counts().await.map_err(failed)?;
                Answer::Counts {
                    pending: counts.pending as usize,
                    active: counts.active as usize,
                    scheduled: counts.scheduled as usize,
                    parked: counts.parked as usize,
                    dead: counts.dead as usize,
                    remembered: counts.remembered as usize,
                    completed: counts.completed,
                    failed: counts.failed,
                    paused: counts.paused,
                    lanes: counts.lanes as usize,
                }
            }
            Verb::Look(slot) => {
                let state = self.queue.state(self.id(*slot)).await.map_err(failed)?;
                let stored = self.queue.get(self.id(*slot)).await.map_err(failed)?;
                let record = stored.map(|stored| self.record(*slot, stored)).transpose()?;
                Answer::Looked(state, record.map(Box::new))
            }
            Verb::List { shelf, offset, count } => self.list(*shelf, *offset, *count).await?,
            Verb::Pause(..) | Verb::Resume(..) | Verb::Tune { .. } => {
                self.control(verb).await.map_err(failed)?;
                Answer::None
            }
            Verb::Reassign(slot, lane) => {
                let lane = lane.map(|lane| self.lane(lane));
                Answer::Reassigned(self.queue.reassign(self.id(*slot), lane.as_ref()).await.map_err(failed)?)
            }
            Verb::DrainLane(lane) => {
                let drained = self.lane(*lane).drain().await.map_err(failed)?;
                Answer::Drained { deleted: drained.removed as usize, left: drained.left as usize }
            }
            Verb::LookAtLane(lane) => Answer::Lane(self.look_at(*lane).await?),
            Verb::Partitions(at_least) => {
                let reply = self.call(&script::Script::read("partitions"), "", vec![at_least.to_string()]).await;
                Answer::Partitions(reply.int() as u32)
            }
            Verb::Limits => {
                let emq::Limits { concurrency, rate, held_until, .. } = self.queue.limits().await.map_err(failed)?;
                Answer::Limits { concurrency, rate: rate.map(rate_from), held: held_until.is_some() }
            }
            Verb::ListLanes => {
                let lanes = self.queue.lanes(0, 10).await.map_err(failed)?;
                Answer::Lanes(lanes.into_iter().map(|lane| (lane.name, lane.waiting as usize)).collect())
            }
            Verb::Purge { shelf, age } => {
                let purge = self.queue.purge(place(*shelf)).older_than(ms(*age));
                Answer::Purged(purge.all().await.map_err(failed)? as usize)
            }
            Verb::Obliterate { force } => {
                let obliterate = self.queue.obliterate();
                match if *force { obliterate.force() } else { obliterate }.all().await {
                    Ok(removed) => Answer::Obliterated(Some(removed as usize)),
                    Err(PurgeError::Active) => Answer::Obliterated(None),
                    Err(error) => return Err(failed(error)),
                }
            }
            Verb::Repeat(repeat) => return self.repeat(repeat).await,
            Verb::TakeMarker => {
                let taken = self.raw.line(&format!("ZPOPMIN {}marker", self.prefix)).await;
                Answer::Marker(!taken.items().is_empty())
            }
            Verb::Advance(wait) => {
                self.advance(*wait).await;
                Answer::None
            }
        };
        Ok((answer, None))
    }

    async fn control(&self, verb: &Verb) -> Result<(), CallError> {
        match verb {
            Verb::Pause(None) => self.queue.pause().await,
            Verb::Pause(Some(lane)) => self.lane(*lane).pause().await,
            Verb::Resume(None) => self.queue.resume().await,
            Verb::Resume(Some(lane)) => self.lane(*lane).resume().await,
            Verb::Tune { lane: None, tuning } => match tuning {
                Tuning::Concurrency(limit) => self.queue.set_concurrency(*limit).await,
                Tuning::Rate(rate) => self.queue.set_rate(rate.map(rate_of)).await,
                Tuning::Weight(_) => Ok(()),
            },
            Verb::Tune { lane: Some(lane), tuning } => match tuning {
                Tuning::Concurrency(limit) => self.lane(*lane).set_concurrency(*limit).await,
                Tuning::Rate(rate) => self.lane(*lane).set_rate(rate.map(rate_of)).await,
                Tuning::Weight(weight) => self.lane(*lane).set_weight(*weight).await,
            },
            _ => Ok(()),
        }
    }

    fn lane(&self, lane: Lane) -> emq::Lane {
        self.queue.lane(format!("{lane:?}")).expect("a good name")
    }

    async fn look_at(&self, lane: Lane) -> Result<LaneRecord, String> {
        let state = self.lane(lane).state().await.map_err(failed)?;
        let listed = self.lane(lane).list(0, 100).await.map_err(failed)?;
        let waiting = self.slots(listed.into_iter().map(|listed| listed.id).collect())?;
        if waiting.len() as u64 != state.waiting {
            return Err(format!("{} wait, and {waiting:?} are listed", state.waiting));
        }
        Ok(LaneRecord {
            waiting,
            active: state.active as usize,
            concurrency: state.concurrency,
            weight: state.weight,
            rate: state.rate.map(rate_from),
            paused: state.paused,
            held: state.held_until.is_some(),
        })
    }

    async fn list(&self, shelf: Shelf, offset: u64, count: usize) -> Result<Answer, String> {
        let listed = self.queue.list(place(shelf), offset, count).await.map_err(failed)?;
        Ok(Answer::Listed(self.slots(listed.into_iter().map(|listed| listed.id).collect())?))
    }

    fn record(&self, slot: Slot, stored: Stored) -> Result<Record, String> {
        if self.slot(stored.id)? != slot {
            return Err(format!("another job: {}", stored.id));
        }
        let name_of = |worker: &String| {
            let known = self.names.iter().find(|(name, _)| name == worker);
            known.map(|(_, place)| *place).ok_or_else(|| format!("a strange worker: {worker}"))
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Record {
            state: stored.state,
            name: stored.name,
            payload: text(&stored.payload),
            attempts: stored.attempts,
            failures: stored.failures,
            stalled: stored.stalled,
            last_error: stored.last_error,
            worker: stored.worker.as_ref().map(name_of).transpose()?,
            priority: stored.priority,
            max_attempts: stored.max_attempts,
            key: stored.deduplication_key,
            header: stored.headers.get("origin").cloned(),
            lane: stored.group,
            result: stored.result.map(|result| text(&result)),
        })
    }

    fn lease(&self, right: Right) -> Lease {
        Lease::new(self.id(right.slot), right.token)
    }

    fn slots(&self, ids: Vec<emq::JobId>) -> Result<Vec<Slot>, String> {
        ids.into_iter().map(|id| self.slot(id)).collect()
    }
}

fn place(shelf: Shelf) -> Place {
    match shelf {
        Shelf::Pending => Place::Pending,
        Shelf::Active => Place::Active,
        Shelf::Scheduled => Place::Scheduled,
        Shelf::Parked => Place::Parked,
        Shelf::Dead => Place::Dead,
        Shelf::Finished => Place::Finished,
    }
}

fn rate_from(rate: emq::Rate) -> Rate {
    Rate { max: rate.max(), period: rate.period().as_millis() as i64, burst: rate.bursts() }
}

fn rate_of(rate: Rate) -> emq::Rate {
    emq::Rate::per(rate.max, ms(rate.period)).burst(rate.burst)
}

/// Every id of a sequence has a row.
fn none_dropped(dropped: u64) -> Result<(), String> {
    if dropped == 0 { Ok(()) } else { Err(format!("it dropped {dropped} ids")) }
}
