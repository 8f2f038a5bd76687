//! The fuzz targets where there is no fuzzer: each input of the corpus, and what chance makes of them.
//!
//! It doesn't look at what the code does with an input, as a fuzzer does, and so finds less. But it needs neither
//! nightly nor libFuzzer, and takes a second, so that every `cargo test` runs it.

use std::{env, fs, path::Path};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};

/// Another seed for the mutations, to look further.
const SEED: &str = "EMQ_FUZZ_SEED";

/// What code that reads numbers, texts and lists is likely to trip over.
const ODD: [&[u8]; 22] = [
    b"",
    b"\0",
    b"\n",
    b"\r\n",
    b" ",
    b"\"",
    b"'",
    b",",
    b"-1",
    b"0",
    b"4294967296",
    b"9007199254740993",
    b"9223372036854775807",
    b"18446744073709551616",
    b"1e300",
    b"nan",
    b"\xff",
    b"\xc3",
    "é".as_bytes(),
    "\u{202e}".as_bytes(),
    "🦀".as_bytes(),
    b"((((((((",
];

/// Runs a target on its corpus, and then on `mutations` inputs that are made of it.
///
/// # Panics
///
/// If the target does, and says then with which input; if it has no corpus.
pub fn run(target: &str, mutations: usize, body: impl Fn(&[u8])) {
    let corpus = corpus(target);
    for input in &corpus {
        tried(input, &body);
    }
    let seed = env::var(SEED).ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    eprintln!("{target}: {} inputs and {mutations} mutations, {SEED}={seed}", corpus.len());
    let mut rng = StdRng::seed_from_u64(seed);
    for _ in 0..mutations {
        tried(&mutated(&corpus, &mut rng), &body);
    }
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(target);
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = files.map(|file| file.expect("a file of the corpus").path()).collect();
    // For a seed to mean the same everywhere.
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", folder.display());
    paths.iter().map(|path| fs::read(path).expect("a file of the corpus")).collect()
}

fn tried(input: &[u8], body: &impl Fn(&[u8])) {
    struct Shown<'a>(&'a [u8]);
    impl Drop for Shown<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("the input was b\"{}\"", self.0.escape_ascii());
            }
        }
    }
    let _shown = Shown(input);
    body(input);
}

fn mutated(corpus: &[Vec<u8>], rng: &mut StdRng) -> Vec<u8> {
    let mut input = corpus.choose(rng).cloned().unwrap_or_default();
    for _ in 0..rng.random_range(1..=4) {
        let part = part_of(&input, rng);
        match rng.random_range(0..8) {
            0 if !input.is_empty() => {
                let at = rng.random_range(0..input.len());
                input[at] ^= 1 << rng.random_range(0..8);
            }
            1 => drop(input.splice(part, [rng.random()])),
            2 => drop(input.drain(part)),
            3 => {
                let copy = input[part.clone()].to_vec();
                input.splice(part.end..part.end, copy);
            }
            4 => {
                let other = corpus.choose(rng).map(Vec::as_slice).unwrap_or_default();
                let theirs = other[part_of(other, rng)].to_vec();
                input.splice(part, theirs);
            }
            5 => with_lines(&mut input, |lines| {
                let (from, to) = (rng.random_range(0..lines.len()), rng.random_range(0..lines.len()));
                lines.swap(from, to);
            }),
            6 => with_lines(&mut input, |lines| {
                let at = rng.random_range(0..lines.len());
                lines[at] = ODD.choose(rng).map(|odd| odd.to_vec()).unwrap_or_default();
            }),
            _ => drop(input.splice(part, ODD.choose(rng).copied().unwrap_or_default().iter().copied())),
        }
    }
    input
}

/// A short part of an input, at times none.
fn part_of(input: &[u8], rng: &mut StdRng) -> std::ops::Range<usize> {
    let from = rng.random_range(0..=input.len());
    from..rng.random_range(from..=input.len().min(from + 16))
}

fn with_lines(input: &mut Vec<u8>, change: impl FnOnce(&mut [Vec<u8>])) {
    let mut lines: Vec<_> = input.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    change(&mut lines);
    *input = lines.join(&b'\n');
}
