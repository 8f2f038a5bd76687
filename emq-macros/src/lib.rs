//! Macros of emq: see the docs of `emq::job`.
use proc_macro::TokenStream;
/// Docs are on `emq::job`.
#[proc_macro_attribute]
pub fn job(_options: TokenStream, item: TokenStream) -> TokenStream {
    item
}
/// Docs are on `emq::Job`.
#[proc_macro_derive(Job, attributes(job))]
pub fn derive_job(_item: TokenStream) -> TokenStream {
    TokenStream::new()
}
