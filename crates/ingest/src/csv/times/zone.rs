//! Zones after a time: offsets from UTC and names of the time zone database.

use super::cursor::Cursor;
use chrono::{DateTime, MappedLocalTime, Offset, TimeZone};
use chrono_tz::Tz;

/// Parses the rest of the text after a time, and returns the instant of the local time `local_s` in seconds UTC.
///
/// A text without a zone is in UTC. Supported: `Z`, `UTC`, `GMT`, `+01`, `+0100`, `+01:00`, `+01:00:30`, `UTC+01:00`,
/// names such as `Europe/Berlin` or `CET`, and after an offset a name in brackets or parentheses, which is ignored.
pub(super) fn utc(cursor: &mut Cursor<'_>, local_s: i64) -> Option<i64> {
    cursor.spaces();
    if cursor.rest.is_empty() {
        return Some(local_s);
    }
    if let Some(name) = bracketed(cursor.rest, b'[', b']') {
        return place(name).and_then(|tz| from_local(tz, local_s));
    }
    if cursor.sees(b"+-") {
        let offset = offset(cursor)?;
        skip_comment(cursor);
        return cursor.rest.is_empty().then_some(local_s - offset);
    }
    let len = cursor.rest.iter().take_while(|b| b.is_ascii_alphabetic() || matches!(b, b'/' | b'_')).count();
    let word = std::str::from_utf8(&cursor.rest[..len]).ok()?;
    if ["z", "utc", "gmt"].iter().any(|utc| word.eq_ignore_ascii_case(utc)) {
        cursor.rest = &cursor.rest[len..];
        let offset = if cursor.sees(b"+-") { offset(cursor)? } else { 0 };
        skip_comment(cursor);
        return cursor.rest.is_empty().then_some(local_s - offset);
    }
    let tz = place(std::str::from_utf8(cursor.rest).ok()?)?;
    cursor.rest = b"";
    from_local(tz, local_s)
}

fn bracketed(text: &[u8], open: u8, close: u8) -> Option<&str> {
    std::str::from_utf8(text.strip_prefix(&[open])?.strip_suffix(&[close])?).ok()
}

/// Skips a name that repeats the preceding offset: `[Europe/Berlin]`, `(CET)`.
fn skip_comment(cursor: &mut Cursor<'_>) {
    cursor.spaces();
    if bracketed(cursor.rest, b'[', b']').or(bracketed(cursor.rest, b'(', b')')).is_some() {
        cursor.rest = b"";
    }
}

/// Parses an offset in seconds east of Greenwich.
fn offset(cursor: &mut Cursor<'_>) -> Option<i64> {
    let sign = if cursor.take(b"+-")? == b'-' { -1 } else { 1 };
    let (value, count) = cursor.digits(4);
    let (hours, minutes) = match count {
        1 | 2 if cursor.take(b":").is_some() => (value, cursor.exactly(2)?),
        1 | 2 => (value, 0),
        4 => (value / 100, value % 100),
        _ => return None,
    };
    let seconds = if cursor.take(b":").is_some() { cursor.exactly(2)? } else { 0 };
    (hours < 24 && minutes < 60 && seconds < 60).then_some(sign * (hours * 3_600 + minutes * 60 + seconds))
}

fn place(name: &str) -> Option<Tz> {
    let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'_' | b'+' | b'-');
    if name.len() < 3 || !name.bytes().all(is_name) {
        return None;
    }
    let exact = name.parse::<Tz>().ok();
    exact.or_else(|| chrono_tz::TZ_VARIANTS.iter().find(|tz| tz.name().eq_ignore_ascii_case(name)).copied())
}

/// Returns the first of two instants with this local time.
///
/// For a local time that a change of the clock skips, the offset before the change applies. SQL does the same.
fn from_local(tz: Tz, local_s: i64) -> Option<i64> {
    let at = |seconds: i64| DateTime::from_timestamp(seconds, 0).map(|t| t.naive_utc());
    let local = at(local_s)?;
    let seconds = |offset: chrono::FixedOffset| i64::from(offset.local_minus_utc());
    Some(match tz.offset_from_local_datetime(&local) {
        MappedLocalTime::Single(offset) => local_s - seconds(offset.fix()),
        MappedLocalTime::Ambiguous(a, b) => local_s - seconds(a.fix()).max(seconds(b.fix())),
        MappedLocalTime::None => local_s - seconds(tz.offset_from_utc_datetime(&at(local_s - 86_400)?).fix()),
    })
}
