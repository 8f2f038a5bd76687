//! What the scripts may do to the server, and what the documents say of it.

use std::collections::BTreeSet;

use super::{Known, body, caller, libs, patterns, read, scripts};

/// Commands whose cost grows with a key, or with all keys, whatever is asked for.
const UNBOUNDED: [&str; 12] =
    ["KEYS", "SCAN", "SMEMBERS", "HGETALL", "HKEYS", "HVALS", "SORT", "LREM", "LPOS", "ZUNION", "FLUSHDB", "FLUSHALL"];

/// Scripts that carry out several transitions in one call.
const COMPOSED: [&str; 2] = ["beat", "exchange"];

/// Scripts that only look.
const READERS: [&str; 8] = ["counts", "get", "lane", "limits", "list", "list_lanes", "logs", "state"];

/// Scripts that change what a queue or a lane may do, and move no job.
const SETTERS: [&str; 4] = ["partitions", "pause", "resume", "tune"];

/// The code of each script and snippet, under its name.
fn codes() -> Vec<(String, String)> {
    let scripts = scripts().into_iter().map(|script| (script.name.to_owned(), script.code));
    scripts.chain(libs()).collect()
}

#[test]
fn the_servers_clock_is_the_only_one() {
    for Known { name, header, .. } in scripts() {
        let clocks = ["now", "time", "clock", "timestamp", "deadline", "until", "at"];
        assert!(header.args.iter().all(|arg| !clocks.contains(&arg.as_str())), "{name}: {:?}", header.args);
    }
    for (name, code) in codes() {
        let calls = body::calls(&code);
        assert_eq!(calls.iter().any(|call| call.command == "TIME"), name == "clock", "{name}");
    }
}

#[test]
fn a_score_that_is_a_time_is_made_from_the_servers_clock() {
    let timed = ["active", "schedule", "dead", "done"];
    for Known { name, header, code, .. } in scripts() {
        let calls = body::calls(&code);
        let scored =
            calls.iter().any(|call| call.command == "ZADD" && call.args.first().is_some_and(|k| timed.contains(&&**k)));
        assert!(!scored || header.uses.iter().any(|lib| lib == "clock"), "{name} has no clock");
    }
}

#[test]
fn no_call_is_without_bounds() {
    for (name, code) in codes() {
        for call in body::calls(&code) {
            let allowed = matches!(
                (name.as_str(), call.command.as_str()),
                ("get", "HGETALL") | ("lanes", "LREM" | "LPOS") | ("trim", "LPOS")
            );
            assert!(allowed || !UNBOUNDED.contains(&call.command.as_str()), "{name}: {call:?}");
            let last = call.command != "HINCRBY" && call.args.iter().any(|arg| arg == "-1" || arg == "'-1'");
            assert!(!last, "{name} reads to the end: {call:?}");
            let bounded = call.command != "ZRANGEBYSCORE" || call.args.iter().any(|arg| arg == "'LIMIT'");
            assert!(bounded, "{name}: {call:?}");
        }
    }
}

#[test]
fn every_key_that_is_touched_is_declared_or_begins_with_one_that_is() {
    for Known { name, header, code, .. } in scripts() {
        let mut rooted: BTreeSet<_> = header.keys.iter().map(|key| key.name.clone()).collect();
        rooted.insert("KEYS".into());
        add_derived(&code, &mut rooted);
        rooted.extend(is_a_place(&code, "line").then(|| "line".to_owned()));
        check_roots(name, &code, &rooted);
    }
    for (name, code) in libs() {
        let params: BTreeSet<_> = body::functions(&code).into_iter().flat_map(|(_, params)| params).collect();
        let mut rooted: BTreeSet<_> =
            params.into_iter().map(|param| if param == "..." { "key".into() } else { param }).collect();
        add_derived(&code, &mut rooted);
        // What answers with a key behind the root it is given.
        rooted.insert("line_of".to_owned());
        rooted.extend(["line", "place"].map(str::to_owned).into_iter().filter(|local| is_a_place(&code, local)));
        check_roots(&name, &code, &rooted);
    }
}

/// Adds the names for a key that is declared with something appended, and for one key of several.
fn add_derived(code: &str, rooted: &mut BTreeSet<String>) {
    let is_rooted = |key: &str, rooted: &BTreeSet<String>| root(key).is_some_and(|first| rooted.contains(first));
    for line in code.lines().map(str::trim) {
        let derived = line.strip_prefix("local ").and_then(|rest| rest.split_once(" = "));
        if let Some((local, value)) = derived.filter(|(_, value)| value.contains(" .. ") || value.starts_with("queue."))
            && is_rooted(value, rooted)
        {
            rooted.insert(local.to_owned());
        }
        if let Some((local, list)) = line.strip_prefix("for ").and_then(|rest| rest.split_once(" in ipairs({ ")) {
            let list = list.split(" })").next().unwrap_or_default();
            if body::split(list).iter().all(|key| is_rooted(key, rooted)) {
                rooted.extend(local.split(", ").nth(1).map(str::to_owned));
            }
        }
    }
}

