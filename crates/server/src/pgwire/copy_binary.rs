//! PostgreSQL's binary format of COPY: a signature, rows of fields with their lengths before them, and an end.
//!
//! Rows that come are turned into CSV, which the importer reads; a row may be cut anywhere between two messages.

use super::parameters::decode;
use super::reply::Report;
use tidalite::Parameter;
use tidalite::types::pg_type::PgType;
use tidalite::types::text::hex_digits;

pub const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";
/// What stands for NULL in the CSV; in quotes it is a text.
pub const NULL: &str = "\\N";
/// A longer row is not held together.
const ROW_BYTES_MAX: usize = 256 << 20;
/// The signature, flags, and the length of what else the header has.
const HEADER_BYTES: usize = SIGNATURE.len() + 8;

/// The header of rows that go out.
pub fn push_header(out: &mut Vec<u8>) {
    out.extend_from_slice(SIGNATURE);
    out.extend_from_slice(&[0; 8]);
}

/// Rows on their way in.
pub struct Incoming {
    columns: Vec<(String, PgType)>,
    /// Not a whole row yet.
    held: Vec<u8>,
    has_begun: bool,
    has_ended: bool,
}

type Done<T> = Result<T, Report>;

fn malformed(what: impl Into<String>) -> Report {
    Report::error("22P04", what)
}

impl Incoming {
    pub fn new(columns: Vec<(String, PgType)>) -> Incoming {
        Incoming { columns, held: Vec::new(), has_begun: false, has_ended: false }
    }

    /// The rows that are whole now, as CSV.
    pub fn text_of(&mut self, bytes: &[u8]) -> Done<Vec<u8>> {
        self.held.extend_from_slice(bytes);
        let mut at = 0;
        if !self.has_begun {
            let Some(length) = header(&self.held)? else { return Ok(Vec::new()) };
            (self.has_begun, at) = (true, length);
        }
        let mut out = Vec::new();
        while !self.has_ended
            && let Some(length) = self.row(&self.held[at..], &mut out)?
        {
            at += length;
            self.has_ended = length == 2 && self.held[at - 2..at] == [0xff, 0xff];
        }
        if self.has_ended && at < self.held.len() {
            return Err(malformed("received copy data after EOF marker"));
        }
        self.held.drain(..at);
        if self.held.len() > ROW_BYTES_MAX {
            return Err(malformed(format!("a row is longer than {ROW_BYTES_MAX} bytes")));
        }
        Ok(out)
    }

    /// # Errors
    /// When a row or the end is missing.
    pub fn finish(&self) -> Done<()> {
        if self.has_ended || (self.held.is_empty() && self.has_begun) {
            return Ok(());
        }
        Err(malformed("unexpected end of COPY data"))
    }

    /// How long the first row is, which `out` gets; `None` when it is not whole. The end is a row of no fields.
    fn row(&self, bytes: &[u8], out: &mut Vec<u8>) -> Done<Option<usize>> {
        let Some((count, mut rest)) = bytes.split_first_chunk::<2>() else { return Ok(None) };
        let count = i16::from_be_bytes(*count);
        if count == -1 {
            return Ok(Some(2));
        }
        if usize::try_from(count) != Ok(self.columns.len()) {
            let wanted = self.columns.len();
            return Err(malformed(format!("row field count is {count}, expected {wanted}")));
        }
        let start = out.len();
        for (n, (name, pg_type)) in self.columns.iter().enumerate() {
            let Some((value, after)) = field(rest)? else {
                out.truncate(start);
                return Ok(None);
            };
            rest = after;
            if n > 0 {
                out.push(b',');
            }
            let refused =
                |_: Report| Report::error("22P03", format!("incorrect binary data format for column \"{name}\""));
            match decode(n + 1, pg_type.oid, true, value).map_err(refused)? {
                Parameter::Null => out.extend_from_slice(NULL.as_bytes()),
                value => push_quoted(out, &text(&value)),
            }
        }
        out.push(b'\n');
        Ok(Some(bytes.len() - rest.len()))
    }
}

/// How long the header is; `None` when it is not whole.
fn header(bytes: &[u8]) -> Done<Option<usize>> {
    if bytes.iter().zip(SIGNATURE).any(|(found, wanted)| found != wanted) {
        return Err(malformed("COPY file signature not recognized"));
    }
    let Some((_, extension)) = bytes.get(..HEADER_BYTES).and_then(|head| head.split_last_chunk::<4>()) else {
        return Ok(None);
    };
    let length = HEADER_BYTES.saturating_add(u32::from_be_bytes(*extension) as usize);
    if length > ROW_BYTES_MAX {
        return Err(malformed("invalid COPY file header (wrong length)"));
    }
    Ok((bytes.len() >= length).then_some(length))
}

