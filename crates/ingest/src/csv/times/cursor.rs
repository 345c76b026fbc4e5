//! Parser of digits, separators and names from left to right.

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// The rest of a string that is parsed from left to right.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    pub rest: &'a [u8],
}

impl Cursor<'_> {
    pub(super) fn sees(&self, any: &[u8]) -> bool {
        self.rest.first().is_some_and(|b| any.contains(b))
    }

    pub(super) fn take(&mut self, any: &[u8]) -> Option<u8> {
        let first = self.rest.first().copied().filter(|b| any.contains(b))?;
        self.rest = &self.rest[1..];
        Some(first)
    }

    pub(super) fn spaces(&mut self) -> bool {
        let before = self.rest.len();
        self.rest = self.rest.trim_ascii_start();
        self.rest.len() < before
    }

    /// Consumes all digits; returns their value and count. More than `max` digits are not consumed and count as none.
    pub(super) fn digits(&mut self, max: usize) -> (i64, usize) {
        let count = self.rest.iter().take_while(|b| b.is_ascii_digit()).count();
        if count > max { (0, 0) } else { (self.exactly(count).unwrap_or(0), count) }
    }

    /// Consumes the next `count` digits, whatever follows.
    pub(super) fn exactly(&mut self, count: usize) -> Option<i64> {
        let head = self.rest.get(..count)?;
        let value =
            head.iter().try_fold(0_i64, |n, b| b.is_ascii_digit().then(|| n.wrapping_mul(10) + i64::from(b - b'0')))?;
        self.rest = &self.rest[count..];
        Some(value)
    }

    pub(super) fn word(&self) -> &str {
        let len = self.rest.iter().take_while(|b| b.is_ascii_alphabetic()).count();
        std::str::from_utf8(&self.rest[..len]).unwrap_or_default()
    }

    /// Consumes a name, complete or at least its first three letters; returns its index.
    pub(super) fn name(&mut self, names: &[&str]) -> Option<usize> {
        let word = self.word();
        let is = |name: &&str| word.len() >= 3 && name.get(..word.len()).is_some_and(|n| n.eq_ignore_ascii_case(word));
        let found = names.iter().position(|name| is(&name))?;
        self.rest = &self.rest[word.len()..];
        self.take(b".");
        Some(found)
    }

    pub(super) fn month_name(&mut self) -> Option<i64> {
        self.name(&MONTHS).map(|n| n as i64 + 1)
    }

    pub(super) fn weekday(&mut self) -> bool {
        self.name(&WEEKDAYS).is_some()
    }

    /// Consumes the digits of a fraction of a second; returns nanoseconds and the number of digits, 1 to 9.
    pub(super) fn fraction(&mut self) -> Option<(i64, u8)> {
        let (value, count) = self.digits(9);
        (count > 0).then(|| (value * 10_i64.pow(9 - count as u32), count as u8))
    }

    /// Consumes `AM`, `pm`, `a.m.`; returns true for the afternoon.
    pub(super) fn half_day(&mut self) -> Option<bool> {
        let mut ahead = *self;
        ahead.spaces();
        let half = ahead.take(b"aApP")?;
        ahead.take(b".");
        ahead.take(b"mM")?;
        ahead.take(b".");
        if ahead.sees(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/") {
            return None;
        }
        *self = ahead;
        Some(half.eq_ignore_ascii_case(&b'p'))
    }
}
