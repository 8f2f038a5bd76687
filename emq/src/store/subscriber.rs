//! The one connection of a client on which it listens: to events of queues, for those who wait for the end of a job, and
//! for what workers are told.
//!
//! A message of a channel may be lost: with the connection, or because it came faster than it was taken. So nobody relies
//! on one. A listener is told that there was a gap, and looks.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use fred::{
    interfaces::{EventInterface as _, PubsubInterface as _},
    types::Message,
};
use tokio::{
    sync::{
        Notify,
        broadcast::{self, error::RecvError},
        mpsc, oneshot,
    },
    time::{MissedTickBehavior, interval, sleep},
};

use super::{
    connection::{Connection, Settings},
    error::{CallError, ConnectError, classify},
};
use crate::job::JobId;

/// How many messages of a channel may wait for one listener before it has a gap.
const BACKLOG: usize = 1_024;

/// The pause before channels are subscribed to again after that failed.
const PAUSE: Duration = Duration::from_millis(200);

/// How long a connection on which nobody listens is kept.
const LINGER: Duration = Duration::from_secs(2);

/// What a listener is told.
#[derive(Clone, Debug)]
pub(crate) enum Notice {
    Message(Arc<str>),
    /// Messages may have been lost.
    Gap,
}

/// Listens to channels, on one connection for all who listen.
///
/// The connection ends when nobody has listened for a while; then another one has to be opened.
#[derive(Clone, Debug)]
pub(crate) struct Subscriber {
    commands: mpsc::UnboundedSender<Command>,
    waiting: Arc<Waiting>,
}

#[derive(Debug)]
enum Command {
    Listen { channel: String, started: oneshot::Sender<Result<broadcast::Receiver<Notice>, CallError>> },
    Leave { channel: String },
    Close,
}

/// Those who wait for the end of a job.
#[derive(Debug, Default)]
struct Waiting {
    jobs: Mutex<HashMap<JobId, Arc<Notify>>>,
}

impl Waiting {
    fn jobs(&self) -> MutexGuard<'_, HashMap<JobId, Arc<Notify>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscriber {
    /// Connects.
    pub(crate) async fn open(settings: Settings) -> Result<Self, ConnectError> {
        let connection = Connection::open_listening(settings).await?;
        let (commands, received) = mpsc::unbounded_channel();
        let waiting = Arc::<Waiting>::default();
        tokio::spawn(Task { connection, channels: HashMap::new(), waiting: Arc::clone(&waiting) }.run(received));
        Ok(Self { commands, waiting })
    }

    /// Listens to a channel; from then on nothing is missed without a [`Notice::Gap`].
    ///
    /// An error is what the server refuses. While it is away this waits for nothing: there will be a gap when it is back.
    pub(crate) async fn listen(&self, channel: String) -> Result<Listening, CallError> {
        let (started, starting) = oneshot::channel();
        let guard = Guard { channel: channel.clone(), commands: self.commands.clone() };
        self.commands.send(Command::Listen { channel, started }).map_err(|_| CallError::Closed)?;
        let messages = starting.await.map_err(|_| CallError::Closed)??;
        Ok(Listening { messages, _guard: guard })
    }

    /// Who waits for the end of a job that a [`Listening`] may hear of.
    pub(crate) fn end_of(&self, id: JobId) -> EndOf {
        let notify = Arc::clone(self.waiting.jobs().entry(id).or_default());
        EndOf { id, notify, waiting: Arc::clone(&self.waiting) }
    }

    /// Whether the connection has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.commands.is_closed()
    }

    pub(crate) fn close(&self) {
        let _ = self.commands.send(Command::Close);
    }
}

/// A channel that is listened to.
#[derive(Debug)]
pub(crate) struct Listening {
    messages: broadcast::Receiver<Notice>,
    _guard: Guard,
}

impl Listening {
    /// The next message; nothing once the client has been closed.
    pub(crate) async fn next(&mut self) -> Option<Notice> {
        match self.messages.recv().await {
            Ok(notice) => Some(notice),
            Err(RecvError::Lagged(_)) => Some(Notice::Gap),
            Err(RecvError::Closed) => None,
        }
    }
}

#[derive(Debug)]
struct Guard {
    channel: String,
    commands: mpsc::UnboundedSender<Command>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.commands.send(Command::Leave { channel: std::mem::take(&mut self.channel) });
    }
}

/// The end of one job, for those who wait for it.
#[derive(Debug)]
pub(crate) struct EndOf {
    id: JobId,
    pub(crate) notify: Arc<Notify>,
    waiting: Arc<Waiting>,
}

impl Drop for EndOf {
    fn drop(&mut self) {
        let mut jobs = self.waiting.jobs();
        // Under the lock: of two who go at once, the second sees that the first is gone.
        drop(std::mem::take(&mut self.notify));
        if jobs.get(&self.id).is_some_and(|notify| Arc::strong_count(notify) == 1) {
            jobs.remove(&self.id);
        }
    }
}

