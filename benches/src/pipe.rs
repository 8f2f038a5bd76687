//! A raw socket with many calls under way: the cheapest client there can be.

use std::io::{self, Write as _};

use support::Reply;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// One connection; replies come in the order of the calls.
#[derive(Debug)]
pub(crate) struct Pipe {
    stream: TcpStream,
    out: Vec<u8>,
    unread: Vec<u8>,
    /// What of `unread` has been read.
    at: usize,
}

impl Pipe {
    pub(crate) async fn open(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, out: Vec::new(), unread: Vec::with_capacity(1 << 16), at: 0 })
    }

    /// Adds a call to what is sent next.
    pub(crate) fn push<'a>(&mut self, args: impl ExactSizeIterator<Item = &'a [u8]>) -> io::Result<()> {
        write!(self.out, "*{}\r\n", args.len())?;
        for arg in args {
            write!(self.out, "${}\r\n", arg.len())?;
            self.out.extend_from_slice(arg);
            self.out.extend_from_slice(b"\r\n");
        }
        Ok(())
    }

    /// The next reply. What was pushed is sent only when there is no reply left to read, so that as many calls as
    /// possible are in one write.
    pub(crate) async fn reply(&mut self) -> io::Result<Reply> {
        loop {
            if let Some((reply, length)) = Reply::parse(&self.unread[self.at..])? {
                self.at += length;
                return match reply {
                    Reply::Error(why) => Err(io::Error::other(why)),
                    reply => Ok(reply),
                };
            }
            if !self.out.is_empty() {
                self.stream.write_all(&self.out).await?;
                self.out.clear();
            }
            self.unread.drain(..self.at);
            self.at = 0;
            if self.stream.read_buf(&mut self.unread).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// One call, and its reply.
    pub(crate) async fn call(&mut self, words: &[&str]) -> io::Result<Reply> {
        self.push(words.iter().map(|word| word.as_bytes()))?;
        self.reply().await
    }
}
