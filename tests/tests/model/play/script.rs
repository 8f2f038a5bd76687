//! Calls of the scripts that no call of the public API makes alone.

use support::Reply;

use crate::answer::Answer;
use crate::bench::Stage;
use crate::model::line_text;
use crate::verb::{LOG_LINES, Right, Verb};

/// A script as the library sends it, and the patterns of its keys: all read from its header.
pub(super) struct Script {
    text: String,
    keys: Vec<String>,
}

impl Script {
    pub(super) fn read(name: &str) -> Self {
        let read = |name: &str| {
            std::fs::read_to_string(format!("{}/../lua/{name}.lua", env!("CARGO_MANIFEST_DIR"))).expect("a script")
        };
        let own = read(name);
        let header = || own.lines().map_while(|line| line.strip_prefix("--"));
        let key = |line: &str| Some(line.trim().strip_prefix("KEYS[")?.split_whitespace().nth(2)?.to_owned());
        let uses = header().find_map(|line| line.trim().strip_prefix("uses ")).unwrap_or_default();
        let snippets = uses.split(", ").filter(|snippet| !snippet.is_empty()).map(read);
        Self { text: snippets.chain([own.clone()]).collect(), keys: header().filter_map(key).collect() }
    }
}

impl Stage<'_> {
    /// `about` is the id or the name that the keys are of; empty for a script that appends these itself.
    pub(super) async fn call(&mut self, script: &Script, about: &str, args: Vec<String>) -> Reply {
        let keys = script.keys.iter().map(|pattern| {
            let key = pattern.replace("emq:{q}:", &self.prefix);
            match (key.find('<'), key.find('>')) {
                (Some(from), Some(to)) => format!("{}{about}{}", &key[..from], &key[to + 1..]),
                _ => key,
            }
        });
        let mut command = vec!["EVAL".to_owned(), script.text.clone(), script.keys.len().to_string()];
        command.extend(keys.chain(args));
        self.raw.command(&command).await
    }

    /// What a run tells of itself.
    pub(super) async fn report(&mut self, verb: &Verb) -> Answer {
        let held = |right: &Right, stage: &Self| (stage.id(right.slot).to_string(), right.token.to_string());
        let (script, id, args) = match verb {
            Verb::Log { right, line } => {
                let (id, token) = held(right, self);
                let stamp = format!("{token} {line}");
                ("log", id.clone(), vec![id, token, stamp, LOG_LINES.to_string(), line_text(*line)])
            }
            Verb::Progress { right, value } => {
                let (id, token) = held(right, self);
                ("progress", id.clone(), vec![id, token, value.to_string()])
            }
            _ => return Answer::None,
        };
        Answer::Words(words(&self.call(&Script::read(script), &id, args).await))
    }
}

/// One text or a list of them; an error is told by its text.
pub(super) fn words(reply: &Reply) -> Vec<String> {
    match reply {
        Reply::Array(items) => items.iter().flat_map(words).collect(),
        reply => vec![reply.text().to_owned()],
    }
}
