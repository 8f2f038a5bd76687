//! The macros of emq. Their documentation is where they are used: at `emq::job` and `emq::Job`.
//!
//! The stages, one file or folder each: `attr` reads the options, `signature` turns a function into payload fields and
//! injected parameters and rejects what can't be a job, `expand` writes the code, `derive` does all three for a struct.

mod attr;
mod derive;
mod duration;
mod errors;
mod expand;
#[cfg(test)]
mod fuzz;
mod names;
mod signature;

use proc_macro::TokenStream;

// Its docs are on the re-export, where their examples can use emq; a line here would stand below them.
#[allow(missing_docs)]
#[proc_macro_attribute]
pub fn job(options: TokenStream, item: TokenStream) -> TokenStream {
    expand::attribute(options.into(), item.into()).into()
}

#[allow(missing_docs)] // as above
#[proc_macro_derive(Job, attributes(job))]
pub fn derive_job(item: TokenStream) -> TokenStream {
    derive::expand(item.into()).into()
}
