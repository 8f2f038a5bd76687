use proc_macro2::TokenStream;
use quote::quote;
use syn::Type;

use super::Item;
use crate::signature::{JobFunction, Known};

/// One constant for each type that something is expected of. Its value is nothing; that it exists is the check, and the
/// error stands at the user's own tokens.
pub(super) fn expand(item: &Item, job: &JobFunction) -> TokenStream {
    let Item { krate, cfg, .. } = item;
    let check =
        |ty: &Type, expected: TokenStream| quote!(#cfg const _: () = <#ty as #krate::__private::#expected>::CHECK;);
    let fields = job.fields().filter(|field| !field.stored_specially).map(|field| check(&field.ty, quote!(Payload)));
    let whole = job.whole().map(|ty| check(ty, quote!(WholePayload)));
    let injected = job.injected().filter_map(|injected| {
        let expected = match injected.known? {
            Known::JobContext => quote!(OurJobContext),
            Known::State => quote!(OurState),
        };
        Some(check(&injected.ty, expected))
    });
    let output = job
        .output
        .as_ref()
        .map(|ty| quote!(#cfg const _: () = { let _ = <#ty as #krate::IntoOutcome>::into_outcome; };));
    quote!(#(#fields)* #whole #(#injected)* #output)
}
