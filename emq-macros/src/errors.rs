use std::fmt::Display;

use proc_macro2::TokenStream;
use quote::ToTokens;

/// Every error of one macro call, so that one build reports them all.
///
/// Dropping it without [`into_tokens`](Self::into_tokens) would lose errors, so that panics.
pub(crate) struct Errors {
    found: Vec<syn::Error>,
    reported: bool,
}

impl Errors {
    pub(crate) fn new() -> Self {
        Self { found: Vec::new(), reported: false }
    }

    /// Adds an error at tokens of the user's.
    pub(crate) fn at(&mut self, tokens: impl ToTokens, message: impl Display) {
        self.found.push(syn::Error::new_spanned(tokens, message));
    }

    /// Adds an error of the parser.
    pub(crate) fn push(&mut self, error: syn::Error) {
        self.found.push(error);
    }

    pub(crate) fn count(&self) -> usize {
        self.found.len()
    }

    /// The errors as the code that reports them.
    pub(crate) fn into_tokens(mut self) -> TokenStream {
        self.reported = true;
        self.found.iter().map(syn::Error::to_compile_error).collect()
    }
}

impl Drop for Errors {
    fn drop(&mut self) {
        if !self.reported && !std::thread::panicking() {
            panic!("a macro of emq dropped its errors without reporting them; please report this as a bug");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_errors_are_reported_in_order() {
        let mut errors = Errors::new();
        errors.at(quote::quote!(a), "first");
        errors.at(quote::quote!(b), "second");
        assert_eq!(errors.count(), 2);
        let tokens = errors.into_tokens().to_string();
        assert!(tokens.find("\"first\"").unwrap() < tokens.find("\"second\"").unwrap());
    }

    #[test]
    #[should_panic(expected = "dropped its errors")]
    fn dropping_errors_unreported_panics() {
        drop(Errors::new());
    }
}
