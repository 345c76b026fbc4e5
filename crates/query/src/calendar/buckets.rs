//! The stretches of time that SAMPLE BY cuts a time line into.
//!
//! Strides of less than a day are of one length, in step with the standard time of the zone: a clock that changes
//! makes none longer. Days, weeks, months and years follow the calendar of the zone and have its 23 and 25 hours.
//! Always: `lo <= ts < hi` for every timestamp that is not at the very end of the range of its unit.

use super::stride::add_months;
use super::{Stride, Unit, Zone};
use tidalite_types::TimeUnit;
use tidalite_types::time::{civil_from_days, days_from_civil};

const DAY_S: i64 = 86_400;
/// Weeks start on Monday; 1969-12-29 was one.
const MONDAY: i64 = -3;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Buckets {
    pub stride: Stride,
    pub zone: Zone,
    /// Seconds that boundaries are later than the calendar's.
    pub offset_s: i64,
    /// A boundary, in place of the calendar's; in the unit of the timestamps.
    pub origin: Option<i64>,
    pub unit: TimeUnit,
}

/// Where buckets begin: every so many ticks from an anchor, or months.
enum Grid {
    Even { step: i128, anchor: i128 },
    Months { count: i64, anchor: i128 },
}

impl Buckets {
    /// The bucket of a timestamp, `[lo, hi)`.
    pub fn range(&self, ts: i64) -> (i64, i64) {
        let (lo, hi) = match self.stride.unit {
            Unit::Months | Unit::Years => self.months(ts),
            Unit::Days | Unit::Weeks => self.days(ts),
            _ => self.even(ts),
        };
        // At the ends of the range of the unit boundaries are cut off.
        (clamped(lo).min(ts), clamped(hi).max(ts))
    }

    /// Where the buckets of timestamps begin. They mostly come in order: the bucket of the last is tried first.
    pub fn starts(&self, times: &[i64]) -> Vec<i64> {
        let mut range = (0, 0);
        let start = |ts: &i64| {
            if *ts < range.0 || *ts >= range.1 {
                range = self.range(*ts);
            }
            range.0
        };
        times.iter().map(start).collect()
    }

    /// Whether every bucket lies in one of `others`; when that takes thought, as where clocks change, the answer is no.
    pub fn is_within(&self, others: &Buckets) -> bool {
        if self == others {
            return true;
        }
        let (Some(own), Some(other)) = (self.grid(), others.grid()) else { return false };
        if self.unit != others.unit {
            return false;
        }
        let day = i128::from(DAY_S) * self.per_second();
        match (own, other) {
            (Grid::Even { step, anchor }, Grid::Even { step: longer, anchor: from }) => {
                longer % step == 0 && (from - anchor) % step == 0
            }
            // Months begin some days after their anchor, at its time of day.
            (Grid::Even { step, anchor }, Grid::Months { anchor: from, .. }) => {
                day % step == 0 && (from - anchor) % step == 0
            }
            (Grid::Months { count, anchor }, Grid::Months { count: more, anchor: from }) => {
                let is_first = self.origin.is_none() && others.origin.is_none() && self.offset_s == 0;
                is_first && anchor == from && more % count == 0
            }
            (Grid::Months { .. }, Grid::Even { .. }) => false,
        }
    }

    /// Of a clock that is never changed.
    fn grid(&self) -> Option<Grid> {
        let Zone::Fixed(ahead_s) = self.zone else { return None };
        let ahead = i128::from(ahead_s) * self.per_second();
        let offset = i128::from(self.offset_s) * self.per_second();
        let anchor = |first: i128| self.origin.map_or(first + offset - ahead, i128::from);
        let day = i128::from(DAY_S) * self.per_second();
        let count = i128::from(self.stride.count);
        Some(match self.stride.unit {
            Unit::Months => Grid::Months { count: self.stride.count, anchor: anchor(0) },
            Unit::Years => Grid::Months { count: 12 * self.stride.count, anchor: anchor(0) },
            Unit::Weeks => Grid::Even { step: 7 * day * count, anchor: anchor(i128::from(MONDAY) * day) },
            Unit::Days => Grid::Even { step: day * count, anchor: anchor(0) },
            unit => {
                let nanos = unit.nanos().unwrap_or(1) * count;
                Grid::Even { step: (nanos * self.per_second() / 1_000_000_000).max(1), anchor: anchor(0) }
            }
        })
    }

