//! Converts the bytes of a file to the input of the CSV reader: decompressed, UTF-8, lines that end in `\n`.
//!
//! Input: a reader and its known properties. Output: the beginning of the text, the rest of the text, and its encoding
//! and compression. Compression is detected from the first bytes, the encoding from a byte order mark or from zeros
//! between letters. Unsupported formats (ZIP, xz, Parquet, UTF-32) are rejected by name.

use super::SAMPLE_BYTES;
use super::reader::{Reader, unreadable};
use crate::{Error, ErrorKind, Result};
use flate2::read::MultiGzDecoder;
use std::fmt;
use std::io::{BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Number of bytes from which compression and encoding are detected.
const PEEK_BYTES: usize = 4 << 10;
/// Bytes that are decoded at a time.
const DECODED_BYTES: usize = 64 << 10;

/// The encoding of characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    #[default]
    Utf8,
    Utf16Le,
    Utf16Be,
    Latin1,
    Windows1252,
}

/// The compression of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    #[default]
    None,
    Gzip,
    Zstd,
}

impl Encoding {
    /// Parses the name of an encoding.
    ///
    /// # Errors
    /// Fails for an unknown encoding.
    pub fn from_text(text: &str) -> Result<Option<Encoding>, String> {
        let plain: String = text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        Ok(Some(match plain.as_str() {
            "" | "auto" => return Ok(None),
            "utf8" | "unicode" | "ascii" | "usascii" | "sqlascii" | "utf8sig" | "utf8bom" => Encoding::Utf8,
            // Without a byte order mark little endian, as Windows writes it.
            "utf16" | "utf16le" | "ucs2" => Encoding::Utf16Le,
            "utf16be" => Encoding::Utf16Be,
            "latin1" | "iso88591" | "l1" => Encoding::Latin1,
            "windows1252" | "cp1252" | "win1252" => Encoding::Windows1252,
            _ => {
                return Err(format!(
                    "encoding {text:?} is not supported: UTF-8, UTF-16, UTF-16LE, UTF-16BE, Latin-1 and Windows-1252 are"
                ));
            }
        }))
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Encoding::Utf8 => "UTF-8",
            Encoding::Utf16Le => "UTF-16LE",
            Encoding::Utf16Be => "UTF-16BE",
            Encoding::Latin1 => "Latin-1",
            Encoding::Windows1252 => "Windows-1252",
        })
    }
}

impl Compression {
    /// Parses the name of a compression.
    ///
    /// # Errors
    /// Fails for an unknown compression.
    pub fn from_text(text: &str) -> Result<Option<Compression>, String> {
        match text.to_ascii_lowercase().as_str() {
            "" | "auto" => Ok(None),
            "none" | "uncompressed" => Ok(Some(Compression::None)),
            "gzip" | "gz" => Ok(Some(Compression::Gzip)),
            "zstd" | "zst" => Ok(Some(Compression::Zstd)),
            other => Err(format!("compression {other:?} is not supported: gzip, zstd and none are")),
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Compression::None => "none",
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
        })
    }
}

/// Encoding and compression of a file as given by the user; `None` means detected.
#[derive(Clone, Copy, Debug, Default)]
pub struct TextOptions {
    pub encoding: Option<Encoding>,
    pub compression: Option<Compression>,
    /// Maximum bytes of text for each compressed byte, after the first [`FREE_BYTES`]; `None` for no limit.
    pub ratio_max: Option<u64>,
}

/// Bytes of text of a compressed file without a limit of the ratio.
pub const FREE_BYTES: u64 = 64 << 20;
/// Maximum ratio of text to compressed bytes in uploads of clients: about the maximum ratio of gzip.
pub const RATIO_MAX: u64 = 1000;

/// Encoding, compression and line ends of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextForm {
    pub compression: Compression,
    pub encoding: Encoding,
    /// Bytes of the byte order mark.
    pub mark_bytes: usize,
    /// Lines end in a carriage return alone.
    pub has_carriage_returns: bool,
}

