//! Jobs in function bodies, in modules, under `cfg`, of every visibility, and made by macros.
#![deny(warnings, unreachable_pub, missing_docs, missing_debug_implementations, unused_qualifications, single_use_lifetimes)]
#![deny(unused_results, trivial_casts, variant_size_differences, unused_lifetimes, missing_copy_implementations)]
#![deny(elided_lifetimes_in_paths, unnameable_types, rust_2018_idioms, let_underscore_drop, explicit_outlives_requirements)]
#![forbid(unsafe_code)]

use emq::job;

/// A public job.
#[job]
pub async fn public(student: u32, note: Option<String>) {
    drop((student, note));
}

#[job]
async fn private(student: u32) {
    let _ = student;
}

#[allow(missing_copy_implementations)]
struct Private;

#[allow(private_interfaces)]
/// A public function that shares a type with this crate alone.
#[job]
pub async fn half(student: Student, emq::State(_): emq::State<std::sync::Arc<Hidden>>) {
    let _ = student;
}

/// Half hidden.
#[derive(serde::Serialize, serde::Deserialize)]
#[allow(missing_debug_implementations)]
struct Student(u32);

#[allow(missing_debug_implementations)]
struct Hidden;

mod jobs {
    /// In a module.
    #[emq::job]
    pub(crate) async fn shared(student: u32) {
        let _ = student;
    }

    pub(in crate::jobs) mod inner {
        #[emq::job]
        pub(super) async fn above(student: u32) {
            let _ = (student, super::super::Private);
        }
    }

    pub(crate) fn register() {
        super::register::<inner::AboveJob>();
        drop(inner::above(1));
    }
}

#[job]
#[cfg(any())]
async fn absent(student: Missing) {}

#[deprecated = "use another"]
#[job]
async fn old(student: u32) {
    let _ = student;
}

macro_rules! jobs {
    ($name:ident, $field:ident: $ty:ty, $queue:literal) => {
        #[job(queue = $queue, unique = $field)]
        async fn $name($field: $ty, local: $crate::Student) {
            let _ = ($field, local.0);
        }
    };
}

jobs!(made, student: Option<u32>, "mail");

fn register<J: emq::Handler<()>>() {}

fn main() {
    #[job]
    async fn local(student: u32) {
        let _ = student;
    }
    register::<PublicJob>();
    drop(half(Student(1), emq::State(std::sync::Arc::new(Hidden))));
    register::<PrivateJob>();
    register::<jobs::SharedJob>();
    register::<LocalJob>();
    register::<OldJob>();
    register::<MadeJob>();
    jobs::register();
}
