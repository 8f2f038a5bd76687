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
            (Answer::None, None)
        } else {
            let batch = claimer.claim(max).await.map_err(failed)?;
            none_dropped(batch.dropped)?;
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
        self.request += u64::from(!self.owed);
        self.owed = lost;
        let worker = self.names[EXCHANGER].0.clone();
        let mut args = vec![max.to_string(), lease.to_string(), worker, self.request.to_string()];
        args.extend(self.told(done));
        let reply = self.call(&Script::read("exchange"), "", args).await;
        if lost && !reply.is_error() {
            return Ok((Answer::None, None));
        }
        let Reply::Array(items) = reply else { return Err(failed(reply)) };
        let [settled, _request, more, next_event, dropped, expired, jobs @ ..] = &items[..] else {
            return Err(format!("a short answer: {items:?}"));
        };
        none_dropped(dropped.int().unsigned_abs())?;
        let settled = settled.items().iter().map(|word| settled_as(word.text())).collect::<Result<_, _>>()?;
        let jobs: Result<_, _> = jobs.iter().map(|job| self.handed(job.items())).collect();
        let claimed = Answer::Claimed { jobs: jobs?, more: more.int() == 1, expired: expired.int() as usize };
        let wait = u64::try_from(next_event.int()).ok().map(Duration::from_millis);
        Ok((Answer::Exchanged(settled, Box::new(claimed)), Some(wait)))
    }

    pub(super) async fn complete_many(&mut self, done: &[Done]) -> Result<Answer, String> {
        let args = self.told(done);
        let reply = self.call(&Script::read("complete"), "", args).await;
        let Reply::Array(words) = reply else { return Err(failed(reply)) };
        let settled: Result<_, _> = words.iter().map(|word| settled_as(word.text())).collect();
        Ok(Answer::Completed(settled?))
    }

    /// What the scripts are told of jobs that are done.
    fn told(&self, done: &[Done]) -> Vec<String> {
        let one = |Done { right, retention, result }: &Done| {
            let retention = retention.max(&LEAST_RETENTION).to_string();
            let result = result.map(|result| result.to_string()).unwrap_or_default();
            [self.id(right.slot).to_string(), right.token.to_string(), retention, result]
        };
        done.iter().flat_map(one).collect()
    }

    /// A job as the script hands it out: what comes behind the name is left out if it is nothing.
    fn handed(&self, parts: &[Reply]) -> Result<Handed, String> {
        let text = |at: usize| match parts.get(at) {
            None | Some(Reply::Nil) => None,
            Some(part) => Some(part.text().to_owned()),
        };
        let number = |at: usize| text(at).map_or(Ok(0), |text| text.parse::<u32>()).map_err(failed);
        let id = text(0).unwrap_or_default().parse().map_err(failed)?;
        let token = text(1).unwrap_or_default().parse().map_err(failed)?;
        let headers = text(7).map(|headers| serde_json::from_str::<serde_json::Value>(&headers)).transpose();
        let origin = headers.map_err(failed)?.and_then(|headers| Some(headers.get("origin")?.as_str()?.to_owned()));
        Ok(Handed {
            right: Right { slot: self.slot(id)?, token },
            name: text(3),
            payload: text(2).unwrap_or_default(),
            failures: number(4)?,
            stalled: number(5)?,
            max_attempts: text(6).map(|max| max.parse().map_err(failed)).transpose()?,
            header: origin,
            lane: text(8),
        })
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
