//! Assigns codes to keys: equal keys have one code, counted from 0 in order of arrival.
//!
//! [`IntNumbers`] assigns codes to integers, and to values that fit an integer, such as pairs of codes; [`TextNumbers`]
//! assigns codes to strings. A row without a key has the code [`NONE`]. Symbol ids are codes already.

use super::NONE;
use arrow::array::{Array, Int64Array, StringViewArray, UInt32Array};
use arrow::buffer::ScalarBuffer;
use hashbrown::HashMap;

#[derive(Debug, Default)]
pub struct IntNumbers(HashMap<i64, u32>);

#[derive(Debug, Default)]
pub struct TextNumbers {
    numbers: HashMap<Box<[u8]>, u32>,
    bytes: usize,
}

/// Size of an entry, excluding its string.
const ENTRY_BYTES: usize = 32;

impl IntNumbers {
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the approximate memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.capacity() * ENTRY_BYTES
    }

    /// Returns the code of each row; `None` if a key has no code yet.
    #[must_use]
    pub fn found(&self, keys: &Int64Array) -> Option<Vec<u32>> {
        let number = |key: Option<i64>| key.map_or(Some(NONE), |key| self.0.get(&key).copied());
        match keys.null_count() {
            0 => keys.values().iter().map(|key| self.0.get(key).copied()).collect(),
            _ => keys.iter().map(number).collect(),
        }
    }

    /// Returns the code of each row and assigns codes to new keys.
    pub fn numbered(&mut self, keys: &Int64Array) -> Vec<u32> {
        let number = |key: Option<i64>| {
            let count = self.0.len() as u32;
            key.map_or(NONE, |key| *self.0.entry(key).or_insert(count))
        };
        keys.iter().map(number).collect()
    }
}

impl TextNumbers {
    #[must_use]
    pub fn count(&self) -> usize {
        self.numbers.len()
    }

    /// Returns the approximate memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes + self.numbers.capacity() * ENTRY_BYTES
    }

    /// Returns the code of each row; `None` if a key has no code yet.
    #[must_use]
    pub fn found(&self, keys: &StringViewArray) -> Option<Vec<u32>> {
        let number = |key: Option<&str>| key.map_or(Some(NONE), |key| self.numbers.get(key.as_bytes()).copied());
        keys.iter().map(number).collect()
    }

    /// Returns the code of each row and assigns codes to new keys.
    pub fn numbered(&mut self, keys: &StringViewArray) -> Vec<u32> {
        let number = |key: Option<&str>| {
            let key = key.map(str::as_bytes)?;
            if let Some(number) = self.numbers.get(key) {
                return Some(*number);
            }
            let number = self.numbers.len() as u32;
            self.bytes += key.len();
            self.numbers.insert(key.into(), number);
            Some(number)
        };
        keys.iter().map(number).map(|number| number.unwrap_or(NONE)).collect()
    }
}

/// Converts the codes of rows: code `c` becomes `others[c]`, or remains `c`.
///
/// Returns `None` if a code is not below `count`, or has no entry in `others`.
#[must_use]
pub fn coded(codes: &UInt32Array, count: usize, others: Option<&[u32]>) -> Option<ScalarBuffer<u32>> {
    let count = others.map_or(count, <[u32]>::len);
    if codes.null_count() > 0 {
        let number = |code: Option<u32>| match (code, others) {
            (None, _) => Some(NONE),
            (Some(code), _) if code as usize >= count => None,
            (Some(code), None) => Some(code),
            (Some(code), Some(others)) => others.get(code as usize).copied(),
        };
        return codes.iter().map(number).collect::<Option<Vec<u32>>>().map(Into::into);
    }
    // Chunks without an early exit inside are compared in lanes.
    let is_below = |chunk: &[u32]| (chunk.iter().fold(0, |max, code| max.max(*code)) as usize) < count;
    if !codes.values().chunks(1_024).all(is_below) {
        return None;
    }
    match others {
        None => Some(codes.values().clone()),
        Some(others) => Some(codes.values().iter().map(|code| others[*code as usize]).collect::<Vec<u32>>().into()),
    }
}

/// Combines the codes of two keys into one code. The codes of the second key are below `count`.
#[must_use]
pub fn as_one(first: &[u32], second: &[u32], count: u32) -> Vec<u32> {
    let one = |(first, second): (&u32, &u32)| match (*first, *second) {
        (NONE, _) | (_, NONE) => NONE,
        (first, second) => first.wrapping_mul(count).wrapping_add(second),
    };
    first.iter().zip(second).map(one).collect()
}

/// Combines the codes of two keys into keys for [`IntNumbers`].
#[must_use]
pub fn pairs(first: &[u32], second: &[u32]) -> Int64Array {
    let pair = |(first, second): (&u32, &u32)| {
        (*first != NONE && *second != NONE).then_some((i64::from(*first) << 32) | i64::from(*second))
    };
    first.iter().zip(second).map(pair).collect()
}
