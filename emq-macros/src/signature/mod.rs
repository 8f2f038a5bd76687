//! What a function says about its job: which parameters are stored, which are injected, and what can't be a job.

mod item;
mod parameter;
mod types;

use quote::ToTokens;
use syn::{FnArg, GenericParam, Ident, ReturnType, Type};

pub(crate) use self::{
    item::Function,
    parameter::{Field, Injected, Known, Parameter},
};
use crate::{attr::Options, errors::Errors, names};

/// A function that is, or was meant to be, a job.
pub(crate) struct JobFunction {
    /// As written, without the attributes that only emq understands.
    pub(crate) function: Function,
    /// In the order of the call. Incomplete if the function isn't sound.
    pub(crate) parameters: Vec<Parameter>,
    /// The return type, if there is one that can be written down again.
    pub(crate) output: Option<Type>,
    /// Whether it had no errors, so that it can be called.
    pub(crate) sound: bool,
    /// Whether items can stand beside it: not in an `impl` or a trait.
    pub(crate) free: bool,
}

impl JobFunction {
    /// Sorts the parameters and reports everything that can't be part of a job.
    pub(crate) fn read(mut function: Function, options: &mut Options, errors: &mut Errors) -> Self {
        let before = errors.count();
        let free = check_place(&function, errors);
        check_qualifiers(&mut function, errors);
        check_function_attributes(&mut function, errors);
        let before_types = errors.count();
        let mut parameters = Vec::new();
        for input in &mut function.sig.inputs {
            if let FnArg::Typed(parameter) = input {
                parameters.extend(Parameter::read(parameter, errors));
            }
        }
        let repeated = drop_repeated_fields(&mut parameters);
        // With the references gone, the lifetime goes too: one mistake, one error.
        let explained = errors.count() > before_types
            && function.sig.generics.params.iter().all(|parameter| matches!(parameter, GenericParam::Lifetime(_)));
        if !explained {
            check_generics(&function, errors);
        }
        check_combination(&function, &parameters, errors);
        if let ReturnType::Type(_, ty) = &function.sig.output
            && matches!(**ty, Type::Never(_))
        {
            errors.at(ty, "a job ends: let it return `()` or `Result<T, E>`");
        }
        let sound = errors.count() == before && !repeated;
        if !sound {
            drop_generic_fields(&function, &mut parameters);
        }
        let output = types::nameable_output(&function.sig.output).cloned();
        let job = Self { function, parameters, output, sound, free };
        job.check_options(options, errors);
        job
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = &Field> {
        self.parameters.iter().filter_map(Parameter::field)
    }

    /// The type of the `#[payload]` parameter.
    pub(crate) fn whole(&self) -> Option<&Type> {
        self.parameters.iter().find_map(Parameter::whole)
    }

    fn check_options(&self, options: &mut Options, errors: &mut Errors) {
        if self.whole().is_some() {
            options.reject_beside_payload(errors);
            // They are answered for: their content would only lead to further errors.
            options.unique.clear();
            options.was.clear();
            return;
        }
        let fields: Vec<Ident> = self.fields().map(|field| field.name.clone()).collect();
        let injected = |name: &Ident| {
            let found = self.parameters.iter().any(|parameter| match parameter {
                Parameter::Injected(injected) => injected.names.contains(name),
                _ => false,
            });
            found.then(|| format!("`unique` names fields of the payload, and `{name}` is injected: remove it"))
        };
        if self.sound {
            options.check_defaults(self.fields().filter(|field| !field.has_default).map(|field| &field.name), errors);
            options.check_unique(&fields, injected, errors);
        } else {
            options.unique.clear();
        }
    }
}

/// Whether other items can stand beside the function.
fn check_place(function: &Function, errors: &mut Errors) -> bool {
    if let Some(receiver) = function.sig.receiver() {
        errors
            .at(receiver, "a job can't take `self`: make it a free function and take the worker's data as `State<T>`");
        return false;
    }
    if !function.has_body() {
        errors.at(&function.sig.ident, "a job needs a body: write it on a free function, not in a trait");
        return false;
    }
    true
}

/// Checks the words before `fn`, and takes off those that the compiler would complain of a second time.
fn check_qualifiers(function: &mut Function, errors: &mut Errors) {
    let sig = &mut function.sig;
    if let Some(word) = sig.constness.take() {
        errors.at(word, "a job can't be `const`: remove this");
    }
    if let Some(word) = &sig.unsafety {
        errors.at(word, "a job can't be `unsafe`, since the worker calls it: remove this");
    }
    if let Some(abi) = sig.abi.take() {
        errors.at(abi, "a job can't be `extern`: remove this");
    }
    if let Some(dots) = sig.variadic.take() {
        errors.at(dots, "a job can't take a variable number of arguments: take a `Vec`");
    }
    if sig.asyncness.is_none() {
        errors.at(sig.fn_token, "a job must be `async`: write `async fn`");
    }
}

fn check_function_attributes(function: &mut Function, errors: &mut Errors) {
    function.attrs.retain(|attr| {
        let Some(name) = ["serde", "inject", "payload"].into_iter().find(|name| attr.path().is_ident(name)) else {
            return true;
        };
        errors.at(attr, format!("`#[{name}]` belongs to one of the parameters: write it there"));
        false
    });
}

fn check_generics(function: &Function, errors: &mut Errors) {
    const MESSAGE: &str =
        "a job can't be generic, since its payload is decoded without knowing the parameters: name the types";
    let generics = &function.sig.generics;
    if !generics.params.is_empty() {
        errors.at(generics, MESSAGE);
    } else if let Some(clause) = &generics.where_clause {
        errors.at(clause, "a job has no type parameters, so it needs no `where`: remove it");
    }
}

fn check_combination(function: &Function, parameters: &[Parameter], errors: &mut Errors) {
    let contexts = parameters.iter().filter_map(|parameter| match parameter {
        Parameter::Injected(Injected { known: Some(Known::JobContext), ty, .. }) => Some(ty),
        _ => None,
    });
    for second in contexts.skip(1) {
        errors.at(second, "a job takes `JobContext` once: remove this parameter");
    }
    let payloads: Vec<&Type> = parameters.iter().filter_map(Parameter::whole).collect();
    for second in payloads.iter().skip(1) {
        errors.at(second, "a job has one `#[payload]`: remove this parameter, or put both into one struct");
    }
    if payloads.is_empty() {
        return;
    }
    let function = &function.sig.ident;
    for name in parameters.iter().filter_map(Parameter::field).map(|field| &field.name) {
        let message = format!(
            "`{function}` has a `#[payload]`, which is all that is stored: \
             make `{name}` a field of it, or mark it `#[inject]`"
        );
        errors.at(name, message);
    }
}

/// Drops all but the first field of each name, and says whether there were more. It is the compiler that complains of
/// them, as of any function.
fn drop_repeated_fields(parameters: &mut Vec<Parameter>) -> bool {
    let before = parameters.len();
    let mut seen: Vec<Ident> = Vec::new();
    parameters.retain(|parameter| match parameter {
        Parameter::Field(field) if seen.contains(&field.name) => false,
        Parameter::Field(field) => {
            seen.push(field.name.clone());
            true
        }
        _ => true,
    });
    parameters.len() < before
}

/// Without the type parameters there is no way to write these fields' types down.
fn drop_generic_fields(function: &Function, parameters: &mut Vec<Parameter>) {
    let names: Vec<String> = function
        .sig
        .generics
        .params
        .iter()
        .filter_map(|parameter| match parameter {
            GenericParam::Type(parameter) => Some(names::unraw(&parameter.ident)),
            GenericParam::Const(parameter) => Some(names::unraw(&parameter.ident)),
            GenericParam::Lifetime(_) => None,
        })
        .collect();
    parameters.retain(|parameter| match parameter {
        Parameter::Field(field) => !names.iter().any(|name| names::mentions(&field.ty.to_token_stream(), name)),
        _ => true,
    });
}
