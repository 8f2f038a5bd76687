use proc_macro2::TokenStream;
use quote::quote;
use syn::Type;

use super::{Item, fallback, location, payload};
use crate::signature::JobFunction;

/// The job of a function with a `#[payload]`: a newtype around the payload.
///
/// `impl Handler<S> for SendEmail` may stand only in the crate of `SendEmail`. The newtype is what the handler's crate
/// owns; on the wire it is the payload itself, under the payload's name.
pub(super) fn expand(item: &Item, job: &JobFunction, ty: &Type) -> TokenStream {
    let Item { name, cfg, .. } = item;
    let vis = &job.function.vis;
    let docs = payload::docs(job);
    let impls = if job.sound { impls(item, ty) } else { stubs(item) };
    quote! {
        #cfg
        #docs
        #[allow(missing_docs, missing_debug_implementations, private_interfaces)]
        #vis struct #name(pub #ty);

        #cfg
        #[automatically_derived]
        impl ::core::convert::From<#ty> for #name {
            fn from(payload: #ty) -> Self {
                Self(payload)
            }
        }

        #impls
    }
}

fn impls(item: &Item, ty: &Type) -> TokenStream {
    let Item { krate, name, cfg } = item;
    let serde = quote!(#krate::__private::serde);
    let payload = quote!(<#ty as #krate::__private::WholePayload>);
    let location = location();
    quote! {
        #cfg
        #[automatically_derived]
        impl #serde::Serialize for #name {
            fn serialize<Encoder: #serde::Serializer>(
                &self,
                encoder: Encoder,
            ) -> ::core::result::Result<Encoder::Ok, Encoder::Error> {
                #payload::encode(&self.0, encoder)
            }
        }

        #cfg
        #[automatically_derived]
        impl<'de> #serde::Deserialize<'de> for #name {
            fn deserialize<Decoder: #serde::Deserializer<'de>>(
                decoder: Decoder,
            ) -> ::core::result::Result<Self, Decoder::Error> {
                ::core::result::Result::map(#payload::decode(decoder), Self)
            }
        }

        #cfg
        #[automatically_derived]
        impl #krate::Job for #name {
            const NAME: &'static str = #payload::NAME;
            const ALIASES: &'static [&'static str] = #payload::ALIASES;
            const OPTIONS: #krate::JobOptions = #payload::OPTIONS;
            const LOCATION: &'static str = #location;
            fn unique_key(&self) -> ::core::option::Option<#krate::__private::String> {
                #payload::unique_key(&self.0)
            }
            fn unique(&self) -> ::core::option::Option<#krate::Unique> {
                #payload::unique(&self.0)
            }
        }
    }
}

fn stubs(item: &Item) -> TokenStream {
    let Item { krate, name, cfg } = item;
    let stubs = fallback::expand(item);
    quote! {
        #cfg
        impl #krate::Job for #name {
            const NAME: &'static str = "";
        }

        #stubs
    }
}
