//! The texts of `ts IN '…'`: a stretch of time, several, or one that repeats.
//!
//! `2018`, `2018-01-01T12`, `2018-01;-3d`, `2016-06-13;1M;1y;3`, `2024-01-[10..15,20]T09:30@Europe/London#workday;6h30m`,
//! `$today`, `$now - 2h..$now`. What is left out of a date makes it longer: `2018-01` is a month. A length after a
//! semicolon moves the end on, or back; a period and a count repeat the whole.

use super::stride::{Stride, Unit};
use super::zone::Zone;
use crate::door::timestamps::parse_timestamp;
use tidalite_types::TimeUnit;
use tidalite_types::time::{civil_from_days, days_from_civil};

/// Both ends included.
pub(crate) type Interval = (i64, i64);

/// Intervals one text may stand for.
const INTERVALS_MAX: usize = 10_000;
const DAY_S: i64 = 86_400;

/// In order and apart from each other; `None` when the text is none. `now` is in the same unit.
pub(crate) fn parse(text: &str, now: i64, unit: TimeUnit) -> Option<Vec<Interval>> {
    let mut found = Vec::new();
    for expanded in expand(text.trim())? {
        repeated(&expanded, now, unit, &mut found)?;
    }
    Some(merged(found))
}

/// The day so many days from the one of `now`.
pub(crate) fn day(now: i64, days: i64, unit: TimeUnit) -> Interval {
    let ticks = DAY_S * unit.per_second();
    let lo = now.div_euclid(ticks).saturating_add(days).saturating_mul(ticks);
    (lo, lo.saturating_add(ticks - 1))
}

fn merged(mut found: Vec<Interval>) -> Vec<Interval> {
    found.retain(|(lo, hi)| lo <= hi);
    found.sort_unstable();
    let mut out: Vec<Interval> = Vec::with_capacity(found.len());
    for (lo, hi) in found {
        match out.last_mut() {
            Some(last) if lo <= last.1.saturating_add(1) => last.1 = last.1.max(hi),
            _ => out.push((lo, hi)),
        }
    }
    out
}

/// Every text that brackets stand for: `2024-[01,06]-[10..12]`, `[2024-01-15,2024-02]T09`.
fn expand(text: &str) -> Option<Vec<String>> {
    let Some(open) = text.find('[') else { return Some(vec![text.to_owned()]) };
    let close = closing(text, open)?;
    let (before, inside, after) = (&text[..open], &text[open + 1..close], &text[close + 1..]);
    let mut out = Vec::new();
    for item in split(inside) {
        for one in range(item.trim())? {
            out.extend(expand(&format!("{before}{one}{after}"))?);
            if out.len() > INTERVALS_MAX {
                return None;
            }
        }
    }
    Some(out)
}

fn closing(text: &str, open: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in text.char_indices().skip_while(|(at, _)| *at < open) {
        depth += i32::from(c == '[') - i32::from(c == ']');
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// At commas outside of brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut from, mut out) = (0, 0, Vec::new());
    for (at, c) in text.char_indices() {
        depth += i32::from(c == '[') - i32::from(c == ']');
        if c == ',' && depth == 0 {
            out.push(&text[from..at]);
            from = at + 1;
        }
    }
    out.push(&text[from..]);
    out
}

/// `10..15` as the numbers between, as wide as they are written.
fn range(item: &str) -> Option<Vec<String>> {
    let is_number = |t: &str| !t.is_empty() && t.len() <= 6 && t.bytes().all(|b| b.is_ascii_digit());
    match item.split_once("..") {
        Some((lo, hi)) if is_number(lo) && is_number(hi) => {
            let width = lo.len();
            let (lo, hi): (usize, usize) = (lo.parse().ok()?, hi.parse().ok()?);
            (lo <= hi && hi - lo < INTERVALS_MAX).then(|| (lo..=hi).map(|n| format!("{n:0width$}")).collect())
        }
        _ => Some(vec![item.to_owned()]),
    }
}

fn repeated(text: &str, now: i64, unit: TimeUnit, out: &mut Vec<Interval>) -> Option<()> {
    let parts: Vec<&str> = text.split(';').collect();
    let (mut lo, mut hi) = filtered(parts[0], now, unit)?;
    if let Some(length) = parts.get(1) {
        for stride in strides(length)? {
            hi = stride.add_to(hi, 1, unit)?;
        }
    }
    let (period, count) = match parts.get(2..).unwrap_or_default() {
        [] => (None, 1),
        [period, count] => (Some(Stride::parse(period)?), count.trim().parse::<i64>().ok()?),
        _ => return None,
    };
    // Counting backwards is a period backwards.
    let (sign, count) = (count.signum(), count.unsigned_abs());
    if count == 0 || count > INTERVALS_MAX as u64 || out.len() > INTERVALS_MAX {
        return None;
    }
    if is_excluded(parts[0], lo, unit)? {
        return Some(());
    }
    for _ in 0..count {
        out.push((lo, hi));
        if let Some(period) = period {
            (lo, hi) = (period.add_to(lo, sign, unit)?, period.add_to(hi, sign, unit)?);
        }
    }
    Some(())
}

/// `6h30m` as its parts; a sign before the first holds for all.
fn strides(text: &str) -> Option<Vec<Stride>> {
    let text = text.trim();
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut out = Vec::new();
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).filter(|digits| *digits > 0)?;
        let end = rest[digits..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |n| digits + n);
        let stride = Stride::parse(&rest[..end])?;
        out.push(Stride { count: sign * stride.count, unit: stride.unit });
        rest = &rest[end..];
    }
    (!out.is_empty()).then_some(out)
}