impl TextForm {
    /// Returns true if the bytes after the byte order mark are the text without any conversion.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.compression == Compression::None && self.encoding == Encoding::Utf8 && !self.has_carriage_returns
    }
}

impl fmt::Display for TextForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.encoding.fmt(f)?;
        if self.mark_bytes > 0 {
            f.write_str(" with a byte order mark")?;
        }
        if self.has_carriage_returns {
            f.write_str(", lines that end in carriage returns")?;
        }
        match self.compression {
            Compression::None => Ok(()),
            other => write!(f, ", {other}"),
        }
    }
}

/// A text: its beginning, and a reader of the rest.
pub struct Text {
    pub head: Vec<u8>,
    /// `head` is the whole text.
    pub is_whole: bool,
    pub form: TextForm,
    rest: Reader,
}

impl Text {
    /// Reads the first [`SAMPLE_BYTES`] of the text.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or is not text.
    pub fn open(mut raw: Reader, options: &TextOptions) -> Result<Text> {
        let mut first = read_up_to(&mut raw, PEEK_BYTES)?;
        let compression = options.compression.unwrap_or_else(|| compression_of(&first));
        let mut reader: Reader = Box::new(Cursor::new(first.clone()).chain(raw));
        if compression != Compression::None {
            let compressed = Arc::new(AtomicU64::new(0));
            let counted = Counted { inner: reader, bytes: compressed.clone() };
            let text: Reader = match compression {
                Compression::Gzip => Box::new(MultiGzDecoder::new(BufReader::with_capacity(1 << 20, counted))),
                _ => Box::new(zstd::stream::read::Decoder::new(counted).map_err(|e| unreadable(&e))?),
            };
            reader = match options.ratio_max {
                Some(ratio_max) => Box::new(Decompressed { inner: text, compressed, bytes: 0, ratio_max }),
                None => text,
            };
            first = read_up_to(&mut reader, PEEK_BYTES)?;
            reader = Box::new(Cursor::new(first.clone()).chain(reader));
        }
        refuse_binary(&first)?;
        let (encoding, mark_bytes) = encoding_of(&first, options.encoding);
        let mut mark = vec![0; mark_bytes];
        reader.read_exact(&mut mark).map_err(|e| unreadable(&e))?;
        if encoding != Encoding::Utf8 {
            reader = Box::new(Decoder {
                inner: reader,
                encoding,
                raw: Vec::new(),
                ready: Cursor::default(),
                bytes: mark_bytes,
                is_end: false,
            });
        }
        let mut head = read_up_to(&mut reader, SAMPLE_BYTES)?;
        let is_whole = head.len() < SAMPLE_BYTES;
        let has_carriage_returns = has_carriage_returns(&head);
        if has_carriage_returns {
            let mut state = Quotes::default();
            state.end_lines(&mut head);
            reader = Box::new(CarriageReturns { inner: reader, state });
        }
        let form = TextForm { compression, encoding, mark_bytes, has_carriage_returns };
        Ok(Text { head, is_whole, form, rest: reader })
    }

    /// Reads more of the text until `head` satisfies `is_enough`, at most `max` bytes in total.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn grow(&mut self, max: usize, is_enough: impl Fn(&[u8]) -> bool) -> Result<()> {
        while !self.is_whole && self.head.len() < max && !is_enough(&self.head) {
            let wanted = self.head.len().min(max - self.head.len());
            let read = (&mut self.rest).take(wanted as u64).read_to_end(&mut self.head).map_err(|e| unreadable(&e))?;
            self.is_whole = read < wanted;
        }
        Ok(())
    }

    /// Returns a reader of the text after its first `skipped` bytes.
    #[must_use]
    pub fn into_reader(mut self, skipped: usize) -> Reader {
        Box::new(Cursor::new(self.head.split_off(skipped)).chain(self.rest))
    }
}

