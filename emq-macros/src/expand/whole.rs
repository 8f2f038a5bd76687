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
    let Item { krate, name, cfg } = item;
    let vis = &job.function.vis;
    let docs = payload::docs(job);
    let location = location();
    let quiet = quote!(where for<'quiet> #ty: #krate::Job);
    let serde = quote!(#krate::__private::serde);
    if !job.sound {
        let stubs = fallback::expand(item);
        return quote! {
            #cfg #docs #[allow(missing_debug_implementations, private_interfaces)] #vis struct #name(pub #ty);
            #cfg impl #krate::Job for #name { const NAME: &'static str = ""; }
            #cfg impl ::core::convert::From<#ty> for #name { fn from(payload: #ty) -> Self { Self(payload) } }
            #stubs
        };
    }
    quote! {
        #cfg
        #docs
        #[allow(missing_debug_implementations, private_interfaces)]
        #vis struct #name(pub #ty);

        #cfg
        #[automatically_derived]
        impl ::core::convert::From<#ty> for #name {
            fn from(payload: #ty) -> Self {
                Self(payload)
            }
        }

        #cfg
        #[automatically_derived]
        impl #serde::Serialize for #name #quiet {
            fn serialize<Encoder: #serde::Serializer>(
                &self,
                encoder: Encoder,
            ) -> ::core::result::Result<Encoder::Ok, Encoder::Error> {
                #serde::Serialize::serialize(&self.0, encoder)
            }
        }

        #cfg
        #[automatically_derived]
        impl<'de> #serde::Deserialize<'de> for #name #quiet {
            fn deserialize<Decoder: #serde::Deserializer<'de>>(
                decoder: Decoder,
            ) -> ::core::result::Result<Self, Decoder::Error> {
                ::core::result::Result::map(#serde::Deserialize::deserialize(decoder), Self)
            }
        }

        #cfg
        #[automatically_derived]
        impl #krate::Job for #name #quiet {
            const NAME: &'static str = <#ty as #krate::Job>::NAME;
            const ALIASES: &'static [&'static str] = <#ty as #krate::Job>::ALIASES;
            const OPTIONS: #krate::JobOptions = <#ty as #krate::Job>::OPTIONS;
            const LOCATION: &'static str = #location;
            fn unique_key(&self) -> ::core::option::Option<#krate::__private::String> {
                #krate::Job::unique_key(&self.0)
            }
        }
    }
}
