//! Parses one value or name of a line on the general path: escapes, every type, every error.

use super::field_value::{DECIMAL_DIGITS_MAX, Decimal, Missing, Value};
use super::outcome::{Parsed, Stop, bad, shown};
use super::{binary, scan};
use tidalite_types::{EpochUnit, TimeUnit};

impl Decimal {
    /// Parses `-12.50`, `1.5e-3`: the text before the suffix.
    ///
    /// Returns `Some(None)` for NaN and infinities, which are not decimals and become NULL.
    fn parse(text: &[u8]) -> Option<Option<Decimal>> {
        let (negative, digits) = sign(text);
        if digits.eq_ignore_ascii_case(b"nan") || digits.eq_ignore_ascii_case(b"infinity") {
            return Some(None);
        }
        let (mantissa, exponent) = match digits.iter().position(|b| matches!(b, b'e' | b'E')) {
            Some(e) => (&digits[..e], i32::try_from(integer(&digits[e + 1..])?).ok()?),
            None => (digits, 0),
        };
        let mut unscaled = 0_i128;
        let mut scale = None;
        for &byte in mantissa {
            match byte {
                b'0'..=b'9' => {
                    unscaled = unscaled.checked_mul(10)?.checked_add(i128::from(byte - b'0'))?;
                    scale = scale.map(|s: i32| s.saturating_add(1));
                }
                b'.' if scale.is_none() => scale = Some(0),
                _ => return None,
            }
        }
        if !mantissa.iter().any(u8::is_ascii_digit) {
            return None;
        }
        let scale = scale.unwrap_or(0).checked_sub(exponent)?;
        Decimal::new(if negative { -unscaled } else { unscaled }, scale).map(Some)
    }
}

fn sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    }
}

/// Parses a decimal integer with optional sign that fits an `i64`.
fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = sign(text);
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_i64, |value, &byte| {
        let digit = i64::from(byte.wrapping_sub(b'0'));
        let value = (digit <= 9).then(|| value.checked_mul(10))??;
        if negative { value.checked_sub(digit) } else { value.checked_add(digit) }
    })
}

/// Terminator of a name or an unquoted value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Comma,
    Space,
    Equals,
    Line,
}

/// Returns the length of the line end at `at`, `\n` or `\r\n`, if there is one.
pub(super) fn line_end(input: &[u8], at: usize) -> Parsed<Option<usize>> {
    match input.get(at) {
        None => Err(Stop::Incomplete),
        Some(b'\n') => Ok(Some(1)),
        Some(b'\r') => match input.get(at + 1) {
            None => Err(Stop::Incomplete),
            Some(b'\n') => Ok(Some(2)),
            Some(_) => bad(at, "carriage return within a line must follow a backslash"),
        },
        Some(_) => Ok(None),
    }
}

/// An unquoted piece of a line up to its terminator.
pub(super) struct Token {
    pub end_at: usize,
    pub end: End,
    pub escaped: bool,
}

pub(super) fn token(input: &[u8], at: usize) -> Parsed<Token> {
    let mut pos = at;
    let mut escaped = false;
    loop {
        pos = scan::skip_plain(input, pos);
        let end = match *input.get(pos).ok_or(Stop::Incomplete)? {
            b',' => End::Comma,
            b' ' => End::Space,
            b'=' => End::Equals,
            b'\n' | b'\r' if line_end(input, pos)?.is_some() => End::Line,
            0 => return bad(pos, "zero byte outside of a quoted string"),
            b'\\' => {
                escaped = true;
                let next = *input.get(pos + 1).ok_or(Stop::Incomplete)?;
                pos += 1 + usize::from(Escapes::Plain.has(next));
                continue;
            }
            _ => {
                pos += 1;
                continue;
            }
        };
        return Ok(Token { end_at: pos, end, escaped });
    }
}

/// Parses the name of a table like [`token`], except that an equals sign is an ordinary byte.
pub(super) fn measurement(input: &[u8], at: usize) -> Parsed<Token> {
    let (mut pos, mut escaped) = (at, false);
    loop {
        let token = token(input, pos)?;
        escaped |= token.escaped;
        match token.end {
            End::Equals => pos = token.end_at + 1,
            End::Comma | End::Space | End::Line => return Ok(Token { escaped, ..token }),
        }
    }
}