fn check_roots(name: &str, code: &str, rooted: &BTreeSet<String>) {
    for call in body::calls(code).iter().filter(|call| call.command != "TIME") {
        let key = call.args.first().expect("a command has a key");
        if key.ends_with(".place") && is_a_place(code, "place") {
            continue;
        }
        let is_declared = |key: &str| root(key).is_some_and(|first| rooted.contains(first));
        // One key of a list, or all of them at once.
        let list = key.strip_prefix("unpack(").and_then(|list| list.strip_suffix(')'));
        if let Some(list) = list.or_else(|| Some(key.split_once('[')?.0)).filter(|_| !is_declared(key)) {
            let open = format!("{list}[");
            let put = code.lines().filter_map(|line| line.trim().strip_prefix(&open)?.split_once("] = "));
            let mut keys = put.map(|(_, key)| key).peekable();
            assert!(keys.peek().is_some(), "{name}: {call:?} takes keys from nowhere");
            assert!(keys.all(is_declared), "{name}: {call:?}");
            continue;
        }
        assert!(is_declared(key), "{name}: {call:?} touches what isn't declared");
    }
}

/// Whether what is called so is always a waiting place: the flat line, or that of a lane, which stands behind `root`.
fn is_a_place(code: &str, name: &str) -> bool {
    let assigned = format!("{name} = ");
    let set = code.split(&assigned).skip(1);
    set.map(|value| root(value).unwrap_or_default())
        .all(|value| ["pending", "line_of", "waiting_place", "root"].contains(&value))
}

/// The name that an expression begins with.
fn root(expression: &str) -> Option<&str> {
    expression.split(|c: char| !c.is_alphanumeric() && c != '_').next().filter(|name| !name.is_empty())
}

#[test]
fn every_transition_is_an_arrow_in_the_lifecycle_and_a_row_of_its_table() {
    let text = read("docs/lifecycle.md");
    let (_, rest) = text.split_once("```mermaid\n").expect("a diagram");
    let (diagram, table) = rest.split_once("```").expect("the diagram ends");
    let labels = diagram.lines().filter_map(|line| line.split_once(" : ").filter(|(arrow, _)| arrow.contains("-->")));
    let arrows: BTreeSet<_> = labels.flat_map(|(_, label)| label.split(", ")).map(str::trim).collect();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let rows: BTreeSet<_> = rows.map(|(verb, _)| verb).collect();
    let known = scripts();
    let transitions = known.iter().map(|script| script.name);
    let others = [&READERS[..], &SETTERS, &COMPOSED].concat();
    let moves: BTreeSet<_> = transitions
        .filter(|name| !others.contains(name) && !name.ends_with("_node") && !name.ends_with("_recurring"))
        .collect();
    assert_eq!(arrows, moves, "the arrows of the diagram, and the scripts that write");
    assert_eq!(rows, moves, "the rows of the table, and the scripts that write");
}

#[test]
fn every_key_is_in_the_document_of_the_keys() {
    let text = read("docs/keys.md");
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let documented: BTreeSet<_> = rows.map(|(pattern, _)| pattern.to_owned()).collect();
    let mut known = patterns();
    assert!(known.remove(LANES));
    known.extend(lane_keys());
    known.insert(super::keys::VERSION.into());
    assert_eq!(documented, known);
}

/// What a header writes for the keys of the lanes.
const LANES: &str = "emq:{q}:<lanes>";

/// The keys that the snippets make behind `root`.
fn lane_keys() -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    for (_, code) in codes() {
        for rest in code.split("root .. '").skip(1) {
            let (part, rest) = rest.split_once('\'').expect("a literal ends");
            let name = [(" .. lane", "<group>"), (" .. id", "<id>")].into_iter();
            let named = name.filter_map(|(name, shown)| Some((shown, rest.strip_prefix(name)?))).next();
            let of_part = match part {
                "de:" | "next:" => "<key>",
                "job:" | "merged:" => "<id>",
                _ => "",
            };
            let (shown, rest) = named.unwrap_or((of_part, rest));
            let tail = rest.strip_prefix(" .. '").and_then(|tail| tail.split_once('\'')).map_or("", |(tail, _)| tail);
            keys.insert(format!("emq:{{q}}:{part}{shown}{tail}"));
        }
    }
    keys.remove("emq:{q}:meta");
    keys
}

#[test]
fn the_access_list_in_the_document_names_every_command() {
    let text = read("docs/keys.md");
    let rule = text.lines().find(|line| line.starts_with("ACL SETUSER ")).expect("a rule to copy");
    let allowed: BTreeSet<_> = rule.split(' ').filter_map(|word| word.strip_prefix('+')).map(str::to_owned).collect();
    let mut needed = BTreeSet::new();
    for (_, code) in codes() {
        needed.extend(body::calls(&code).into_iter().map(|call| call.command.to_lowercase()));
    }
    for file in ["claim", "durable", "quiet", "server", "wait"] {
        let code = caller(file);
        for start in ["new_static(\"", ".command(\"", "command(client, \"", "command_at(\"", "that_blocks(\""] {
            let names = code.split(start).skip(1).filter_map(|rest| rest.split('"').next());
            needed.extend(names.map(str::to_lowercase));
        }
    }
    // Asked for, and not needed.
    needed.remove("config");
    // The other one is named beside the rule: a server that doesn't know it would refuse the rule.
    let [wait, waitaof] = super::super::durable::WAITS.map(str::to_lowercase);
    needed.insert(wait);
    assert!(text.contains(&format!("`+{waitaof}`")));
    // What the client library itself sends.
    needed
        .extend(["eval", "evalsha", "hello", "auth", "ping", "client", "subscribe", "unsubscribe"].map(str::to_owned));
    assert_eq!(allowed, needed);
}
