//! One connection through the proxy.
//!
//! Each way has a reader that splits the bytes into requests or replies and decides their
//! fate, and a writer that lets them out when they are due.

use std::collections::VecDeque;
use std::future::pending;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::fault::{Command, Fate, Hole, Weather, decide};
use super::{Shared, lock};
use crate::resp::{Malformed, Reply};

/// What a reader hands to its writer.
enum Item {
    Bytes(Instant, Vec<u8>),
    /// Close both sides here.
    Cut,
    /// Pass nothing on any more, in either direction, and stay open.
    Mute,
}

/// Splits the first frame off.
type Parse = fn(&[u8]) -> Result<Option<(Reply, usize)>, Malformed>;

struct Link {
    shared: Arc<Shared>,
    /// The fates of the requests whose replies are still to come, in their order.
    fates: Mutex<VecDeque<Fate>>,
    subscribed: AtomicBool,
    mute: AtomicBool,
}

/// Serves a client until one side closes, or a fault does.
pub(super) async fn run(client: TcpStream, shared: Arc<Shared>) {
    let mut weather = shared.weather.subscribe();
    let severed = weather.borrow_and_update().severed;
    let work = async {
        match pass(client, shared).await {
            Ok(()) => {}
            // Both ends of a test come and go as they like.
            Err(error) if error.kind() != io::ErrorKind::InvalidData => {}
            Err(error) => eprintln!("the proxy closes a connection: {error}"),
        }
    };
    tokio::select! {
        () = work => {}
        _ = weather.wait_for(|weather| weather.severed != severed) => {}
    }
}

async fn pass(client: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
    let mut weather = shared.weather.subscribe();
    if weather.borrow().hole == Hole::Swallow {
        return pending().await;
    }
    until_not_held(&mut weather).await;

    let server = TcpStream::connect(("127.0.0.1", shared.upstream.load(Ordering::SeqCst))).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let (requests, requests_out) = mpsc::unbounded_channel();
    let (replies, replies_out) = mpsc::unbounded_channel();
    let link =
        Link { shared, fates: Mutex::default(), subscribed: AtomicBool::new(false), mute: AtomicBool::new(false) };
    let up = async {
        tokio::try_join!(
            link.read(from_client, requests, Reply::parse_request, Link::request),
            link.write(requests_out, to_server, false),
        )
    };
    let down = async {
        tokio::try_join!(
            link.read(from_server, replies, Reply::parse, Link::reply),
            link.write(replies_out, to_client, true),
        )
    };
    tokio::select! {
        ended = up => ended.map(|_| ()),
        ended = down => ended.map(|_| ()),
    }
}

impl Link {
    /// Splits what comes into frames, and has each of them judged.
    async fn read(
        &self,
        mut from: OwnedReadHalf,
        to: UnboundedSender<Item>,
        parse: Parse,
        judge: fn(&Self, &Reply) -> Fate,
    ) -> io::Result<()> {
        let mut unread = Vec::new();
        loop {
            let mut at = 0;
            while let Some((frame, length)) = parse(&unread[at..])? {
                let fate = judge(self, &frame);
                let bytes = unread[at..at + length].to_vec();
                at += length;
                let due = Instant::now() + self.weather().delay;
                let item = match fate {
                    Fate::Pass => Item::Bytes(due, bytes),
                    Fate::CutRequest | Fate::CutReply => Item::Cut,
                    Fate::LoseReply => Item::Mute,
                };
                // The writer is gone after a cut, and the link with it.
                let _ = to.send(item);
            }
            unread.drain(..at);
            if from.read_buf(&mut unread).await? == 0 {
                return Ok(());
            }
        }
    }

    /// Judges a request that comes from the client: cut now, or pass.
    fn request(&self, request: &Reply) -> Fate {
        let command = Command::of(request);
        self.shared.requests.fetch_add(1, Ordering::SeqCst);
        let fate = decide(&mut lock(&self.shared.rules), &command);
        if fate == Fate::CutRequest {
            return fate;
        }
        if command.subscribes() {
            self.subscribed.store(true, Ordering::SeqCst);
        } else {
            lock(&self.fates).push_back(fate);
        }
        Fate::Pass
    }

    /// Finds the fate of the request that a reply belongs to.
    fn reply(&self, reply: &Reply) -> Fate {
        if self.is_message(reply) {
            return Fate::Pass;
        }
        let fate = lock(&self.fates).pop_front();
        fate.unwrap_or(Fate::Pass)
    }

    /// Returns whether this answers no request. Under RESP2 the messages of a subscription
    /// look like replies, but such a connection has hardly any replies.
    fn is_message(&self, reply: &Reply) -> bool {
        match reply {
            Reply::Push(_) => true,
            Reply::Array(items) if self.subscribed.load(Ordering::SeqCst) => {
                matches!(items.first(), Some(Reply::Bulk(kind))
                    if kind.ends_with(b"message") || kind.ends_with(b"subscribe"))
            }
            _ => false,
        }
    }

    async fn write(
        &self,
        mut items: UnboundedReceiver<Item>,
        mut to: OwnedWriteHalf,
        to_client: bool,
    ) -> io::Result<()> {
        let mut weather = self.shared.weather.subscribe();
        while let Some(item) = items.recv().await {
            let bytes = match item {
                Item::Bytes(due, bytes) => {
                    sleep_until(due).await;
                    bytes
                }
                Item::Cut => {
                    self.shared.cuts.send_modify(|cuts| *cuts += 1);
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
                Item::Mute => {
                    self.mute.store(true, Ordering::SeqCst);
                    self.shared.cuts.send_modify(|cuts| *cuts += 1);
                    continue;
                }
            };
            until_not_held(&mut weather).await;
            if self.swallows() {
                continue;
            }
            if to_client && self.weather().chop {
                for byte in bytes {
                    to.write_all(&[byte]).await?;
                    tokio::task::yield_now().await;
                }
            } else {
                to.write_all(&bytes).await?;
            }
        }
        // The other side has closed, which is news that a broken line doesn't carry.
        until_not_held(&mut weather).await;
        if self.swallows() {
            return pending().await;
        }
        Ok(())
    }

    fn weather(&self) -> Weather {
        *self.shared.weather.borrow()
    }

    /// Returns whether bytes are lost now. A connection that has lost some can't go on:
    /// its replies would be taken for those of other requests.
    fn swallows(&self) -> bool {
        if self.weather().hole == Hole::Swallow {
            self.mute.store(true, Ordering::SeqCst);
        }
        self.mute.load(Ordering::SeqCst)
    }
}

async fn until_not_held(weather: &mut watch::Receiver<Weather>) {
    // An error means that the proxy has been dropped.
    let _ = weather.wait_for(|weather| weather.hole != Hole::Hold).await;
}