/// The bytes that a preceding backslash escapes. Before any other byte a backslash is literal, as in InfluxDB.
///
/// InfluxDB and QuestDB differ: InfluxDB has no escaped backslash outside of quotes, while QuestDB's clients double a
/// backslash. These sets contain the escapes of both clients.
#[derive(Clone, Copy, Debug)]
pub(super) enum Escapes {
    /// Names and values of tags.
    Plain,
    /// Strings in double quotes.
    Quoted,
}

impl Escapes {
    #[inline]
    fn has(self, byte: u8) -> bool {
        match self {
            Escapes::Plain => matches!(byte, b',' | b' ' | b'=' | b'\\' | b'\n' | b'\r'),
            Escapes::Quoted => matches!(byte, b'"' | b'\\' | b'\n' | b'\r'),
        }
    }
}

/// Returns `raw` without the backslashes that escape the next byte.
pub(super) fn unescape<'a>(raw: &'a [u8], escaped: bool, escapes: Escapes, scratch: &'a mut Vec<u8>) -> &'a [u8] {
    if !escaped {
        return raw;
    }
    scratch.clear();
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let escaped = rest.get(at + 1).copied().filter(|byte| escapes.has(*byte));
        scratch.extend_from_slice(&rest[..at]);
        scratch.push(escaped.unwrap_or(b'\\'));
        rest = &rest[at + 1 + usize::from(escaped.is_some())..];
    }
    scratch.extend_from_slice(rest);
    scratch
}

/// Parses the value of a tag. Returns the value and its end.
pub(super) fn tag<'a>(input: &'a [u8], at: usize, scratch: &'a mut Vec<u8>) -> Parsed<(Value<'a>, usize)> {
    let token = token(input, at)?;
    if token.end == End::Equals {
        return bad(token.end_at, "equals sign within the value of a tag must follow a backslash");
    }
    Ok((Value::Symbol(unescape(&input[at..token.end_at], token.escaped, Escapes::Plain, scratch)), token.end_at))
}

/// Options of parsing fields.
pub(super) struct FieldRules {
    pub nan_is_null: bool,
    pub bytes_max: usize,
}

/// Parses the value of a field. Returns the value and its end.
pub(super) fn field<'a>(
    input: &'a [u8],
    at: usize,
    rules: &FieldRules,
    scratch: &'a mut Vec<u8>,
) -> Parsed<(Value<'a>, usize)> {
    let (value, end) = match input.get(at) {
        Some(b'"') => quoted(input, at, scratch)?,
        Some(b'=') => {
            let (value, end) = binary::parse(input, at + 1, rules.bytes_max)?;
            check_end(input, end, "binary value")?;
            (value, end)
        }
        _ => {
            let token = token(input, at)?;
            if token.end == End::Equals {
                return bad(token.end_at, "equals sign within a value without quotes");
            }
            (plain(&input[at..token.end_at], at)?, token.end_at)
        }
    };
    match value {
        Value::Double(number) if number.is_nan() && rules.nan_is_null => Ok((Value::Missing(Missing::Double), end)),
        value => Ok((value, end)),
    }
}

fn quoted<'a>(input: &'a [u8], at: usize, scratch: &'a mut Vec<u8>) -> Parsed<(Value<'a>, usize)> {
    let start = at + 1;
    let mut pos = start;
    let mut escaped = false;
    loop {
        let found = memchr::memchr2(b'"', b'\\', input.get(pos..).ok_or(Stop::Incomplete)?);
        pos += found.ok_or(Stop::Incomplete)?;
        if input[pos] == b'"' {
            break;
        }
        escaped = true;
        pos += 2;
    }
    check_end(input, pos + 1, "quoted string")?;
    Ok((Value::Varchar(unescape(&input[start..pos], escaped, Escapes::Quoted, scratch)), pos + 1))
}

fn check_end(input: &[u8], at: usize, what: &str) -> Parsed<()> {
    match input.get(at) {
        None => Err(Stop::Incomplete),
        Some(b',' | b' ' | b'\n' | b'\r') => Ok(()),
        Some(_) => bad(at, format!("{what} must be followed by a comma, a space or the end of the line")),
    }
}

