//! The grammar of `#[job(..)]`.
//!
//! Options are split at commas before any of them is read, so that a mistake in one leaves the others standing.

mod backoff;
mod entry;
mod keys;
mod recurrence;
mod uniqueness;
mod value;

use std::time::Duration;

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::{LitStr, Path};

use self::{
    backoff::Backoff,
    entry::{Entry, split_at_commas},
    recurrence::Recurrence,
    uniqueness::Uniqueness,
};
use crate::{duration::millis, errors::Errors, names};

/// Where the options stand.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Place {
    Function,
    Struct,
}

impl Place {
    fn knows(self, key: &str) -> bool {
        self == Self::Function || !keys::OF_FUNCTIONS.contains(&key)
    }
}

/// The options of a job, checked. What was wrong is reported and counts as not given.
#[derive(Default)]
pub(crate) struct Options {
    /// The keys as they were written, for errors about an option that doesn't fit the item.
    pub(crate) given: Vec<Ident>,
    pub(crate) name: Option<LitStr>,
    pub(crate) was: Vec<LitStr>,
    pub(crate) unique: Vec<Ident>,
    pub(crate) args: Option<Ident>,
    pub(crate) derive: Vec<Path>,
    pub(crate) recurrence: Recurrence,
    pub(crate) uniqueness: Uniqueness,
    krate: Option<Path>,
    queue: Option<LitStr>,
    max_attempts: Option<u32>,
    priority: Option<i32>,
    timeout: Option<Duration>,
    lease: Option<Duration>,
    retention: Option<Duration>,
    backoff: Option<Backoff>,
}

/// What is wrong with a recurring job whose payload is a struct of its own.
const NO_PRODUCER: &str = "a recurring job has no producer who would need a struct: write this on the function, and let it \
     take no `#[payload]`; or register the job with a payload, by `queue.recurring()`";

impl Options {
    /// The options that say when it recurs, as they were written.
    fn recurring_keys(&self) -> impl Iterator<Item = &Ident> {
        self.given.iter().filter(|key| recurrence::KEYS.iter().any(|known| key == known))
    }

