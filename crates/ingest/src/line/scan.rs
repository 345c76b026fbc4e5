//! Processes eight bytes at a time: digits, ends of values, hashes.
//!
//! A word contains eight bytes of input, the first in the lowest byte. Functions return `None` if the input has fewer
//! bytes left than they read, or the value requires the general path.

use tidalite_kernels::position_in_32;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

#[inline(always)]
pub(crate) fn load(input: &[u8], at: usize) -> Option<u64> {
    let bytes = input.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*bytes))
}

/// Keeps the first `bytes` (at most 8) of a word.
#[inline(always)]
fn keep(word: u64, bytes: usize) -> u64 {
    if bytes >= 8 { word } else { word & ((1 << (8 * bytes)) - 1) }
}

/// Sets the high bit of the first byte equal to `byte`; later bits may be wrong.
#[inline(always)]
fn equal(word: u64, byte: u8) -> u64 {
    let x = word ^ (ONES * u64::from(byte));
    x.wrapping_sub(ONES) & !x & HIGH
}

/// Marks bytes that may end a tag or need unescaping: space and below, comma, equals, backslash.
#[inline(always)]
fn special(word: u64) -> u64 {
    let low = word.wrapping_sub(ONES * 0x21) & !word & HIGH;
    low | equal(word, b',') | equal(word, b'=') | equal(word, b'\\')
}