    fn per_second(&self) -> i128 {
        i128::from(self.unit.per_second())
    }

    fn seconds(&self, ts: i64) -> i64 {
        ts.div_euclid(self.unit.per_second())
    }

    fn even(&self, ts: i64) -> (i128, i128) {
        let nanos = self.stride.unit.nanos().unwrap_or(1) * i128::from(self.stride.count);
        let step = (nanos * self.per_second() / 1_000_000_000).max(1);
        let shift = i128::from(self.zone.standard_offset(self.seconds(ts))) * self.per_second();
        let anchor = match self.origin {
            Some(origin) => i128::from(origin),
            None => i128::from(self.offset_s) * self.per_second() - shift,
        };
        let lo = anchor + (i128::from(ts) - anchor).div_euclid(step) * step;
        (lo, lo + step)
    }

    fn local(&self, ts: i64) -> i128 {
        i128::from(ts) + i128::from(self.zone.offset(self.seconds(ts))) * self.per_second()
    }

    fn days(&self, ts: i64) -> (i128, i128) {
        let day = i128::from(DAY_S) * self.per_second();
        let days = if self.stride.unit == Unit::Weeks { 7 * self.stride.count } else { self.stride.count };
        let step = day * i128::from(days);
        let anchor = match self.origin {
            Some(origin) => self.local(origin),
            None => {
                let first = if self.stride.unit == Unit::Weeks { i128::from(MONDAY) * day } else { 0 };
                first + i128::from(self.offset_s) * self.per_second()
            }
        };
        let lo = anchor + (self.local(ts) - anchor).div_euclid(step) * step;
        (self.utc(lo), self.utc(lo + step))
    }

    fn months(&self, ts: i64) -> (i128, i128) {
        let step = if self.stride.unit == Unit::Years { 12 * self.stride.count } else { self.stride.count };
        let offset = i128::from(self.offset_s) * self.per_second();
        let anchor = self.origin.map_or(offset, |origin| self.local(origin));
        let local = self.local(ts);
        let mut k = (month_index(local, self.unit) - month_index(anchor, self.unit)).div_euclid(step);
        if self.month_start(anchor, k * step) > local {
            k -= 1;
        }
        (self.utc(self.month_start(anchor, k * step)), self.utc(self.month_start(anchor, (k + 1) * step)))
    }

    fn month_start(&self, anchor: i128, months: i64) -> i128 {
        let limit = if months < 0 { i64::MIN } else { i64::MAX };
        i128::from(add_months(clamped(anchor), months, self.unit).unwrap_or(limit))
    }

    fn utc(&self, local: i128) -> i128 {
        let seconds = clamped(local.div_euclid(self.per_second()));
        i128::from(self.zone.to_utc(seconds)) * self.per_second() + local.rem_euclid(self.per_second())
    }
}