struct Task {
    connection: Arc<Connection>,
    channels: HashMap<String, Channel>,
    waiting: Arc<Waiting>,
}

struct Channel {
    listeners: usize,
    /// The last try to listen was refused for good: the next listener tries again.
    is_refused: bool,
    sender: broadcast::Sender<Notice>,
}

impl Task {
    async fn run(mut self, mut commands: mpsc::UnboundedReceiver<Command>) {
        let client = self.connection.client().clone();
        let mut messages = client.message_rx();
        let mut reconnected = client.reconnect_rx();
        let mut is_behind = false;
        // Not a sleep of each turn: messages would put it off for ever.
        let mut again = interval(PAUSE);
        again.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                command = commands.recv() => match command {
                    Some(Command::Listen { channel, started }) => is_behind |= self.listen(channel, started).await,
                    Some(Command::Leave { channel }) => self.leave(channel).await,
                    Some(Command::Close) | None => break,
                },
                message = messages.recv() => match message {
                    Ok(message) => self.tell(&message),
                    Err(RecvError::Lagged(_)) => self.tell_of_gap(),
                    Err(RecvError::Closed) => {
                        messages = client.message_rx();
                        sleep(PAUSE).await;
                        is_behind = true;
                    }
                },
                event = reconnected.recv() => {
                    if matches!(event, Err(RecvError::Closed)) {
                        reconnected = client.reconnect_rx();
                        sleep(PAUSE).await;
                    }
                    is_behind = !self.listen_again().await;
                }
                _ = again.tick(), if is_behind => is_behind = !self.listen_again().await,
                // Who asks in this very moment is told that it is closed, and opens another one.
                () = sleep(LINGER), if self.channels.is_empty() => break,
            }
        }
        self.connection.close();
    }

    /// Whether it has to be tried again.
    async fn listen(
        &mut self,
        channel: String,
        started: oneshot::Sender<Result<broadcast::Receiver<Notice>, CallError>>,
    ) -> bool {
        let new = || Channel { listeners: 0, is_refused: false, sender: broadcast::channel(BACKLOG).0 };
        let entry = self.channels.entry(channel.clone()).or_insert_with(new);
        entry.listeners += 1;
        let messages = entry.sender.subscribe();
        let subscribed = if entry.listeners == 1 || entry.is_refused {
            self.connection.client().subscribe(channel).await.map_err(classify)
        } else {
            Ok(())
        };
        let is_behind = subscribed.as_ref().is_err_and(CallError::is_transient);
        entry.is_refused = subscribed.is_err() && !is_behind;
        let answer = if is_behind { Ok(messages) } else { subscribed.map(|()| messages) };
        // Who has given up meanwhile leaves by itself.
        let _ = started.send(answer);
        is_behind
    }

    async fn leave(&mut self, channel: String) {
        let Some(entry) = self.channels.get_mut(&channel) else { return };
        entry.listeners -= 1;
        if entry.listeners == 0 {
            self.channels.remove(&channel);
            if let Err(error) = self.connection.client().unsubscribe(channel).await {
                tracing::debug!(%error, "a channel is listened to in vain until the next reconnect");
            }
        }
    }

    /// Listens to all channels on a new connection, and says so. Whether that succeeded.
    async fn listen_again(&mut self) -> bool {
        let channels: Vec<String> = self.channels.keys().cloned().collect();
        if !channels.is_empty()
            && let Err(error) = self.connection.client().subscribe(channels).await
        {
            tracing::debug!(%error, "channels can't be listened to yet");
            return false;
        }
        self.tell_of_gap();
        true
    }

    fn tell(&self, message: &Message) {
        let Some(text) = message.value.as_string() else { return };
        let Some(channel) = self.channels.get(&*message.channel) else { return };
        let mut jobs = self.waiting.jobs();
        if !jobs.is_empty()
            && let Some(id) = ended(&text)
            && let Some(notify) = jobs.get_mut(&id)
        {
            notify.notify_waiters();
        }
        drop(jobs);
        // Whether anybody reads it doesn't matter.
        let _ = channel.sender.send(Notice::Message(text.into()));
    }

    fn tell_of_gap(&self) {
        self.waiting.jobs().values().for_each(|notify| notify.notify_waiters());
        for channel in self.channels.values() {
            let _ = channel.sender.send(Notice::Gap);
        }
    }
}

/// The job that has ended, if that is what a message says.
fn ended(text: &str) -> Option<JobId> {
    #[derive(serde::Deserialize)]
    struct Told<'a> {
        event: &'a str,
        job: &'a str,
    }
    let told: Told<'_> = serde_json::from_str(text).ok()?;
    ["completed", "dead", "cancelled", "removed"].contains(&told.event).then(|| told.job.parse().ok())?
}
