use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::Parse;

use super::keys;
use crate::errors::Errors;

/// One option as written, before its value is looked at: `key`, `key = value` or `key(list)`.
pub(super) struct Entry {
    pub(super) key: Ident,
    pub(super) value: Value,
}

pub(super) enum Value {
    Missing,
    Assigned(TokenStream),
    List(TokenStream),
    /// Neither: the tokens after the key.
    Malformed(TokenStream),
}

impl Entry {
    /// Reads one chunk between commas. Nothing comes back if it has no key; that is reported.
    pub(super) fn read(chunk: TokenStream, errors: &mut Errors) -> Option<Self> {
        let mut tokens = chunk.clone().into_iter();
        let Some(TokenTree::Ident(key)) = tokens.next() else {
            errors.at(chunk, "an option is written `key = value`, like `name = \"email.send\"`");
            return None;
        };
        let value = match tokens.next() {
            None => Value::Missing,
            Some(TokenTree::Punct(punct)) if punct.as_char() == '=' => {
                let value: TokenStream = tokens.collect();
                if value.is_empty() { Value::Missing } else { Value::Assigned(value) }
            }
            Some(TokenTree::Group(group)) if is_list(&group) => {
                let rest: TokenStream = tokens.collect();
                if rest.is_empty() { Value::List(group.stream()) } else { Value::Malformed(rest) }
            }
            Some(other) => Value::Malformed(std::iter::once(other).chain(tokens).collect()),
        };
        Some(Self { key, value })
    }

    /// The value of `key = value` as a `T`, or an error that says what the key takes.
    pub(super) fn assigned<T: Parse>(&self, errors: &mut Errors) -> Option<T> {
        if let Value::Assigned(tokens) = &self.value
            && let Ok(value) = syn::parse2(tokens.clone())
        {
            return Some(value);
        }
        self.malformed(errors);
        None
    }

    /// Says what the key takes, at the value if there is one.
    pub(super) fn malformed(&self, errors: &mut Errors) {
        let place = match &self.value {
            Value::Assigned(tokens) | Value::Malformed(tokens) => tokens.clone(),
            Value::Missing | Value::List(_) => self.key.to_token_stream(),
        };
        errors.at(place, keys::usage(&self.key));
    }
}

/// The chunks between top-level commas; a comma at the end adds none.
pub(super) fn split_at_commas(tokens: TokenStream, errors: &mut Errors) -> Vec<TokenStream> {
    let mut chunks = Vec::new();
    let mut chunk = TokenStream::new();
    for token in tokens {
        match &token {
            TokenTree::Punct(punct) if punct.as_char() == ',' => {
                if chunk.is_empty() {
                    errors.at(token, "there is nothing before this comma: remove it");
                } else {
                    chunks.push(std::mem::take(&mut chunk));
                }
            }
            _ => chunk.extend([token]),
        }
    }
    if !chunk.is_empty() {
        chunks.push(chunk);
    }
    chunks
}

fn is_list(group: &Group) -> bool {
    group.delimiter() == Delimiter::Parenthesis
}
