//! What can go wrong, and when.

use std::time::Duration;

use crate::resp::Reply;

/// A request that passes the proxy.
#[derive(Debug)]
pub struct Command {
    args: Vec<Vec<u8>>,
}

impl Command {
    pub(super) fn of(request: &Reply) -> Self {
        let items = match request {
            Reply::Array(items) => items.as_slice(),
            other => std::slice::from_ref(other),
        };
        let args = items.iter().map(|item| match item {
            Reply::Bulk(bytes) => bytes.clone(),
            other => other.to_string().into_bytes(),
        });
        Self { args: args.collect() }
    }

    /// Returns the command's name in capitals.
    pub fn name(&self) -> String {
        String::from_utf8_lossy(self.arg(0)).to_ascii_uppercase()
    }

    /// Returns an argument, empty if there are fewer; 0 is the name.
    pub fn arg(&self, index: usize) -> &[u8] {
        self.args.get(index).map_or(&[], Vec::as_slice)
    }

    /// Returns whether one of the arguments is this.
    pub fn has(&self, arg: impl AsRef<[u8]>) -> bool {
        self.args.iter().any(|mine| mine == arg.as_ref())
    }

    /// Returns whether the server answers with messages instead of a reply.
    pub(super) fn subscribes(&self) -> bool {
        self.name().ends_with("SUBSCRIBE")
    }
}

/// Matches the commands of a name, whatever its case.
pub fn named(name: &str) -> impl Fn(&Command) -> bool + Send + 'static {
    let name = name.to_ascii_uppercase();
    move |command| command.name() == name
}

/// Matches every command.
pub fn any() -> impl Fn(&Command) -> bool + Send + 'static {
    |_| true
}

/// Which of the matching requests a rule strikes, counted over all connections from the
/// moment when the rule was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The next one.
    Once,
    /// The n-th, counted from 1.
    Nth(u64),
    /// Every n-th; 1 is all of them.
    Every(u64),
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Pass,
    CutRequest,
    CutReply,
    LoseReply,
}

pub(super) struct Rule {
    matching: Box<dyn Fn(&Command) -> bool + Send>,
    when: When,
    fate: Fate,
    seen: u64,
}

impl Rule {
    pub(super) fn new(matching: impl Fn(&Command) -> bool + Send + 'static, when: When, fate: Fate) -> Self {
        Self { matching: Box::new(matching), when, fate, seen: 0 }
    }

    fn strikes(&mut self, command: &Command) -> bool {
        if !(self.matching)(command) {
            return false;
        }
        self.seen += 1;
        match self.when {
            When::Once => self.seen == 1,
            When::Nth(n) => self.seen == n,
            When::Every(n) => self.seen.is_multiple_of(n),
        }
    }
}

/// Returns what happens to a request. Every rule counts it; the first that strikes decides.
pub(super) fn decide(rules: &mut [Rule], command: &Command) -> Fate {
    let mut fate = Fate::Pass;
    for rule in rules {
        if rule.strikes(command) && fate == Fate::Pass {
            fate = rule.fate;
        }
    }
    fate
}

/// What happens to all bytes alike.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weather {
    pub(super) delay: Duration,
    pub(super) chop: bool,
    pub(super) hole: Hole,
    pub(super) refuse: bool,
    /// How often all connections were closed.
    pub(super) severed: u64,
    /// The proxy ends.
    pub(super) over: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Hole {
    #[default]
    None,
    Swallow,
    Hold,
}