/// The stretch before the first semicolon, without its filter.
fn filtered(text: &str, now: i64, unit: TimeUnit) -> Option<Interval> {
    let text = text.split('#').next()?.trim();
    if let Some((from, to)) = text.split_once("..") {
        return Some((stretch(from.trim(), now, unit)?.0, stretch(to.trim(), now, unit)?.1));
    }
    stretch(text, now, unit)
}

/// Whether the days that `#workday`, `#weekend` or `#Mon,Wed` allow leave out the one of `lo`, there.
fn is_excluded(text: &str, lo: i64, unit: TimeUnit) -> Option<bool> {
    let Some((place, filter)) = text.split_once('#') else { return Some(false) };
    let zone = place.split_once('@').map_or(Some(Zone::UTC), |(_, zone)| Zone::parse(zone))?;
    let seconds = lo.div_euclid(unit.per_second());
    let days = (seconds + zone.offset(seconds)).div_euclid(DAY_S);
    let weekday = (days + 3).rem_euclid(7) as usize;
    const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let mut is_allowed = false;
    for name in filter.split(',') {
        let name = name.trim().to_lowercase();
        is_allowed |= match name.as_str() {
            "workday" | "wd" => weekday < 5,
            "weekend" => weekday >= 5,
            _ if name.len() >= 3 => DAYS.iter().position(|day| day.starts_with(&name))? == weekday,
            _ => return None,
        };
    }
    Some(!is_allowed)
}

/// A date of any precision, or a variable, both with a zone or without.
fn stretch(text: &str, now: i64, unit: TimeUnit) -> Option<Interval> {
    let (text, zone) = match text.split_once('@') {
        Some((text, zone)) => (text.trim(), Zone::parse(zone)?),
        None => (text, Zone::UTC),
    };
    let utc = |local: i64| -> Option<i64> {
        let per_second = unit.per_second();
        let seconds = zone.to_utc(local.div_euclid(per_second));
        seconds.checked_mul(per_second)?.checked_add(local.rem_euclid(per_second))
    };
    if let Some(name) = text.strip_prefix('$') {
        let seconds = zone.offset(now.div_euclid(unit.per_second()));
        let (is_point, local) = variable(name, now.checked_add(seconds.checked_mul(unit.per_second())?)?, unit)?;
        return Some(if is_point {
            (local.0 - seconds * unit.per_second(), local.1 - seconds * unit.per_second())
        } else {
            (utc(local.0)?, utc(local.1 + 1)? - 1)
        });
    }
    let (lo, is_exact) = parse_timestamp(text, unit)?;
    let Some(precision) = precision(text) else {
        let lo = utc(lo)?;
        // Finer than the column can hold: no row is there.
        return Some(if is_exact { (lo, lo) } else { (lo.checked_add(1)?, lo) });
    };
    let end = Stride { count: 1, unit: precision }.add_to(lo, 1, unit).unwrap_or(i64::MAX);
    Some((utc(lo)?, if end == i64::MAX { end } else { utc(end)? - 1 }))
}

/// `today`, `now - 2h`, `todayT09:30`, and whether it is a point in time.
fn variable(text: &str, now: i64, unit: TimeUnit) -> Option<(bool, Interval)> {
    let lower = text.to_lowercase();
    let name = ["today", "yesterday", "tomorrow", "now"].into_iter().find(|name| lower.starts_with(name))?;
    let rest = text[name.len()..].trim();
    let (is_point, mut found) = match name {
        "now" => (true, (now, now)),
        "today" => (false, day(now, 0, unit)),
        "yesterday" => (false, day(now, -1, unit)),
        _ => (false, day(now, 1, unit)),
    };
    if let Some(time) = rest.strip_prefix(['T', 't']).filter(|_| !is_point) {
        let (y, m, d) = civil_from_days(found.0.div_euclid(DAY_S * unit.per_second()));
        return Some((false, stretch(&format!("{y:04}-{m:02}-{d:02}T{time}"), now, unit)?));
    }
    if rest.is_empty() {
        return Some((is_point, found));
    }
    let length = rest.replace(' ', "");
    if let Some(days) = length.strip_suffix("bd") {
        let days = workdays(found.0.div_euclid(DAY_S * unit.per_second()), days.parse().ok()?);
        return Some((is_point, day(days * DAY_S * unit.per_second(), 0, unit)));
    }
    for stride in strides(length.starts_with(['+', '-']).then_some(&length)?)? {
        found = (stride.add_to(found.0, 1, unit)?, stride.add_to(found.1, 1, unit)?);
    }
    Some((is_point, found))
}

