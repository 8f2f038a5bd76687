use syn::{
    Lifetime, ReturnType, Type, TypeReference,
    visit::{self, Visit},
    visit_mut::{self, VisitMut},
};

use crate::errors::Errors;

const OWNED: &str = "a payload must be owned, since it outlives the caller";

/// What a parameter's type is used for.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Role {
    /// It is stored with the job.
    Payload,
    /// It is built from the worker's state and the run.
    Injected,
}

/// Reports what can't stand in the type of a parameter, each at its place.
pub(super) fn check(ty: &Type, role: Role, errors: &mut Errors) {
    Checker { role, errors }.visit_type(ty);
}

struct Checker<'a> {
    role: Role,
    errors: &'a mut Errors,
}

impl Visit<'_> for Checker<'_> {
    fn visit_type(&mut self, ty: &Type) {
        let stored = self.role == Role::Payload;
        match ty {
            Type::Reference(reference) if stored => self.errors.at(reference, owned(reference)),
            Type::Reference(reference) if reference.lifetime.is_none() => {
                self.errors.at(reference, "an injected parameter must be owned: take the value itself, without `&`");
            }
            Type::ImplTrait(_) => {
                self.errors.at(ty, "a job's parameters have one type each, so this can't be `impl`: name the type");
            }
            Type::TraitObject(_) if stored => {
                self.errors.at(ty, "a trait object can't be stored in a payload: name the type");
            }
            Type::Infer(_) => self.errors.at(ty, "a job's parameters have one type each: name the type"),
            // What these hold is no part of the value, so a lifetime in them is harmless.
            Type::TraitObject(_) | Type::BareFn(_) => {}
            _ => visit::visit_type(self, ty),
        }
    }

    fn visit_lifetime(&mut self, lifetime: &Lifetime) {
        if lifetime.ident != "static" {
            let message = match self.role {
                Role::Payload => format!("{OWNED}: only `'static` can stand here"),
                Role::Injected => "an injected parameter must be owned: only `'static` can stand here".to_owned(),
            };
            self.errors.at(lifetime, message);
        }
    }
}

fn owned(reference: &TypeReference) -> String {
    let instead = match &*reference.elem {
        Type::Path(path) if path.path.is_ident("str") => "write `String`",
        Type::Slice(_) => "write a `Vec`",
        _ => "take the value itself, without `&`",
    };
    format!("{OWNED}: {instead}")
}

/// Whether a struct can have a field of this type at all, once [`make_static`] has mended the lifetimes.
pub(super) fn can_be_field(ty: &Type) -> bool {
    struct Finder {
        found: bool,
    }
    impl Visit<'_> for Finder {
        fn visit_type(&mut self, ty: &Type) {
            self.found |= matches!(ty, Type::ImplTrait(_) | Type::Infer(_) | Type::Never(_));
            visit::visit_type(self, ty);
        }
    }
    let mut finder = Finder { found: matches!(ty, Type::TraitObject(_) | Type::Slice(_)) };
    finder.visit_type(ty);
    !finder.found
}

/// Makes every lifetime `'static`, so that a type that was rejected for its lifetime can still be a field.
pub(super) fn make_static(ty: &mut Type) {
    struct Mender;
    impl VisitMut for Mender {
        fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
            reference.lifetime.get_or_insert_with(|| Lifetime::new("'static", proc_macro2::Span::call_site()));
            visit_mut::visit_type_reference_mut(self, reference);
        }

        fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
            *lifetime = Lifetime::new("'static", lifetime.span());
        }
    }
    Mender.visit_type_mut(ty);
}

/// The type a function returns if it can be written down a second time: neither `impl Trait` nor a lifetime left to
/// the compiler can.
pub(super) fn nameable_output(output: &ReturnType) -> Option<&Type> {
    struct Finder {
        found: bool,
    }
    impl Visit<'_> for Finder {
        fn visit_type(&mut self, ty: &Type) {
            self.found |= match ty {
                Type::Reference(reference) => reference.lifetime.is_none(),
                ty => matches!(ty, Type::ImplTrait(_) | Type::Infer(_)),
            };
            visit::visit_type(self, ty);
        }

        fn visit_lifetime(&mut self, lifetime: &Lifetime) {
            self.found |= lifetime.ident != "static";
        }
    }
    let ReturnType::Type(_, ty) = output else { return None };
    let mut finder = Finder { found: false };
    finder.visit_type(ty);
    (!finder.found).then_some(&**ty)
}
