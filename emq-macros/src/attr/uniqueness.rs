use std::time::Duration;

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::quote;
use syn::LitStr;

use super::{
    entry::{Entry, Value, split_at_commas},
    value,
};
use crate::{duration::millis, errors::Errors};

/// The options that say how the key of `unique` is held.
pub(super) const KEYS: [&str; 4] = ["unique_until", "unique_for", "unique_after", "on_conflict"];

const CONFLICT_USAGE: &str = "`on_conflict` takes `keep`, `replace`, `debounce(\"1m\")`, `then_once`, or one of the middle two with the \
     last, like `on_conflict = (replace, then_once)`";

/// What they say, each checked by itself: calls on an `emq::Unique`.
#[derive(Default)]
pub(crate) struct Uniqueness {
    held: TokenStream,
    conflict: TokenStream,
}

impl Uniqueness {
    pub(super) fn set(&mut self, entry: &Entry, errors: &mut Errors) {
        match entry.key.to_string().as_str() {
            "unique_until" => self.held.extend(until(entry, errors)),
            "unique_for" => self.held.extend(window(entry, "for_", errors)),
            "unique_after" => self.held.extend(window(entry, "after_end", errors)),
            _ => self.conflict = conflict(entry, errors).unwrap_or_default(),
        }
    }

    /// Checks which of the options stand together.
    pub(super) fn check(given: &[Ident], errors: &mut Errors) {
        let own: Vec<_> = given.iter().filter(|key| KEYS.iter().any(|known| key == known)).collect();
        if !given.iter().any(|key| key == "unique") {
            for key in &own {
                let example = "like `unique = (student, course)`";
                errors.at(key, format!("`{key}` is for a job with a key: say which fields make it, {example}"));
            }
            return;
        }
        let mut held = own.iter().filter(|key| **key != "on_conflict");
        if let (Some(first), Some(second)) = (held.next(), held.next()) {
            errors.at(second, format!("`{first}` says already for how long the key is held: remove one of them"));
        }
    }

    /// The method `Job::unique`, if there is something to say.
    pub(crate) fn method(&self, krate: &TokenStream, fields: &[Ident]) -> Option<TokenStream> {
        let Self { held, conflict } = self;
        if fields.is_empty() || held.is_empty() && conflict.is_empty() {
            return None;
        }
        Some(quote! {
            fn unique(&self) -> ::core::option::Option<#krate::Unique> {
                ::core::option::Option::map(<Self as #krate::Job>::unique_key(self), |key| {
                    #krate::Unique::key(key) #held #conflict
                })
            }
        })
    }
}

/// `start` or `end`.
fn until(entry: &Entry, errors: &mut Errors) -> Option<TokenStream> {
    let word = match &entry.value {
        Value::Assigned(tokens) => tokens.to_string(),
        _ => String::new(),
    };
    match word.as_str() {
        "start" => Some(quote!(.until_start())),
        "end" => None,
        _ => {
            entry.malformed(errors);
            None
        }
    }
}

fn window(entry: &Entry, setter: &str, errors: &mut Errors) -> Option<TokenStream> {
    let setter = Ident::new(setter, proc_macro2::Span::call_site());
    let window = duration(value::duration(entry, errors)?);
    Some(quote!(.#setter(#window)))
}

fn duration(duration: Duration) -> TokenStream {
    let millis = millis(duration);
    quote!(::core::time::Duration::from_millis(#millis))
}

/// `replace`, or several in parentheses.
fn conflict(entry: &Entry, errors: &mut Errors) -> Option<TokenStream> {
    let list = value::one_or_more(entry, errors)?;
    let chunks = split_at_commas(list, errors);
    if chunks.is_empty() {
        entry.malformed(errors);
        return None;
    }
    let mut calls = TokenStream::new();
    let mut seen: Vec<Ident> = Vec::new();
    for chunk in chunks {
        let (word, call) = rule(&chunk, errors)?;
        let is_then = word == "then_once";
        let clashes = seen.iter().any(|other| other == "keep" || word == "keep" || (other == "then_once") == is_then);
        if clashes {
            errors.at(&word, format!("`{word}` doesn't go with what stands before it: {CONFLICT_USAGE}"));
            return None;
        }
        seen.push(word);
        calls.extend(call);
    }
    Some(calls)
}

/// One rule: its word, and the call that it stands for.
fn rule(chunk: &TokenStream, errors: &mut Errors) -> Option<(Ident, TokenStream)> {
    let mut trees = chunk.clone().into_iter();
    match (trees.next(), trees.next(), trees.next()) {
        (Some(TokenTree::Ident(word)), None, None) if word == "keep" => Some((word, TokenStream::new())),
        (Some(TokenTree::Ident(word)), None, None) if word == "replace" => Some((word, quote!(.replace_payload()))),
        (Some(TokenTree::Ident(word)), None, None) if word == "then_once" => Some((word, quote!(.then_once()))),
        (Some(TokenTree::Ident(word)), rest, None) if word == "debounce" => {
            let latest = match rest {
                Some(TokenTree::Group(group)) => syn::parse2::<LitStr>(group.stream()).ok(),
                _ => None,
            };
            let Some(latest) = latest else {
                let message = "`debounce` takes how long a job can be put off at most, like `debounce(\"1m\")`";
                errors.at(chunk, message);
                return None;
            };
            let latest = duration(value::checked_duration(&latest, errors)?);
            Some((word, quote!(.debounce(#latest))))
        }
        _ => {
            errors.at(chunk, CONFLICT_USAGE);
            None
        }
    }
}