/// So many days on that are neither Saturday nor Sunday.
fn workdays(mut day: i64, count: i64) -> i64 {
    for _ in 0..count.unsigned_abs().min(100_000) {
        day += count.signum();
        while (day + 3).rem_euclid(7) >= 5 {
            day += count.signum();
        }
    }
    debug_assert!(days_from_civil(1970, 1, 1) == 0);
    day
}

/// The last part that is written of a date; `None` for a fraction of a second, which is a point in time.
fn precision(text: &str) -> Option<Unit> {
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, ""),
    };
    let date = date.strip_prefix('-').unwrap_or(date);
    if time.is_empty() {
        return Some(match date.matches('-').count() {
            0 => Unit::Years,
            1 => Unit::Months,
            _ => Unit::Days,
        });
    }
    let time = time.trim_end_matches(['Z', 'z', ' ']);
    let time = &time[..time.find(['+', '-']).unwrap_or(time.len())];
    if time.contains(['.', ',']) {
        return None;
    }
    Some(match time.matches(':').count() {
        0 => Unit::Hours,
        1 => Unit::Minutes,
        _ => Unit::Seconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(text: &str) -> i64 {
        parse_timestamp(text, TimeUnit::Micros).expect("a timestamp").0
    }

    fn assert_are(text: &str, expected: &[(&str, &str)]) {
        let now = micros("2026-01-22T14:35:22.123456");
        let expected: Vec<_> = expected.iter().map(|(lo, hi)| (micros(lo), micros(hi))).collect();
        assert_eq!(parse(text, now, TimeUnit::Micros), Some(expected), "{text}");
    }

    /// The expected values are those of QuestDB's documentation and of its own tests of intervals.
    #[test]
    fn what_questdb_understands() {
        assert_are("2018", &[("2018", "2018-12-31T23:59:59.999999")]);
        assert_are("2018-01-01T12", &[("2018-01-01T12", "2018-01-01T12:59:59.999999")]);
        assert_are("2018-01;-3d", &[("2018-01-01", "2018-01-28T23:59:59.999999")]);
        assert_are("2018;1M", &[("2018", "2019-01-31T23:59:59.999999")]);
        assert_are("2016-03-21;3y;6M;5", &[("2016-03-21", "2021-03-21T23:59:59.999999")]);
        assert_are(
            "2015-03-12T11:00:00;5m;-30m;3",
            &[
                ("2015-03-12T10:00", "2015-03-12T10:05:00.999999"),
                ("2015-03-12T10:30", "2015-03-12T10:35:00.999999"),
                ("2015-03-12T11:00", "2015-03-12T11:05:00.999999"),
            ],
        );
        assert_are(
            "2015-03-12T11:00:00;5m;2M;-3",
            &[
                ("2014-11-12T11:00", "2014-11-12T11:05:00.999999"),
                ("2015-01-12T11:00", "2015-01-12T11:05:00.999999"),
                ("2015-03-12T11:00", "2015-03-12T11:05:00.999999"),
            ],
        );
        assert_are("2018-01-10T10:30:00.000Z;30m", &[("2018-01-10T10:30", "2018-01-10T11:00")]);
    }

    #[test]
    fn brackets_zones_days_and_variables() {
        assert_are(
            "2024-[01,06]-[10,15]",
            &[
                ("2024-01-10", "2024-01-10T23:59:59.999999"),
                ("2024-01-15", "2024-01-15T23:59:59.999999"),
                ("2024-06-10", "2024-06-10T23:59:59.999999"),
                ("2024-06-15", "2024-06-15T23:59:59.999999"),
            ],
        );
        assert_are("2024-01-[10..12]", &[("2024-01-10", "2024-01-12T23:59:59.999999")]);
        assert_are("2024-01-15T[09:00,10:30];2h", &[("2024-01-15T09:00", "2024-01-15T12:30:59.999999")]);
        assert_are("2024-07-15T09:30@America/New_York;6h30m", &[("2024-07-15T13:30", "2024-07-15T20:00:59.999999")]);
        assert_are("2024-01-[05..08]#weekend", &[("2024-01-06", "2024-01-07T23:59:59.999999")]);
        assert_are("$today", &[("2026-01-22", "2026-01-22T23:59:59.999999")]);
        assert_are("$now - 2h..$now", &[("2026-01-22T12:35:22.123456", "2026-01-22T14:35:22.123456")]);
        assert_are("$today - 5bd..$today - 1bd", &[("2026-01-15", "2026-01-21T23:59:59.999999")]);
        assert_are("2021-10-31@Europe/London", &[("2021-10-30T23", "2021-10-31T23:59:59.999999")]);
    }

    #[test]
    fn what_is_no_interval_is_refused() {
        for text in [
            "",
            "hello",
            "2018;",
            "2018;1x",
            "2018;1d;1d",
            "2018;1d;1d;0",
            "2018;1d;1d;1;1",
            "2024-[01",
            "2018-13",
            "2018#nosuch",
            "2018@Nowhere",
            "$soon",
            "2018;1d;1d;99999999999",
        ] {
            assert_eq!(parse(text, 0, TimeUnit::Micros), None, "{text:?}");
        }
    }
}