/// Returns the position of the first byte from `at` on that [`special`] marks, or a position near the end of the input.
#[inline]
pub(super) fn skip_plain(input: &[u8], mut at: usize) -> usize {
    while let Some(word) = load(input, at) {
        let mark = special(word);
        if mark != 0 {
            return at + (mark.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    at
}

/// Converts digits to numbers; other bytes become values above nine.
#[inline(always)]
fn numbers(word: u64) -> u64 {
    word ^ (ONES * u64::from(b'0'))
}

/// Sets the high bit of the first byte above nine; later bits may be wrong. Returns zero if there is none.
#[inline(always)]
fn above_nine(numbers: u64) -> u64 {
    (numbers.wrapping_add(ONES * 0x76) | numbers) & HIGH
}

#[inline(always)]
fn digit_count(word: u64) -> usize {
    (above_nine(numbers(word)).trailing_zeros() / 8) as usize
}

/// Returns the number of the first `count` (1 to 8) bytes of `word`, all digits.
#[inline(always)]
fn digits_value(word: u64, count: usize) -> u64 {
    let v = numbers(word) << (64 - 8 * count);
    let v = (v & 0x0f0f_0f0f_0f0f_0f0f).wrapping_mul(2561) >> 8;
    let v = (v & 0x00ff_00ff_00ff_00ff).wrapping_mul(6_553_601) >> 16;
    (v & 0x0000_ffff_0000_ffff).wrapping_mul(42_949_672_960_001) >> 32
}

/// Parses `58i` of up to seven digits: returns the value and its length.
#[inline(always)]
pub(super) fn short_long(word: u64) -> Option<(u64, usize)> {
    let count = digit_count(word);
    let is_short = count.wrapping_sub(1) < 7 && (word >> (8 * count)) as u8 == b'i';
    is_short.then(|| (digits_value(word, count), count + 1))
}

const POWERS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Parses the digits at `at`; returns the value and their number, 0 to 19.
#[inline(always)]
pub(crate) fn digits(input: &[u8], at: usize) -> Option<(u64, usize)> {
    let word = load(input, at)?;
    let count = digit_count(word);
    if count == 0 {
        return Some((0, 0));
    }
    let value = digits_value(word, count);
    if count < 8 { Some((value, count)) } else { more_digits(input, at, value) }
}

fn more_digits(input: &[u8], at: usize, first: u64) -> Option<(u64, usize)> {
    let word = load(input, at + 8)?;
    let count = digit_count(word);
    if count == 0 {
        return Some((first, 8));
    }
    let value = first * POWERS[count] + digits_value(word, count);
    if count < 8 {
        return Some((value, 8 + count));
    }
    let word = load(input, at + 16)?;
    let count = digit_count(word);
    match count {
        0 => Some((value, 16)),
        1..=3 => Some((value * POWERS[count] + digits_value(word, count), 16 + count)),
        _ => None,
    }
}

/// Returns true if `byte` may follow a value on the fast path (a carriage return uses the general path).
#[inline(always)]
fn ends_value(input: &[u8], at: usize) -> bool {
    matches!(input.get(at), Some(b',' | b' ' | b'\n'))
}

/// Parses a signed integer; returns the value and its end.
#[inline(always)]
fn integer(input: &[u8], at: usize) -> Option<(i64, usize)> {
    let negative = input.get(at) == Some(&b'-');
    let start = at + usize::from(negative);
    let (magnitude, count) = digits(input, start)?;
    if count == 0 {
        return None;
    }
    let value = i64::try_from(magnitude).ok()?;
    Some((if negative { -value } else { value }, start + count))
}

/// Parses `58i`.
#[inline(always)]
pub(super) fn long(input: &[u8], at: usize) -> Option<(i64, usize)> {
    let (value, end) = long_start(input, at)?;
    ends_value(input, end).then_some((value, end))
}

/// Parses like [`long`], whatever follows.
#[inline(always)]
pub(super) fn long_start(input: &[u8], at: usize) -> Option<(i64, usize)> {
    match short_long(load(input, at)?) {
        Some((value, bytes)) => Some((value.cast_signed(), at + bytes)),
        None => long_of_any_length(input, at),
    }
}

#[inline(never)]
fn long_of_any_length(input: &[u8], at: usize) -> Option<(i64, usize)> {
    let (value, end) = integer(input, at)?;
    (input.get(end) == Some(&b'i')).then_some((value, end + 1))
}

/// Parses a field timestamp with the given suffix: `1451606400000000t`.
#[inline(always)]
pub(super) fn suffixed(input: &[u8], at: usize, suffix: u8) -> Option<(i64, usize)> {
    let (value, end) = integer(input, at)?;
    (input.get(end) == Some(&suffix) && ends_value(input, end + 1)).then_some((value, end + 1))
}

/// Parses a timestamp at the end of a line; returns it, its suffix (or 0) and the start of the next line.
#[inline(always)]
pub(super) fn line_timestamp(input: &[u8], at: usize) -> Option<(i64, u8, usize)> {
    let (value, end) = match long_integer(input, at) {
        Some(read) => read,
        None => integer(input, at)?,
    };
    let byte = *input.get(end)?;
    if byte == b'\n' {
        return Some((value, 0, end + 1));
    }
    (matches!(byte, b'n' | b't' | b'm') && input.get(end + 1) == Some(&b'\n')).then_some((value, byte, end + 2))
}

/// Parses like [`integer`] numbers of 16 to 18 digits, or 19 digits that begin with a one.
///
/// Timestamps in microseconds, and in nanoseconds until 2033, have these forms.
#[inline(always)]
fn long_integer(input: &[u8], at: usize) -> Option<(i64, usize)> {
    let window = input.get(at..)?.first_chunk::<24>()?;
    let (first, second, third) = (load(window, 0)?, load(window, 8)?, load(window, 16)?);
    let count = digit_count(third);
    let has_other = above_nine(numbers(first)) | above_nine(numbers(second)) != 0;
    if has_other || count > 3 || count == 3 && first as u8 != b'1' {
        return None;
    }
    let value = digits_value(first, 8) * POWERS[8] + digits_value(second, 8);
    let last = if count == 0 { 0 } else { digits_value(third, count) };
    Some(((value * POWERS[count] + last).cast_signed(), at + 16 + count))
}

/// Parses `-12.5` if the result is exact.
///
/// One division of a mantissa below 2^53 by a power of ten up to 10^22 rounds once (Clinger, "How to Read Floating
/// Point Numbers Accurately").
#[inline(always)]
pub(super) fn double(input: &[u8], at: usize) -> Option<(f64, usize)> {
    let (value, end) = double_start(input, at)?;
    ends_value(input, end).then_some((value, end))
}

/// Parses like [`double`], whatever follows.
#[inline(always)]
pub(super) fn double_start(input: &[u8], at: usize) -> Option<(f64, usize)> {
    let negative = input.get(at) == Some(&b'-');
    let start = at + usize::from(negative);
    let (whole, whole_count) = digits(input, start)?;
    let mut end = start + whole_count;
    if whole_count == 0 {
        return None;
    }
    let mut mantissa = whole;
    let mut scale = 0;
    if input.get(end) == Some(&b'.') {
        let (fraction, count) = digits(input, end + 1)?;
        if count == 0 || whole_count + count > 18 {
            return None;
        }
        mantissa = whole * TEN_TO[count] + fraction;
        scale = count;
        end += 1 + count;
    }
    if mantissa >= 1 << 53 {
        return None;
    }
    let value = mantissa as f64 / DOUBLE_TEN_TO[scale];
    Some((if negative { -value } else { value }, end))
}

pub(crate) const TEN_TO: [u64; 19] = {
    let mut powers = [1; 19];
    let mut i = 1;
    while i < 19 {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

pub(crate) const DOUBLE_TEN_TO: [f64; 19] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18];

/// Parses `t` or `f`.
#[inline(always)]
pub(super) fn boolean(input: &[u8], at: usize) -> Option<(bool, usize)> {
    let value = match input.get(at)? {
        b't' | b'T' => true,
        b'f' | b'F' => false,
        _ => return None,
    };
    ends_value(input, at + 1).then_some((value, at + 1))
}

/// Parses a quoted string without escapes; returns the text between the quotes and the end of the value.
#[inline(always)]
pub(super) fn quoted(input: &[u8], at: usize) -> Option<(&[u8], usize)> {
    if input.get(at) != Some(&b'"') {
        return None;
    }
    let start = at + 1;
    let len = memchr::memchr2(b'"', b'\\', &input[start..])?;
    let end = start + len;
    (input[end] == b'"' && ends_value(input, end + 1)).then_some((&input[start..end], end + 1))
}

/// Reads eight little-endian bytes after the marker and type of a binary double.
#[inline(always)]
pub(super) fn binary_double(input: &[u8], at: usize) -> Option<(f64, usize)> {
    if input.get(at) != Some(&b'=') || input.get(at + 1) != Some(&super::binary::TYPE_DOUBLE) {
        return None;
    }
    let bits = load(input, at + 2)?;
    ends_value(input, at + 10).then_some((f64::from_bits(bits), at + 10))
}

/// The text of a tag, with precomputed values for a fast dictionary lookup.
#[derive(Clone, Copy)]
pub(crate) struct Tag<'a> {
    pub text: &'a [u8],
    /// The first 16 bytes, padded with zeros. `hash` covers the whole text.
    pub head: [u64; 2],
    pub hash: u64,
}

/// Parses a tag value without escapes that is followed by a valid byte.
#[inline(always)]
pub(super) fn tag(input: &[u8], at: usize, seed: u64) -> Option<Tag<'_>> {
    let first = load(input, at)?;
    let mark = special(first);
    if mark != 0 {
        let len = (mark.trailing_zeros() / 8) as usize;
        return finish_tag(input, at, len, [keep(first, len), 0], seed);
    }
    let second = load(input, at + 8)?;
    let mark = special(second);
    if mark != 0 {
        let len = (mark.trailing_zeros() / 8) as usize;
        return finish_tag(input, at, 8 + len, [first, keep(second, len)], seed);
    }
    let mut len = 16;
    loop {
        let mark = special(load(input, at + len)?);
        if mark != 0 {
            len += (mark.trailing_zeros() / 8) as usize;
            return finish_tag(input, at, len, [first, second], seed);
        }
        len += 8;
    }
}

#[inline(always)]
fn finish_tag(input: &[u8], at: usize, len: usize, head: [u64; 2], seed: u64) -> Option<Tag<'_>> {
    if !ends_value(input, at + len) {
        return None;
    }
    let text = &input[at..at + len];
    Some(Tag { text, head, hash: hash_with_head(text, head, seed) })
}

/// Creates a tag from any text.
#[inline]
pub(crate) fn tag_of(text: &[u8], seed: u64) -> Tag<'_> {
    let word = u128::from_le_bytes(match text.first_chunk::<16>() {
        Some(bytes) => *bytes,
        None => {
            let mut bytes = [0; 16];
            bytes[..text.len()].copy_from_slice(text);
            bytes
        }
    });
    let head = [word as u64, (word >> 64) as u64];
    Tag { text, head, hash: hash_with_head(text, head, seed) }
}

