//! How workers take jobs.

use std::time::Duration;

use emq::{Batch, Claimed, Settled};
use support::Reply;

use super::{Played, failed, none_dropped, script::Script};
use crate::answer::{Answer, Handed};
use crate::bench::{Stage, ms};
use crate::model::LEAST_RETENTION;
use crate::verb::{Done, EXCHANGER, Right};

impl Stage<'_> {
    pub(super) async fn claim(&mut self, worker: usize, max: usize, lease: i64, lost: bool) -> Result<Played, String> {
        let claimer = self.claimers[worker].take().ok_or("a worker is missing")?;
        let mut claimer = claimer.lease(ms(lease));
        let answer = if lost {
            {
                let mut claim = std::pin::pin!(claimer.claim(max));
                // Looked at once, it is on its way to the server. Then it is dropped, as by a worker whose task ends.
                tokio::select! {
                    biased;
                    _ = &mut claim => return Err("it was answered before it was sent".to_owned()),
                    () = std::future::ready(()) => {}
                }
            }
            // On the same connection, so the claim is carried out before this is answered.
            self.queue.counts().await.map_err(failed)?;
            self.plain.clear();
            (Answer::None, None)
        } else {
            let batch = claimer.claim(max).await.map_err(failed)?;
            none_dropped(batch.dropped)?;
            // What these are, the library alone knows.
            self.plain.retain(|right| batch.jobs.iter().all(|job| job.lease.id() != self.ids[right.slot.0]));
            (self.claimed(&batch, ms(lease))?, Some(batch.next_event))
        };
        self.claimers[worker] = Some(claimer);
        Ok(answer)
    }

    fn claimed(&self, batch: &Batch, lease: Duration) -> Result<Answer, String> {
        let handed = |job: &Claimed| {
            if job.term != lease {
                return Err(format!("a lease of {:?}", job.term));
            }
            Ok(Handed {
                right: Right { slot: self.slot(job.lease.id())?, token: job.lease.token() },
                name: job.name.clone(),
                payload: String::from_utf8_lossy(&job.payload).into_owned(),
                failures: job.failures,
                stalled: job.stalled,
                max_attempts: job.max_attempts,
                header: job.headers.get("origin").cloned(),
                lane: job.group.clone(),
            })
        };
        let jobs: Result<_, String> = batch.jobs.iter().map(handed).collect();
        Ok(Answer::Claimed { jobs: jobs?, more: batch.more, expired: batch.expired as usize })
    }

    /// As the exchange of a worker sends it: what is done, and the claim behind it.
    pub(super) async fn exchange(
        &mut self,
        done: &[Done],
        max: usize,
        lease: i64,
        lost: bool,
    ) -> Result<Played, String> {
        // A repeated request is the long form's.
        let is_short = !self.owed && self.are_plain(done);
        self.request += u64::from(!self.owed);
        self.owed = lost;
        let told = self.told(done);
        let ids = done.iter().map(|done| self.id(done.right.slot).to_string()).collect::<Vec<_>>();
        if lost {
            self.plain.clear();
        }
        let worker = self.names[EXCHANGER].0.clone();
        let claim = vec![max.to_string(), lease.to_string(), worker, self.request.to_string()];
        let mut reply = Reply::Nil;
        if is_short {
            let retention = done.first().map_or(0, |done| done.retention).max(LEAST_RETENTION);
            let args = claim.iter().cloned().chain([retention.to_string()]).chain(ids).collect();
            reply = self.call(&Script::read("exchange_plain"), "", args).await;
            if let Reply::Array(items) = &mut reply {
                items.insert(0, Reply::Bulk(b"OK".to_vec()));
            }
        }
        if matches!(reply, Reply::Nil) {
            let args = claim.into_iter().chain(told).collect();
            reply = self.call(&Script::read("exchange"), "", args).await;
        }
        if lost && !reply.is_error() {
            return Ok((Answer::None, None));
        }
        let Reply::Array(items) = reply else { return Err(failed(reply)) };
        let [settled, _request, more, next_event, dropped, expired, jobs, lanes, further] = &items[..] else {
            return Err(format!("a short answer: {items:?}"));
        };
        none_dropped(dropped.int().unsigned_abs())?;
        let settled = all_settled(settled, done.len())?;
        let jobs = jobs.items().chunks(4).map(|job| self.handed(job));
        let mut jobs = jobs.collect::<Result<Vec<_>, _>>()?;
        let mut plain = vec![true; jobs.len()];
        for lane in lanes.items().chunks(2) {
            let job = lane[0].int() as usize;
            jobs[job].lane = Some(lane[1].text().to_owned());
            plain[job] = false;
        }
        for more in further.items() {
            plain[hear_more(&mut jobs, more.items())?] = false;
        }
        self.plain.retain(|right| jobs.iter().all(|job| job.right.slot != right.slot));
        let heard = jobs.iter().zip(plain).filter(|(_, is_plain)| *is_plain);
        self.plain.extend(heard.map(|(job, _)| job.right));
        let claimed = Answer::Claimed { jobs, more: more.int() == 1, expired: expired.int() as usize };
        let wait = u64::try_from(next_event.int()).ok().map(Duration::from_millis);
        Ok((Answer::Exchanged(settled, Box::new(claimed)), Some(wait)))
    }

    pub(super) async fn complete_many(&mut self, done: &[Done]) -> Result<Answer, String> {
        let args = self.told(done);
        let reply = self.call(&Script::read("complete"), "", args).await;
        if reply.is_error() {
            return Err(failed(reply));
        }
        Ok(Answer::Completed(all_settled(&reply, done.len())?))
    }

    /// Whether a worker would have the short form complete these.
    fn are_plain(&self, done: &[Done]) -> bool {
        done.iter().all(|one| {
            let Done { right, retention, result } = one;
            self.plain.contains(right) && right.token == 1 && result.is_none() && *retention == done[0].retention
        })
    }

    /// What the scripts are told of jobs that are done: each in a group of its own, unless it ends like the one before.
    fn told(&self, done: &[Done]) -> Vec<String> {
        let is_plain = |done: &Done| self.plain.contains(&done.right);
        let like = |done: &Done| (done.right.token, done.retention, done.result, is_plain(done));
        let ends_like = |one: &Done, other: &Done| like(one) == like(other);
        let group = |group: &[Done]| {
            let Done { right, retention, result } = &group[0];
            let retention = retention.max(&LEAST_RETENTION).to_string();
            let result = result.map(|result| result.to_string()).unwrap_or_default();
            let plain = if is_plain(&group[0]) { "1" } else { "" };
            let mut told = vec![right.token.to_string(), retention, result, plain.to_owned(), group.len().to_string()];
            told.extend(group.iter().map(|done| self.id(done.right.slot).to_string()));
            told
        };
        done.chunk_by(ends_like).flat_map(group).collect()
    }

    /// A job as the script hands it out, without what it tells of few.
    fn handed(&self, parts: &[Reply]) -> Result<Handed, String> {
        let id = text(&parts[0]).unwrap_or_default().parse().map_err(failed)?;
        let token = text(&parts[1]).unwrap_or_default().parse().map_err(failed)?;
        Ok(Handed {
            right: Right { slot: self.slot(id)?, token },
            name: text(&parts[3]),
            payload: text(&parts[2]).unwrap_or_default(),
            failures: 0,
            stalled: 0,
            max_attempts: None,
            header: None,
            lane: None,
        })
    }
}

