//! Timestamps and dates as text.

use super::Style;
use crate::digits::{push_clock, push_day, push_first, push_fraction};
use std::cell::Cell;
use tidalite::types::TimeUnit;
use tidalite::types::time::civil_from_days;

/// The text of a day, which is mostly that of the next timestamp, too.
#[derive(Default)]
pub struct Day(Cell<Option<Known>>);

/// A day of a year of up to seven digits, and its text of so many bytes.
#[derive(Clone, Copy)]
struct Known {
    days: i64,
    text: [u8; 16],
    bytes: usize,
}

impl Day {
    fn push(&self, out: &mut Vec<u8>, days: i64) {
        if let Some(known) = self.0.get().filter(|known| known.days == days) {
            return push_first(out, &known.text, known.bytes);
        }
        let from = out.len();
        push_day(out, civil_from_days(days));
        out.push(b'T');
        let (mut text, written) = ([0; 16], &out[from..]);
        if let Some(start) = text.get_mut(..written.len()) {
            start.copy_from_slice(written);
            self.0.set(Some(Known { days, text, bytes: written.len() }));
        }
    }
}

/// `2016-01-01T00:00:00.000000Z`, with as many digits as the unit has.
pub fn push_timestamp(out: &mut Vec<u8>, value: i64, unit: TimeUnit, day: &Day) {
    // Each with a constant, by which is divided faster.
    match unit {
        TimeUnit::Millis => push_parts(out, value, 1_000, day),
        TimeUnit::Micros => push_parts(out, value, 1_000_000, day),
        TimeUnit::Nanos => push_parts(out, value, 1_000_000_000, day),
    }
}

#[inline(always)]
fn push_parts(out: &mut Vec<u8>, value: i64, per_second: i64, day: &Day) {
    let (seconds, fraction) = (value.div_euclid(per_second), value.rem_euclid(per_second));
    day.push(out, seconds.div_euclid(86_400));
    push_clock(out, seconds.rem_euclid(86_400));
    push_fraction(out, fraction, per_second, false);
    out.push(b'Z');
}

/// For people `2016-01-01`; clients of QuestDB expect a DATE to have a time of day.
pub fn push_date(out: &mut Vec<u8>, days: i32, style: Style) {
    push_day(out, civil_from_days(i64::from(days)));
    if style != Style::Text {
        out.extend_from_slice(b"T00:00:00.000Z");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidalite::types::time::format_timestamp;

    #[test]
    fn agrees_with_the_plain_form() {
        for unit in [TimeUnit::Millis, TimeUnit::Micros, TimeUnit::Nanos] {
            let day = Day::default();
            for value in [0, -1, 1, 1_451_606_400_000_000, 999_999_999, i64::from(i32::MAX), -86_400_000_001] {
                let mut out = Vec::new();
                push_timestamp(&mut out, value, unit, &day);
                let text = String::from_utf8(out).unwrap();
                if text.find('-') == Some(4) {
                    assert_eq!(text, format_timestamp(value, unit));
                }
            }
        }
    }

    #[test]
    fn the_ends_of_time_do_not_panic() {
        for unit in [TimeUnit::Millis, TimeUnit::Micros, TimeUnit::Nanos] {
            for value in [i64::MIN, i64::MAX] {
                push_timestamp(&mut Vec::new(), value, unit, &Day::default());
            }
        }
        push_date(&mut Vec::new(), i32::MIN, Style::Csv);
    }
}
