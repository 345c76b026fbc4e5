//! Timestamps and dates as text.

use super::Style;
use crate::digits::{push_clock, push_day, push_fraction};
use std::cell::RefCell;
use tidalite::types::TimeUnit;
use tidalite::types::time::civil_from_days;

/// The text of a day, which is mostly that of the next timestamp, too.
#[derive(Default)]
pub struct Day(RefCell<(Option<i64>, Vec<u8>)>);

impl Day {
    fn push(&self, out: &mut Vec<u8>, days: i64) {
        let mut last = self.0.borrow_mut();
        let (of, text) = &mut *last;
        if *of != Some(days) {
            *of = Some(days);
            text.clear();
            push_day(text, civil_from_days(days));
            text.push(b'T');
        }
        out.extend_from_slice(text);
    }
}

/// `2016-01-01T00:00:00.000000Z`, with as many digits as the unit has.
pub fn push_timestamp(out: &mut Vec<u8>, value: i64, unit: TimeUnit, day: &Day) {
    let per_second = unit.per_second();
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
