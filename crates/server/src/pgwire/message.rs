//! Messages of a client: a tag, a length, a body.
//!
//! In: bytes as they arrive. Out: one [`Message`] at a time. Memory is taken as bytes come, never for a length that
//! was only announced, and out of the budget of all connections. Before a client is let in its messages are short. What
//! is no message is an error that says why.

use crate::budget::Share;
use crate::slow_reader::Timed;
use crate::socket::Socket;
use bytes::{Buf, Bytes, BytesMut};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, ReadHalf};

/// Room made for one read.
const READ_BYTES: usize = 16 << 10;
/// What is read of messages to come while a statement runs, so that a client that went away is noticed.
const AHEAD_BYTES: usize = 256 << 10;
/// The longest first message, as in PostgreSQL.
const STARTUP_BYTES_MAX: usize = 10_000;
/// The longest message of a client that was not let in yet.
const STRANGER_BYTES_MAX: usize = 64 << 10;
/// Maximum time between two reads of one message. As long as `http.body_timeout` by default.
const REST_TIMEOUT: Duration = Duration::from_secs(60);
/// What a connection may hold of messages outside of the budget.
const FREE_BYTES: usize = 64 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    Query(Bytes),
    Parse {
        name: String,
        sql: Bytes,
        types: Vec<u32>,
    },
    Bind(Bind),
    Describe {
        of: Object,
        name: String,
    },
    Execute {
        portal: String,
        rows_max: u32,
    },
    Close {
        of: Object,
        name: String,
    },
    Sync,
    Flush,
    Terminate,
    Password(Bytes),
    CopyData(Bytes),
    CopyDone,
    /// Why the client breaks off.
    CopyFail(String),
    FunctionCall,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bind {
    pub portal: String,
    pub statement: String,
    pub formats: Vec<i16>,
    pub values: Vec<Option<Bytes>>,
    pub result_formats: Vec<i16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    Statement,
    Portal,
}

/// Why there is no message.
#[derive(Debug)]
pub enum Malformed {
    /// The connection is of no more use.
    Fatal(String),
    /// This message is bad; the next one can be read.
    Message(String),
    /// There is no memory for it.
    Memory(String),
    Io(io::Error),
}

impl From<io::Error> for Malformed {
    fn from(error: io::Error) -> Malformed {
        Malformed::Io(error)
    }
}

pub struct Input {
    socket: ReadHalf<Timed<Socket>>,
    buffer: BytesMut,
    /// `None` before the client is let in.
    message_bytes_max: Option<usize>,
    /// Of the message being read or done.
    share: Share,
    has_ended: bool,
}

impl Input {
    /// `received` was read before.
    pub fn new(socket: ReadHalf<Timed<Socket>>, received: &[u8], share: Share) -> Input {
        Input { socket, buffer: BytesMut::from(received), message_bytes_max: None, share, has_ended: false }
    }

    /// From now on messages may be as long as is allowed.
    pub fn admit(&mut self, message_bytes_max: usize) {
        self.message_bytes_max = Some(message_bytes_max);
    }

    /// The body of a message without a tag: the first ones of a connection. `None` when the client left.
    pub async fn startup(&mut self) -> Result<Option<Bytes>, Malformed> {
        if !self.fill(4).await? {
            return Ok(None);
        }
        let length = (&self.buffer[..4]).get_i32();
        let Some(length) = usize::try_from(length).ok().filter(|n| (8..=STARTUP_BYTES_MAX).contains(n)) else {
            return Err(Malformed::Fatal("invalid length of startup packet".to_owned()));
        };
        if !self.fill(length).await? {
            return Ok(None);
        }
        let mut body = self.buffer.split_to(length).freeze();
        body.advance(4);
        Ok(Some(body))
    }