#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

const K0: u64 = 0x9e37_79b9_7f4a_7c15;
const K1: u64 = 0xd1b5_4a32_d192_ed03;

#[inline(always)]
fn hash_with_head(text: &[u8], head: [u64; 2], seed: u64) -> u64 {
    let mut hash = fold(head[0] ^ K0 ^ seed, head[1] ^ K1 ^ (text.len() as u64).rotate_left(32));
    if text.len() > 16 {
        let word = |at: usize| load(text, at).unwrap_or(0);
        let mut at = 16;
        // Four chains at once: a single chain waits for each multiplication.
        let mut lanes = [hash, hash ^ K0, hash ^ K1, !hash];
        while at + 64 <= text.len() {
            for (lane, hash) in lanes.iter_mut().enumerate() {
                *hash = fold(*hash ^ word(at + 16 * lane), K1 ^ word(at + 16 * lane + 8));
            }
            at += 64;
        }
        hash = fold(lanes[0] ^ lanes[2].rotate_left(17), lanes[1] ^ lanes[3].rotate_left(31));
        while at + 16 <= text.len() {
            hash = fold(hash ^ word(at), K1 ^ word(at + 8));
            at += 16;
        }
        // The last 16 bytes, which may include hashed bytes.
        let end = text.len() - 16;
        hash = fold(hash ^ word(end), K0 ^ word(end + 8));
    }
    hash
}

