use proc_macro2::Ident;
use syn::{Attribute, GenericArgument, Meta, Pat, PatIdent, PatType, PathArguments, Type, visit::Visit};

use super::types::{self, Role};
use crate::{errors::Errors, names};

/// What one parameter of a job is.
pub(crate) enum Parameter {
    /// A field of the generated payload.
    Field(Field),
    /// The payload itself, marked `#[payload]`.
    Whole(Type),
    /// Built by the worker.
    Injected(Injected),
}

/// A field of the generated payload.
pub(crate) struct Field {
    pub(crate) name: Ident,
    pub(crate) ty: Type,
    pub(crate) docs: Vec<Attribute>,
    pub(crate) serde: Vec<Attribute>,
    /// Whether a serde attribute says how it is stored, so that its type needn't be storable by itself.
    pub(crate) stored_specially: bool,
    /// Whether a payload without it decodes, because a serde attribute says so.
    pub(crate) has_default: bool,
}

/// A parameter that the worker builds.
pub(crate) struct Injected {
    pub(crate) ty: Type,
    /// Set if the type's name is why it is injected; then the type must really be emq's.
    pub(crate) known: Option<Known>,
    /// The variables that its pattern makes.
    pub(crate) names: Vec<Ident>,
}

/// The types that are injected by their name.
pub(crate) enum Known {
    JobContext,
    /// With the part of the worker's state that it holds.
    State(Box<Type>),
}

impl Parameter {
    pub(crate) fn field(&self) -> Option<&Field> {
        match self {
            Self::Field(field) => Some(field),
            Self::Whole(_) | Self::Injected(_) => None,
        }
    }

    pub(crate) fn whole(&self) -> Option<&Type> {
        match self {
            Self::Whole(ty) => Some(ty),
            Self::Field(_) | Self::Injected(_) => None,
        }
    }

    /// Sorts one parameter and takes off the attributes that only emq understands.
    ///
    /// Nothing comes back for a parameter that can't be a field of any kind; that is reported.
    pub(super) fn read(parameter: &mut PatType, errors: &mut Errors) -> Option<Self> {
        let marks = Marks::take(parameter, errors);
        let known = Known::of(&parameter.ty);
        match (&marks.payload, &marks.inject) {
            (Some(payload), Some(_)) => {
                errors.at(payload, "a parameter is either the payload or injected: remove `#[payload]` or `#[inject]`");
                return None;
            }
            (Some(_), None) => {
                marks.reject_serde(
                    "the struct of a `#[payload]` parameter has its own serde attributes: write it there",
                    errors,
                );
                return stored_type(&parameter.ty, errors).map(Self::Whole);
            }
            (None, None) if known.is_none() => return Field::read(parameter, marks, errors).map(Self::Field),
            (None, _) => {}
        }
        marks.reject_serde("an injected parameter isn't stored, so serde doesn't see it: remove this", errors);
        if let (Type::Reference(reference), Some(known)) = (&*parameter.ty, &known) {
            errors.at(reference, format!("a job takes `{}` by value: remove the `&`", known.name()));
        } else {
            types::check(&parameter.ty, Role::Injected, errors);
        }
        let known = known.filter(|_| marks.inject.is_none());
        Some(Self::Injected(Injected { ty: (*parameter.ty).clone(), known, names: variables(&parameter.pat) }))
    }
}

impl Field {
    fn read(parameter: &PatType, marks: Marks, errors: &mut Errors) -> Option<Self> {
        let ty = stored_type(&parameter.ty, errors);
        let name = match &*parameter.pat {
            Pat::Ident(PatIdent { by_ref: None, subpat: None, ident, .. }) => ident.clone(),
            Pat::Wild(wild) => {
                errors.at(
                    wild,
                    "a payload parameter becomes a stored field, so it needs a name: write one instead of `_`",
                );
                return None;
            }
            pattern => {
                errors.at(
                    pattern,
                    "a payload parameter becomes a stored field, so it needs a plain name: \
                     take the value apart in the body",
                );
                return None;
            }
        };
        let special = ["with", "serialize_with", "deserialize_with", "skip", "skip_serializing", "skip_deserializing"];
        let says = |keys: &[&str]| {
            marks.serde.iter().any(|attr| match &attr.meta {
                Meta::List(list) => keys.iter().any(|key| names::mentions(&list.tokens, key)),
                _ => false,
            })
        };
        let (stored_specially, has_default) = (says(&special), says(&["default", "skip", "skip_deserializing"]));
        Some(Self { name, ty: ty?, docs: marks.docs, serde: marks.serde, stored_specially, has_default })
    }
}