fn text(part: &Reply) -> Option<String> {
    match part {
        Reply::Nil => None,
        part => Some(part.text().to_owned()),
    }
}

/// Answers which job it is.
fn hear_more(jobs: &mut [Handed], parts: &[Reply]) -> Result<usize, String> {
    let number = |part: &Reply| text(part).map(|text| text.parse::<u32>().map_err(failed)).transpose();
    let at = parts[0].int() as usize;
    let job = &mut jobs[at];
    job.failures = number(&parts[1])?.unwrap_or(0);
    job.stalled = number(&parts[2])?.unwrap_or(0);
    job.max_attempts = number(&parts[3])?;
    let headers = text(&parts[4]).map(|headers| serde_json::from_str::<serde_json::Value>(&headers)).transpose();
    job.header = headers.map_err(failed)?.and_then(|headers| Some(headers.get("origin")?.as_str()?.to_owned()));
    Ok(at)
}

fn all_settled(reply: &Reply, jobs: usize) -> Result<Vec<Settled>, String> {
    match reply {
        Reply::Array(words) => words.iter().map(|word| settled_as(word.text())).collect(),
        word => Ok(vec![settled_as(word.text())?; jobs]),
    }
}

fn settled_as(word: &str) -> Result<Settled, String> {
    match word {
        "OK" => Ok(Settled::Accepted),
        "DONE" => Ok(Settled::Repeated),
        "STALE" => Ok(Settled::Stale),
        "GONE" => Ok(Settled::Gone),
        "CANCELLED" => Ok(Settled::Cancelled),
        _ => Err(format!("a strange word: {word}")),
    }
}
