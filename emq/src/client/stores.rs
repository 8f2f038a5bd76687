use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    job::QueueName,
    store::{Connection, Store},
};

/// How many are kept: a program that makes up names of queues must not fill its memory with them.
const MOST: usize = 256;

/// The stores of the queues that are in use: the keys of a queue are spelled once, and not for each job.
#[derive(Debug, Default)]
pub(super) struct Stores(Mutex<HashMap<QueueName, Store>>);

impl Stores {
    pub(super) fn of(&self, queue: QueueName, connection: &Arc<Connection>) -> Store {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = known.get(&queue) {
            return store.clone();
        }
        if known.len() == MOST {
            known.clear();
        }
        let store = Store::new(Arc::clone(connection), queue.clone());
        known.insert(queue, store.clone());
        store
    }
}