/// Parses a value without quotes. Its last byte determines its type, as in QuestDB.
fn plain(text: &[u8], at: usize) -> Parsed<Value<'static>> {
    let Some((&last, body)) = text.split_last() else {
        return Ok(Value::Null);
    };
    match last {
        b'i' => long(body, text, at),
        b'u' => unsigned(body, text, at),
        b't' if !body.is_empty() => timestamp(TimeUnit::Micros, 1, body, text, at),
        b'n' if body.last().is_none_or(u8::is_ascii_digit) => timestamp(TimeUnit::Nanos, 1, body, text, at),
        b'm' => timestamp(TimeUnit::Micros, 1_000, body, text, at),
        b'd' => match Decimal::parse(body) {
            Some(Some(decimal)) => Ok(Value::Decimal(decimal)),
            Some(None) => Ok(Value::Missing(Missing::Decimal)),
            None => bad(at, format!("{} is not a decimal of at most {DECIMAL_DIGITS_MAX} digits", shown(text))),
        },
        b't' | b'T' | b'f' | b'F' | b'e' | b'E' => {
            if is_word(text, b"t") || is_word(text, b"true") {
                Ok(Value::Boolean(true))
            } else if is_word(text, b"f") || is_word(text, b"false") {
                Ok(Value::Boolean(false))
            } else {
                double(text, at)
            }
        }
        _ => double(text, at),
    }
}

fn is_word(text: &[u8], word: &[u8]) -> bool {
    text.eq_ignore_ascii_case(word)
}

#[cold]
fn unknown<T>(text: &[u8], at: usize) -> Parsed<T> {
    bad(at, format!("{} is not a number, boolean, timestamp or quoted string", shown(text)))
}

fn long(body: &[u8], text: &[u8], at: usize) -> Parsed<Value<'static>> {
    if let [b'0', b'x' | b'X', digits @ ..] = body
        && !digits.is_empty()
        && digits.iter().all(u8::is_ascii_hexdigit)
    {
        let significant = digits.iter().position(|&b| b != b'0').map_or(&[][..], |first| &digits[first..]);
        let value = significant.iter().try_fold(0_i64, |value, &byte| {
            let digit = (byte as char).to_digit(16)?;
            Some(value.checked_mul(16)? + i64::from(digit))
        });
        return value
            .map_or_else(|| bad(at, format!("{} is out of range for LONG", shown(text))), |v| Ok(Value::Long(v)));
    }
    match integer(body) {
        Some(value) => Ok(Value::Long(value)),
        None if is_integer(body) => bad(at, format!("{} is out of range for LONG", shown(text))),
        None => unknown(text, at),
    }
}

/// Parses InfluxDB's unsigned integers: digits without a sign.
fn unsigned(body: &[u8], text: &[u8], at: usize) -> Parsed<Value<'static>> {
    if body.is_empty() || !body.iter().all(u8::is_ascii_digit) {
        return unknown(text, at);
    }
    match integer(body) {
        Some(value) => Ok(Value::Long(value)),
        None => bad(at, format!("{} is out of range for LONG", shown(text))),
    }
}

fn is_integer(text: &[u8]) -> bool {
    let (_, digits) = sign(text);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

fn timestamp(unit: TimeUnit, factor: i64, body: &[u8], text: &[u8], at: usize) -> Parsed<Value<'static>> {
    if !is_integer(body) {
        return unknown(text, at);
    }
    match integer(body).and_then(|value| in_years(unit, value.checked_mul(factor)?)) {
        Some(value) => Ok(Value::Timestamp(unit, value)),
        None => bad(at, format!("timestamp {} is out of range, {}", shown(text), YEARS)),
    }
}

fn double(text: &[u8], at: usize) -> Parsed<Value<'static>> {
    let Some(value) = std::str::from_utf8(text).ok().and_then(|t| t.parse::<f64>().ok()) else {
        return unknown(text, at);
    };
    if value.is_infinite() && text.iter().any(u8::is_ascii_digit) {
        return bad(at, format!("{} is out of range for DOUBLE", shown(text)));
    }
    Ok(Value::Double(value))
}

const YEARS: &str = "years 1 to 9999 are possible, in nanoseconds 1677 to 2262";
const YEAR_1_S: i64 = -62_135_596_800;
const YEAR_10000_S: i64 = 253_402_300_800;