/// Counts the bytes that are read.
struct Counted {
    inner: Reader,
    bytes: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.bytes.fetch_add(count as u64, Relaxed);
        Ok(count)
    }
}

/// Fails while a text is decompressed, as soon as the text exceeds the maximum ratio.
struct Decompressed {
    inner: Reader,
    compressed: Arc<AtomicU64>,
    bytes: u64,
    ratio_max: u64,
}

impl Read for Decompressed {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.bytes += count as u64;
        let compressed = self.compressed.load(Relaxed);
        if self.bytes > FREE_BYTES.max(compressed.saturating_mul(self.ratio_max)) {
            let message = format!(
                "{compressed} compressed bytes expand to more than {} times as many bytes of text",
                self.ratio_max
            );
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, message));
        }
        Ok(count)
    }
}

fn read_up_to(reader: &mut Reader, bytes: usize) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    reader.take(bytes as u64).read_to_end(&mut out).map_err(|e| unreadable(&e))?;
    Ok(out)
}

fn compression_of(first: &[u8]) -> Compression {
    match first {
        [0x1f, 0x8b, ..] => Compression::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Compression::Zstd,
        _ => Compression::None,
    }
}

/// Files that begin with these bytes are not text.
const BINARY: [(&[u8], &str); 8] = [
    (b"PK\x03\x04", "a ZIP archive or a spreadsheet"),
    (b"BZh", "compressed by bzip2"),
    (b"\xfd7zXZ\0", "compressed by xz"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"PAR1", "Parquet"),
    (b"ARROW1", "an Arrow file"),
    (b"\xd0\xcf\x11\xe0", "a spreadsheet"),
    (b"SQLite format 3\0", "a SQLite database"),
];

fn refuse_binary(first: &[u8]) -> Result<()> {
    let is_utf32 = first.starts_with(b"\xff\xfe\0\0") || first.starts_with(b"\0\0\xfe\xff");
    let what = match BINARY.iter().find(|(begin, _)| first.starts_with(begin)) {
        // `BZh` may begin a text; then no digit of a block size follows.
        Some((b"BZh", _)) if !first.get(3).is_some_and(|b| (b'1'..=b'9').contains(b)) || first.is_ascii() => {
            return Ok(());
        }
        Some((_, what)) => *what,
        None if is_utf32 => "UTF-32",
        None => return Ok(()),
    };
    let mut error = Error::new(ErrorKind::Invalid, format!("the file is no CSV but {what}"));
    error.hint =
        Some("CSV may be compressed by gzip or zstd, and written in UTF-8, UTF-16, Latin-1 or Windows-1252".to_owned());
    Err(error)
}

/// Returns the encoding and the length of its byte order mark.
fn encoding_of(first: &[u8], given: Option<Encoding>) -> (Encoding, usize) {
    let marked = match first {
        [0xef, 0xbb, 0xbf, ..] => Some((Encoding::Utf8, 3)),
        [0xff, 0xfe, ..] => Some((Encoding::Utf16Le, 2)),
        [0xfe, 0xff, ..] => Some((Encoding::Utf16Be, 2)),
        _ => None,
    };
    let is_16 = |e: Encoding| matches!(e, Encoding::Utf16Le | Encoding::Utf16Be);
    match (given, marked) {
        // In other encodings, the bytes of a byte order mark may be letters.
        (Some(given), Some((found, bytes))) if found == given || (is_16(found) && is_16(given)) => (found, bytes),
        (Some(given), _) => (given, 0),
        (None, Some(found)) => found,
        (None, None) => (without_mark(first), 0),
    }
}

/// UTF-16 of mostly ASCII characters has a zero in every second byte.
fn without_mark(first: &[u8]) -> Encoding {
    let zeros = |from: usize| first.iter().skip(from).step_by(2).filter(|b| **b == 0).count();
    let (even, odd, pairs) = (zeros(0), zeros(1), first.len() / 2);
    let is_most = |count: usize, other: usize| pairs > 0 && 2 * count >= pairs && other * 20 <= pairs;
    if is_most(odd, even) {
        Encoding::Utf16Le
    } else if is_most(even, odd) {
        Encoding::Utf16Be
    } else {
        Encoding::Utf8
    }
}

