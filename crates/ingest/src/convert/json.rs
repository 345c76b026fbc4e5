//! Validates JSON by RFC 8259. The text itself is stored.

use super::problem::Problem;
use tidalite_types::jsonb::DEPTH_MAX;

/// # Errors
/// The text is not JSON, or nested more than [`DEPTH_MAX`] levels deep.
pub(crate) fn check(text: &str) -> Result<(), Problem> {
    let mut json = Json { rest: text.as_bytes(), is_too_deep: false };
    match json.value(0).is_some() && json.rest.is_empty() {
        true => Ok(()),
        false if json.is_too_deep => Err(Problem::Depth),
        false => Err(Problem::Syntax),
    }
}

/// A parser; each method consumes the named element from the front and returns `None` if it is not there.
struct Json<'a> {
    rest: &'a [u8],
    is_too_deep: bool,
}

impl Json<'_> {
    fn value(&mut self, depth: usize) -> Option<()> {
        self.space();
        match self.peek()? {
            b'{' if depth < DEPTH_MAX => self.members(b'}', |json| {
                json.space();
                json.string()?;
                json.space();
                json.token(b":")?;
                json.value(depth + 1)
            }),
            b'[' if depth < DEPTH_MAX => self.members(b']', |json| json.value(depth + 1)),
            b'{' | b'[' => {
                self.is_too_deep = true;
                None
            }
            b'"' => self.string(),
            b't' => self.token(b"true"),
            b'f' => self.token(b"false"),
            b'n' => self.token(b"null"),
            _ => self.number(),
        }?;
        self.space();
        Some(())
    }

    /// Consumes everything from the opening bracket to `close`.
    fn members(&mut self, close: u8, mut member: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.next()?;
        self.space();
        if self.peek()? == close {
            return self.token(&[close]);
        }
        loop {
            member(self)?;
            match self.next()? {
                b',' => {}
                byte => return (byte == close).then_some(()),
            }
        }
    }

    fn string(&mut self) -> Option<()> {
        self.token(b"\"")?;
        loop {
            match self.next()? {
                b'"' => return Some(()),
                b'\\' => match self.next()? {
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                    b'u' => (0..4).try_for_each(|_| self.next()?.is_ascii_hexdigit().then_some(()))?,
                    _ => return None,
                },
                0..0x20 => return None,
                _ => {}
            }
        }
    }

    fn number(&mut self) -> Option<()> {
        self.skip(b"-");
        match self.next()? {
            b'0' => {}
            b'1'..=b'9' => _ = self.digits(),
            _ => return None,
        }
        if self.skip(b".") {
            self.digits()?;
        }
        if self.skip(b"eE") {
            self.skip(b"+-");
            self.digits()?;
        }
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        let count = self.rest.iter().take_while(|b| b.is_ascii_digit()).count();
        self.rest = &self.rest[count..];
        (count > 0).then_some(())
    }

    fn space(&mut self) {
        while self.skip(b" \t\n\r") {}
    }

    fn token(&mut self, token: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(token)?;
        Some(())
    }

    /// Consumes one byte if it is among `bytes`.
    fn skip(&mut self, bytes: &[u8]) -> bool {
        let found = self.peek().is_some_and(|b| bytes.contains(&b));
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    fn next(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }
}
