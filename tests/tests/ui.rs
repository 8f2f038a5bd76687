//! What the compiler says about a job that isn't one, and that it says nothing about one that is.
//!
//! A case in `ui/fail` is one mistake, and its `.stderr` is the message. Other compilers draw messages differently, so
//! there only the first line of each error, ours, is compared. After a change of the words run
//! `TRYBUILD=overwrite cargo test -p emq-tests --test ui` and read the difference.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The compiler that the `.stderr` files were written with.
const WRITTEN_WITH: &str = "rustc 1.95.";

/// Where [`write_messages`] finds the cases.
const CASES: &str = "EMQ_UI_CASES";

#[test]
fn a_sound_job_compiles_and_each_mistake_has_its_message() {
    let cases = trybuild::TestCases::new();
    cases.pass("ui/pass/*.rs");
    if compiler().starts_with(WRITTEN_WITH) {
        cases.compile_fail("ui/fail/*.rs");
    }
}

#[test]
fn each_mistake_has_its_sentence_on_any_compiler() {
    if compiler().starts_with(WRITTEN_WITH) {
        return;
    }
    let cases = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("ui");
    let _ = fs::remove_dir_all(&cases);
    fs::create_dir_all(&cases).unwrap();
    for case in files("ui/fail", "rs") {
        fs::copy(&case, cases.join(case.file_name().unwrap())).unwrap();
    }
    // In a process of its own, since that is where trybuild reads its mode.
    let writer = Command::new(env::current_exe().unwrap())
        .args(["--exact", "write_messages"])
        .env("TRYBUILD", "overwrite")
        .env(CASES, &cases)
        .output()
        .unwrap();
    assert!(writer.status.success(), "{}", String::from_utf8_lossy(&writer.stderr));
    let mut wrong = Vec::new();
    for expected in files("ui/fail", "stderr") {
        let found = cases.join(expected.file_name().unwrap());
        let (expected_lines, found_lines) = (sentences(&expected), sentences(&found));
        if expected_lines != found_lines {
            wrong.push(format!("{}:\n  {expected_lines:#?}\n  {found_lines:#?}", expected.display()));
        }
    }
    assert!(wrong.is_empty(), "expected, then found:\n{}", wrong.join("\n"));
}

/// A part of the test above, which alone knows the folder.
#[test]
fn write_messages() {
    let Some(cases) = env::var_os(CASES).map(PathBuf::from) else { return };
    trybuild::TestCases::new().compile_fail(cases.join("*.rs"));
}

#[test]
fn every_mistake_has_a_message() {
    for case in files("ui/fail", "rs") {
        assert!(case.with_extension("stderr").exists(), "{} has no .stderr", case.display());
    }
}

/// The first line of each error.
fn sentences(stderr: &Path) -> Vec<String> {
    let text = fs::read_to_string(stderr).unwrap_or_default();
    text.lines().filter(|line| line.starts_with("error")).map(str::to_owned).collect()
}

fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|found| found == extension)).collect();
    files.sort();
    assert!(!files.is_empty(), "no .{extension} in {folder}");
    files
}

fn compiler() -> String {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().expect("rustc runs");
    String::from_utf8(version.stdout).expect("a version is text")
}
