//! The code of a script, read as text: its calls of the server, its words, its functions.

use std::collections::BTreeSet;

/// The code without the comments.
pub(super) fn code(source: &str) -> String {
    let code = source.lines().map(|line| line.split("--").next().unwrap_or_default().trim_end());
    code.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

/// One call of the server: the command, and its arguments as they are written.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) command: String,
    pub(super) args: Vec<String>,
}

/// Every `redis.call(..)` and `redis.pcall(..)` in the code.
pub(super) fn calls(code: &str) -> Vec<Call> {
    spans(code)
        .into_iter()
        .map(|(_, inside, end)| {
            let mut args = split(&code[inside..end]).into_iter();
            let command = args.next().unwrap_or_default().trim_matches('\'').to_owned();
            Call { command, args: args.collect() }
        })
        .collect()
}

/// The words in capitals that the code can answer: what begins a literal outside of the calls.
pub(super) fn replies(code: &str) -> BTreeSet<String> {
    let mut outside = String::new();
    let mut from = 0;
    for (start, _, end) in spans(code) {
        if start >= from {
            outside.push_str(&code[from..start]);
            from = end;
        }
    }
    outside.push_str(&code[from..]);
    let parts: Vec<_> = outside.split('\'').collect();
    let literals = parts.chunks_exact(2).filter(|pair| !is_compared(pair[0])).map(|pair| pair[1]);
    literals.filter_map(|literal| literal.split(' ').next()).filter(|word| is_reply(word)).map(str::to_owned).collect()
}

/// Whether the literal behind this code is what something is compared with, and so no answer.
fn is_compared(before: &str) -> bool {
    let before = before.trim_end();
    before.ends_with("==") || before.ends_with("~=")
}

/// Whether a word is one that scripts answer with.
pub(super) fn is_reply(word: &str) -> bool {
    word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// The functions that the code defines, with their parameters.
pub(super) fn functions(code: &str) -> Vec<(String, Vec<String>)> {
    code.split("local function ")
        .skip(1)
        .map(|rest| {
            let (name, rest) = rest.split_once('(').expect("a function has parameters");
            let (params, _) = rest.split_once(')').expect("a function has parameters");
            (name.to_owned(), split(params))
        })
        .collect()
}

/// Whether the code calls or names a function.
pub(super) fn mentions(code: &str, name: &str) -> bool {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
}

/// The names on the left of `local a, b = right`, for a right side that begins so.
pub(super) fn locals(code: &str, right: &str) -> Option<Vec<String>> {
    let end = code.find(&format!(" = {right}"))?;
    let start = code[..end].rfind("local ")? + "local ".len();
    Some(split(&code[start..end]))
}

/// Every statement `local names = values` whose values are all arguments of the script: names and values.
pub(super) fn argument_locals(code: &str) -> Vec<(Vec<String>, Vec<String>)> {
    let joined = code.replace("=\n", "= ");
    let statements = joined.lines().filter_map(|line| line.trim().strip_prefix("local ")?.split_once(" = "));
    statements
        .map(|(names, values)| (split(names), split(values.trim())))
        .filter(|(_, values)| values.iter().all(|value| is_argument(value)))
        .collect()
}

/// `ARGV[1]`, or `tonumber(ARGV[1])`.
fn is_argument(value: &str) -> bool {
    let value = value.strip_prefix("tonumber(").and_then(|rest| rest.strip_suffix(')')).unwrap_or(value);
    value.strip_prefix("ARGV[").is_some_and(|rest| rest.find(']') == Some(rest.len() - 1))
}

/// The numbers that `KEYS[` or `ARGV[` is indexed with.
pub(super) fn indices(code: &str, array: &str) -> BTreeSet<String> {
    let open = format!("{array}[");
    let rest = code.split(&open).skip(1);
    rest.filter_map(|rest| rest.split(']').next()).map(str::to_owned).collect()
}

/// The number of the argument from which the code passes all to a function: `ARGV, 5)`.
pub(super) fn passed_from(code: &str) -> Option<usize> {
    let (_, rest) = code.split_once("ARGV, ")?;
    rest.split_once(')')?.0.parse().ok()
}

/// Start of each call, start of what is inside of its brackets, and the end of that.
fn spans(code: &str) -> Vec<(usize, usize, usize)> {
    let mut spans = Vec::new();
    for open in ["redis.call(", "redis.pcall("] {
        for (start, _) in code.match_indices(open) {
            let inside = start + open.len();
            spans.push((start, inside, inside + closing(&code[inside..])));
        }
    }
    spans.sort_unstable();
    spans
}

/// Where the bracket that is open at the start of the code is closed.
fn closing(code: &str) -> usize {
    let mut depth = 1;
    let mut quoted = false;
    for (at, c) in code.char_indices() {
        match c {
            '\'' => quoted = !quoted,
            '(' | '{' | '[' if !quoted => depth += 1,
            ')' | '}' | ']' if !quoted => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    panic!("a bracket isn't closed: {code}");
}

/// Splits at the commas that are in no bracket and no literal.
pub(super) fn split(code: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0;
    let mut quoted = false;
    for c in code.chars() {
        match c {
            '\'' => quoted = !quoted,
            '(' | '{' | '[' if !quoted => depth += 1,
            ')' | '}' | ']' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().expect("there is always one").push(c);
    }
    parts.iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}
