//! What the fuzz target `attribute` calls; there for it and for tests alone.

use proc_macro2::{TokenStream, TokenTree};

use crate::{derive, expand};

/// The parser of types goes as deep as they do, on a stack that ends; the compiler would never get that far.
const LONGEST: usize = 1_024;

/// Expands any text as a job, and panics if that does, or if what a sound item becomes is none.
///
/// It begins with the attribute, `#[job]` or `#[job(..)]`; anything else is an item with `#[derive(Job)]`.
pub(crate) fn attribute(data: &[u8]) {
    let Some(text) = std::str::from_utf8(data).ok().filter(|text| text.len() <= LONGEST) else { return };
    let Ok(tokens) = text.parse::<TokenStream>() else { return };
    let (written, item) = match without_attribute(&tokens) {
        Some((options, item)) => (expand::attribute(options, item.clone()), item),
        None => (derive::expand(tokens.clone()), tokens),
    };
    if syn::parse2::<syn::Item>(item).is_ok()
        && let Err(error) = syn::parse2::<syn::File>(written.clone())
    {
        panic!("{error}: {written}");
    }
}

/// The options of the attribute that an item begins with, and the rest of it.
fn without_attribute(tokens: &TokenStream) -> Option<(TokenStream, TokenStream)> {
    let mut tokens = tokens.clone().into_iter();
    let (Some(TokenTree::Punct(_)), Some(TokenTree::Group(attribute))) = (tokens.next(), tokens.next()) else {
        return None;
    };
    let mut attribute = attribute.stream().into_iter();
    let options = match (attribute.next(), attribute.next()) {
        (Some(TokenTree::Ident(name)), options) if name == "job" => match options {
            Some(TokenTree::Group(options)) => options.stream(),
            _ => TokenStream::new(),
        },
        _ => return None,
    };
    Some((options, tokens.collect()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_attribute_makes_the_macro_panic() {
        emq_fuzz_inputs::run("attribute", 10_000, super::attribute);
    }
}
