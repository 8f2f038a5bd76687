//! What workers are told through the server: that somebody has cancelled a job.

use std::time::Duration;

use serde::Deserialize;

use crate::{
    client::Client,
    layer::LeaseKeeper,
    store::{CallError, Listening, Notice, Store},
};

/// The pause before it is tried again to listen.
const PAUSE: Duration = Duration::from_secs(10);

/// Hears what is told to the workers of one queue.
///
/// What is heard is only a reason to ask: a renewal says whether the job is cancelled. What isn't heard, the next renewal
/// says.
pub(super) async fn hear(client: Client, store: Store, keeper: LeaseKeeper) {
    let mut was_deaf = false;
    loop {
        match listen(&client, &store).await {
            Ok(listening) => {
                // What was told while nobody listened.
                if std::mem::take(&mut was_deaf) {
                    keeper.ask_now(store.name(), None);
                }
                follow(listening, &store, &keeper).await;
            }
            Err(CallError::Closed) => return,
            Err(error) if !was_deaf => {
                let queue = store.name();
                tracing::warn!(%error, %queue, "can't listen; cancelled jobs are dropped when their leases are renewed");
                was_deaf = true;
            }
            Err(_) => {}
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn listen(client: &Client, store: &Store) -> Result<Listening, CallError> {
    Ok(client.listen(store.control_channel()).await?.1)
}

async fn follow(mut listening: Listening, store: &Store, keeper: &LeaseKeeper) {
    #[derive(Deserialize)]
    struct Order<'a> {
        event: &'a str,
        job: &'a str,
    }
    while let Some(notice) = listening.next().await {
        match notice {
            Notice::Message(text) => match serde_json::from_str::<Order<'_>>(&text) {
                Ok(Order { event: "cancel", job }) => {
                    if let Ok(id) = job.parse() {
                        keeper.ask_now(store.name(), Some(id));
                    }
                }
                // Of a later version, or of somebody else.
                _ => tracing::debug!(%text, "not understood"),
            },
            Notice::Gap => keeper.ask_now(store.name(), None),
        }
    }
}