/// Characters of Windows-1252 from 0x80 to 0x9f; zero for undefined ones.
const WINDOWS_1252: [u16; 32] = [
    0x20ac, 0, 0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160, 0x2039, 0x0152, 0, 0x017d, 0, 0,
    0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0, 0x017e, 0x0178,
];

/// Text of another encoding as UTF-8.
struct Decoder {
    inner: Reader,
    encoding: Encoding,
    /// Bytes read but not yet decoded.
    raw: Vec<u8>,
    ready: Cursor<Vec<u8>>,
    /// Bytes of the file before `raw`.
    bytes: usize,
    is_end: bool,
}

impl Decoder {
    fn more(&mut self) -> std::io::Result<()> {
        let read = (&mut self.inner).take(DECODED_BYTES as u64).read_to_end(&mut self.raw)?;
        self.is_end = read < DECODED_BYTES;
        let mut out = String::with_capacity(self.raw.len() * 3 / 2);
        let taken = match self.encoding {
            Encoding::Utf16Le => utf16(&self.raw, u16::from_le_bytes, self.is_end, &mut out),
            Encoding::Utf16Be => utf16(&self.raw, u16::from_be_bytes, self.is_end, &mut out),
            Encoding::Windows1252 => windows_1252(&self.raw, &mut out),
            Encoding::Latin1 | Encoding::Utf8 => {
                out.extend(self.raw.iter().map(|b| char::from(*b)));
                Ok(self.raw.len())
            }
        };
        let taken = taken.map_err(|at| {
            let message = format!("the bytes at {} are not {}", self.bytes + at, self.encoding);
            std::io::Error::new(std::io::ErrorKind::InvalidData, message)
        })?;
        self.raw.drain(..taken);
        self.bytes += taken;
        self.ready = Cursor::new(out.into_bytes());
        Ok(())
    }
}

impl Read for Decoder {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.ready.position() as usize == self.ready.get_ref().len() && !self.is_end {
            self.more()?;
        }
        self.ready.read(buffer)
    }
}

/// Returns the number of bytes that form whole characters, or the position of an invalid character.
fn utf16(raw: &[u8], unit: fn([u8; 2]) -> u16, is_end: bool, out: &mut String) -> Result<usize, usize> {
    let (units, rest) = raw.as_chunks::<2>();
    let mut whole = units.len();
    let is_high = |pair: &[u8; 2]| (0xd800..0xdc00).contains(&unit(*pair));
    if !is_end && units.last().is_some_and(is_high) {
        whole -= 1;
    }
    if is_end && !rest.is_empty() {
        return Err(raw.len() - 1);
    }
    let mut at = 0;
    for character in char::decode_utf16(units[..whole].iter().map(|pair| unit(*pair))) {
        let character = character.map_err(|_| at)?;
        out.push(character);
        at += 2 * character.len_utf16();
    }
    Ok(at)
}

fn windows_1252(raw: &[u8], out: &mut String) -> Result<usize, usize> {
    for (at, byte) in raw.iter().enumerate() {
        out.push(match byte {
            0x80..=0x9f => match WINDOWS_1252[usize::from(byte - 0x80)] {
                0 => return Err(at),
                code => char::from_u32(u32::from(code)).ok_or(at)?,
            },
            byte => char::from(*byte),
        });
    }
    Ok(raw.len())
}

/// Tracks the quotes of a text. A quote opens a quoted field only at the start of the field.
#[derive(Clone, Copy, Debug, Default)]
struct Quotes {
    is_open: bool,
    is_within_field: bool,
    /// The last byte was a quote that closed the field; a following quote is a literal quote.
    has_closed: bool,
}

