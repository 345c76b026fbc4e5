//! Replaces timestamps of few distinct values by codes, counted from 1 over all threads of a query; 0 is NULL.
//!
//! Starts of buckets, as computed by SAMPLE BY, take 64 bits of a key and have few distinct values. Rows mostly arrive
//! in time order: a value equal to the previous row's is not looked up.

use super::overflow::Overflow;
use arrow::array::{Array, ArrayRef, Int64Array};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Number of bits of a code.
pub(super) const TIME_BITS: u32 = 24;

/// The timestamps of one column of keys.
#[derive(Debug, Default)]
pub(super) struct Times {
    known: Mutex<Shared>,
    /// All timestamps, after the last row.
    all: OnceLock<Vec<i64>>,
}

#[derive(Debug, Default)]
struct Shared {
    numbers: HashMap<i64, u32>,
    times: Vec<i64>,
}

/// A thread's state for one column.
pub(super) struct TimeNumbers {
    times: Arc<Times>,
    known: HashMap<i64, u32>,
}

impl Times {
    fn known(&self) -> MutexGuard<'_, Shared> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the approximate memory in bytes.
    pub fn bytes(&self) -> usize {
        self.known().numbers.len() * 32
    }

    fn number(&self, time: i64) -> Result<u32, Overflow> {
        let mut shared = self.known();
        if let Some(number) = shared.numbers.get(&time) {
            return Ok(*number);
        }
        shared.times.push(time);
        let number = u32::try_from(shared.times.len()).ok().filter(|n| *n < 1 << TIME_BITS).ok_or(Overflow)?;
        shared.numbers.insert(time, number);
        Ok(number)
    }

    /// Returns all timestamps after all rows have codes. The first one has code 1.
    pub fn sealed(&self) -> &[i64] {
        self.all.get_or_init(|| std::mem::take(&mut self.known().times))
    }

    /// Returns the timestamps of codes after all rows have codes.
    pub fn array(&self, numbers: impl Iterator<Item = u64>) -> ArrayRef {
        let all = self.sealed();
        Arc::new(numbers.map(|number| all.get((number as usize).checked_sub(1)?).copied()).collect::<Int64Array>())
    }
}

impl TimeNumbers {
    pub fn new(times: Arc<Times>) -> TimeNumbers {
        TimeNumbers { times, known: HashMap::new() }
    }

    /// Calls `put` with each run of rows of one value and its code; runs of NULL have none.
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
