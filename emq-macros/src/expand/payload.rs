use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::{Item, fallback, location, quiet_job_bounds, unique_key};
use crate::{
    attr::Options,
    signature::{Field, JobFunction},
};

/// The struct with the payload parameters as its fields, and what makes it a job.
pub(super) fn expand(item: &Item, job: &JobFunction, options: &Options, wire_name: &str) -> TokenStream {
    let Item { krate, name, cfg } = item;
    let fields: Vec<&Field> = job.fields().collect();
    let names = fields.iter().map(|field| &field.name);
    let types = fields.iter().map(|field| &field.ty);
    let attrs = fields.iter().map(|field| {
        let attrs = &field.attrs;
        // Without the derives of serde its attributes would be unknown.
        let shown = attrs.iter().filter(|attr| job.sound || attr.path().is_ident("doc"));
        quote!(#(#shown)*)
    });
    let docs = docs(job);
    let vis = &job.function.vis;
    let derives = &options.derive;
    let derive = (!derives.is_empty()).then(|| quote!(#[derive(#(#derives),*)]));
    let serde = if job.sound { derive_serde(item, &fields) } else { Serde::default() };
    let Serde { aliases, attribute } = serde;
    let stubs = (!job.sound).then(|| fallback::expand(item));
    let bounds = quiet_job_bounds(krate, name);
    let was = &options.was;
    let aliases_of_job = (!was.is_empty()).then(|| quote!(const ALIASES: &'static [&'static str] = &[#(#was),*];));
    let options_of_job = options.tokens();
    let location = location();
    let unique_key = unique_key(krate, &options.unique);
    quote! {
        #aliases
        #cfg
        #docs
        #attribute
        #derive
        #[allow(missing_docs, missing_debug_implementations, private_interfaces)]
        #vis struct #name { #(#attrs pub #names: #types),* }

        #cfg
        #[automatically_derived]
        impl #krate::Job for #name where #bounds {
            const NAME: &'static str = #wire_name;
            #aliases_of_job
            const OPTIONS: #krate::JobOptions = #options_of_job;
            const LOCATION: &'static str = #location;
            #unique_key
        }

        #stubs
    }
}

/// The function's docs, or a line in their place.
pub(super) fn docs(job: &JobFunction) -> TokenStream {
    let docs: Vec<_> = job.function.attrs.iter().filter(|attr| attr.path().is_ident("doc")).collect();
    if docs.is_empty() {
        let line = format!(" The payload of the job `{}`.", job.function.sig.ident);
        quote!(#[doc = #line])
    } else {
        quote!(#(#docs)*)
    }
}

#[derive(Default)]
struct Serde {
    /// Goes before the struct.
    aliases: TokenStream,
    /// Goes on the struct.
    attribute: TokenStream,
}

/// serde's derives, with bounds that keep them quiet about a field's type.
fn derive_serde(item: &Item, fields: &[&Field]) -> Serde {
    let Item { krate, cfg, .. } = item;
    let serde = quote!(#krate::__private::serde);
    let path = serde.to_string();
    let plain = fields.iter().enumerate().filter(|(_, field)| !field.stored_specially);
    let (indices, types): (Vec<usize>, Vec<_>) = plain.map(|(index, field)| (index, &field.ty)).unzip();
    let aliases: Vec<Ident> = indices.iter().map(|index| item.alias(*index)).collect();
    let bounds = |of: &str| {
        aliases.iter().map(|alias| format!("for<'quiet> {alias}: {path}::{of}")).collect::<Vec<_>>().join(", ")
    };
    let (serialize, deserialize) = (bounds("Serialize"), bounds("Deserialize<'de>"));
    Serde {
        aliases: quote!(#(#cfg #[doc(hidden)] type #aliases = #types;)*),
        attribute: quote! {
            #[derive(#serde::Serialize, #serde::Deserialize)]
            #[serde(crate = #path, bound(serialize = #serialize, deserialize = #deserialize))]
        },
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    #[test]
    fn docs_of_the_function_and_of_its_parameters_reach_the_payload() {
        let function = quote! {
            /// Greets somebody.
            async fn greet(
                /// Who is greeted.
                name: String,
                /// Not stored.
                ctx: JobContext,
            ) {}
        };
        let code = crate::expand::attribute(quote!(), function).to_string();
        assert_eq!(code.matches("Greets somebody.").count(), 2, "on the function and on the struct: {code}");
        assert_eq!(code.matches("Who is greeted.").count(), 1, "on the field: {code}");
        assert_eq!(code.matches("Not stored.").count(), 0, "{code}");
    }
}