impl Quotes {
    /// Returns true if `byte` is a newline or carriage return outside quotes.
    fn is_end(&mut self, byte: u8) -> bool {
        let has_closed = std::mem::take(&mut self.has_closed);
        match byte {
            b'"' if self.is_open => (self.is_open, self.has_closed) = (false, true),
            b'"' if has_closed || !self.is_within_field => (self.is_open, self.is_within_field) = (true, true),
            b'\r' | b'\n' if !self.is_open => {
                self.is_within_field = false;
                return true;
            }
            b',' | b';' | b'\t' | b'|' if !self.is_open => self.is_within_field = false,
            _ => self.is_within_field = true,
        }
        false
    }

    fn end_lines(&mut self, text: &mut [u8]) {
        text.iter_mut().for_each(|byte| {
            if self.is_end(*byte) {
                *byte = b'\n';
            }
        });
    }
}

/// Returns true if lines end in carriage returns and no line ends in a newline.
fn has_carriage_returns(head: &[u8]) -> bool {
    let is_alone = |at: usize| head.get(at + 1) != Some(&b'\n');
    if !memchr::memchr_iter(b'\r', head).any(is_alone) {
        return false;
    }
    let mut quotes = Quotes::default();
    let mut returns = 0;
    for byte in head {
        match (quotes.is_end(*byte), byte) {
            (true, b'\n') => return false,
            (true, _) => returns += 1,
            _ => {}
        }
    }
    returns > 0
}

struct CarriageReturns {
    inner: Reader,
    state: Quotes,
}

impl Read for CarriageReturns {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.state.end_lines(&mut buffer[..read]);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn opened(bytes: &[u8], encoding: Option<Encoding>) -> Result<(String, TextForm)> {
        let options = TextOptions { encoding, ..TextOptions::default() };
        let text = Text::open(Box::new(Cursor::new(bytes.to_vec())), &options)?;
        let form = text.form;
        let mut out = Vec::new();
        text.into_reader(0).read_to_end(&mut out).map_err(|e| unreadable(&e))?;
        Ok((String::from_utf8_lossy(&out).into_owned(), form))
    }

    fn utf16(text: &str, mark: bool, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        let mark = if mark { "\u{feff}" } else { "" };
        mark.encode_utf16().chain(text.encode_utf16()).flat_map(bytes).collect()
    }

    #[test]
    fn encodings_are_found_or_said() {
        let text = "a,b\n1,\u{e9}\u{1f980}\n".repeat(40_000);
        for (bytes, encoding) in [
            (text.clone().into_bytes(), Encoding::Utf8),
            ([&b"\xef\xbb\xbf"[..], text.as_bytes()].concat(), Encoding::Utf8),
            (utf16(&text, true, u16::to_le_bytes), Encoding::Utf16Le),
            (utf16(&text, true, u16::to_be_bytes), Encoding::Utf16Be),
            (utf16(&text, false, u16::to_le_bytes), Encoding::Utf16Le),
            (utf16(&text, false, u16::to_be_bytes), Encoding::Utf16Be),
        ] {
            let (found, form) = opened(&bytes, None).unwrap();
            assert_eq!(form.encoding, encoding);
            assert!(found == text);
        }
        assert_eq!(opened(b"\x80,\xe9\n", Some(Encoding::Windows1252)).unwrap().0, "\u{20ac},\u{e9}\n");
        assert_eq!(opened(b"\x80,\xe9\n", Some(Encoding::Latin1)).unwrap().0, "\u{80},\u{e9}\n");
        let error = opened(b"a\n\x81\n", Some(Encoding::Windows1252)).unwrap_err();
        assert_eq!(error.message, "could not be read: the bytes at 2 are not Windows-1252");
        let broken = [utf16("ab", true, u16::to_le_bytes), vec![0x00, 0xd8, b'x', 0]].concat();
        assert!(opened(&broken, None).unwrap_err().message.contains("the bytes at 6 are not UTF-16LE"));
        assert!(Encoding::from_text("koi8-r").is_err());
        assert_eq!(Encoding::from_text("ISO-8859-1"), Ok(Some(Encoding::Latin1)));
    }