/// A field and what comes behind it.
#[expect(clippy::type_complexity, reason = "NULL, and not whole yet")]
fn field(bytes: &[u8]) -> Done<Option<(Option<&[u8]>, &[u8])>> {
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
    match i32::from_be_bytes(*length) {
        -1 => Ok(Some((None, rest))),
        length => match usize::try_from(length) {
            Ok(length) if length <= ROW_BYTES_MAX => {
                Ok(rest.split_at_checked(length).map(|(value, rest)| (Some(value), rest)))
            }
            _ => Err(malformed("invalid field size")),
        },
    }
}

/// As the importer reads it.
fn text(value: &Parameter) -> String {
    match value {
        Parameter::Null => "NULL".to_owned(),
        Parameter::Boolean(value) => value.to_string(),
        Parameter::Long(value) => value.to_string(),
        Parameter::Double(value) => value.to_string(),
        Parameter::Decimal(text) | Parameter::Text(text) | Parameter::Typed(text, _) | Parameter::Of(text, _) => {
            text.clone()
        }
        Parameter::Bytes(bytes) => format!("\\x{}", hex_digits(bytes)),
        Parameter::List(items) => format!("{{{}}}", items.iter().map(text).collect::<Vec<_>>().join(",")),
    }
}

fn push_quoted(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for byte in text.bytes() {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidalite::types::pg_type::{FLOAT8S, INT8, TEXT};

    fn columns() -> Vec<(String, PgType)> {
        vec![("n".to_owned(), INT8), ("k".to_owned(), TEXT), ("a".to_owned(), FLOAT8S)]
    }

    fn rows() -> Vec<u8> {
        let mut bytes = Vec::new();
        push_header(&mut bytes);
        let array = [1_i32, 0, 701, 2, 1, 8].map(i32::to_be_bytes).concat();
        let array = [&array[..], &1.5_f64.to_be_bytes(), &8_i32.to_be_bytes(), &(-2.0_f64).to_be_bytes()].concat();
        for fields in [[Some(&7_i64.to_be_bytes()[..]), Some(b"a\"b"), Some(&array)], [None, Some(b"\\N"), None]] {
            bytes.extend_from_slice(&3_i16.to_be_bytes());
            for field in fields {
                bytes.extend_from_slice(&field.map_or(-1, |f| f.len() as i32).to_be_bytes());
                bytes.extend_from_slice(field.unwrap_or_default());
            }
        }
        bytes.extend_from_slice(&(-1_i16).to_be_bytes());
        bytes
    }

    #[test]
    fn rows_are_the_same_wherever_they_are_cut() {
        let bytes = rows();
        for cut in 0..=bytes.len() {
            let mut incoming = Incoming::new(columns());
            let text =
                [&bytes[..cut], &bytes[cut..]].map(|part| incoming.text_of(part).map_err(|e| e.message).unwrap());
            assert_eq!(
                String::from_utf8(text.concat()).unwrap(),
                "\"7\",\"a\"\"b\",\"{1.5,-2}\"\n\\N,\"\\N\",\\N\n",
                "{cut}"
            );
            assert!(incoming.finish().is_ok());
        }
    }

    #[test]
    fn what_is_no_row_is_refused() {
        let bytes = rows();
        let refused = |bytes: &[u8]| match Incoming::new(columns()).text_of(bytes) {
            Ok(_) => String::new(),
            Err(report) => report.message,
        };
        assert_eq!(refused(b"a,b\n"), "COPY file signature not recognized");
        let mut fewer = bytes.clone();
        fewer[HEADER_BYTES + 1] = 2;
        assert_eq!(refused(&fewer), "row field count is 2, expected 3");
        let mut wrong = bytes.clone();
        wrong[HEADER_BYTES + 2..HEADER_BYTES + 6].copy_from_slice(&7_i32.to_be_bytes());
        assert_eq!(refused(&wrong), "incorrect binary data format for column \"n\"");
        wrong[HEADER_BYTES + 2..HEADER_BYTES + 6].copy_from_slice(&(-7_i32).to_be_bytes());
        assert_eq!(refused(&wrong), "invalid field size");
        assert_eq!(refused(&[&bytes[..], b"x"].concat()), "received copy data after EOF marker");
        // Also where it comes in a message of its own.
        for behind in [&b"x"[..], b"\xff\xff", b"\0\x03"] {
            let mut incoming = Incoming::new(columns());
            assert!(incoming.text_of(&bytes).is_ok());
            let refused = incoming.text_of(behind).map_err(|report| report.message);
            assert_eq!(refused, Err("received copy data after EOF marker".to_owned()), "{behind:?}");
        }
        let mut incoming = Incoming::new(columns());
        assert!(incoming.text_of(&bytes[..40]).is_ok() && incoming.finish().is_err());
    }
}
