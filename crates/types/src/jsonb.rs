//! The text of JSONB values, as PostgreSQL writes it.
//!
//! Objects have each name once, with its last value, and are ordered by the length and then the bytes of their names;
//! strings have no escapes that they do not need, numbers no exponent. Equal documents therefore have equal texts,
//! except numbers with other digits (`1.0`, `1`). A number with an exponent of more than [`EXPONENT_MAX`] is kept as it
//! is written, so that a short text never becomes a long one.

/// Arrays and objects within each other.
pub const DEPTH_MAX: usize = 256;
/// The greatest exponent that is written out as digits.
const EXPONENT_MAX: usize = 40;

/// Why a text is no JSONB value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonbError {
    /// The text is not JSON by RFC 8259.
    Syntax,
    /// The text is nested more than [`DEPTH_MAX`] levels deep.
    Depth,
}

/// Returns the text of a JSON document as a JSONB value.
///
/// # Errors
/// The text is no JSON, nested too deep, or has a string with `\u0000` or half of a surrogate pair.
pub fn normalize(text: &str) -> Result<String, JsonbError> {
    let mut reader = Reader { text, at: 0, is_too_deep: false };
    let mut out = String::with_capacity(text.len());
    let is_whole = reader.value(&mut out, 0).is_some() && reader.at == text.len();
    match is_whole {
        true => Ok(out),
        false if reader.is_too_deep => Err(JsonbError::Depth),
        false => Err(JsonbError::Syntax),
    }
}

/// A parser; each method consumes the named element and returns `None` if it is not there.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    is_too_deep: bool,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn token(&mut self, token: &str) -> Option<()> {
        self.at += self.rest().starts_with(token).then_some(token.len())?;
        Some(())
    }

    fn value(&mut self, out: &mut String, depth: usize) -> Option<()> {
        self.space();
        match self.peek()? {
            b'{' | b'[' if depth >= DEPTH_MAX => {
                self.is_too_deep = true;
                return None;
            }
            b'{' => self.object(out, depth)?,
            b'[' => self.array(out, depth)?,
            b'"' => {
                let string = self.string()?;
                push_string(out, &string);
            }
            b't' | b'f' | b'n' => {
                let word = ["true", "false", "null"].into_iter().find(|word| self.rest().starts_with(word))?;
                self.token(word)?;
                out.push_str(word);
            }
            _ => self.number(out)?,
        }
        self.space();
        Some(())
    }

    fn array(&mut self, out: &mut String, depth: usize) -> Option<()> {
        self.token("[")?;
        out.push('[');
        self.space();
        if self.peek()? != b']' {
            self.value(out, depth + 1)?;
            while self.token(",").is_some() {
                out.push_str(", ");
                self.value(out, depth + 1)?;
            }
        }
        out.push(']');
        self.token("]")
    }

    fn object(&mut self, out: &mut String, depth: usize) -> Option<()> {
        self.token("{")?;
        let mut members: Vec<(String, String)> = Vec::new();
        self.space();
        if self.peek()? != b'}' {
            loop {
                self.space();
                let name = self.string()?;
                self.space();
                self.token(":")?;
                let mut value = String::new();
                self.value(&mut value, depth + 1)?;
                members.push((name, value));
                if self.token(",").is_none() {
                    break;
                }
            }
        }
        self.token("}")?;
        // The last of equal names comes first after the sort, and stays.
        members.reverse();
        members.sort_by(|(a, _), (b, _)| (a.len(), a).cmp(&(b.len(), b)));
        members.dedup_by(|(later, _), (kept, _)| later == kept);
        out.push('{');
        for (at, (name, value)) in members.iter().enumerate() {
            if at > 0 {
                out.push_str(", ");
            }
            push_string(out, name);
            out.push_str(": ");
            out.push_str(value);
        }
        out.push('}');
        Some(())
    }

    /// Returns a string without its quotes and escapes.
    fn string(&mut self) -> Option<String> {
        self.token("\"")?;
        let mut out = String::new();
        loop {
            let rest = self.rest();
            let end = rest.find(|c: char| c == '"' || c == '\\' || c < ' ')?;
            out.push_str(&rest[..end]);
            self.at += end + 1;
            match rest.as_bytes()[end] {
                b'"' => return Some(out),
                b'\\' => out.push(self.escaped()?),
                _ => return None,
            }
        }
    }

    /// Returns the character of an escape, after its backslash.
    fn escaped(&mut self) -> Option<char> {
        let byte = self.peek()?;
        self.at += 1;
        Some(match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.hex()?;
                let code = match first {
                    0xd800..=0xdbff => {
                        self.token("\\u")?;
                        let second = self.hex().filter(|low| (0xdc00..=0xdfff).contains(low))?;
                        0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)
                    }
                    code => code,
                };
                char::from_u32(code).filter(|c| *c != '\0')?
            }
            _ => return None,
        })
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self.rest().get(..4).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }

    fn digits(&mut self) -> Option<&'a str> {
        let rest = self.rest();
        let end = rest.bytes().take_while(u8::is_ascii_digit).count();
        self.at += end;
        (end > 0).then(|| &rest[..end])
    }

    fn number(&mut self, out: &mut String) -> Option<()> {
        let start = self.at;
        let is_negative = self.token("-").is_some();
        let whole = self.digits().filter(|digits| *digits == "0" || !digits.starts_with('0'))?;
        let fraction = if self.token(".").is_some() { self.digits()? } else { "" };
        let mut exponent = Some(0_i64);
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            let is_negative_exponent = self.token("-").is_some();
            if !is_negative_exponent {
                let _ = self.token("+");
            }
            exponent =
                self.digits()?.parse::<i64>().ok().map(|digits| if is_negative_exponent { -digits } else { digits });
        }
        match exponent.filter(|exponent| exponent.unsigned_abs() <= EXPONENT_MAX as u64) {
            Some(exponent) => push_number(out, is_negative, whole, fraction, exponent),
            None => out.push_str(&self.text[start..self.at]),
        }
        Some(())
    }
}

