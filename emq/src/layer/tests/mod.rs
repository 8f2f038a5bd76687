//! Each layer's promise, with a played service below it and no server.

mod catch_panic;
mod dead_letter;
mod delivery;
mod handler;
mod retry;
mod route;
mod settle;
mod timeout;
mod trace;
mod user;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tower_test::mock::{self, Mock};

use crate::{job::Completion, layer::Delivery, testing};

const SECOND: Duration = Duration::from_secs(1);

/// A service that does what the test tells its handle.
type Played = Mock<Delivery, Completion>;
type Handle = mock::Handle<Delivery, Completion>;

fn delivery() -> Delivery {
    testing::delivery("enroll")
}

/// Says when it is dropped.
#[derive(Clone, Default)]
struct Dropped(Arc<AtomicBool>);

impl Dropped {
    fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    fn guard(&self) -> SetOnDrop {
        SetOnDrop(Arc::clone(&self.0))
    }
}

struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
