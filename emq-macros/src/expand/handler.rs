use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{GenericArgument, PathArguments, ReturnType, Type};

use super::Item;
use crate::{
    names,
    signature::{JobFunction, Known, Parameter},
};

/// How a worker runs the job: take the payload apart, build what is injected, call the function.
pub(super) fn expand(item: &Item, job: &JobFunction) -> TokenStream {
    let Item { krate, name, cfg } = item;
    let function = &job.function.sig.ident;
    let inputs = &job.function.sig.inputs;
    let output = job.output.as_ref();
    let state = names::fresh("S", &quote!(#inputs #output #krate #name));
    let scope = local("__scope", None);
    // As hygienic as a local variable: both places need the same span.
    let this = local("self", None);
    let mut arguments = Vec::new();
    let mut taken = Vec::new();
    let mut built = Vec::new();
    let mut bounds = Vec::new();
    for (index, parameter) in job.parameters.iter().enumerate() {
        let value = local("__value", Some(index));
        match parameter {
            Parameter::Field(field) => {
                let field = &field.name;
                taken.push(quote!(#field: #value));
            }
            Parameter::Whole(_) => taken.push(quote!(0: #value)),
            Parameter::Injected(injected) => {
                let ty = &injected.ty;
                let (build, needs) = match &injected.known {
                    Some(Known::JobContext) => (quote!(<#ty as #krate::__private::OurJobContext>::of(&#scope)), None),
                    Some(Known::State(part)) => (
                        quote!(<#ty as #krate::__private::OurState<#state>>::of(&#scope)),
                        Some(quote!(#part: #krate::FromRef<#state>)),
                    ),
                    None => (
                        quote!(<#ty as #krate::inject::FromContext<#state>>::from_context(&#scope)?),
                        Some(quote!(#ty: #krate::inject::FromContext<#state>)),
                    ),
                };
                built.push(quote!(let #value = #build;));
                bounds.extend(needs);
            }
        }
        arguments.push(value);
    }
    let call = quote!(#function(#(#arguments),*).await);
    // By the type as the user wrote it, so that one that doesn't fit is reported there.
    let outcome = match output {
        Some(ty) => quote!(<#ty as #krate::IntoOutcome>::into_outcome(#call)),
        None => quote!(#krate::IntoOutcome::into_outcome(#call)),
    };
    let scope_parameter = if built.is_empty() { quote!(_) } else { quote!(#scope) };
    let run = quote! {
        let Self { #(#taken),* } = #this;
        #(#built)*
        #outcome
    };
    // A future that isn't `Send` is reported where its type stands: at the function's name.
    let future = quote_spanned! {function.span()=>
        impl ::core::future::Future<Output = ::core::result::Result<#krate::Completion, #krate::JobError>>
            + ::core::marker::Send
            + 'static
    };
    let returns = result(krate, job).map(|(result, bound)| {
        quote! {
            #cfg
            #[automatically_derived]
            #[allow(deprecated)]
            impl #krate::Returns for #name #bound {
                type Output = #result;
            }
        }
    });
    quote! {
        #returns

        #cfg
        #[automatically_derived]
        #[allow(deprecated)]
        impl<#state> #krate::Handler<#state> for #name
        where
            #state: ::core::marker::Send + ::core::marker::Sync + 'static,
            #(#bounds,)*
        {
            fn run(
                #this,
                #scope_parameter: #krate::inject::Scope<#state>,
            ) -> #future {
                async move { #run }
            }
        }
    }
}

/// The type of the job's result, if it can be named, and the bound that it needs.
fn result(krate: &TokenStream, job: &JobFunction) -> Option<(TokenStream, Option<TokenStream>)> {
    let output = match (&job.function.sig.output, &job.output) {
        (ReturnType::Default, _) => return Some((quote!(()), None)),
        (ReturnType::Type(..), output) => output.as_ref()?,
    };
    // Of a `Result<T, E>` the `T` itself: the error may be a type that only the function can name. What has one parameter
    // is an alias, of which nothing is known here.
    if let Type::Path(path) = output
        && let Some(last) = path.path.segments.last()
        && last.ident == "Result"
        && let PathArguments::AngleBracketed(list) = &last.arguments
        && list.args.len() == 2
        && let Some(GenericArgument::Type(result)) = list.args.first()
    {
        return Some((quote!(#result), None));
    }
    let result_of = quote!(#krate::__private::ResultOf);
    Some((quote!(<#output as #result_of>::Type), Some(quote!(where for<'quiet> #output: #result_of))))
}

/// A variable that no name of the user's means. Its span keeps other variables away, its underscores constants.
fn local(base: &str, index: Option<usize>) -> Ident {
    let index = index.map(|index| index.to_string()).unwrap_or_default();
    Ident::new(&format!("{base}{index}"), Span::mixed_site())
}