/// Appends a number without its exponent.
fn push_number(out: &mut String, is_negative: bool, whole: &str, fraction: &str, exponent: i64) {
    let digits = format!("{whole}{fraction}");
    // Digits before the point, and after it.
    let point = whole.len() as i64 + exponent;
    let scale = (fraction.len() as i64 - exponent).max(0) as usize;
    let (mut before, mut after) = (String::new(), String::new());
    for at in point.min(0)..point.max(digits.len() as i64) {
        let digit = usize::try_from(at).ok().and_then(|at| digits.as_bytes().get(at)).map_or('0', |b| char::from(*b));
        if at < point { before.push(digit) } else { after.push(digit) }
    }
    after.truncate(scale);
    let before = before.trim_start_matches('0');
    let is_zero = before.is_empty() && after.bytes().all(|b| b == b'0');
    if is_negative && !is_zero {
        out.push('-');
    }
    out.push_str(if before.is_empty() { "0" } else { before });
    if !after.is_empty() {
        out.push('.');
        out.push_str(&after);
    }
}

fn push_string(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c == '"' || c == '\\' || c < ' ') {
        out.push_str(&rest[..at]);
        match rest.as_bytes()[at] {
            byte @ (b'"' | b'\\') => out.extend(['\\', char::from(byte)]),
            0x08 => out.push_str("\\b"),
            0x0c => out.push_str("\\f"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            byte => out.push_str(&format!("\\u{byte:04x}")),
        }
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected texts are those of PostgreSQL 15.
    #[test]
    fn texts_are_those_of_postgresql() {
        for (text, expected) in [
            ("-0", "0"),
            ("-0.0", "0.0"),
            ("1.50", "1.50"),
            ("1e3", "1000"),
            ("1.5e1", "15"),
            ("1E-2", "0.01"),
            ("0.00e5", "0"),
            ("10e-3", "0.010"),
            ("123456789012345678901234567890.5", "123456789012345678901234567890.5"),
            (r#"{"b":1,"a":2,"b":3,"cc":4,"c":5,"":0}"#, r#"{"": 0, "a": 2, "b": 3, "c": 5, "cc": 4}"#),
            (r#""\u00e9\n\/\u0001""#, r#""é\n/\u0001""#),
            (r#""\ud83d\ude04""#, "\"😄\""),
            ("[ 1 , {} , [ ] ]", "[1, {}, []]"),
            (r#"{"a":{"b":[1,null,true]}}"#, r#"{"a": {"b": [1, null, true]}}"#),
            ("-1.5e-2", "-0.015"),
            ("-1e2", "-100"),
            ("1e40", "10000000000000000000000000000000000000000"),
            ("1.23e1", "12.3"),
            ("1.230e1", "12.30"),
            ("100e-2", "1.00"),
            ("  1 ", "1"),
            (r#"{"a":1,"a":2,"a":3}"#, r#"{"a": 3}"#),
            ("1e-5", "0.00001"),
            ("0e0", "0"),
            ("0e-3", "0.000"),
            ("-0e2", "0"),
            ("5e-0", "5"),
        ] {
            assert_eq!(normalize(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "{",
            "[1,]",
            "{\"a\"}",
            "01",
            "1.",
            "tru",
            "1 2",
            "\"\\x\"",
            "\"\t\"",
            "+1",
            "\"\\ud83d\"",
            "\"\\u0000\"",
            "\"\\ude04\"",
            "\"\\ud83d\\u0041\"",
            "\"\\u00é\"",
            "{1:2}",
            "[",
            "\"",
        ] {
            assert_eq!(normalize(text), Err(JsonbError::Syntax), "{text}");
        }
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(normalize(&nested(DEPTH_MAX)), Ok(nested(DEPTH_MAX)));
        assert_eq!(normalize(&nested(DEPTH_MAX + 1)), Err(JsonbError::Depth));
        assert_eq!(normalize("1e41"), Ok("1e41".to_owned()));
        assert_eq!(normalize("1e99999999999999999999"), Ok("1e99999999999999999999".to_owned()));
    }

    #[test]
    fn a_normalized_text_stays() {
        let text = normalize(r#"{"é\"": [1.0, -2e3, "\u001f"], "": null}"#).unwrap();
        assert_eq!(normalize(&text), Ok(text.clone()));
    }
}
