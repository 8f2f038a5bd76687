//! Random sequences of every verb, on a model of a queue and on a server, compared key by key after each verb.
//!
//! `PROPTEST_CASES=5000 cargo test -p emq-tests --test model` tries more sequences. A sequence that fails is shortened and
//! printed, and what it was made from is added to `tests/proptest-regressions/model.txt`; commit that, so that the
//! sequence is tried first from then on.

mod answer;
mod bench;
mod coverage;
mod expect;
mod facts;
mod generate;
mod invariants;
mod model;
mod play;
mod sequence;
mod tally;
mod verb;

use std::cell::RefCell;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use proptest::test_runner::{Config, FileFailurePersistence, TestCaseError, TestError, TestRunner};
use proptest_state_machine::ReferenceStateMachine as _;

use crate::bench::Bench;
use crate::generate::Machine;
use crate::model::Model;
use crate::tally::Tally;
use crate::verb::Verb;

/// How long sequences are: a short one hardly leaves the state where there is nothing to do.
const VERBS: std::ops::RangeInclusive<usize> = 20..=80;

/// How many sequences are tried, unless `PROPTEST_CASES` says so.
const CASES: u32 = 150;

/// From how many sequences on every outcome has to have come up.
const TELLING: u32 = 500;

/// How often a failing sequence is played to shorten it, unless `PROPTEST_MAX_SHRINK_ITERS` says so.
const SHRINKS: u32 = 2_000;

const REGRESSIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/proptest-regressions/model.txt");

fn config() -> Config {
    let mut config = Config {
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(REGRESSIONS))),
        ..Config::default()
    };
    if std::env::var_os("PROPTEST_MAX_SHRINK_ITERS").is_none() {
        config.max_shrink_iters = SHRINKS;
    }
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = CASES;
    }
    config
}

#[test]
fn a_server_does_what_the_model_does() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let bench = RefCell::new(runtime.block_on(Bench::start()));
    let tally = RefCell::new(Tally::default());
    let play = |model: &Model, verbs: &[Verb], seen: &dyn Fn()| {
        let mut bench = bench.borrow_mut();
        let mut tally = tally.borrow_mut();
        runtime.block_on(sequence::play(&mut bench, model.clone(), verbs, seen, &mut tally))
    };
    let config = config();
    let (cases, shrinks) = (config.cases, config.max_shrink_iters > 0);
    let mut runner = TestRunner::new(config);
    let outcome = runner.run(&Machine::sequential_strategy(VERBS), |(model, verbs, seen)| {
        // Tells what follows the verb that failed, and need not be tried.
        let seen = || {
            if let Some(seen) = &seen {
                seen.fetch_add(1, Ordering::SeqCst);
            }
        };
        play(&model, &verbs, &seen).map_err(TestCaseError::fail)
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(what, (model, mut verbs, _))) => {
            let mut what = what.to_string();
            if shrinks {
                let again = shortened(&mut verbs, |verbs| play(&model, verbs, &|| ()).err());
                what = again.unwrap_or_else(|| format!("{what}\nand not when it is tried again"));
            }
            panic!("{}{what}", listed(&verbs));
        }
        Err(TestError::Abort(why)) => panic!("the sequences couldn't be tried: {why}"),
    }
    let tally = tally.into_inner();
    if std::env::var_os("EMQ_TALLY").is_some() {
        eprintln!("{tally:#?}");
    }
    if cases >= TELLING {
        assert_eq!(tally.missing(), Vec::<&str>::new(), "never came up in {cases} sequences");
    }
}

/// Takes out, one by one, what the failure doesn't need: proptest tries that from the end only, and once. Answers what the
/// failure is then; nothing if there is none this time.
fn shortened(verbs: &mut Vec<Verb>, failure: impl Fn(&[Verb]) -> Option<String>) -> Option<String> {
    let mut what = failure(verbs)?;
    let mut at = 0;
    while at < verbs.len() {
        let taken = verbs.remove(at);
        match failure(verbs) {
            Some(still) => (what, at) = (still, 0),
            None => {
                verbs.insert(at, taken);
                at += 1;
            }
        }
    }
    Some(what)
}

/// One verb per line.
fn listed(verbs: &[Verb]) -> String {
    verbs.iter().enumerate().fold("a sequence that fails:\n".to_owned(), |mut text, (n, verb)| {
        let _ = writeln!(text, "{:4}. {verb:?}", n + 1);
        text
    })
}