/// Returns `value` if it is in the years 1 to 9999.
#[inline(always)]
pub(super) fn in_years(unit: TimeUnit, value: i64) -> Option<i64> {
    match unit {
        // The range of nanoseconds in an i64 is within these years.
        TimeUnit::Nanos => Some(value),
        TimeUnit::Micros => (YEAR_1_S * 1_000_000..YEAR_10000_S * 1_000_000).contains(&value).then_some(value),
        TimeUnit::Millis => (YEAR_1_S * 1_000..YEAR_10000_S * 1_000).contains(&value).then_some(value),
    }
}

/// The unit in which timestamps at line ends are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineUnit {
    Micros,
    /// Nanoseconds by a suffix or by `precision=`.
    Nanos,
    /// Nanoseconds by default: tables created by such lines have microseconds, as in QuestDB.
    UnstatedNanos,
}

impl LineUnit {
    #[inline(always)]
    pub(super) fn unit(self) -> TimeUnit {
        match self {
            LineUnit::Micros => TimeUnit::Micros,
            LineUnit::Nanos | LineUnit::UnstatedNanos => TimeUnit::Nanos,
        }
    }
}

/// Returns the stored unit of `value`, a line's timestamp with this suffix (0 for none), and the conversion factor.
#[inline(always)]
pub(super) fn line_unit(suffix: u8, stated: EpochUnit, value: i64) -> (LineUnit, i64) {
    if suffix == 0 && stated == EpochUnit::Unstated {
        return (LineUnit::UnstatedNanos, 1);
    }
    match (suffix, stated) {
        (b'n', _) | (0, EpochUnit::Nanos) => (LineUnit::Nanos, 1),
        (b't', _) | (0, EpochUnit::Micros) => (LineUnit::Micros, 1),
        (b'm', _) | (_, EpochUnit::Millis) => (LineUnit::Micros, 1_000),
        (_, EpochUnit::Seconds) => (LineUnit::Micros, 1_000_000),
        (_, EpochUnit::Minutes) => (LineUnit::Micros, 60_000_000),
        (_, EpochUnit::Hours) => (LineUnit::Micros, 3_600_000_000),
        (_, EpochUnit::Auto) => detected_unit(value),
        (_, EpochUnit::Unstated | EpochUnit::Nanos | EpochUnit::Micros) => (LineUnit::UnstatedNanos, 1),
    }
}

#[inline(never)]
fn detected_unit(value: i64) -> (LineUnit, i64) {
    match EpochUnit::detect(value) {
        EpochUnit::Nanos | EpochUnit::Auto => (LineUnit::UnstatedNanos, 1),
        unit => line_unit(0, unit, value),
    }
}

/// Parses the timestamp at the end of a line, from `at` on.
///
/// Returns its unit and value, or `None` if there is none, and the start of the next line. Surrounding spaces are
/// skipped.
pub(super) fn line_timestamp(input: &[u8], at: usize, stated: EpochUnit) -> Parsed<(Option<(LineUnit, i64)>, usize)> {
    let at = skip_spaces(input, at);
    let token = token(input, at)?;
    let text = &input[at..token.end_at];
    let end_at = if token.end == End::Space { skip_spaces(input, token.end_at) } else { token.end_at };
    let Some(end_bytes) = line_end(input, end_at)? else {
        return bad(token.end_at, format!("more after {}, where a timestamp ends the line", shown(text)));
    };
    let next = end_at + end_bytes;
    let Some((&last, body)) = text.split_last() else {
        return Ok((None, next));
    };
    let (suffix, body) = if matches!(last, b'n' | b't' | b'm') { (last, body) } else { (0, text) };
    if !is_integer(body) {
        return bad(at, format!("{} is not a timestamp: an integer, alone or with suffix n, t or m", shown(text)));
    }
    let read = integer(body).and_then(|value| {
        let (unit, factor) = line_unit(suffix, stated, value);
        Some((unit, in_years(unit.unit(), value.checked_mul(factor)?)?))
    });
    match read {
        Some(timestamp) => Ok((Some(timestamp), next)),
        None => bad(at, format!("timestamp {} is out of range, {}", shown(text), YEARS)),
    }
}

/// Returns the end of the spaces that begin at `at`.
pub(super) fn skip_spaces(input: &[u8], at: usize) -> usize {
    let rest = input.get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| *byte != b' ').unwrap_or(rest.len())
}
