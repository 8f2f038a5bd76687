//! `#[derive(Job)]`: for a payload whose struct is written out, usually because its producer lives in another crate
//! than its handler.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{Data, DeriveInput, Meta};

use crate::{
    attr::{Options, Place},
    errors::Errors,
    expand, names,
};

pub(crate) fn expand(item: TokenStream) -> TokenStream {
    let mut errors = Errors::new();
    let generated = match syn::parse2::<DeriveInput>(item) {
        Ok(input) => generate(&input, &mut errors),
        Err(error) => {
            errors.push(error);
            TokenStream::new()
        }
    };
    let errors = errors.into_tokens();
    quote!(#generated #errors)
}

fn generate(input: &DeriveInput, errors: &mut Errors) -> TokenStream {
    let name = &input.ident;
    let mut options = read_options(input, errors);
    let fields: Vec<Ident> = match &input.data {
        Data::Struct(data) => data.fields.iter().filter_map(|field| field.ident.clone()).collect(),
        Data::Enum(data) => {
            errors.at(data.enum_token, "a job's payload is a struct: put the enum into a field of one");
            return TokenStream::new();
        }
        Data::Union(data) => {
            errors.at(data.union_token, "a job's payload is a struct: a union can't be stored");
            return TokenStream::new();
        }
    };
    if !input.generics.params.is_empty() {
        errors.at(
            &input.generics,
            "a job can't be generic, since its payload is decoded without knowing the parameters: name the types",
        );
        return TokenStream::new();
    }
    let wire_name = options.wire_name(&names::snake(&names::unraw(name)), name, errors);
    options.check_unique(&fields, |_| None, errors);
    let krate = options.krate();
    let serde = quote!(#krate::__private::serde);
    let was = &options.was;
    let aliases = (!was.is_empty()).then(|| quote!(const ALIASES: &'static [&'static str] = &[#(#was),*];));
    let location = expand::location();
    let unique_key = expand::unique_key(&krate, &options.unique);
    let unique = options.uniqueness.method(&krate, &options.unique);
    let options = options.tokens();
    quote! {
        #[automatically_derived]
        impl #krate::Job for #name
        where
            // Quiet, so that a struct without them is one error: the check below.
            for<'quiet> #name: #serde::Serialize + #serde::de::DeserializeOwned + ::core::marker::Send,
        {
            const NAME: &'static str = #wire_name;
            #aliases
            const OPTIONS: #krate::JobOptions = #options;
            const LOCATION: &'static str = #location;
            #unique_key
            #unique
        }

        const _: () = <#name as #krate::__private::StoredStruct>::CHECK;
    }
}

/// Reads the `#[job(..)]` of the struct, which may be several.
fn read_options(input: &DeriveInput, errors: &mut Errors) -> Options {
    let mut options = Options::default();
    for attr in input.attrs.iter().filter(|attr| attr.path().is_ident("job")) {
        match &attr.meta {
            Meta::List(list) => options.read(list.tokens.clone(), Place::Struct, errors),
            Meta::Path(_) | Meta::NameValue(_) => {
                errors.at(attr, "the options of a job stand in parentheses, like `#[job(queue = \"mail\")]`");
            }
        }
    }
    if let Data::Struct(data) = &input.data {
        for attr in data.fields.iter().flat_map(|field| &field.attrs).filter(|attr| attr.path().is_ident("job")) {
            errors.at(attr, "a field has no `#[job(..)]`: write it on the struct");
        }
    }
    options
}
