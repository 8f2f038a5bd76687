use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::Item;
use crate::signature::Field;

/// `Serialize` and `Deserialize` for the payload, by serde's own derives.
///
/// The derives stand on a twin of the payload, for their impls depend on the fields' types, and those of the payload
/// must not: `emq/src/job/codec.rs` says why and how.
pub(super) fn expand(item: &Item, fields: &[&Field]) -> TokenStream {
    let Item { krate, name, cfg } = item;
    let private = quote!(#krate::__private);
    let serde = quote!(#private::serde);
    let names = fields.iter().map(|field| &field.name);
    let types = fields.iter().map(|field| &field.ty);
    let attrs = fields.iter().map(|field| {
        let attrs = &field.serde;
        quote!(#(#attrs)*)
    });
    // A field that serde stores in a special way needs nothing of its type.
    let plain: Vec<_> = fields.iter().filter(|field| !field.stored_specially).map(|field| &field.ty).collect();
    // The derives take bounds as text; by these names it need not repeat the user's tokens, so that a misspelt type is
    // one error and not several.
    let aliases: Vec<Ident> = (0..plain.len()).map(|index| format_ident!("__Field{index}")).collect();
    let bounds = |of: &str| {
        let bounds = aliases.iter().map(|alias| format!("for<'quiet> {alias}: {serde}::{of}"));
        bounds.collect::<Vec<_>>().join(", ")
    };
    let (serialize, deserialize) = (bounds("Serialize"), bounds("Deserialize<'de>"));
    let (serde_path, remote) = (serde.to_string(), name.to_string());
    quote! {
        #cfg
        const _: () = {
            #(const _: () = <#plain as #private::Payload>::CHECK;)*
            #(type #aliases = #plain;)*

            #[derive(#serde::Serialize, #serde::Deserialize)]
            #[serde(
                crate = #serde_path,
                remote = #remote,
                bound(serialize = #serialize, deserialize = #deserialize)
            )]
            struct __Twin { #(#attrs #names: #types),* }

            #[automatically_derived]
            impl #private::Wire for #name
            where
                #(for<'quiet> #aliases: #serde::Serialize + #serde::de::DeserializeOwned,)*
            {
                fn encode<Encoder: #serde::Serializer>(
                    &self,
                    encoder: Encoder,
                ) -> ::core::result::Result<Encoder::Ok, Encoder::Error> {
                    __Twin::serialize(self, encoder)
                }

                fn decode<'de, Decoder: #serde::Deserializer<'de>>(
                    decoder: Decoder,
                ) -> ::core::result::Result<Self, Decoder::Error> {
                    __Twin::deserialize(decoder)
                }
            }

            #[allow(unused_imports)]
            use #private::NoWire as _;

            #[automatically_derived]
            impl #serde::Serialize for #name {
                fn serialize<Encoder: #serde::Serializer>(
                    &self,
                    encoder: Encoder,
                ) -> ::core::result::Result<Encoder::Ok, Encoder::Error> {
                    #private::Codec::<#name>::encode(self, encoder)
                }
            }

            #[automatically_derived]
            impl<'de> #serde::Deserialize<'de> for #name {
                fn deserialize<Decoder: #serde::Deserializer<'de>>(
                    decoder: Decoder,
                ) -> ::core::result::Result<Self, Decoder::Error> {
                    #private::Codec::<#name>::decode(decoder)
                }
            }
        };
    }
}