    /// Checks that every field has a default, if nobody gives the job its payload.
    pub(crate) fn check_defaults<'a>(&self, bare_fields: impl Iterator<Item = &'a Ident>, errors: &mut Errors) {
        let Some(key) = self.recurring_keys().next() else { return };
        for field in bare_fields {
            let message = format!(
                "nobody gives a recurring job its `{field}`: write `#[serde(default)]` before it, or leave `{key}` out \
                 and register the job with a payload, by `queue.recurring()`"
            );
            errors.at(field, message);
        }
    }

    /// Rejects each option that belongs to the struct behind `#[payload]`.
    pub(crate) fn reject_beside_payload(&self, errors: &mut Errors) {
        for key in self.given.iter().filter(|key| *key != "args" && *key != "crate") {
            if self.recurring_keys().any(|recurring| recurring == key) {
                errors.at(key, NO_PRODUCER);
            } else {
                let there = "belongs to the struct of the `#[payload]` parameter: write it in the `#[job(..)]` there";
                errors.at(key, format!("`{key}` {there}"));
            }
        }
    }

    /// Reads the inside of one `#[job(..)]` into the options.
    pub(crate) fn read(&mut self, tokens: TokenStream, place: Place, errors: &mut Errors) {
        for chunk in split_at_commas(tokens, errors) {
            let Some(entry) = Entry::read(chunk, errors) else { continue };
            if self.given.contains(&entry.key) {
                errors.at(&entry.key, format!("`{}` is given twice: remove one", entry.key));
                continue;
            }
            self.set(&entry, place, errors);
            self.given.push(entry.key);
        }
        if place == Place::Function {
            self.recurrence.check(&self.given, errors);
        }
    }

    fn set(&mut self, entry: &Entry, place: Place, errors: &mut Errors) {
        match entry.key.to_string().as_str() {
            "name" => self.name = value::name(entry, |name| names::check("a job", name), errors),
            "queue" => self.queue = value::name(entry, names::check_queue, errors),
            "max_attempts" => self.max_attempts = value::max_attempts(entry, errors),
            "priority" => self.priority = value::priority(entry, errors),
            "timeout" => self.timeout = value::duration(entry, errors),
            "lease" => self.lease = value::lease(entry, errors),
            "retention" => self.retention = value::duration(entry, errors),
            "backoff" => self.backoff = Backoff::read(entry, errors),
            "unique" => self.unique = value::unique(entry, errors).unwrap_or_default(),
            key if uniqueness::KEYS.contains(&key) => self.uniqueness.set(entry, errors),
            "was" => self.was = value::was(entry, errors).unwrap_or_default(),
            "crate" => self.krate = value::krate(entry, errors),
            "args" if place == Place::Function => self.args = entry.assigned(errors),
            key if place == Place::Function && recurrence::KEYS.contains(&key) => self.recurrence.set(entry, errors),
            "derive" if place == Place::Function => self.derive = value::derive(entry, errors).unwrap_or_default(),
            "args" => errors.at(
                &entry.key,
                "`args` names the struct that a function makes: here it is the struct itself, so remove this",
            ),
            "derive" => errors.at(
                &entry.key,
                "`derive` is for the struct that a function makes: here write `#[derive(..)]` on the struct",
            ),
            key if recurrence::KEYS.contains(&key) => errors.at(&entry.key, NO_PRODUCER),
            _ => errors.at(&entry.key, keys::unknown(&entry.key, place)),
        }
    }

    /// The path of emq.
    pub(crate) fn krate(&self) -> TokenStream {
        self.krate.as_ref().map_or_else(|| quote!(::emq), ToTokens::to_token_stream)
    }

    /// The job's name on the wire, `default` unless it was given.
    ///
    /// `was` is checked against it here, where the default is known.
    pub(crate) fn wire_name(&self, default: &str, at: &Ident, errors: &mut Errors) -> String {
        let name = self.name.as_ref().map_or_else(|| default.to_owned(), LitStr::value);
        let defaulted = !self.given.iter().any(|key| key == "name");
        if defaulted && let Err(message) = names::check("a job", &name) {
            errors.at(at, format!("{message}; give it another one with `#[job(name = \"..\")]`"));
        }
        if let Some(same) = self.was.iter().find(|was| was.value() == name) {
            errors.at(same, format!("{name:?} is the job's name already: list only earlier names"));
        }
        name
    }

    /// The value of `Job::OPTIONS`.
    pub(crate) fn tokens(&self) -> TokenStream {
        let krate = self.krate();
        let duration = |setter: &str, duration: Option<Duration>| {
            let (setter, millis) = (Ident::new(setter, proc_macro2::Span::call_site()), millis(duration?));
            Some(quote!(.#setter(::core::time::Duration::from_millis(#millis))))
        };
        let queue = self.queue.as_ref().map(|queue| quote!(.queue(#queue)));
        let max_attempts = self.max_attempts.map(|number| quote!(.max_attempts(#number)));
        let priority = self.priority.map(|number| quote!(.priority(#number)));
        let timeout = duration("timeout", self.timeout);
        let lease = duration("lease", self.lease);
        let retention = duration("retention", self.retention);
        let backoff = self.backoff.as_ref().map(|backoff| {
            let backoff = backoff.tokens(&krate);
            quote!(.backoff(#backoff))
        });
        quote!(#krate::JobOptions::new() #queue #max_attempts #priority #timeout #lease #retention #backoff)
    }

    /// Checks `unique` against the fields it may name; `other` explains why a name that exists isn't one of them.
    pub(crate) fn check_unique(
        &mut self,
        fields: &[Ident],
        other: impl Fn(&Ident) -> Option<String>,
        errors: &mut Errors,
    ) {
        Uniqueness::check(&self.given, errors);
        let mut good: Vec<Ident> = Vec::new();
        for name in std::mem::take(&mut self.unique) {
            if good.contains(&name) {
                errors.at(&name, format!("`{name}` is named twice: remove one"));
            } else if fields.contains(&name) {
                good.push(name);
            } else if let Some(why) = other(&name) {
                errors.at(&name, why);
            } else {
                let fields: Vec<_> = fields.iter().map(|field| format!("`{field}`")).collect();
                let fields = if fields.is_empty() { "none".to_owned() } else { fields.join(", ") };
                errors.at(
                    &name,
                    format!("`unique` names fields of the payload, and there is no `{name}`: the fields are {fields}"),
                );
            }
        }
        // serde implements `Serialize` for tuples up to this size.
        if let Some(name) = good.get(16) {
            errors.at(name, "`unique` names at most 16 fields: put some of them into one struct");
            good.truncate(16);
        }
        self.unique = good;
    }
}
