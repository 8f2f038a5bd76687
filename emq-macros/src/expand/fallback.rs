use proc_macro2::TokenStream;
use quote::quote;

use super::Item;

/// Impls that stand in for those that a function with errors can't have, so that its job exists wherever it is used
/// and the errors shown are those of the function alone. They never run: the build has failed.
pub(super) fn expand(item: &Item) -> TokenStream {
    let Item { krate, name, cfg } = item;
    let serde = quote!(#krate::__private::serde);
    quote! {
        #cfg
        impl #serde::Serialize for #name {
            fn serialize<Encoder: #serde::Serializer>(
                &self,
                _: Encoder,
            ) -> ::core::result::Result<Encoder::Ok, Encoder::Error> {
                ::core::unreachable!()
            }
        }

        #cfg
        impl<'de> #serde::Deserialize<'de> for #name {
            fn deserialize<Decoder: #serde::Deserializer<'de>>(
                _: Decoder,
            ) -> ::core::result::Result<Self, Decoder::Error> {
                ::core::unreachable!()
            }
        }

        #cfg
        impl<State: ::core::marker::Send + ::core::marker::Sync + 'static> #krate::Handler<State> for #name {
            async fn run(
                self,
                _: #krate::inject::Scope<State>,
            ) -> ::core::result::Result<#krate::Completion, #krate::JobError> {
                ::core::unreachable!()
            }
        }
    }
}
