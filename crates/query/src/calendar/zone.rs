//! Offsets from UTC: fixed ones, and those of the places of the tz database with their changes of the clock.

use chrono::{DateTime, MappedLocalTime, NaiveDateTime, Offset, TimeZone as _};
use chrono_tz::{OffsetComponents, Tz};
use tidalite_types::time::{civil_from_days, days_from_civil};

/// The time zone of a session, in which timestamps with a zone are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeZone(Zone);

impl TimeZone {
    pub const UTC: TimeZone = TimeZone(Zone::UTC);

    /// Parses a name of the tz database or an offset; `None` for other texts.
    #[must_use]
    pub fn parse(text: &str) -> Option<TimeZone> {
        Zone::parse(text).map(TimeZone)
    }

    /// Returns the offset from UTC at an instant, both in seconds.
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

    /// Parses a zone with PostgreSQL's rules for `AT TIME ZONE`.
    ///
    /// An abbreviation is one offset all year, and an offset counts hours west of Greenwich, as in POSIX: `+02`,
    /// `UTC+2`.
    pub fn parse_postgres(text: &str) -> Option<Zone> {
        let text = text.trim();
        if let Some(seconds) = super::abbreviations::offset_seconds(text) {
            return Some(Zone::Fixed(seconds));
        }
        if let Some(seconds) = offset_seconds(text) {
            return Some(Zone::Fixed(-seconds));
        }
        Zone::parse(text).or_else(|| {
            let at = text.find(|c: char| !c.is_ascii_alphabetic()).filter(|at| *at >= 3)?;
            offset_seconds(&text[at..]).map(|seconds| Zone::Fixed(-seconds))
        })
    }

    /// Returns the instant of a local time, as PostgreSQL does.
    ///
    /// An ambiguous time gives the later instant; a skipped time uses the offset before the change.
    pub fn instant_of(self, local_s: i64) -> i64 {
        let tz = match self {
            Zone::Fixed(seconds) => return local_s - seconds,
            Zone::Place(tz) => tz,
        };
        let Some(local) = at(local_s - since_known(local_s)) else { return local_s };
        match tz.offset_from_local_datetime(&local) {
            MappedLocalTime::Ambiguous(a, b) => {
                local_s - i64::from(a.fix().local_minus_utc().min(b.fix().local_minus_utc()))
            }
            _ => self.to_utc(local_s),
        }
    }

    /// What the clock of the place is ahead of UTC at an instant, in seconds.
    pub fn offset(self, utc_s: i64) -> i64 {
        match self {
            Zone::Fixed(seconds) => seconds,
            Zone::Place(tz) => {
                let known = utc_s - since_known(utc_s);
                at(known).map_or(0, |t| tz.offset_from_utc_datetime(&t).fix().local_minus_utc().into())
            }
        }
    }

    /// The same without daylight saving time.
    pub fn standard_offset(self, utc_s: i64) -> i64 {
        match self {
            Zone::Fixed(seconds) => seconds,
            Zone::Place(tz) => {
                let known = utc_s - since_known(utc_s);
                at(known).map_or(0, |t| tz.offset_from_utc_datetime(&t).base_utc_offset().num_seconds())
            }
        }
    }

    /// The instant at which clocks there show a time: the first of two, and of one that is left out the instant it
    /// is left out.
    pub fn to_utc(self, local_s: i64) -> i64 {
        let tz = match self {
            Zone::Fixed(seconds) => return local_s - seconds,
            Zone::Place(tz) => tz,
        };
        let Some(local) = at(local_s - since_known(local_s)) else { return local_s };
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

/// The last year of the tz database's transitions here; later years repeat the rules of earlier ones.
const KNOWN_YEAR: i64 = 2099;

/// Returns the seconds since the same local time of a known year with the same weekdays.
fn since_known(seconds: i64) -> i64 {
    let (year, ..) = civil_from_days(seconds.div_euclid(86_400));
    if year <= KNOWN_YEAR {
        return 0;
    }
    let first = |year| days_from_civil(year, 1, 1);
    let shape = |year| (first(year).rem_euclid(7), first(year + 1) - first(year));
    // Every 28 years contain each of the fourteen calendar shapes.
    let alike = (KNOWN_YEAR - 27..=KNOWN_YEAR).find(|known| shape(*known) == shape(year));
    alike.map_or(0, |known| (first(year) - first(known)) * 86_400)
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

    /// Expected values are outputs of PostgreSQL 15.
    #[test]
    fn instants_of_skipped_and_doubled_times() {
        let london = Zone::parse("Europe/London").expect("a place");
        assert_eq!(london.instant_of(BACK + 5_400), BACK + 5_400, "01:30 twice: the second");
        assert_eq!(london.instant_of(FORWARD + 5_400), FORWARD + 5_400, "01:30 skipped: as before the change");
        assert_eq!(london.instant_of(BACK - 86_400), BACK - 90_000);
    }

    /// Expected values are outputs of PostgreSQL 15.
    ///
    /// 2262-04-11 and 9999-07-01 are summer in Berlin, 9999-12-31 is not.
    #[test]
    fn years_past_the_tables() {
        let berlin = Zone::parse("Europe/Berlin").expect("a place");
        let at = |y, m, d| days_from_civil(y, m, d) * 86_400;
        assert_eq!(
            [berlin.offset(at(2262, 4, 11)), berlin.offset(at(9999, 7, 1)), berlin.offset(at(9999, 12, 31))],
            [7_200, 7_200, 3_600]
        );
        assert_eq!(berlin.instant_of(at(9999, 7, 1)), at(9999, 7, 1) - 7_200);
    }

    /// Expected values are outputs of PostgreSQL 15.
    #[test]
    fn zones_of_postgresql() {
        let cases =
            [("+02:00", -7_200), ("CET", 3_600), ("utc", 0), ("UTC-3", 10_800), ("2", -7_200), ("pst", -28_800)];
        for (text, seconds) in cases {
            assert_eq!(Zone::parse_postgres(text), Some(Zone::Fixed(seconds)), "{text}");
        }
        assert!(matches!(Zone::parse_postgres("europe/berlin"), Some(Zone::Place(_))));
        assert_eq!([Zone::parse_postgres("Nowhere"), Zone::parse_postgres("ab+1")], [None, None]);
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
