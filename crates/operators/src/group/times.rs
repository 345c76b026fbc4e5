//! Times of few values as numbers, counted from 1 over all threads of a query; 0 is NULL.
//!
//! Starts of buckets, as SAMPLE BY makes them, take 64 bits of a key and are few. Rows mostly come in order of time: what
//! is the same as in the row before is not looked up.

use super::keys::Overflow;
use arrow::array::{Array, ArrayRef, Int64Array};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Of a number.
pub(super) const TIME_BITS: u32 = 24;

/// The times of one column of keys.
#[derive(Debug, Default)]
pub(super) struct Times(Mutex<Shared>);

#[derive(Debug, Default)]
struct Shared {
    numbers: HashMap<i64, u32>,
    times: Vec<i64>,
}

/// What one thread knows of them.
pub(super) struct TimeNumbers {
    times: Arc<Times>,
    known: HashMap<i64, u32>,
}

impl Times {
    /// Memory that they take, about.
    pub fn bytes(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).times.len() * 32
    }

    fn number(&self, time: i64) -> Result<u32, Overflow> {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = shared.numbers.get(&time) {
            return Ok(*number);
        }
        shared.times.push(time);
        let number = u32::try_from(shared.times.len()).ok().filter(|n| *n < 1 << TIME_BITS).ok_or(Overflow)?;
        shared.numbers.insert(time, number);
        Ok(number)
    }

    /// The times of numbers.
    pub fn array(&self, numbers: impl Iterator<Item = u64>) -> ArrayRef {
        let shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let time = |number: u64| shared.times.get((number as usize).checked_sub(1)?).copied();
        Arc::new(numbers.map(time).collect::<Int64Array>())
    }
}

impl TimeNumbers {
    pub fn new(times: Arc<Times>) -> TimeNumbers {
        TimeNumbers { times, known: HashMap::new() }
    }

    /// Gives the number of each run of rows of one value; runs of NULL have none.
    pub fn number(&mut self, column: &Int64Array, mut put: impl FnMut(Range<usize>, u32)) -> Result<(), Overflow> {
        let values = column.values();
        let Some(first) = values.first() else { return Ok(()) };
        if column.null_count() == 0 && values.iter().fold(0, |bits, v| bits | (v ^ first)) == 0 {
            put(0..values.len(), self.look_up(*first)?);
            return Ok(());
        }
        let mut from = 0;
        while from < values.len() {
            if column.is_null(from) {
                from += 1;
                continue;
            }
            let value = values[from];
            let same = match column.null_count() {
                0 => values[from..].iter().position(|v| *v != value),
                _ => (from..values.len()).position(|row| values[row] != value || column.is_null(row)),
            };
            let to = same.map_or(values.len(), |rows| from + rows);
            put(from..to, self.look_up(value)?);
            from = to;
        }
        Ok(())
    }

    fn look_up(&mut self, time: i64) -> Result<u32, Overflow> {
        if let Some(number) = self.known.get(&time) {
            return Ok(*number);
        }
        let number = self.times.number(time)?;
        self.known.insert(time, number);
        Ok(number)
    }
}