/// The type of a field, mended if it was rejected; nothing if it can't be the type of any field.
fn stored_type(ty: &Type, errors: &mut Errors) -> Option<Type> {
    let before = errors.count();
    types::check(ty, Role::Payload, errors);
    let mut ty = ty.clone();
    if errors.count() > before {
        types::make_static(&mut ty);
    }
    types::can_be_field(&ty).then_some(ty)
}

impl Known {
    /// Recognised by the last word of the type's path, as the compiler can't be asked while it expands macros. What
    /// follows from a wrong guess is checked by the types later.
    fn of(ty: &Type) -> Option<Self> {
        match ty {
            Type::Paren(inner) => Self::of(&inner.elem),
            Type::Group(inner) => Self::of(&inner.elem),
            Type::Reference(inner) => Self::of(&inner.elem),
            Type::Path(path) if path.qself.is_none() => {
                let last = path.path.segments.last()?;
                match &last.arguments {
                    PathArguments::None if last.ident == "JobContext" => Some(Self::JobContext),
                    PathArguments::AngleBracketed(list) if last.ident == "State" => match list.args.first() {
                        Some(GenericArgument::Type(part)) if list.args.len() == 1 => {
                            Some(Self::State(Box::new(part.clone())))
                        }
                        _ => None,
                    },
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::JobContext => "JobContext",
            Self::State(_) => "State<_>",
        }
    }
}

/// The attributes of a parameter that the compiler doesn't know.
#[derive(Default)]
struct Marks {
    inject: Option<Attribute>,
    payload: Option<Attribute>,
    serde: Vec<Attribute>,
    docs: Vec<Attribute>,
}

impl Marks {
    fn take(parameter: &mut PatType, errors: &mut Errors) -> Self {
        let mut marks = Self::default();
        let mut kept = Vec::new();
        for attr in std::mem::take(&mut parameter.attrs) {
            let Some(name) = attr.path().get_ident().map(ToString::to_string) else {
                kept.push(attr);
                continue;
            };
            match name.as_str() {
                "inject" | "payload" => {
                    let mark = if name == "inject" { &mut marks.inject } else { &mut marks.payload };
                    if mark.is_some() {
                        errors.at(&attr, format!("`#[{name}]` stands here twice: remove one"));
                    } else if !matches!(attr.meta, Meta::Path(_)) {
                        errors.at(&attr, format!("`#[{name}]` takes no options: write it alone"));
                    }
                    *mark = Some(attr);
                }
                "serde" => marks.serde.push(attr),
                "doc" => marks.docs.push(attr),
                "cfg" | "cfg_attr" => {
                    errors
                        .at(&attr, "a job has the same parameters in every build: put the `cfg` on the whole function");
                }
                _ => kept.push(attr),
            }
        }
        parameter.attrs = kept;
        marks
    }

    fn reject_serde(&self, message: &str, errors: &mut Errors) {
        for attr in &self.serde {
            errors.at(attr, message);
        }
    }
}

fn variables(pattern: &Pat) -> Vec<Ident> {
    struct Variables(Vec<Ident>);
    impl Visit<'_> for Variables {
        fn visit_pat_ident(&mut self, pattern: &PatIdent) {
            self.0.push(pattern.ident.clone());
        }
    }
    let mut variables = Variables(Vec::new());
    variables.visit_pat(pattern);
    variables.0
}
