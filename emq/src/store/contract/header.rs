//! The header of a script, read by the grammar in `lua/README.md`.

/// What a script says about itself.
#[derive(Debug)]
pub(super) struct Header {
    /// The word before the colon of the first line.
    pub(super) verb: String,
    pub(super) keys: Vec<Key>,
    /// The names of the arguments that have one of their own.
    pub(super) args: Vec<String>,
    /// Whether any number of arguments follows those.
    pub(super) tail: bool,
    pub(super) replies: Vec<Reply>,
    pub(super) uses: Vec<String>,
}

/// A line `KEYS[n] name pattern type effect`.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) pattern: String,
}

/// A line `WORD  meaning`.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) word: String,
    pub(super) is_error: bool,
}

const TYPES: [&str; 7] = ["hash", "zset", "list", "set", "string", "channel", "lanes"];

impl Header {
    /// Reads the comment at the top of a script.
    pub(super) fn read(source: &str) -> Self {
        let lines: Vec<_> = source.lines().map_while(|line| line.strip_prefix("--")).map(str::trim_end).collect();
        let first = lines.first().expect("a script begins with its header").trim();
        let (verb, promise) = first.split_once(": ").expect("the first line is `verb: what it does.`");
        assert!(promise.ends_with('.'), "{verb}: the first line is a sentence");
        let mut header = Self {
            verb: verb.to_owned(),
            keys: Vec::new(),
            args: Vec::new(),
            tail: false,
            replies: Vec::new(),
            uses: Vec::new(),
        };
        for line in lines.iter().filter_map(|line| line.strip_prefix(' ')) {
            header.line(line);
        }
        header
    }

    fn line(&mut self, line: &str) {
        let verb = &self.verb;
        if let Some((number, rest)) = numbered(line, "KEYS[") {
            assert_eq!(number, (self.keys.len() + 1).to_string(), "{verb}: the keys are numbered in order");
            let mut words = rest.split_whitespace();
            let mut word = || words.next().unwrap_or_default().to_owned();
            let key = Key { name: word(), pattern: word() };
            let kind = word();
            assert!(TYPES.contains(&kind.as_str()), "{verb}: KEYS[{number}] has the type {kind:?}");
            assert!(words.next().is_some(), "{verb}: KEYS[{number}] says nothing of the effect");
            self.keys.push(key);
        } else if let Some((number, rest)) = numbered(line, "ARGV[") {
            assert!(!self.tail, "{verb}: nothing follows a variable number of arguments");
            let next = self.args.len() + 1;
            if number == format!("{next}..") {
                self.tail = true;
            } else {
                assert_eq!(number, next.to_string(), "{verb}: the arguments are numbered in order");
                self.args.push(rest.split_whitespace().next().unwrap_or_default().to_owned());
            }
        } else if let Some(uses) = line.strip_prefix("uses ") {
            self.uses = uses.split(", ").map(|lib| lib.strip_prefix("lib/").unwrap_or(lib).to_owned()).collect();
        } else if let Some((word, meaning)) = line.split_once("  ").filter(|(word, _)| super::body::is_reply(word)) {
            let is_error = meaning.trim_start().starts_with("error: ");
            self.replies.push(Reply { word: word.to_owned(), is_error });
        }
    }
}

fn numbered<'a>(line: &'a str, start: &str) -> Option<(&'a str, &'a str)> {
    line.strip_prefix(start)?.split_once("] ")
}