    #[test]
    fn compressed_files_are_known_by_their_first_bytes() {
        let text = "a,b\n1,2\n".repeat(1_000_000);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        let zstd = zstd::stream::encode_all(text.as_bytes(), 1).unwrap();
        for (bytes, compression) in [(gzip.finish().unwrap(), Compression::Gzip), (zstd, Compression::Zstd)] {
            let (found, form) = opened(&bytes, None).unwrap();
            assert_eq!(form.compression, compression);
            assert!(found == text);
            assert!(opened(&bytes[..bytes.len() / 2], None).is_err(), "cut off");
        }
        for (begin, what) in BINARY {
            let bytes = [begin, b"9\xff\xff"].concat();
            assert!(opened(&bytes, None).unwrap_err().message.contains(what), "{what}");
        }
        assert_eq!(opened(b"BZh,x\n", None).unwrap().0, "BZh,x\n");
    }

    #[test]
    fn carriage_returns_end_lines_when_no_newline_does() {
        for (text, expected) in [
            ("a,b\r1,2\r", "a,b\n1,2\n"),
            ("a,b\r\"x\ry\n\"\"z\r\",2\r", "a,b\n\"x\ry\n\"\"z\r\",2\n"),
            ("a\r\nb\r\n", "a\r\nb\r\n"),
            ("a\rb\nc\n", "a\rb\nc\n"),
            ("a\r", "a\n"),
        ] {
            assert_eq!(opened(text.as_bytes(), None).unwrap().0, expected, "{text:?}");
        }
        let long = "1,\"a\rb\"\r".repeat(1 << 20);
        assert!(opened(long.as_bytes(), None).unwrap().0 == "1,\"a\rb\"\n".repeat(1 << 20));
    }

    #[test]
    fn a_text_grows_until_it_is_enough() {
        let long = "x".repeat(10 << 20) + "\n1\n";
        let mut text = Text::open(Box::new(Cursor::new(long.clone().into_bytes())), &TextOptions::default()).unwrap();
        assert_eq!((text.head.len(), text.is_whole), (SAMPLE_BYTES, false));
        text.grow(8 << 20, |head| head.contains(&b'\n')).unwrap();
        assert_eq!(text.head.len(), 8 << 20);
        text.grow(256 << 20, |head| head.contains(&b'\n')).unwrap();
        assert_eq!((text.head.len(), text.is_whole), (long.len(), true));
    }

    #[test]
    fn a_bomb_is_stopped_while_it_is_decompressed() {
        // 80 MiB of one repeated line; the first 64 MiB have no limit of the ratio.
        let text = "a,b\n".repeat(20 << 20);
        let zstd = zstd::stream::encode_all(text.as_bytes(), 1).unwrap();
        assert!(zstd.len() < 40 << 10, "{}", zstd.len());
        let read = |ratio_max| {
            let options = TextOptions { ratio_max, ..TextOptions::default() };
            let mut reader = Text::open(Box::new(Cursor::new(zstd.clone())), &options)?.into_reader(0);
            std::io::copy(&mut reader, &mut std::io::sink()).map_err(|e| unreadable(&e))
        };
        assert_eq!(read(None).unwrap(), text.len() as u64);
        let error = read(Some(RATIO_MAX)).unwrap_err();
        assert!(error.kind == ErrorKind::Invalid && error.message.contains("1000 times as many"), "{error}");
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut gzip, b"a,b\n1,2\n").unwrap();
        let mut broken = gzip.finish().unwrap();
        broken[12] ^= 0xff;
        let error = Text::open(Box::new(Cursor::new(broken)), &TextOptions::default()).err().unwrap();
        assert_eq!(error.kind, ErrorKind::Invalid, "{error}");
    }
}