fn clamped(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

/// Months since the year 0 of a local time.
fn month_index(local: i128, unit: TimeUnit) -> i64 {
    let days = clamped(local.div_euclid(i128::from(DAY_S) * i128::from(unit.per_second())));
    let (year, month, _) = civil_from_days(days);
    debug_assert!(days_from_civil(year, month, 1) <= days);
    year * 12 + i64::from(month) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buckets(stride: &str, zone: &str) -> Buckets {
        Buckets {
            stride: Stride::parse(stride).expect("a stride"),
            zone: Zone::parse(zone).expect("a zone"),
            offset_s: 0,
            origin: None,
            unit: TimeUnit::Millis,
        }
    }

    const HOUR: i64 = 3_600_000;

    #[test]
    fn days_are_as_long_as_the_clock_makes_them() {
        // 2021-10-30T23:00Z is the midnight before London's clocks went back, 2021-03-28T00:00Z the one before they went forward.
        assert_eq!(
            buckets("1d", "Europe/London").range(1_635_638_400_000),
            (1_635_634_800_000, 1_635_634_800_000 + 25 * HOUR)
        );
        assert_eq!(
            buckets("1d", "Europe/London").range(1_616_900_000_000),
            (1_616_889_600_000, 1_616_889_600_000 + 23 * HOUR)
        );
        let at = 1_635_638_400_000;
        assert_eq!(
            buckets("1h", "Australia/Lord_Howe").range(at),
            (at - HOUR / 2, at + HOUR / 2),
            "in step with standard time, 10:30 ahead"
        );
    }

    #[test]
    fn every_timestamp_is_in_its_bucket() {
        for stride in ["1s", "7m", "5h", "1d", "3d", "1w", "1M", "5M", "1y"] {
            for zone in ["UTC", "America/New_York", "Australia/Lord_Howe", "+05:30"] {
                for (origin, offset_s) in [(None, 0), (None, 2_700), (Some(1_706_700_000_123), 0)] {
                    let buckets = Buckets { origin, offset_s, ..buckets(stride, zone) };
                    for i in 0..2_000_i64 {
                        let ts = (i - 1_000) * 31 * 86_399_999 + i * 977;
                        let (lo, hi) = buckets.range(ts);
                        assert!(lo <= ts && ts < hi, "{stride} {zone} {origin:?} {ts}: {lo} {hi}");
                        assert_eq!(buckets.range(lo), (lo, hi), "{stride} {zone} {origin:?} {ts}");
                        assert_eq!(buckets.range(hi).0, hi, "{stride} {zone} {origin:?} {ts}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_bucket_within_another_begins_and_ends_in_it() {
        let mut are_within = 0;
        let texts = ["1m", "7m", "15m", "1h", "6h", "24h", "1d", "2d", "1w", "1M", "3M", "4M", "1y"];
        let zones = ["UTC", "+05:30", "-01:00"];
        let variants = |text| {
            zones.into_iter().flat_map(move |zone| {
                [(None, 0), (None, 2_700), (Some(1_706_700_600_000), 0)].map(|(origin, offset_s)| Buckets {
                    origin,
                    offset_s,
                    ..buckets(text, zone)
                })
            })
        };
        for (fine, coarse) in texts.into_iter().flat_map(|a| texts.map(|b| (a, b))) {
            for (own, other) in variants(fine).flat_map(|a| variants(coarse).map(move |b| (a, b))) {
                if !own.is_within(&other) {
                    continue;
                }
                are_within += 1;
                for i in 0..400_i64 {
                    let ts = (i - 200) * 17 * 86_399_999 + i * 977;
                    let (lo, hi) = own.range(ts);
                    let around = other.range(ts);
                    assert!(around.0 <= lo && hi <= around.1, "{own:?} {other:?} {ts}");
                }
            }
        }
        assert!(are_within > 300, "{are_within}");
        assert!(buckets("1h", "UTC").is_within(&buckets("1M", "-01:00")));
        assert!(!buckets("1d", "UTC").is_within(&buckets("1M", "-01:00")));
        assert!(!buckets("1w", "UTC").is_within(&buckets("1M", "UTC")));
        assert!(buckets("1d", "Europe/London").is_within(&buckets("1d", "Europe/London")));
        assert!(!buckets("1h", "UTC").is_within(&buckets("1d", "Europe/London")));
    }

    #[test]
    fn the_ends_of_the_range_do_not_overflow() {
        for stride in ["1n", "1h", "1d", "1w", "1M", "1y"] {
            for ts in [i64::MIN, i64::MAX] {
                let (lo, hi) = Buckets { unit: TimeUnit::Nanos, ..buckets(stride, "Europe/London") }.range(ts);
                assert!(lo <= ts && ts <= hi);
            }
        }
    }
}