#[inline]
pub(super) fn hash(bytes: &[u8], seed: u64) -> u64 {
    tag_of(bytes, seed).hash
}

/// Hashes [`FIRST_BYTES`] bytes, or the bytes up to and including the first space.
#[inline(always)]
pub(super) fn hash_of_first(bytes: &[u8; FIRST_BYTES], seed: u64) -> u64 {
    let mut words = [0; FIRST_BYTES / 8];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    if let Some(space) = position_in_32(bytes, b' ') {
        for (at, word) in words.iter_mut().enumerate() {
            *word = keep(*word, (space + 1).saturating_sub(8 * at));
        }
    }
    let [a, b, c, d] = words;
    fold(fold(a ^ K0 ^ seed, b ^ K1) ^ c, fold(c ^ K1 ^ seed, d ^ K0) ^ a)
}

pub(super) const FIRST_BYTES: usize = 32;

/// Longer prefixes are compared on the general path.
const PREFIX_WORDS: usize = 4;

/// A few literal bytes, compared by words.
#[derive(Clone, Debug)]
pub(super) struct Prefix {
    words: [u64; PREFIX_WORDS],
    masks: [u64; PREFIX_WORDS],
    bytes: Box<[u8]>,
}

impl Prefix {
    pub(super) fn new(bytes: &[u8]) -> Prefix {
        let mut words = [0; PREFIX_WORDS];
        let mut masks = [0; PREFIX_WORDS];
        for (i, chunk) in bytes.chunks(8).take(PREFIX_WORDS).enumerate() {
            let mut padded = [0; 8];
            padded[..chunk.len()].copy_from_slice(chunk);
            words[i] = u64::from_le_bytes(padded);
            masks[i] = keep(u64::MAX, chunk.len());
        }
        Prefix { words, masks, bytes: bytes.into() }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns true if the bytes differ from the beginning of the prefix.
    #[inline(always)]
    fn differs(&self, bytes: &[u8; 8 * PREFIX_WORDS]) -> bool {
        let different = |i: usize| (load(bytes, 8 * i).unwrap_or(0) ^ self.words[i]) & self.masks[i];
        different(0) | different(1) | different(2) | different(3) != 0
    }

    /// Returns the eight bytes after the prefix and their position if the prefix is at `at`.
    ///
    /// Returns `None` for a long prefix, and near the end of the input.
    #[inline(always)]
    pub(super) fn word_behind(&self, input: &[u8], at: usize) -> Option<(u64, usize)> {
        let window = input.get(at..)?.first_chunk::<{ 8 * PREFIX_WORDS + 8 }>()?;
        if self.differs(window.first_chunk()?) {
            return None;
        }
        Some((load(window, self.bytes.len())?, at + self.bytes.len()))
    }

    /// Returns the position after the prefix if the prefix is at `at`.
    #[inline(always)]
    pub(super) fn behind(&self, input: &[u8], at: usize) -> Option<usize> {
        let rest = input.get(at..)?;
        let Some(chunk) = rest.first_chunk::<{ 8 * PREFIX_WORDS }>() else {
            return rest.starts_with(&self.bytes).then_some(at + self.bytes.len());
        };
        if self.differs(chunk) || self.bytes.len() > chunk.len() && !rest.starts_with(&self.bytes) {
            return None;
        }
        Some(at + self.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_read_up_to_nineteen() {
        let text = "1234567890123456789";
        for count in 0..=19 {
            let input = format!("{}x{}", &text[..count], "99999999999999999999999");
            let value = text[..count].parse().unwrap_or(0);
            assert_eq!(digits(input.as_bytes(), 0), Some((value, count)));
        }
        assert_eq!(digits(b"12345678901234567890         ", 0), None);
    }

    #[test]
    fn long_integers_are_read_as_all_are() {
        let mut random = fastrand::Rng::with_seed(6);
        for round in 0..20_000 {
            let value = random.i64(0..=i64::MAX) >> random.u32(0..50);
            let mut text = format!("{value}nnnnnnnnnnnnnnnnnnnnnnnn");
            if round % 3 == 0 {
                // Any byte anywhere.
                let at = random.usize(..20);
                text.replace_range(at..=at, &char::from(random.u8(..128)).to_string());
            }
            let read = long_integer(text.as_bytes(), 0);
            assert!(read.is_none() || read == integer(text.as_bytes(), 0), "{text}: {read:?}");
        }
        for text in
            ["1451606400000000", "1451606400000000123", "9999999999999999", "999999999999999999", "1999999999999999999"]
        {
            let read = long_integer(format!("{text}\nnext line").as_bytes(), 0);
            assert_eq!(read, Some((text.parse().expect("digits"), text.len())));
        }
    }

    #[test]
    fn short_integers_are_read_and_everything_else_is_told() {
        let read = |text: &str| short_long(load(format!("{text},,,,,,,,").as_bytes(), 0).expect("eight bytes"));
        for value in (0..10_000).chain((0..1_000).map(|i| 9_999_999 - 9_973 * i)) {
            assert_eq!(read(&format!("{value}i")), Some((value, value.to_string().len() + 1)));
            assert_eq!(read(&format!("{value:07}i")), Some((value, 8)));
        }
        for other in ["i", "-1i", "1.5i", "1", "1t", "12345678i", "0x1i", "1\u{e9}i"] {
            assert_eq!(read(other), None, "{other}");
        }
        for byte in (0..=255u8).filter(|byte| !byte.is_ascii_digit()) {
            for at in 0..3 {
                let mut bytes = *b"123i,,,,";
                bytes[at] = byte;
                // The first suffix ends the number.
                let expected = (byte == b'i' && at > 0).then(|| ([0, 1, 12][at], at + 1));
                assert_eq!(short_long(u64::from_le_bytes(bytes)), expected, "{byte} at {at}");
            }
        }
    }

    #[test]
    fn every_byte_is_told_from_a_digit_and_from_what_ends_a_tag() {
        for byte in 0..=255u8 {
            for at in 0..8 {
                let mut bytes = [b'7'; 8];
                bytes[at] = byte;
                let word = u64::from_le_bytes(bytes);
                assert_eq!(digit_count(word), if byte.is_ascii_digit() { 8 } else { at }, "{byte} at {at}");
                let ends = byte <= b' ' || matches!(byte, b',' | b'=' | b'\\');
                assert_eq!((special(word).trailing_zeros() / 8) as usize, if ends { at } else { 8 }, "{byte} at {at}");
            }
        }
    }

    #[test]
    fn a_tag_hashes_the_same_from_anywhere() {
        let text = b"abcdefghijklmnopqrstuvwxyz0123456789";
        for len in 0..text.len() {
            let input = [&text[..len], b",................"].concat();
            let found = tag(&input, 0, 7).expect("a tag");
            let made = tag_of(&text[..len], 7);
            assert_eq!((found.text, found.head, found.hash), (made.text, made.head, made.hash));
        }
    }
}
