//! Holds every script against its header, its Rust caller, the keys and the documents. No server is needed.

mod body;
mod documents;
mod header;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use self::header::Header;
use super::{keys, keys::Keys, script::Script};
use crate::job::{JobId, QueueName};

/// A script as Rust knows it, and as it stands in `lua/`.
struct Known {
    name: &'static str,
    /// The file in this folder that calls it.
    caller: &'static str,
    uses: &'static [&'static str],
    keys: usize,
    args: usize,
    composed: &'static str,
    header: Header,
    code: String,
}

fn known<const K: usize, const A: usize>(caller: &'static str, script: &'static Script<K, A>) -> Known {
    let text = script.text();
    let source = read(&format!("lua/{}.lua", text.name));
    let (header, code) = (Header::read(&source), body::code(&source));
    Known { name: text.name, caller, uses: script.uses, keys: K, args: A, composed: text.source, header, code }
}

fn scripts() -> Vec<Known> {
    macro_rules! of {
        ($($module:ident),+) => {
            vec![$(known(stringify!($module), &super::$module::SCRIPT)),+]
        };
    }
    let mut scripts = of!(
        beat, bury, cancel, claim, complete, counts, drain_lane, enqueue, exchange, extend, fire, get, hold, lane,
        limits, list, list_lanes, log, logs, obliterate, partitions, pause, progress, promote, purge, reap, reassign,
        release, remove, resume, retry, revive, snooze, state, trim, tune, update
    );
    scripts.push(known("enqueue", &super::enqueue::ADMIT));
    scripts.push(known("exchange_plain", &super::exchange_plain::SCRIPT));
    scripts.push(known("node", &super::node::LEASE));
    scripts.push(known("node", &super::node::RENEW));
    scripts.push(known("node", &super::node::RETURN));
    scripts.push(known("recurring", &super::recurring::UPSERT));
    scripts.push(known("recurring", &super::recurring::READ));
    scripts.push(known("recurring", &super::recurring::LIST));
    scripts.push(known("recurring", &super::recurring::DUE));
    scripts.push(known("recurring", &super::recurring::PAUSE));
    scripts.push(known("recurring", &super::recurring::RESUME));
    scripts.push(known("recurring", &super::recurring::REMOVE));
    scripts
}

fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &str) -> String {
    let path = folder(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The code of a Rust file of this folder, without its comments and tests.
fn caller(name: &str) -> String {
    let text = read(&format!("src/store/{name}.rs"));
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The code of each file in `lua/lib`.
fn libs() -> BTreeMap<String, String> {
    let names = lua_files("lua/lib").into_iter();
    names.map(|name| (name.clone(), body::code(&read(&format!("lua/lib/{name}.lua"))))).collect()
}

fn lua_files(path: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(folder(path)).expect("the folder is there");
    let names = entries.map(|entry| entry.expect("it can be listed").file_name().into_string().expect("plain names"));
    names.filter_map(|name| name.strip_suffix(".lua").map(str::to_owned)).collect()
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

#[test]
fn every_file_is_a_script_that_rust_calls_and_the_other_way_round() {
    let in_rust: BTreeSet<_> = scripts().iter().map(|script| script.name.to_owned()).collect();
    assert_eq!(in_rust, lua_files("lua"));
    for script in scripts() {
        assert_eq!(script.header.verb, script.name, "the header names another verb than the file");
        assert!(caller(script.caller).contains(&format!("script!(\"{}\"", script.name)), "{}", script.name);
    }
    let callers: BTreeSet<_> = scripts().iter().map(|script| script.caller).collect();
    for file in fs::read_dir(folder("src/store")).expect("the folder is there") {
        let file = file.expect("it can be listed").file_name().into_string().expect("plain names");
        let Some(file) = file.strip_suffix(".rs").filter(|file| !["contract", "script"].contains(file)) else {
            continue;
        };
        assert_eq!(caller(file).contains("script!(\""), callers.contains(file), "{file}.rs calls a script");
    }
}

#[test]
fn header_body_and_rust_agree_on_the_keys() {
    for Known { name, header, code, keys, .. } in scripts() {
        let names: Vec<_> = header.keys.iter().map(|key| key.name.clone()).collect();
        assert_eq!(names.len(), keys, "{name}: keys in the header, and in Rust");
        match body::locals(&code, "unpack(KEYS)") {
            Some(locals) => assert_eq!(locals, names, "{name}: keys that the body names, and the header"),
            None => {
                let numbers: BTreeSet<_> = (1..=keys).map(|number| number.to_string()).collect();
                assert_eq!(body::indices(&code, "KEYS"), numbers, "{name}: keys that the body uses");
            }
        }
    }
}

#[test]
fn header_body_and_rust_agree_on_the_arguments() {
    for Known { name, header, code, args, .. } in scripts() {
        assert_eq!(header.args.len(), args, "{name}: arguments in the header, and in Rust");
        let (fixed, others): (BTreeSet<_>, BTreeSet<_>) =
            body::indices(&code, "ARGV").into_iter().partition(|index| index.parse::<usize>().is_ok());
        let numbers: BTreeSet<_> = (1..=args).map(|number| number.to_string()).collect();
        assert_eq!(fixed, numbers, "{name}: arguments that the body uses");
        let tail = body::passed_from(&code);
        assert!(tail.is_none_or(|from| from == args + 1), "{name}: passes on from ARGV[{tail:?}]");
        assert_eq!(
            !others.is_empty() || tail.is_some(),
            header.tail,
            "{name}: a variable number of arguments, {others:?}"
        );
        for (names, values) in body::argument_locals(&code) {
            for (local, value) in names.iter().zip(&values) {
                let indices = body::indices(value, "ARGV");
                let index = indices.first().and_then(|index| index.parse::<usize>().ok());
                let documented = index.and_then(|index| header.args.get(index - 1));
                assert!(documented.is_none_or(|arg| arg == local), "{name}: {value} is {documented:?} in the header");
            }
        }
    }
}

#[test]
fn the_keys_stand_in_rust_in_the_order_of_the_header() {
    // The keys of these are chosen by their callers.
    for Known { name, header, .. } in scripts().into_iter().filter(|script| !["list", "purge"].contains(&script.name)) {
        let caller = caller(scripts().iter().find(|script| script.name == name).map_or("", |script| script.caller));
        if caller.matches("script!(").count() > 1 {
            continue;
        }
        let list = caller.split(".with").nth(1).and_then(|rest| rest.split_once('['));
        let (list, _) = list.and_then(|(_, rest)| rest.split_once(']')).expect("the call lists its keys");
        let strip = |key: &str| key.trim_start_matches("self.").trim_start_matches("keys.").replace(".clone()", "");
        let passed: Vec<_> = body::split(list).iter().map(|key| strip(key)).collect();
        let expected = header.keys.iter().map(|key| rust_name(&key.name, &key.pattern)).collect::<Vec<_>>();
        assert_eq!(passed, expected, "{name}");
    }
}

/// How Rust writes a key that the header calls so.
fn rust_name(name: &str, pattern: &str) -> String {
    match (name, pattern.rsplit(':').next().unwrap_or_default()) {
        ("rows", _) => "rows".into(),
        ("keys", _) => "deduplication".into(),
        (plain @ ("root" | "recurring" | "records"), _) => plain.into(),
        (_, "<id>") => "row(id)".into(),
        (_, last @ ("logs" | "result")) => format!("{last}(id)"),
        (_, last) => last.into(),
    }
}

#[test]
fn the_patterns_in_the_headers_are_those_of_the_keys() {
    let mut used = BTreeSet::new();
    for script in scripts() {
        used.extend(script.header.keys.into_iter().map(|key| key.pattern));
    }
    assert_eq!(used, patterns());
}

/// Every key that `keys.rs` can spell for scripts, as a pattern.
fn patterns() -> BTreeSet<String> {
    let id: JobId = "JOB0000000Hb84".parse().expect("an id");
    let keys = Keys::of(&QueueName::new("q").expect("a name"));
    let Keys {
        pending,
        active,
        schedule,
        dead,
        done,
        marker,
        meta,
        claims,
        completed,
        failed,
        events,
        control,
        recurring,
        ..
    } = &keys;
    let whole =
        [pending, active, schedule, dead, done, marker, meta, claims, completed, failed, events, control, recurring];
    let text = |key: &fred::types::Key| key.as_str().expect("a key is text").to_owned();
    let mut patterns: BTreeSet<_> = whole.map(text).into();
    patterns.extend([keys.row(id), keys.logs(id), keys.result(id)].map(|key| text(&key).replace(id.as_str(), "<id>")));
    patterns.insert(text(&keys.root) + "<lanes>");
    patterns.insert(text(&keys.rows) + "<id>");
    patterns.insert(text(&keys.deduplication) + "<key>");
    patterns.insert(text(&keys.records) + "<name>");
    assert_eq!(text(&keys.record("<name>")), text(&keys.records) + "<name>");
    patterns.insert(text(&keys::node(7)).replace('7', "<n>"));
    patterns.insert(keys::NODES.to_owned() + "<n>");
    patterns
}

#[test]
fn the_snippets_in_the_header_are_those_that_rust_puts_in_front() {
    let libs = libs();
    for Known { name, header, uses, composed, .. } in scripts() {
        assert_eq!(header.uses, owned(uses), "{name}");
        let parts = uses.iter().map(|lib| format!("lua/lib/{lib}.lua")).chain([format!("lua/{name}.lua")]);
        assert_eq!(composed, parts.map(|path| read(&path)).collect::<String>(), "{name}");
        assert!(uses.iter().all(|lib| libs.contains_key(*lib)), "{name}");
    }
}

#[test]
fn a_script_uses_every_snippet_it_has_and_none_that_it_has_not() {
    let libs = libs();
    let mut unused: BTreeSet<_> = libs.keys().cloned().collect();
    for Known { name, header, code, .. } in scripts() {
        for (lib, lib_code) in &libs {
            let used = header.uses.iter().filter(|used| *used != lib).map(|used| libs[used].as_str());
            let all = used.chain([code.as_str()]).collect::<Vec<_>>().join("\n");
            let mut functions = body::functions(lib_code).into_iter();
            let mentioned = functions.any(|(function, _)| body::mentions(&all, &function));
            assert_eq!(mentioned, header.uses.contains(lib), "{name} and lib/{lib}");
            unused.retain(|unused| unused != lib || !mentioned);
        }
    }
    assert!(unused.is_empty(), "nobody uses {unused:?}");
}

#[test]
fn the_replies_in_the_header_are_those_of_the_body() {
    let libs = libs();
    for Known { name, header, code, .. } in scripts() {
        let mut answered = body::replies(&code);
        header.uses.iter().for_each(|lib| answered.extend(body::replies(&libs[lib])));
        let listed: BTreeSet<_> = header.replies.into_iter().map(|reply| reply.word).collect();
        assert_eq!(answered, listed, "{name}: words that the body answers, and the header");
    }
}

#[test]
fn rust_knows_every_reply_and_no_other() {
    let mut files: BTreeMap<&str, (BTreeSet<String>, BTreeSet<String>)> = BTreeMap::new();
    for script in scripts() {
        let (words, errors) = files.entry(script.caller).or_default();
        for reply in script.header.replies {
            if reply.is_error {
                errors.insert(reply.word)
            } else {
                words.insert(reply.word)
            };
        }
    }
    for (file, (words, errors)) in files {
        let mut code = caller(file);
        if code.contains("Settled") {
            code += &caller("settled");
        }
        // The names of commands aren't replies, and the server's own errors aren't the script's.
        let code = code.replace("new_static(\"", "").replace(".command(\"", "").replace("is_code(\"OOM\")", "");
        let literals = code.split('"').skip(1).step_by(2).filter(|word| body::is_reply(word));
        let read: BTreeSet<_> = literals.map(str::to_owned).collect();
        assert!(words.is_subset(&read), "{file}.rs reads {read:?}, and the scripts answer {words:?}");
        // What isn't read here is an error of the server for the caller.
        assert!(read.is_subset(&(&words | &errors)), "{file}.rs reads {read:?} of {words:?} and {errors:?}");
    }
}
