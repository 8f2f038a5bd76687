//! The code a job function turns into. For
//!
//! ```text
//! #[job(queue = "enrollments")]
//! pub async fn enroll(student: Student, State(db): State<Db>) -> Result<(), Error> { .. }
//! ```
//!
//! that is
//!
//! ```text
//! pub async fn enroll(student: Student, State(db): State<Db>) -> Result<(), Error> { .. }   as written
//! pub struct EnrollJob { pub student: Student }                                             payload
//! impl Job for EnrollJob { NAME, OPTIONS, LOCATION, .. }                                    payload
//! impl Serialize, Deserialize for EnrollJob { .. }                                          wire
//! impl<S> Handler<S> for EnrollJob where Db: FromRef<S> { .. }                              handler
//! ```
//!
//! What is expected of a user's type is asked once, at the user's tokens, and nothing else depends on it: one mistake
//! is one error, there and not where the job is used. Where an impl must depend on such a type all the same, its bound
//! stands under `for<'quiet>`, which the compiler doesn't check at the definition.

mod fallback;
mod handler;
mod payload;
mod whole;
mod wire;

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};

use crate::{
    attr::{Options, Place},
    errors::Errors,
    names,
    signature::{Function, JobFunction},
};

/// Expands `#[job(options)] item`.
pub(crate) fn attribute(options: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::new();
    let function: Function = match syn::parse2(item.clone()) {
        Ok(function) => function,
        Err(error) => {
            errors.push(error);
            return [item, errors.into_tokens()].into_iter().collect();
        }
    };
    let mut read = Options::default();
    read.read(options, Place::Function, &mut errors);
    let job = JobFunction::read(function, &mut read, &mut errors);
    let generated = job.free.then(|| generate(&job, &read, &mut errors));
    let function = &job.function;
    let errors = errors.into_tokens();
    // Whether it awaits anything isn't for its author to choose: a job is `async`.
    quote!(#[allow(clippy::unused_async)] #function #generated #errors)
}

/// Everything that stands beside the function.
fn generate(job: &JobFunction, options: &Options, errors: &mut Errors) -> TokenStream {
    let function = &job.function;
    let item = Item {
        krate: options.krate(),
        name: options.args.clone().unwrap_or_else(|| names::payload(&function.sig.ident)),
        cfg: function.cfgs().map(ToTokens::to_token_stream).collect(),
    };
    let body = match job.whole() {
        Some(ty) => whole::expand(&item, job, ty),
        None => {
            let wire_name = options.wire_name(&names::unraw(&function.sig.ident), &function.sig.ident, errors);
            payload::expand(&item, job, options, &wire_name)
        }
    };
    if !job.sound {
        return body;
    }
    let handler = handler::expand(&item, job);
    quote!(#body #handler)
}

/// What all parts of one expansion share.
struct Item {
    /// The path of emq.
    krate: TokenStream,
    /// The struct.
    name: Ident,
    /// What the function is compiled under, and so everything beside it.
    cfg: TokenStream,
}

/// `file:line:column` of the attribute.
pub(crate) fn location() -> TokenStream {
    quote!(::core::concat!(::core::file!(), ":", ::core::line!(), ":", ::core::column!()))
}

/// The method that makes the deduplication key of these fields, if there are any.
pub(crate) fn unique_key(krate: &TokenStream, fields: &[Ident]) -> Option<TokenStream> {
    (!fields.is_empty()).then(|| {
        quote! {
            fn unique_key(&self) -> ::core::option::Option<#krate::__private::String> {
                #krate::__private::unique_key_of(<Self as #krate::Job>::NAME, &(#(&self.#fields,)*))
            }
        }
    })
}
