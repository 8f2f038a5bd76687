//! Every script has a verb that is drawn, so that the model says what it has to do.

use std::collections::BTreeSet;

use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use proptest_state_machine::ReferenceStateMachine as _;

use crate::generate::{MOST_PLAIN, Machine};
use crate::verb::{Repeat, Settling, Spec, Verb};

/// Scripts that no verb calls, and why.
const WITHOUT: &[(&str, &str)] = &[
    ("lease_node", "it gives a process its number, and touches no queue"),
    ("renew_node", "as lease_node"),
    ("return_node", "as lease_node"),
];

/// How many sequences are drawn, to see each verb.
const SEQUENCES: usize = 60;

/// The scripts that a verb calls.
fn scripts(verb: &Verb) -> &'static [&'static str] {
    match verb {
        Verb::Enqueue(spec) if spec.is_plain() => &["admit"],
        Verb::EnqueueMany(specs) if !specs.is_empty() && specs.iter().all(Spec::is_plain) => &["admit"],
        Verb::Enqueue(_) | Verb::EnqueueMany(_) => &["enqueue"],
        Verb::Claim { max, .. } if *max <= MOST_PLAIN => &["exchange_plain", "claim"],
        Verb::Claim { .. } => &["claim"],
        Verb::Complete(_) | Verb::CompleteMany(_) => &["complete"],
        Verb::Exchange { .. } => &["exchange_plain", "exchange"],
        Verb::Progress { .. } => &["progress"],
        Verb::Log { .. } => &["log"],
        Verb::Logs(_) => &["logs"],
        Verb::Settle { how, .. } => match how {
            Settling::Retry { .. } => &["retry"],
            Settling::Bury { .. } => &["bury"],
            Settling::Snooze { .. } => &["snooze"],
            Settling::Hold { .. } => &["hold"],
            Settling::Release => &["release"],
            Settling::Cancel => &["cancel"],
        },
        Verb::Extend { .. } => &["extend"],
        Verb::Promote => &["promote"],
        Verb::Reap { .. } => &["reap"],
        Verb::Beat { .. } => &["beat"],
        Verb::Revive(_) => &["revive"],
        Verb::Remove(_) => &["remove"],
        Verb::Cancel(_) => &["cancel"],
        Verb::Update { .. } => &["update"],
        Verb::Trim { .. } => &["trim"],
        Verb::Counts => &["counts"],
        Verb::Look(_) => &["state", "get"],
        Verb::List { .. } => &["list"],
        Verb::Pause(_) => &["pause"],
        Verb::Resume(_) => &["resume"],
        Verb::Tune { .. } => &["tune"],
        Verb::Reassign(..) => &["reassign"],
        Verb::DrainLane(_) => &["drain_lane"],
        Verb::LookAtLane(_) => &["lane", "list"],
        Verb::ListLanes => &["list_lanes"],
        Verb::Partitions(_) => &["partitions"],
        Verb::Limits => &["limits"],
        Verb::Purge { .. } => &["purge"],
        Verb::Obliterate { .. } => &["obliterate"],
        Verb::Repeat(repeat) => match repeat {
            Repeat::Upsert { .. } => &["upsert_recurring"],
            Repeat::Pause(_) => &["pause_recurring"],
            Repeat::Resume { .. } => &["resume_recurring"],
            Repeat::Remove { .. } => &["remove_recurring"],
            Repeat::Fire(_) => &["fire"],
            Repeat::Due { .. } => &["due_recurring"],
            Repeat::Get(_) => &["read_recurring"],
            Repeat::List { .. } => &["list_recurring"],
        },
        Verb::Leave { .. } | Verb::TakeMarker | Verb::Advance(_) => &[],
    }
}

#[test]
fn each_script_has_a_verb_or_a_reason_to_have_none() {
    let mut runner = TestRunner::deterministic();
    let sequences = Machine::sequential_strategy(100..=100);
    let mut called = BTreeSet::new();
    for _ in 0..SEQUENCES {
        let (_, verbs, _) = sequences.new_tree(&mut runner).expect("a sequence").current();
        called.extend(verbs.iter().flat_map(scripts));
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../lua");
    let files = std::fs::read_dir(folder).expect("the scripts").map(|file| file.expect("a file").path());
    let scripts = files.filter(|file| file.extension().is_some_and(|extension| extension == "lua"));
    let scripts: BTreeSet<String> = scripts.filter_map(|file| Some(file.file_stem()?.to_str()?.to_owned())).collect();
    let without: BTreeSet<&str> = WITHOUT.iter().map(|(name, _)| *name).collect();
    for name in &scripts {
        let has_verb = called.contains(name.as_str());
        assert!(has_verb != without.contains(name.as_str()), "{name}.lua: a verb calls it: {has_verb}");
    }
    let strange: Vec<_> = called.union(&without).filter(|name| !scripts.contains(**name)).collect();
    assert!(strange.is_empty(), "there are no such scripts: {strange:?}");
}
