//! Minute bars of a share: the CSV of the ingress benchmark.
//!
//! Sessions of 390 minutes (14:30 to 21:00 UTC) on weekdays from 1998-01-02. The price moves by log-normal steps that
//! are larger at the opening and the close, with a gap over night; the volume is log-normal with the same shape; 0.2 %
//! of the minutes are missing. Two decimals.

use crate::random::Random;
use std::io::Write;

const FIRST_DAY: i64 = 10_228; // 1998-01-02, a Friday, in days since 1970
const MINUTES: u32 = 390;

pub struct Bars {
    random: Random,
    bytes_max: u64,
    bytes: u64,
    rows: u64,
    day: i64,
    price: f64,
}

impl Bars {
    #[must_use]
    pub fn new(seed: i64, bytes_max: u64) -> Bars {
        Bars { random: Random::new(seed), bytes_max, bytes: 0, rows: 0, day: FIRST_DAY, price: 100.0 }
    }

    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Appends a day; false when there are bytes enough.
    pub fn next(&mut self, out: &mut Vec<u8>) -> bool {
        let before = out.len();
        if self.rows == 0 {
            out.extend_from_slice(b"ts,open,high,low,close,volume\n");
        }
        // Day 0 was a Thursday.
        while matches!((self.day + 3).rem_euclid(7), 5 | 6) {
            self.day += 1;
        }
        self.price *= (self.random.normal() * 8e-3).exp();
        let date = date(self.day);
        for minute in 0..MINUTES {
            if self.bytes + (out.len() - before) as u64 >= self.bytes_max {
                return false;
            }
            self.bar(&date, minute, out);
        }
        self.day += 1;
        self.bytes += (out.len() - before) as u64;
        true
    }

    fn bar(&mut self, date: &str, minute: u32, out: &mut Vec<u8>) {
        let random = &mut self.random;
        let open = self.price + (random.below(3) as f64 - 1.0) * 0.01;
        let factor = shape(minute);
        let (mut high, mut low, mut price) = (open, open, open);
        for _ in 0..4 {
            price *= (random.normal() * 8e-4 / 2.0 * factor).exp();
            (high, low) = (high.max(price), low.min(price));
        }
        self.price = price;
        let volume = (9_000.0 * factor * (random.normal() * 0.8).exp()) as i64;
        if random.unit() < 0.002 {
            return;
        }
        let at = 14 * 60 + 30 + minute;
        let _ =
            writeln!(out, "{date} {:02}:{:02}:00,{open:.2},{high:.2},{low:.2},{price:.2},{volume}", at / 60, at % 60);
        self.rows += 1;
    }
}

/// 1.8 at the opening, 0.7 at noon, 1.5 at the close.
fn shape(minute: u32) -> f64 {
    let x = f64::from(minute) / f64::from(MINUTES - 1) * 2.0 - 1.0;
    0.7 + x * x * if x < 0.0 { 1.1 } else { 0.8 }
}

/// Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
fn date(days: i64) -> String {
    let z = days + 719_468;
    let (era, doe) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let (day, month) = (doy - (153 * mp + 2) / 5 + 1, if mp < 10 { mp + 3 } else { mp - 9 });
    format!("{:04}-{month:02}-{day:02}", yoe + era * 400 + i64::from(month <= 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_of_weekdays_and_their_prices_are_in_order() {
        let (mut bars, mut text) = (Bars::new(1, 200_000), Vec::new());
        while bars.next(&mut text) {}
        let text = String::from_utf8(text).unwrap();
        assert!((200_000..200_100).contains(&text.len()));
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("ts,open,high,low,close,volume"));
        let first: Vec<&str> = lines.clone().next().unwrap().split(',').collect();
        assert_eq!(first[0], "1998-01-02 14:30:00");
        let mut count = 0;
        for line in lines {
            let fields: Vec<&str> = line.split(',').collect();
            let price = |i: usize| fields[i].parse::<f64>().unwrap();
            assert!(price(2) >= price(1).max(price(4)) && price(3) <= price(1).min(price(4)), "{line}");
            // 1998-01-03 and 04 were a weekend.
            assert!(!line.starts_with("1998-01-03") && !line.starts_with("1998-01-04"));
            count += 1;
        }
        assert_eq!(count, bars.rows());
    }
}
