//! Timestamps and dates as text.

use super::style::Style;
use crate::digits::{push_day, push_first, two_digits};
use std::cell::Cell;
use tidalite::types::TimeUnit;
use tidalite::types::time::civil_from_days;

/// The text of a minute, which is often that of the next timestamp, too.
#[derive(Default)]
pub struct Minute(Cell<Option<Known>>);

/// A minute of a year of up to seven digits, and its text of so many bytes, those of its day included.
#[derive(Clone, Copy)]
struct Known {
    minute: i64,
    text: [u8; 24],
    bytes: usize,
    of_day: usize,
}

const MINUTES: i64 = 24 * 60;

impl Minute {
    /// `2016-01-01T00:00:`
    fn push(&self, out: &mut Vec<u8>, minute: i64) {
        let known = self.0.get();
        if let Some(known) = known.filter(|known| known.minute == minute) {
            return push_first(out, &known.text, known.bytes);
        }
        let (from, day) = (out.len(), minute.div_euclid(MINUTES));
        match known.filter(|known| known.minute.div_euclid(MINUTES) == day) {
            Some(known) => push_first(out, &known.text, known.of_day),
            None => {
                push_day(out, civil_from_days(day));
                out.push(b'T');
            }
        }
        let of_day = out.len() - from;
        let own = minute.rem_euclid(MINUTES) as u32;
        let ([h, i], [m, n]) = (two_digits(own / 60), two_digits(own % 60));
        out.extend_from_slice(&[h, i, b':', m, n, b':']);
        let (mut text, written) = ([0; 24], &out[from..]);
        if let Some(start) = text.get_mut(..written.len()) {
            start.copy_from_slice(written);
            self.0.set(Some(Known { minute, text, bytes: written.len(), of_day }));
        }
    }
}

/// `2016-01-01T00:00:00.000000Z`, with as many digits as the unit has.
pub fn push_timestamp(out: &mut Vec<u8>, value: i64, unit: TimeUnit, minute: &Minute) {
    // Each with a constant, by which is divided faster.
    match unit {
        TimeUnit::Millis => push_parts::<1_000>(out, value, minute),
        TimeUnit::Micros => push_parts::<1_000_000>(out, value, minute),
        TimeUnit::Nanos => push_parts::<1_000_000_000>(out, value, minute),
    }
}

#[inline(always)]
fn push_parts<const PER_SECOND: i64>(out: &mut Vec<u8>, value: i64, minute: &Minute) {
    minute.push(out, value.div_euclid(60 * PER_SECOND));
    let of_minute = value.rem_euclid(60 * PER_SECOND);
    let (second, fraction) = ((of_minute / PER_SECOND) as u32, (of_minute % PER_SECOND) as u32);
    let [s, t] = two_digits(second);
    // As nanoseconds, which have ten digits with the zero in front.
    let nanos = fraction * (1_000_000_000 / PER_SECOND) as u32;
    let [[_, b], [c, d], [e, f], [g, h], [i, j]] =
        [100_000_000, 1_000_000, 10_000, 100, 1].map(|unit| two_digits(nanos / unit));
    let mut text = [s, t, b'.', b, c, d, e, f, g, h, i, j, 0, 0, 0, 0];
    let digits = PER_SECOND.ilog10() as usize;
    text[3 + digits] = b'Z';
    push_first(out, &text, 4 + digits);
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
            let minute = Minute::default();
            for value in [0, -1, 1, 1_451_606_400_000_000, 999_999_999, i64::from(i32::MAX), -86_400_000_001] {
                let mut out = Vec::new();
                push_timestamp(&mut out, value, unit, &minute);
                let text = String::from_utf8(out).unwrap();
                if text.find('-') == Some(4) {
                    assert_eq!(text, format_timestamp(value, unit));
                }
            }
        }
    }

    #[test]
    fn times_near_one_another_are_as_if_alone() {
        let mut dice = fastrand::Rng::with_seed(8);
        for (unit, per_second) in
            [(TimeUnit::Millis, 1_000), (TimeUnit::Micros, 1_000_000), (TimeUnit::Nanos, 1_000_000_000)]
        {
            let (minute, mut value) = (Minute::default(), 0_i64);
            for _ in 0..5_000 {
                let step = per_second * [1, 60, 86_400, 0][dice.usize(0..4)] * dice.i64(-2..3);
                value = match dice.u8(0..50) {
                    0 => dice.i64(-2_000_000_000..9_000_000_000) * per_second,
                    _ => value.wrapping_add(step + dice.i64(-1..2) * dice.i64(0..per_second)),
                };
                let (mut out, mut alone) = (Vec::new(), Vec::new());
                push_timestamp(&mut out, value, unit, &minute);
                push_timestamp(&mut alone, value, unit, &Minute::default());
                assert_eq!(String::from_utf8(out).unwrap(), String::from_utf8(alone).unwrap());
            }
            assert_eq!(minute.0.get().unwrap().minute, value.div_euclid(60 * per_second));
        }
    }

    #[test]
    fn the_ends_of_time_do_not_panic() {
        for unit in [TimeUnit::Millis, TimeUnit::Micros, TimeUnit::Nanos] {
            for value in [i64::MIN, i64::MAX] {
                push_timestamp(&mut Vec::new(), value, unit, &Minute::default());
            }
        }
        push_date(&mut Vec::new(), i32::MIN, Style::Csv);
    }
}
