use proc_macro2::TokenStream;
use quote::quote;

use super::{Item, fallback, location, unique_key, wire};
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
    let field_docs = fields.iter().map(|field| {
        let docs = &field.docs;
        quote!(#(#docs)*)
    });
    let docs = docs(job);
    let vis = &job.function.vis;
    let derives = &options.derive;
    let derive = (!derives.is_empty()).then(|| quote!(#[derive(#(#derives),*)]));
    let serde = if job.sound { wire::expand(item, &fields) } else { fallback::expand(item) };
    let was = &options.was;
    let aliases = (!was.is_empty()).then(|| quote!(const ALIASES: &'static [&'static str] = &[#(#was),*];));
    let options_of_job = options.tokens();
    let location = location();
    let recurrence = options.recurrence.method(krate);
    let unique_key = unique_key(krate, &options.unique);
    let unique = options.uniqueness.method(krate, &options.unique);
    quote! {
        #cfg
        #docs
        #derive
        #[allow(missing_docs, missing_debug_implementations, private_interfaces)]
        #vis struct #name { #(#field_docs pub #names: #types),* }

        #serde

        #cfg
        #[automatically_derived]
        impl #krate::Job for #name {
            const NAME: &'static str = #wire_name;
            #aliases
            const OPTIONS: #krate::JobOptions = #options_of_job;
            const LOCATION: &'static str = #location;
            #recurrence
            #unique_key
            #unique
        }
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
