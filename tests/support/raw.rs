//! A minimal client, so that a test sees what is on the server and not what emq says.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::resp::{self, Reply};
use crate::server::Server;

/// Long enough for a busy machine, short enough to end a test that hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// One connection that sends a command and waits for its reply.
#[derive(Debug)]
pub struct Raw {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Raw {
    /// Connects to a server and logs in if it wants a password.
    ///
    /// # Panics
    ///
    /// If that fails.
    pub async fn connect(server: &Server) -> Self {
        let mut raw = Self::open(server.port())
            .await
            .unwrap_or_else(|error| panic!("no connection to {}: {error}", server.url()));
        if let Some(password) = server.password() {
            raw.command(&["AUTH", password]).await;
        }
        raw
    }

    /// Connects to a port on the loopback interface, a proxy's for example.
    ///
    /// # Errors
    ///
    /// If nothing listens there.
    pub async fn open(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, unread: Vec::new() })
    }

    /// Sends a command and returns its reply; an error of the server is a reply too.
    ///
    /// # Panics
    ///
    /// If the connection fails or stays silent for too long.
    pub async fn command(&mut self, args: &[impl AsRef<[u8]>]) -> Reply {
        match timeout(PATIENCE, self.try_command(args)).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(error)) => panic!("{}: {error}", shown(args)),
            Err(_) => panic!("{}: no reply within {PATIENCE:?}", shown(args)),
        }
    }

    /// Sends a command given as words with blanks between them.
    ///
    /// # Panics
    ///
    /// Like [`command`](Self::command), and if the server refuses.
    pub async fn line(&mut self, words: &str) -> Reply {
        let args: Vec<&str> = words.split_ascii_whitespace().collect();
        let reply = self.command(&args).await;
        assert!(!reply.is_error(), "{words}: {reply}");
        reply
    }

    /// Sends a command and waits for its reply as long as it takes.
    ///
    /// # Errors
    ///
    /// If the connection fails or is closed.
    pub async fn try_command(&mut self, args: &[impl AsRef<[u8]>]) -> io::Result<Reply> {
        self.send(args).await?;
        self.receive().await
    }

    /// Sends a command without waiting for its reply.
    ///
    /// # Errors
    ///
    /// If the connection fails.
    pub async fn send(&mut self, args: &[impl AsRef<[u8]>]) -> io::Result<()> {
        self.stream.write_all(&resp::request(args)).await
    }

    /// Waits for the next reply, or message of a subscription.
    ///
    /// # Errors
    ///
    /// If the connection fails or is closed.
    pub async fn receive(&mut self) -> io::Result<Reply> {
        loop {
            if let Some((reply, length)) = Reply::parse(&self.unread)? {
                self.unread.drain(..length);
                return Ok(reply);
            }
            if self.stream.read_buf(&mut self.unread).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

fn shown(args: &[impl AsRef<[u8]>]) -> String {
    let args = args.iter().map(|arg| arg.as_ref().escape_ascii().to_string());
    args.collect::<Vec<_>>().join(" ")
}
