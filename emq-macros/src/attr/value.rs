use std::time::Duration;

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use syn::{
    LitInt, LitStr, Path, Token,
    ext::IdentExt,
    parse::{ParseStream, Parser},
    punctuated::Punctuated,
};

use super::entry::{Entry, Value, split_at_commas};
use crate::{duration, errors::Errors, names};

/// A name on the wire; `check` is the rule it has to keep.
pub(super) fn name(entry: &Entry, check: fn(&str) -> Result<(), String>, errors: &mut Errors) -> Option<LitStr> {
    let literal = entry.assigned::<LitStr>(errors)?;
    checked(literal, check, errors)
}

pub(super) fn duration(entry: &Entry, errors: &mut Errors) -> Option<Duration> {
    let literal = entry.assigned::<LitStr>(errors)?;
    checked_duration(&literal, errors)
}

/// The server takes a lease for lost on a beat of a second; a shorter one would be lost between two renewals.
pub(super) fn lease(entry: &Entry, errors: &mut Errors) -> Option<Duration> {
    let literal = entry.assigned::<LitStr>(errors)?;
    let lease = checked_duration(&literal, errors)?;
    if lease < Duration::from_secs(1) {
        errors.at(&literal, format!("{:?} is too short for a lease: write at least \"1s\"", literal.value()));
        return None;
    }
    Some(lease)
}

pub(super) fn checked_duration(literal: &LitStr, errors: &mut Errors) -> Option<Duration> {
    match duration::parse(&literal.value()) {
        Ok(duration) => Some(duration),
        Err(message) => {
            errors.at(literal, message);
            None
        }
    }
}

pub(super) fn max_attempts(entry: &Entry, errors: &mut Errors) -> Option<u32> {
    let literal = entry.assigned::<LitInt>(errors)?;
    let message = match literal.base10_parse::<u32>() {
        Ok(0) => "`max_attempts` is at least 1, since the first run counts too: write `max_attempts = 1`".to_owned(),
        Ok(number) => return Some(number),
        Err(_) => format!("`max_attempts` is a whole number from 1 to {}", u32::MAX),
    };
    errors.at(literal, message);
    None
}

pub(super) fn priority(entry: &Entry, errors: &mut Errors) -> Option<i32> {
    let literal = entry.assigned::<LitInt>(errors)?;
    match literal.base10_parse::<i32>() {
        Ok(number) => Some(number),
        Err(_) => {
            errors.at(literal, format!("`priority` is a whole number from {} to {}", i32::MIN, i32::MAX));
            None
        }
    }
}

/// What stands in the parentheses of `(a, b)`, or a single `a`.
pub(super) fn one_or_more(entry: &Entry, errors: &mut Errors) -> Option<TokenStream> {
    let Value::Assigned(tokens) = &entry.value else {
        entry.malformed(errors);
        return None;
    };
    let mut trees = tokens.clone().into_iter();
    match (trees.next(), trees.next()) {
        (Some(TokenTree::Group(group)), None) if group.delimiter() == Delimiter::Parenthesis => Some(group.stream()),
        _ => Some(tokens.clone()),
    }
}

/// `(a, b)`, or a single name.
pub(super) fn unique(entry: &Entry, errors: &mut Errors) -> Option<Vec<Ident>> {
    let list = one_or_more(entry, errors)?;
    let names = |input: ParseStream<'_>| Punctuated::<_, Token![,]>::parse_terminated_with(input, Ident::parse_any);
    match names.parse2(list) {
        Ok(names) if !names.is_empty() => Some(names.into_iter().collect()),
        _ => {
            entry.malformed(errors);
            None
        }
    }
}

pub(super) fn was(entry: &Entry, errors: &mut Errors) -> Option<Vec<LitStr>> {
    let list = match &entry.value {
        Value::Assigned(tokens) => bracketed(tokens),
        _ => None,
    };
    let Some(list) = list else {
        entry.malformed(errors);
        return None;
    };
    let mut names = Vec::new();
    for chunk in split_at_commas(list, errors) {
        let Ok(literal) = syn::parse2::<LitStr>(chunk.clone()) else {
            errors.at(chunk, "an earlier name is a literal text, like `was = [\"mail.send\"]`");
            continue;
        };
        let twice = names.iter().any(|name: &LitStr| name.value() == literal.value());
        if twice {
            errors.at(&literal, format!("{:?} is listed twice: remove one", literal.value()));
        } else if let Some(literal) = checked(literal, |name| names::check("a job", name), errors) {
            names.push(literal);
        }
    }
    Some(names)
}

pub(super) fn derive(entry: &Entry, errors: &mut Errors) -> Option<Vec<Path>> {
    let Value::List(list) = &entry.value else {
        entry.malformed(errors);
        return None;
    };
    match Punctuated::<Path, Token![,]>::parse_terminated.parse2(list.clone()) {
        Ok(paths) => {
            let (given, others): (Vec<Path>, Vec<Path>) = paths.into_iter().partition(is_serde);
            for path in given {
                errors.at(path, "a payload derives `Serialize` and `Deserialize` anyway: remove this");
            }
            Some(others)
        }
        Err(_) => {
            errors.at(list, "`derive` takes a list of derives, like `derive(Clone, Debug)`");
            None
        }
    }
}

fn is_serde(path: &Path) -> bool {
    path.segments.last().is_some_and(|last| last.ident == "Serialize" || last.ident == "Deserialize")
}

pub(super) fn krate(entry: &Entry, errors: &mut Errors) -> Option<Path> {
    let path = match &entry.value {
        Value::Assigned(tokens) => Path::parse_mod_style.parse2(tokens.clone()).ok(),
        _ => None,
    };
    // serde's derives take the path as text, and `$crate` means nothing there.
    match path {
        Some(path) if !path.segments.iter().any(|segment| segment.ident == "$crate") => Some(path),
        Some(path) => {
            errors.at(path, "the path of emq can't begin with `$crate` here: write the crate's name");
            None
        }
        None => {
            entry.malformed(errors);
            None
        }
    }
}

fn checked(literal: LitStr, check: fn(&str) -> Result<(), String>, errors: &mut Errors) -> Option<LitStr> {
    match check(&literal.value()) {
        Ok(()) => Some(literal),
        Err(message) => {
            errors.at(literal, message);
            None
        }
    }
}

fn bracketed(tokens: &TokenStream) -> Option<TokenStream> {
    let mut tokens = tokens.clone().into_iter();
    match (tokens.next(), tokens.next()) {
        (Some(TokenTree::Group(group)), None) if group.delimiter() == Delimiter::Bracket => Some(group.stream()),
        _ => None,
    }
}
