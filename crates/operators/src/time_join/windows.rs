//! Finds the right rows of a key in time windows around left rows.
//!
//! Input: both sides in time order, their key codes, and the bounds of the window relative to the left row's time.
//! Output: right rows sorted by key and time; for each left row the range of these rows that is its window; and the
//! pairs of rows, by left row. A key beyond the number of keys matches nothing.

use super::{NONE, Rows};

/// Right rows sorted by key and time.
#[derive(Debug)]
pub struct Arranged {
    /// The first position of each key.
    starts: Vec<u32>,
    /// Row numbers by position, and their times.
    pub rows: Vec<u32>,
    times: Vec<i64>,
}

/// A window from `lo` to `hi` relative to a left row's time, both inclusive.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    pub lo: i64,
    pub hi: i64,
    /// True if the last row before the window counts, unless a row is exactly at its start.
    pub includes_prevailing: bool,
}

/// The windows of the left rows.
#[derive(Debug, Default)]
pub struct Windows {
    /// Start positions of the right rows.
    pub from: Vec<u32>,
    pub to: Vec<u32>,
    /// True if a row before all right rows of the key belongs to the window, if there is one.
    pub is_open: Vec<bool>,
}

impl Arranged {
    #[must_use]
    pub fn new(right: Rows<'_>, keys: usize) -> Arranged {
        let Some(of_rows) = right.keys else {
            let count = right.times.len() as u32;
            return Arranged { starts: vec![0, count], rows: (0..count).collect(), times: right.times.to_vec() };
        };
        let of_rows = &of_rows[..right.times.len()];
        let mut starts = vec![0_u32; keys + 1];
        for key in of_rows {
            if let Some(count) = starts.get_mut(*key as usize + 1) {
                *count += 1;
            }
        }
        for key in 1..starts.len() {
            starts[key] += starts[key - 1];
        }
        let count = starts.last().copied().unwrap_or_default() as usize;
        let (mut places, mut rows, mut times) = (starts.clone(), vec![0; count], vec![0; count]);
        for (row, (key, time)) in of_rows.iter().zip(right.times).enumerate() {
            if *key as usize >= keys {
                continue;
            }
            let place = &mut places[*key as usize];
            rows[*place as usize] = row as u32;
            times[*place as usize] = *time;
            *place += 1;
        }
        Arranged { starts, rows, times }
    }

    /// Returns the windows of left rows in time order.
    #[must_use]
    pub fn windows(&self, left: Rows<'_>, reach: Reach) -> Windows {
        let keys = self.starts.len() - 1;
        let (mut froms, mut tos) = (self.starts[..keys].to_vec(), self.starts[..keys].to_vec());
        let count = left.times.len();
        let mut windows = Windows { from: vec![0; count], to: vec![0; count], is_open: vec![false; count] };
        for (row, time) in left.times.iter().enumerate() {
            let key = left.keys.map_or(0, |keys| keys[row]) as usize;
            if key >= keys {
                continue;
            }
            let (first, end) = (self.starts[key], self.starts[key + 1]);
            let (lo, hi) = (time.saturating_add(reach.lo), time.saturating_add(reach.hi));
            let (mut from, mut to) = (froms[key], tos[key]);
            while from < end && self.times[from as usize] < lo {
                from += 1;
            }
            to = to.max(from);
            while to < end && self.times[to as usize] <= hi {
                to += 1;
            }
            (froms[key], tos[key]) = (from, to);
            let starts_inside = from < end && self.times[from as usize] == lo;
            let prevails = reach.includes_prevailing && !starts_inside;
            windows.from[row] = if prevails && from > first { from - 1 } else { from };
            windows.to[row] = to;
            windows.is_open[row] = prevails && from == first;
        }
        windows
    }
}

/// Position at which the enumeration of pairs continues.
#[derive(Clone, Copy, Debug, Default)]
pub struct Next {
    row: usize,
    /// Number of right rows of `row` that are already paired.
    paired: u32,
}

impl Windows {
    /// Returns the earlier row of each open window: the entry of its key in `before`, counted from `first`.
    ///
    /// Other windows, and keys without an entry, have [`NONE`].
    #[must_use]
    pub fn prevailing(&self, keys: Option<&[u32]>, before: &[u32], first: u32) -> Vec<u32> {
        let place = |(row, is_open): (usize, &bool)| {
            let key = keys.map_or(0, |keys| keys.get(row).copied().unwrap_or(NONE));
            match before.get(key as usize) {
                Some(place) if *is_open && *place != NONE => first + place,
                _ => NONE,
            }
        };
        self.is_open.iter().enumerate().map(place).collect()
    }

    /// Appends at most `count` pairs; returns false if there are no more.
    pub fn pairs(
        &self,
        prevailing: &[u32],
        next: &mut Next,
        count: usize,
        (lefts, rights): (&mut Vec<usize>, &mut Vec<u32>),
    ) -> bool {
        let mut room = count;
        while next.row < self.from.len() && room > 0 {
            let row = next.row;
            let has_earlier = prevailing.get(row).is_some_and(|place| *place != NONE);
            if has_earlier && next.paired == 0 {
                lefts.push(row);
                rights.push(prevailing[row]);
                next.paired = 1;
                room -= 1;
            }
            let from = self.from[row] + next.paired - u32::from(has_earlier);
            let left = self.to[row].saturating_sub(from);
            let taken = left.min(room as u32);
            lefts.extend(std::iter::repeat_n(row, taken as usize));
            rights.extend(from..from + taken);
            room -= taken as usize;
            if taken == left {
                *next = Next { row: row + 1, paired: 0 };
            } else {
                next.paired += taken;
            }
        }
        next.row < self.from.len()
    }
}

impl Windows {
    /// Returns the number of pairs of each left row.
    #[must_use]
    pub fn counts(&self, prevailing: &[u32]) -> Vec<i64> {
        let windows = self.from.iter().zip(&self.to).zip(prevailing);
        windows.map(|((from, to), earlier)| i64::from(to.saturating_sub(*from)) + i64::from(*earlier != NONE)).collect()
    }

    /// Returns the sum over the pairs of each left row, in order.
    ///
    /// `values` are the values of right rows by position, followed by those of earlier rows.
    #[must_use]
    pub fn sums(&self, prevailing: &[u32], values: &[f64]) -> Vec<f64> {
        let windows = self.from.iter().zip(&self.to).zip(prevailing);
        let sum = |((from, to), earlier): ((&u32, &u32), &u32)| {
            let first = values.get(*earlier as usize).map_or(0.0, |value| 0.0 + value);
            let own = values.get(*from as usize..*to as usize).unwrap_or_default();
            own.iter().fold(first, |sum, value| sum + value)
        };
        windows.map(sum).collect()
    }
}