    /// The next message; `None` when the client left. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<Message>, Malformed> {
        // The last message is done.
        self.share.clear();
        if !self.fill(5).await? {
            return Ok(None);
        }
        let (tag, length) = (self.buffer[0], (&self.buffer[1..5]).get_i32());
        let Some(length) = usize::try_from(length).ok().filter(|n| *n >= 4) else {
            return Err(Malformed::Fatal("invalid message length".to_owned()));
        };
        self.check_length(length - 4)?;
        if !self.fill(length + 1).await? {
            return Ok(None);
        }
        let mut body = self.buffer.split_to(length + 1).freeze();
        if length > FREE_BYTES {
            // What follows moves out of the long message's memory, which goes when the message is done.
            self.buffer = BytesMut::from(&self.buffer[..]);
        }
        body.advance(5);
        parse(tag, body).map(Some)
    }

    /// Ready when the client has closed the connection. Reads what it sends meanwhile, up to a limit, past which
    /// it waits for ever.
    pub async fn closed(&mut self) {
        while !self.has_ended && self.buffer.len() < AHEAD_BYTES {
            if self.read().await.is_err() {
                return;
            }
        }
        if !self.has_ended {
            std::future::pending::<()>().await;
        }
    }

    /// How many statements are run by messages that are here already, before the next Sync; `None` when that is not here, or
    /// something else comes before it.
    #[must_use]
    pub fn executes_before_sync(&self) -> Option<usize> {
        let (mut rest, mut executes) = (&self.buffer[..], 0);
        loop {
            let (tag, length) = (*rest.first()?, rest.get(1..5)?.get_i32());
            match tag {
                b'S' => return Some(executes),
                b'E' => executes += 1,
                b'P' | b'B' | b'D' | b'C' | b'H' => {}
                _ => return None,
            }
            rest = rest.get(1 + usize::try_from(length).ok()?..)?;
        }
    }

    fn check_length(&self, length: usize) -> Result<(), Malformed> {
        let max = self.message_bytes_max.unwrap_or(STRANGER_BYTES_MAX);
        if length <= max {
            return Ok(());
        }
        let of = if self.message_bytes_max.is_some() { "pg.message_bytes_max" } else { "any before authentication" };
        Err(Malformed::Fatal(format!("a message of {length} bytes is longer than {of}, {max}")))
    }

    /// Waits until `bytes` are there; false when the client left before.
    async fn fill(&mut self, bytes: usize) -> Result<bool, Malformed> {
        while self.buffer.len() < bytes {
            if self.has_ended {
                return Ok(false);
            }
            if self.buffer.is_empty() {
                self.read().await?;
            } else {
                self.read_rest().await?;
            }
            let counted = self.buffer.len().saturating_sub(FREE_BYTES);
            self.share.grow_to(counted).map_err(|e| Malformed::Memory(e.message))?;
        }
        Ok(true)
    }

    /// Reads more of a message that has begun.
    async fn read_rest(&mut self) -> Result<(), Malformed> {
        let watch = self.share.watch();
        let rest = crate::accept::in_time(REST_TIMEOUT, self.read());
        match watch.unless_revoked(rest).await {
            Some(Some(read)) => Ok(read?),
            Some(None) => Err(Malformed::Fatal("the rest of a message did not come".to_owned())),
            None => {
                let text = "the rest of a message did not come, and other clients needed its memory";
                Err(Malformed::Memory(text.to_owned()))
            }
        }
    }

    async fn read(&mut self) -> io::Result<()> {
        self.buffer.reserve(READ_BYTES);
        self.has_ended = self.socket.read_buf(&mut self.buffer).await? == 0;
        Ok(())
    }
}

fn parse(tag: u8, body: Bytes) -> Result<Message, Malformed> {
    let mut body = Body(body);
    let message = match tag {
        b'Q' => Message::Query(body.text()?),
        b'P' => {
            let (name, sql) = (body.name()?, body.text()?);
            let count = body.count()?;
            Message::Parse { name, sql, types: (0..count).map(|_| body.u32()).collect::<Result<_, _>>()? }
        }
        b'B' => Message::Bind(bind(&mut body)?),
        b'D' => Message::Describe { of: body.object()?, name: body.name()? },
        b'E' => Message::Execute { portal: body.name()?, rows_max: body.u32()? },
        b'C' => Message::Close { of: body.object()?, name: body.name()? },
        b'S' => Message::Sync,
        b'H' => Message::Flush,
        b'X' => Message::Terminate,
        b'p' => return Ok(Message::Password(body.0)),
        b'd' => return Ok(Message::CopyData(body.0)),
        b'c' => Message::CopyDone,
        b'f' => Message::CopyFail(body.name()?),
        b'F' => return Ok(Message::FunctionCall),
        other => return Err(Malformed::Fatal(format!("invalid frontend message type {other}"))),
    };
    if body.0.has_remaining() {
        return Err(invalid());
    }
    Ok(message)
}

