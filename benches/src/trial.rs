//! Trials, run in turn.

use std::fmt;

use emq::BoxError;
use futures_util::future::BoxFuture;

use crate::{
    meter::Sample,
    number::{median, shown},
    settings::Settings,
    table::Table,
};

type Run<'a> = Box<dyn Fn() -> BoxFuture<'a, Result<Sample, BoxError>> + Send + Sync + 'a>;

/// Something to measure, again and again.
pub(crate) struct Trial<'a> {
    label: String,
    run: Run<'a>,
}

impl fmt::Debug for Trial<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Trial").field(&self.label).finish()
    }
}

impl<'a> Trial<'a> {
    pub(crate) fn new<F>(label: impl Into<String>, run: impl Fn() -> F + Send + Sync + 'a) -> Self
    where
        F: Future<Output = Result<Sample, BoxError>> + Send + 'a,
    {
        Self { label: label.into(), run: Box::new(move || Box::pin(run())) }
    }
}

/// A trial's samples.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) label: String,
    pub(crate) samples: Vec<Sample>,
}

impl Measured {
    pub(crate) fn median(&self, of: impl Fn(&Sample) -> f64) -> f64 {
        median(self.samples.iter().map(of))
    }

    fn spread(&self, of: impl Fn(&Sample) -> f64) -> (f64, f64) {
        let values = self.samples.iter().map(of);
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
    }
}

/// Runs each trial as often as the settings say, in turn: A B C A B C.
///
/// One that fails is told of and left out; the others go on.
pub(crate) async fn in_turn(settings: &Settings, trials: &[Trial<'_>]) -> Vec<Measured> {
    let mut measured: Vec<Measured> =
        trials.iter().map(|trial| Measured { label: trial.label.clone(), samples: Vec::new() }).collect();
    for round in 1..=settings.rounds {
        for (trial, measured) in trials.iter().zip(&mut measured) {
            match (trial.run)().await {
                Ok(sample) => {
                    let rate = shown(sample.per_second());
                    eprintln!("bench: round {round} of {}, {}: {rate}/s", settings.rounds, trial.label);
                    measured.samples.push(sample);
                }
                Err(error) => eprintln!("bench: round {round}, {}: {error}", trial.label),
            }
        }
    }
    measured
}

/// A table of trials; rates are compared with that of the first.
pub(crate) fn compared(measured: &[Measured]) -> Table {
    let mut table = Table::new(&[
        "",
        "jobs/s",
        "from–to",
        "× first",
        "server µs/job",
        "client µs/job",
        "calls/job",
        "commands/job",
        "others",
    ]);
    let first = measured.first().map_or(f64::NAN, |first| first.median(Sample::per_second));
    for trial in measured {
        let rate = trial.median(Sample::per_second);
        let (low, high) = trial.spread(Sample::per_second);
        table.row([
            trial.label.clone(),
            shown(rate),
            format!("{}–{}", shown(low), shown(high)),
            shown(rate / first),
            shown(trial.median(Sample::server_us)),
            shown(trial.median(Sample::client_us)),
            shown(trial.median(|sample| sample.each(sample.work.calls() as f64))),
            shown(trial.median(|sample| sample.each(sample.work.all() as f64))),
            shown(trial.median(|sample| sample.others)),
        ]);
    }
    table
}
