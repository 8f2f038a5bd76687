//! The protocol of Valkey and Redis, as far as tests need it: RESP2 and RESP3.

use std::fmt;

/// A reply of the server.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// A short text such as `OK`.
    Simple(String),
    /// An error, with its code as the first word.
    Error(String),
    /// An integer.
    Int(i64),
    /// A string of bytes.
    Bulk(Vec<u8>),
    /// No value.
    Nil,
    /// A floating point number (RESP3), as the server wrote it.
    Double(String),
    /// A boolean (RESP3).
    Bool(bool),
    /// A list.
    Array(Vec<Reply>),
    /// A map (RESP3): keys and values in turn.
    Map(Vec<Reply>),
    /// A message that answers no request (RESP3).
    Push(Vec<Reply>),
}

/// Bytes that are not a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed reply: {}", self.0)
    }
}

impl std::error::Error for Malformed {}

impl From<Malformed> for std::io::Error {
    fn from(error: Malformed) -> Self {
        Self::new(std::io::ErrorKind::InvalidData, error)
    }
}

impl Reply {
    /// Reads the first reply in `bytes`, and says how many bytes it took; `None` if it
    /// isn't complete yet.
    ///
    /// # Errors
    ///
    /// If no bytes that follow could make it a reply.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, Malformed> {
        let mut cursor = Cursor { bytes, at: 0 };
        Ok(cursor.reply()?.map(|reply| (reply, cursor.at)))
    }

    /// Reads the first request in `bytes` like [`parse`](Self::parse): a list, or a line of words, as some clients send
    /// their first one.
    ///
    /// # Errors
    ///
    /// If no bytes that follow could make it a request.
    pub fn parse_request(bytes: &[u8]) -> Result<Option<(Self, usize)>, Malformed> {
        if bytes.first().is_none_or(|first| *first == b'*') {
            return Self::parse(bytes);
        }
        let line = Cursor { bytes, at: 0 }.line();
        Ok(line.map(|line| {
            let words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
            (Self::Array(words.map(|word| Self::Bulk(word.into())).collect()), line.len() + 2)
        }))
    }

    /// Returns the integer.
    ///
    /// # Panics
    ///
    /// If the reply is anything else.
    #[track_caller]
    pub fn int(&self) -> i64 {
        match self {
            Self::Int(number) => *number,
            _ => panic!("not an integer: {self}"),
        }
    }

    /// Returns the bytes of a string.
    ///
    /// # Panics
    ///
    /// If the reply is anything else.
    #[track_caller]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Bulk(bytes) => bytes,
            Self::Simple(text) | Self::Double(text) => text.as_bytes(),
            _ => panic!("not a string: {self}"),
        }
    }

    /// Returns a string as text.
    ///
    /// # Panics
    ///
    /// If the reply is anything else, or not UTF-8.
    #[track_caller]
    pub fn text(&self) -> &str {
        std::str::from_utf8(self.bytes()).unwrap_or_else(|error| panic!("{error}: {self}"))
    }

    /// Returns the items of a list or map.
    ///
    /// # Panics
    ///
    /// If the reply is anything else.
    #[track_caller]
    pub fn items(&self) -> &[Self] {
        match self {
            Self::Array(items) | Self::Map(items) | Self::Push(items) => items,
            _ => panic!("not a list: {self}"),
        }
    }

    /// Returns whether the server refused.
    pub fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }
}

/// Written as `redis-cli --no-raw` would, but on one line.
impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Simple(text) | Self::Double(text) => f.write_str(text),
            Self::Error(text) => write!(f, "(error) {text}"),
            Self::Int(number) => write!(f, "{number}"),
            Self::Bulk(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
            Self::Nil => f.write_str("nil"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Array(items) => list(f, "[", items, "]"),
            Self::Map(items) => list(f, "{", items, "}"),
            Self::Push(items) => list(f, ">[", items, "]"),
        }
    }
}

fn list(f: &mut fmt::Formatter<'_>, open: &str, items: &[Reply], close: &str) -> fmt::Result {
    f.write_str(open)?;
    for (index, item) in items.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        write!(f, "{comma}{item}")?;
    }
    f.write_str(close)
}

/// Writes a request: an array of strings.
pub(crate) fn request(args: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        let arg = arg.as_ref();
        bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        bytes.extend_from_slice(arg);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn reply(&mut self) -> Result<Option<Reply>, Malformed> {
        let Some(line) = self.line() else {
            return Ok(None);
        };
        let Some((kind, rest)) = line.split_first() else {
            return Err(Malformed("an empty line".into()));
        };
        let reply = match kind {
            b'+' | b'(' => Reply::Simple(lossy(rest)),
            b'-' => Reply::Error(lossy(rest)),
            b',' => Reply::Double(lossy(rest)),
            b':' => Reply::Int(number(rest)?),
            b'_' => Reply::Nil,
            b'#' => Reply::Bool(rest == b"t"),
            b'$' | b'=' | b'!' => match usize::try_from(number(rest)?) {
                Ok(length) => match self.take(length) {
                    None => return Ok(None),
                    Some(text) if *kind == b'!' => Reply::Error(lossy(text)),
                    // Three letters and a colon say what kind of text it is.
                    Some(text) if *kind == b'=' => Reply::Bulk(text.get(4..).unwrap_or(&[]).into()),
                    Some(text) => Reply::Bulk(text.into()),
                },
                Err(_) => Reply::Nil,
            },
            b'*' | b'~' | b'>' | b'%' | b'|' => {
                let Ok(length) = usize::try_from(number(rest)?) else {
                    return Ok(Some(Reply::Nil));
                };
                let pairs = matches!(kind, b'%' | b'|');
                let Some(items) = self.items(if pairs { 2 * length } else { length })? else {
                    return Ok(None);
                };
                match kind {
                    b'>' => Reply::Push(items),
                    b'%' => Reply::Map(items),
                    // An attribute only describes the reply that follows it.
                    b'|' => return self.reply(),
                    _ => Reply::Array(items),
                }
            }
            _ => return Err(Malformed(format!("`{}`", line.escape_ascii()))),
        };
        Ok(Some(reply))
    }

    fn items(&mut self, length: usize) -> Result<Option<Vec<Reply>>, Malformed> {
        let mut items = Vec::new();
        for _ in 0..length {
            match self.reply()? {
                Some(item) => items.push(item),
                None => return Ok(None),
            }
        }
        Ok(Some(items))
    }

    fn line(&mut self) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.at..)?;
        let length = rest.windows(2).position(|pair| pair == b"\r\n")?;
        self.at += length + 2;
        Some(&rest[..length])
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.at..)?;
        let text = rest.get(..length)?;
        rest.get(length..length + 2)?;
        self.at += length + 2;
        Some(text)
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn number(bytes: &[u8]) -> Result<i64, Malformed> {
    std::str::from_utf8(bytes)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| Malformed(format!("not a number: `{}`", bytes.escape_ascii())))
}