fn bind(body: &mut Body) -> Result<Bind, Malformed> {
    let (portal, statement) = (body.name()?, body.name()?);
    let count = body.count()?;
    let formats = (0..count).map(|_| body.format()).collect::<Result<_, _>>()?;
    let count = body.count()?;
    let values = (0..count).map(|_| body.value()).collect::<Result<_, _>>()?;
    let count = body.count()?;
    let result_formats = (0..count).map(|_| body.format()).collect::<Result<_, _>>()?;
    Ok(Bind { portal, statement, formats, values, result_formats })
}

fn invalid() -> Malformed {
    Malformed::Message("invalid message format".to_owned())
}

/// What is left of a message.
pub struct Body(pub Bytes);

impl Body {
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        if self.0.remaining() < 4 { Err(invalid()) } else { Ok(self.0.get_u32()) }
    }

    fn count(&mut self) -> Result<u16, Malformed> {
        if self.0.remaining() < 2 { Err(invalid()) } else { Ok(self.0.get_u16()) }
    }

    fn format(&mut self) -> Result<i16, Malformed> {
        match self.count()? {
            format @ (0 | 1) => Ok(format as i16),
            other => Err(Malformed::Message(format!("unsupported format code: {other}"))),
        }
    }

    fn value(&mut self) -> Result<Option<Bytes>, Malformed> {
        match self.u32()? as i32 {
            -1 => Ok(None),
            length => {
                let length = usize::try_from(length).map_err(|_| invalid())?;
                if self.0.remaining() < length {
                    return Err(invalid());
                }
                Ok(Some(self.0.split_to(length)))
            }
        }
    }

    /// Bytes up to a zero.
    pub fn text(&mut self) -> Result<Bytes, Malformed> {
        let end = memchr::memchr(0, &self.0).ok_or_else(invalid)?;
        let text = self.0.split_to(end);
        self.0.advance(1);
        Ok(text)
    }

    pub fn name(&mut self) -> Result<String, Malformed> {
        let text = self.text()?;
        let invalid = |_| Malformed::Message("invalid byte sequence for encoding \"UTF8\"".to_owned());
        String::from_utf8(text.to_vec()).map_err(invalid)
    }

    fn object(&mut self) -> Result<Object, Malformed> {
        match self.0.try_get_u8() {
            Ok(b'S') => Ok(Object::Statement),
            Ok(b'P') => Ok(Object::Portal),
            _ => Err(invalid()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(tag: u8, body: &[u8]) -> Result<Message, String> {
        parse(tag, Bytes::copy_from_slice(body)).map_err(|e| match e {
            Malformed::Fatal(text) | Malformed::Message(text) | Malformed::Memory(text) => text,
            Malformed::Io(error) => error.to_string(),
        })
    }

    #[test]
    fn messages_are_read() {
        assert_eq!(parsed(b'Q', b"select 1\0").unwrap(), Message::Query(Bytes::from_static(b"select 1")));
        let parse = Message::Parse { name: "s".to_owned(), sql: Bytes::from_static(b"x"), types: vec![23] };
        assert_eq!(parsed(b'P', b"s\0x\0\0\x01\0\0\0\x17").unwrap(), parse);
        let bind = parsed(b'B', b"\0s\0\0\x01\0\x01\0\x02\xff\xff\xff\xff\0\0\0\x01z\0\0").unwrap();
        let expected = Bind {
            portal: String::new(),
            statement: "s".to_owned(),
            formats: vec![1],
            values: vec![None, Some(Bytes::from_static(b"z"))],
            result_formats: vec![],
        };
        assert_eq!(bind, Message::Bind(expected));
    }

    #[test]
    fn no_bytes_panic() {
        let whole: [(u8, &[u8]); 4] = [
            (b'P', b"s\0x\0\0\x01\0\0\0\x17"),
            (b'B', b"\0s\0\0\x01\0\x01\0\x02\xff\xff\xff\xff\0\0\0\x01z\0\0"),
            (b'D', b"Sname\0"),
            (b'E', b"p\0\0\0\0\x05"),
        ];
        for (tag, body) in whole {
            assert!(parsed(tag, body).is_ok());
            for cut in 0..body.len() {
                assert!(parsed(tag, &body[..cut]).is_err(), "{tag} cut at {cut}");
                let mut other = body.to_vec();
                other[cut] ^= 0xff;
                let _ = parsed(tag, &other);
            }
        }
        assert!(parsed(b'B', b"\0\0\0\x00\0\x01\xff\xff\xff\xfe").is_err());
    }
}
