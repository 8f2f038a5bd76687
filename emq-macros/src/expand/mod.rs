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
//! #[derive(Serialize, Deserialize)] pub struct EnrollJob { pub student: Student }           payload
//! impl Job for EnrollJob { NAME, OPTIONS, LOCATION, .. }                                    payload
//! impl<S> Handler<S> for EnrollJob where State<Db>: FromContext<S> { .. }                   handler
//! const _: () = <Student as Payload>::CHECK;                                                checks
//! ```
//!
//! The impls are quiet: where one depends on a user's type, a bound under `for<'quiet>` says so, which the compiler
//! doesn't check at the definition. So a type that doesn't fit is one error, that of the check, in our words.

mod checks;
mod fallback;
mod handler;
mod payload;
mod whole;

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
            let errors = errors.into_tokens();
            return quote!(#item #errors);
        }
    };
    let mut read = Options::default();
    read.read(options, Place::Function, &mut errors);
    let job = JobFunction::read(function, &mut read, &mut errors);
    let generated = job.free.then(|| generate(&job, &read, &mut errors));
    let function = &job.function;
    let errors = errors.into_tokens();
    quote!(#function #generated #errors)
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
    let checks = checks::expand(&item, job);
    quote!(#body #handler #checks)
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

impl Item {
    /// A private name for the type of the field at `index`.
    ///
    /// The bounds of serde's derives are given as text. By this name they need not repeat the user's tokens, so that a
    /// misspelt type is one error and not several.
    fn alias(&self, index: usize) -> Ident {
        Ident::new(&format!("__{}{index}", names::unraw(&self.name)), self.name.span())
    }
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

/// What `Job` demands of its type, so that the impl is quiet where the type doesn't have it.
pub(crate) fn quiet_job_bounds(krate: &TokenStream, name: &Ident) -> TokenStream {
    quote! {
        for<'quiet> #name: #krate::__private::serde::Serialize
            + #krate::__private::serde::de::DeserializeOwned
            + ::core::marker::Send
    }
}
