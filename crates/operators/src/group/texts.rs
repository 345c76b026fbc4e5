//! Texts as numbers, counted from 1 over all threads of a query; 0 is NULL.
//!
//! A thread looks a text up in a small cache by its view, which says a short text wholly and a long one within the
//! buffers of its array; then in a table of its own; and the first time in the one that all share.

use super::keys::Overflow;
use arrow::array::{Array, ArrayRef, StringViewArray, StringViewBuilder, UInt64Array};
use arrow::buffer::Buffer;
use arrow::compute::take;
use arrow::error::ArrowError;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Different texts of one query above which they are left to an operator that does not copy them.
const TEXTS_MAX: usize = 1 << 16;
/// Pairs of places, of which a view has one.
const CACHE_BITS: u32 = 12;
/// The longest text that a view holds itself.
const INLINE_BYTES: u32 = 12;

/// The texts of one column of keys.
#[derive(Debug, Default)]
pub(super) struct Texts {
    shared: Mutex<Shared>,
    /// All of them, once there come no more.
    array: OnceLock<StringViewArray>,
}

#[derive(Debug, Default)]
struct Shared {
    numbers: HashMap<Arc<str>, u32>,
    texts: Vec<Arc<str>>,
    bytes: usize,
}

/// What one thread knows of them.
pub(super) struct TextNumbers {
    texts: Arc<Texts>,
    known: HashMap<Arc<str>, u32>,
    /// A view, what tells its buffers from others, and the number.
    cache: Vec<[(u128, u32, u32); 2]>,
    /// Whose buffers long views of this generation point into.
    buffers: Vec<Buffer>,
    generation: u32,
}

impl Texts {
    /// Memory that they take.
    pub fn bytes(&self) -> usize {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }

    fn number(&self, text: &str) -> Result<(Arc<str>, u32), Overflow> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((text, number)) = shared.numbers.get_key_value(text) {
            return Ok((text.clone(), *number));
        }
        if shared.texts.len() >= TEXTS_MAX {
            return Err(Overflow);
        }
        let text: Arc<str> = text.into();
        shared.texts.push(text.clone());
        shared.bytes += text.len() + 64;
        let number = shared.texts.len() as u32;
        shared.numbers.insert(text.clone(), number);
        Ok((text, number))
    }

    /// The texts of numbers, when all rows have theirs.
    pub fn array(&self, numbers: impl Iterator<Item = u64>) -> Result<ArrayRef, ArrowError> {
        let all = self.array.get_or_init(|| {
            let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            let mut all = StringViewBuilder::with_capacity(shared.texts.len());
            shared.texts.iter().for_each(|text| all.append_value(text));
            all.finish()
        });
        let places: UInt64Array = numbers.map(|number| number.checked_sub(1)).collect();
        take(all, &places, None)
    }
}

impl TextNumbers {
    pub fn new(texts: Arc<Texts>) -> TextNumbers {
        let cache = vec![[(0, u32::MAX, 0); 2]; 1 << CACHE_BITS];
        TextNumbers { texts, known: HashMap::new(), cache, buffers: Vec::new(), generation: 0 }
    }

    /// Gives the number of each row.
    pub fn number(&mut self, column: &StringViewArray, mut put: impl FnMut(usize, u32)) -> Result<(), Overflow> {
        let has_same_buffers = self.buffers.len() == column.data_buffers().len()
            && self
                .buffers
                .iter()
                .zip(column.data_buffers())
                .all(|(a, b)| a.as_ptr() == b.as_ptr() && a.len() == b.len());
        if !has_same_buffers {
            // Kept, so that nothing else comes to lie where they are.
            self.buffers = column.data_buffers().to_vec();
            self.generation = self.generation.wrapping_add(1) % (u32::MAX - 1);
        }
        let has_nulls = column.null_count() > 0;
        for (row, view) in column.views().iter().enumerate() {
            if has_nulls && column.is_null(row) {
                put(row, 0);
                continue;
            }
            // A short text is the same wherever it came from.
            let generation = if *view as u32 <= INLINE_BYTES { 0 } else { self.generation + 1 };
            let place = place(*view);
            let [first, second] = self.cache[place];
            if first.0 == *view && first.1 == generation {
                put(row, first.2);
                continue;
            }
            if second.0 == *view && second.1 == generation {
                put(row, second.2);
                continue;
            }
            let number = self.look_up(column.value(row))?;
            self.cache[place] = [(*view, generation, number), first];
            put(row, number);
        }
        Ok(())
    }

    #[cold]
    fn look_up(&mut self, text: &str) -> Result<u32, Overflow> {
        if let Some(number) = self.known.get(text) {
            return Ok(*number);
        }
        let (text, number) = self.texts.number(text)?;
        self.known.insert(text, number);
        Ok(number)
    }
}

#[inline]
fn place(view: u128) -> usize {
    let folded = (view as u64) ^ ((view >> 64) as u64).rotate_left(32);
    (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - CACHE_BITS)) as usize
}
