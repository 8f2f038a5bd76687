//! The deduplication keys: for how long each is held, and what becomes of who meets its holder.

use std::time::Duration;

use emq::Unique;

/// How long a key is held at least, in [`Mode::Window`] since its job came, in [`Mode::Rest`] since it ended.
pub(crate) const WINDOW: Duration = Duration::from_millis(1_200);

/// A key, and how it is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) mode: Mode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Until its job ends.
    End,
    /// Until its job starts.
    Start,
    /// For a time, however long its job takes.
    Window,
    /// For a time after its job has ended.
    Rest,
    /// As `End`; who meets a job that waits has it do what he wanted, and who meets one that runs waits behind it.
    Replace,
    /// As `End`; who meets a job that runs waits behind it, or has the one do what he wanted that waits there.
    Once,
}

impl Mode {
    /// Whether no two jobs have the key at once.
    pub(crate) fn excludes(self) -> bool {
        !matches!(self, Self::Start | Self::Window)
    }

    /// How long after the job before has ended the next one can begin.
    pub(crate) fn rest(self) -> Duration {
        if self == Self::Rest { WINDOW } else { Duration::ZERO }
    }
}

impl Mode {
    /// Whether it is a key of this mode that has this name.
    pub(crate) fn names(self, key: &str) -> bool {
        key.trim_start_matches("scrap-").starts_with(self.word().as_str())
    }

    fn word(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

impl Key {
    /// The `n`-th key of this mode. What is known of a key by its only producer can be checked when he meets it, so those of
    /// some modes have one.
    pub(crate) fn new(mode: Mode, n: u32, producer: u64) -> Self {
        let name = mode.word();
        let name = match mode {
            Mode::End | Mode::Rest => format!("{name}-{n}"),
            Mode::Start | Mode::Window | Mode::Replace | Mode::Once => format!("{name}-{producer}-{n}"),
        };
        Self { name, mode }
    }

    pub(crate) fn unique(&self) -> Unique {
        let unique = Unique::key(&self.name);
        match self.mode {
            Mode::End => unique,
            Mode::Start => unique.until_start(),
            Mode::Window => unique.for_(WINDOW),
            Mode::Rest => unique.after_end(WINDOW),
            Mode::Replace => unique.replace_payload().then_once(),
            Mode::Once => unique.then_once(),
        }
    }
}
