use std::time::Duration;

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use quote::quote;
use syn::{Lit, LitStr};

use super::{
    entry::{Entry, Value, split_at_commas},
    value,
};
use crate::{duration::millis, errors::Errors};

/// The most a wait grows to when no `max` is given.
const DEFAULT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

const USAGE: &str =
    "a backoff is `fixed(\"5s\")` or `exponential(\"1s\", max = \"10m\")`, each with `jitter = 0.2` if you like";

/// `fixed(..)` or `exponential(..)`, checked.
pub(crate) struct Backoff {
    first: Duration,
    /// `None` means fixed.
    max: Option<Duration>,
    jitter: Option<f64>,
}

impl Backoff {
    pub(super) fn read(entry: &Entry, errors: &mut Errors) -> Option<Self> {
        let Value::Assigned(tokens) = &entry.value else {
            entry.malformed(errors);
            return None;
        };
        let Some((shape, parameters)) = call(tokens) else {
            errors.at(tokens, USAGE);
            return None;
        };
        let grows = shape == "exponential";
        if !grows && shape != "fixed" {
            errors.at(&shape, USAGE);
            return None;
        }
        let mut chunks = split_at_commas(parameters, errors).into_iter();
        let Some(wait) = chunks.next() else {
            errors.at(tokens, format!("`{shape}` needs the first wait: {USAGE}"));
            return None;
        };
        let Ok(wait) = syn::parse2::<LitStr>(wait.clone()) else {
            errors.at(wait, format!("`{shape}` begins with the first wait as a literal text, like `{shape}(\"5s\")`"));
            return None;
        };
        let first = value::checked_duration(&wait, errors);
        let mut named = Named::default();
        for chunk in chunks {
            named.read(&chunk, &shape, grows, errors);
        }
        let first = first?;
        let max = named.max.as_ref().map_or(DEFAULT_MAX, |(_, max)| *max);
        if grows && max < first {
            match &named.max {
                Some((literal, _)) => {
                    errors.at(
                        literal,
                        format!("`max` is shorter than the first wait of {:?}: make it longer", wait.value()),
                    );
                }
                None => errors.at(wait, "this wait is longer than the default `max` of 1 day: give a `max` too"),
            }
            return None;
        }
        Some(Self { first, max: grows.then_some(max), jitter: named.jitter })
    }

    pub(super) fn tokens(&self, krate: &TokenStream) -> TokenStream {
        let first = millis(self.first);
        let shape = if let Some(max) = self.max.map(millis) {
            quote!(exponential(::core::time::Duration::from_millis(#first), ::core::time::Duration::from_millis(#max)))
        } else {
            quote!(fixed(::core::time::Duration::from_millis(#first)))
        };
        let jitter = self.jitter.map(|jitter| quote!(.jitter(#jitter)));
        quote!(#krate::Backoff::#shape #jitter)
    }
}

/// The parameters after the first wait.
#[derive(Default)]
struct Named {
    max: Option<(LitStr, Duration)>,
    jitter: Option<f64>,
    seen: Vec<Ident>,
}

impl Named {
    fn read(&mut self, chunk: &TokenStream, shape: &Ident, grows: bool, errors: &mut Errors) {
        let example = if grows { "max = \"10m\"` or `jitter = 0.2" } else { "jitter = 0.2" };
        let usage = format!("after the first wait, `{shape}` takes `{example}`");
        let Some(TokenTree::Ident(_)) = chunk.clone().into_iter().next() else {
            errors.at(chunk, usage);
            return;
        };
        let Some(Entry { key, value: Value::Assigned(value) }) = Entry::read(chunk.clone(), errors) else {
            errors.at(chunk, usage);
            return;
        };
        if self.seen.contains(&key) {
            errors.at(&key, format!("`{key}` is given twice: remove one"));
        } else if key == "max" && grows {
            match syn::parse2::<LitStr>(value.clone()) {
                Ok(literal) => self.max = value::checked_duration(&literal, errors).map(|max| (literal, max)),
                Err(_) => errors.at(value, "`max` takes a duration as a literal text, like `max = \"10m\"`"),
            }
        } else if key == "jitter" {
            self.jitter = share(&value);
            if self.jitter.is_none() {
                errors.at(value, "`jitter` takes a literal number from 0 to 1, like `jitter = 0.2`");
            }
        } else {
            errors.at(&key, usage);
        }
        self.seen.push(key);
    }
}

/// `shape(parameters)`.
fn call(tokens: &TokenStream) -> Option<(Ident, TokenStream)> {
    let mut tokens = tokens.clone().into_iter();
    match (tokens.next(), tokens.next(), tokens.next()) {
        (Some(TokenTree::Ident(shape)), Some(TokenTree::Group(group)), None)
            if group.delimiter() == Delimiter::Parenthesis =>
        {
            Some((shape, group.stream()))
        }
        _ => None,
    }
}

fn share(value: &TokenStream) -> Option<f64> {
    let share: f64 = match syn::parse2(value.clone()).ok()? {
        Lit::Float(number) => number.base10_parse().ok()?,
        Lit::Int(number) => number.base10_parse().ok()?,
        _ => return None,
    };
    (0.0..=1.0).contains(&share).then_some(share)
}
