//! Offsets from UTC: fixed ones, and those of the places of the tz database with their changes of the clock.

use chrono::{DateTime, MappedLocalTime, NaiveDateTime, Offset, TimeZone as _};
use chrono_tz::{OffsetComponents, Tz};

/// The time zone of a session, in which its timestamps with a zone are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeZone(Zone);

impl TimeZone {
    pub const UTC: TimeZone = TimeZone(Zone::UTC);

    /// A name of the tz database or an offset, as in SQL; `None` when it is neither.
    #[must_use]
    pub fn parse(text: &str) -> Option<TimeZone> {
        Zone::parse(text).map(TimeZone)
    }

    /// Seconds that clocks there are ahead of UTC, at an instant in seconds since 1970.
    #[must_use]
    pub fn offset_seconds(self, utc_s: i64) -> i64 {
        self.0.offset(utc_s)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Zone {
    /// Seconds east of Greenwich.
    Fixed(i64),
    Place(Tz),
}

impl Zone {
    pub const UTC: Zone = Zone::Fixed(0);

    /// `Europe/London`, `UTC`, `Z`, `GMT`, `+02:00`, `-0530`, `+9`.
    pub fn parse(text: &str) -> Option<Zone> {
        let text = text.trim();
        if text.eq_ignore_ascii_case("utc") || text.eq_ignore_ascii_case("z") || text.eq_ignore_ascii_case("gmt") {
            return Some(Zone::UTC);
        }
        if let Some(seconds) = offset_seconds(text) {
            return Some(Zone::Fixed(seconds));
        }
        let found = text.parse::<Tz>().ok();
        let found =
            found.or_else(|| chrono_tz::TZ_VARIANTS.iter().find(|tz| tz.name().eq_ignore_ascii_case(text)).copied());
        found.map(Zone::Place)
    }

    /// What the clock of the place is ahead of UTC at an instant, in seconds.
    pub fn offset(self, utc_s: i64) -> i64 {
        match self {
            Zone::Fixed(seconds) => seconds,
            Zone::Place(tz) => at(utc_s).map_or(0, |t| tz.offset_from_utc_datetime(&t).fix().local_minus_utc().into()),
        }
    }

    /// The same without daylight saving time.
    pub fn standard_offset(self, utc_s: i64) -> i64 {
        match self {
            Zone::Fixed(seconds) => seconds,
            Zone::Place(tz) => at(utc_s).map_or(0, |t| tz.offset_from_utc_datetime(&t).base_utc_offset().num_seconds()),
        }
    }

    /// The instant at which clocks there show a time: the first of two, and of one that is left out the instant it
    /// is left out.
    pub fn to_utc(self, local_s: i64) -> i64 {
        let tz = match self {
            Zone::Fixed(seconds) => return local_s - seconds,
            Zone::Place(tz) => tz,
        };
        let Some(local) = at(local_s) else { return local_s };
        match tz.offset_from_local_datetime(&local) {
            MappedLocalTime::Single(offset) => local_s - i64::from(offset.fix().local_minus_utc()),
            MappedLocalTime::Ambiguous(a, b) => {
                local_s - i64::from(a.fix().local_minus_utc().max(b.fix().local_minus_utc()))
            }
            // By the clock as it was before, a time within the gap is as long after the change as it is into the gap.
            MappedLocalTime::None => local_s - self.offset(local_s - 86_400 - self.offset(local_s)),
        }
    }
}

fn at(seconds: i64) -> Option<NaiveDateTime> {
    DateTime::from_timestamp(seconds, 0).map(|t| t.naive_utc())
}

/// `+02:00`, `-0530`, `+9` as seconds.
pub(crate) fn offset_seconds(text: &str) -> Option<i64> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        b'0'..=b'9' => (1, text),
        _ => return None,
    };
    let (hours, minutes) = match rest.split_once(':') {
        Some(parts) => parts,
        None if rest.len() == 4 && rest.is_ascii() => rest.split_at(2),
        None => (rest, "0"),
    };
    let is_number = |t: &str| !t.is_empty() && t.len() <= 2 && t.bytes().all(|b| b.is_ascii_digit());
    if !is_number(hours) || !is_number(minutes) {
        return None;
    }
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds of 2021-10-31T00:00Z, the day London's clocks went back at 01:00Z.
    const BACK: i64 = 1_635_638_400;
    /// Seconds of 2021-03-28T00:00Z, the day they went forward at 01:00Z.
    const FORWARD: i64 = 1_616_889_600;

    #[test]
    fn clocks_that_change() {
        let london = Zone::parse("europe/london").expect("a place");
        assert_eq!((london.offset(BACK), london.standard_offset(BACK)), (3_600, 0));
        assert_eq!(london.offset(BACK + 3_600), 0);
        assert_eq!(london.to_utc(BACK + 5_400), BACK + 1_800, "01:30 twice: the first");
        assert_eq!(london.to_utc(FORWARD + 3_600), FORWARD + 3_600, "01:00 is left out: the change itself");
        let lord_howe = Zone::parse("Australia/Lord_Howe").expect("a place");
        assert_eq!((lord_howe.offset(BACK), lord_howe.standard_offset(BACK)), (39_600, 37_800));
    }

    #[test]
    fn offsets_have_several_spellings() {
        for text in ["+05:30", "05:30", "+0530"] {
            assert_eq!(Zone::parse(text), Some(Zone::Fixed(19_800)), "{text}");
        }
        assert_eq!(Zone::parse("-9"), Some(Zone::Fixed(-32_400)));
        assert_eq!([Zone::parse("Atlantis/Capital"), Zone::parse("+25:00"), Zone::parse("")], [None; 3]);
    }
}
