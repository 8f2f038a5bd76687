//! What an operator is warned of.

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex};

use emq::Client;
use support::Server;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Keeps the warnings of this thread.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<String>>);

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, "{field}={value:?} ").unwrap();
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN && metadata.target().starts_with("emq")
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        event.record(&mut Fields(&mut self.0.lock().unwrap()));
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// The warnings while a client connects.
async fn warnings(url: &str, user: Option<&str>) -> String {
    let warnings = Warnings::default();
    let listening = tracing::subscriber::set_default(warnings.clone());
    let mut builder = Client::builder(url);
    if let Some(user) = user {
        builder = builder.credentials(user, "secret");
    }
    let client = builder.connect().await.unwrap();
    drop(listening);
    client.close().await;
    let text = warnings.0.lock().unwrap();
    text.clone()
}

#[tokio::test]
async fn of_a_server_that_may_evict_jobs() {
    for policy in ["allkeys-lru", "volatile-ttl", "allkeys-random"] {
        let server = Server::builder().config("maxmemory-policy", policy).start().await;
        let text = warnings(&server.url(), None).await;
        assert!(text.contains(policy) && text.contains("set maxmemory-policy noeviction"), "{policy}: {text:?}");
    }
    let server = Server::builder().config("maxmemory-policy", "noeviction").start().await;
    assert!(!warnings(&server.url(), None).await.contains("noeviction"));
}

#[tokio::test]
async fn once_of_a_server_that_keeps_larger_jobs_in_more_memory_than_it_has_to() {
    for (value, is_warned_of) in [("64", true), ("1023", true), ("1024", false), ("4096", false)] {
        let server = Server::builder().config("hash-max-listpack-value", value).start().await;
        let text = warnings(&server.url(), None).await;
        assert_eq!(text.contains("set hash-max-listpack-value 1024"), is_warned_of, "{value}: {text:?}");
        assert_eq!(warnings(&server.url(), None).await, "", "{value}: it is known by now");
    }
}

#[tokio::test]
async fn of_nothing_where_all_is_well_or_the_server_doesnt_tell() {
    let server = Server::builder().config("hash-max-listpack-value", "1024").start().await;
    assert_eq!(warnings(&server.url(), None).await, "");
    let server = Server::builder().user("careful on >secret ~* &* +@all -config").start().await;
    assert_eq!(warnings(&server.url(), Some("careful")).await, "");
}

#[tokio::test]
async fn also_where_config_is_forbidden() {
    let server =
        Server::builder().user("careful on >secret ~* &* +@all -config").config("maxmemory-policy", "allkeys-lru");
    let server = server.start().await;
    assert!(warnings(&server.url(), Some("careful")).await.contains("allkeys-lru"));
}

#[tokio::test]
async fn that_nothing_can_be_checked_where_info_is_forbidden() {
    let server = Server::builder().user("careful on >secret ~* &* +@all -config -info").start().await;
    let text = warnings(&server.url(), Some("careful")).await;
    assert!(text.contains("can't check the server's version"), "{text:?}");
}

#[tokio::test]
async fn that_all_node_numbers_are_taken() {
    let server = Server::start().await;
    crate::nodes::take_all(&server).await;
    let text = warnings(&server.url(), None).await;
    assert!(text.contains("node numbers are taken"), "{text:?}");
}
