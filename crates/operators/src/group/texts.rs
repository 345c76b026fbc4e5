//! Replaces strings by codes, counted from 1 over all threads of a query; 0 is NULL.
//!
//! Dictionary-encoded rows, such as rows of one block, have each string looked up once. Otherwise a thread looks up a
//! string in a small cache by its view. The view contains a short string completely and identifies a long string within
//! the buffers of its array. Strings that are not in the cache are looked up in tables shared by all threads,
//! partitioned by hash. The rows of a batch are first distributed to the parts, so that a part is locked once per batch
//! and its table stays in the cache during the lookups. Hash slots are prefetched.

use super::overflow::Overflow;
use crate::INLINE_BYTES;
use arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, StringViewArray, StringViewBuilder};
use arrow::buffer::Buffer;
use arrow::datatypes::UInt32Type;
use arrow::error::ArrowError;
use hashbrown::DefaultHashBuilder;
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tidalite_kernels::{prefetch, prefetch_slice};

/// Number of bits of a code.
pub(super) const TEXT_BITS: u32 = 31;
const PART_BITS: u32 = 6;
const PARTS: usize = 1 << PART_BITS;
/// Largest number of strings of one part.
const TEXTS_MAX: usize = 1 << (TEXT_BITS - PART_BITS - 1);
/// Size of the first and of the largest buffer of a part. Each buffer has twice the size of the previous one, and none
/// grows.
const BUFFER_BYTES: (usize, usize) = (4 << 10, 4 << 20);
/// Size of a buffer of an output batch.
const BLOCK_BYTES_MAX: u64 = 16 << 20;
/// Smallest number of slots of a part's table; a power of two.
const SLOTS_MIN: usize = 16;
/// Ratio of dictionary strings to rows.
///
/// If the dictionary has this many times more strings than the batch has rows, only the strings of the rows are looked
/// up.
const SHARED_A_ROW: usize = 16;
/// Distance, in strings, between the prefetch of a string and its hash.
const TEXTS_AHEAD: usize = 8;
/// Distances, in strings, between the lookup and the prefetch of the slot and of the view in the slot.
const AHEAD: (usize, usize) = (16, 8);
/// The cache has 2^`CACHE_BITS` sets of two entries.
const CACHE_BITS: u32 = 12;
const OFFSET: u32 = 96;
const BUFFER: u32 = 64;

/// The strings of one column of keys.
#[derive(Debug)]
pub(super) struct Texts {
    parts: Vec<Mutex<Part>>,
    hasher: DefaultHashBuilder,
    bytes: AtomicUsize,
    /// All strings, after the last row.
    all: OnceLock<Sealed>,
}

#[derive(Debug, Default)]
struct Part {
    table: Places,
    /// The views of the strings.
    texts: Vec<u128>,
    /// The buffers of long strings, as `String`, so that their bytes are known to be UTF-8.
    buffers: Vec<String>,
}

/// The views of the strings of all parts, and the buffers of long strings.
#[derive(Debug)]
pub(super) struct Sealed(Vec<(Vec<u128>, Vec<String>)>);

/// Hash table of positions by the lower half of the hash, at most half full.
///
/// A slot contains this half above the position plus one. Most different strings are therefore rejected without access
/// to the string, and the table grows, in hash order, without access to the strings.
#[derive(Debug, Default)]
struct Places {
    slots: Vec<u64>,
    count: usize,
}

impl Places {
    /// Returns the first slot of a hash: the table is in the order of the hashes.
    fn home(&self, hash: u64) -> usize {
        ((u64::from(hash as u32) * self.slots.len() as u64) >> 32) as usize
    }

    /// Returns the position that `is_same` accepts.
    fn find(&self, hash: u64, is_same: impl Fn(usize) -> bool) -> Option<usize> {
        let mut at = self.home(hash);
        loop {
            let slot = *self.slots.get(at)?;
            if slot == 0 {
                return None;
            }
            let place = slot as u32 as usize - 1;
            if slot >> 32 == u64::from(hash as u32) && is_same(place) {
                return Some(place);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Adds a position that is not in the table.
    fn insert(&mut self, hash: u64, place: usize) {
        if 2 * (self.count + 1) > self.slots.len() {
            let grown = vec![0; (2 * self.slots.len()).max(SLOTS_MIN)];
            let before = std::mem::replace(&mut self.slots, grown);
            before.into_iter().filter(|slot| *slot != 0).for_each(|slot| self.put(slot));
        }
        self.put(u64::from(hash as u32) << 32 | (place as u64 + 1));
        self.count += 1;
    }

    fn put(&mut self, slot: u64) {
        let mut at = self.home(slot >> 32);
        while self.slots[at] != 0 {
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = slot;
    }

    /// Returns the first position that would be compared for this hash, if there is one.
    fn candidate(&self, hash: u64) -> Option<usize> {
        let slot = *self.slots.get(self.home(hash))?;
        (slot >> 32 == u64::from(hash as u32) && slot != 0).then(|| slot as u32 as usize - 1)
    }
}

/// A thread's state for one column.
pub(super) struct TextNumbers {
    texts: Arc<Texts>,
    /// A view, the generation of its buffers, and the code.
    cache: Vec<[(u128, u32, u32); 2]>,
    /// Buffers to which long views of this generation point.
    buffers: Vec<Buffer>,
    generation: u32,
    /// Rows whose string must be looked up, and its hash, by part.
    missed: Vec<Vec<(u32, u64)>>,
    /// Codes of the dictionary's strings for the current batch; all 0 between batches.
    known: Vec<u32>,
    /// The strings used by the rows of the batch, if these are few.
    used: Vec<u32>,
}

/// Dictionary-encoded rows.
pub(super) type Shared = DictionaryArray<UInt32Type>;

/// Placeholder of a code that is being looked up.
const ASKED: u32 = u32::MAX;

impl Default for Texts {
    fn default() -> Texts {
        Texts {
            parts: (0..PARTS).map(|_| Mutex::default()).collect(),
            hasher: DefaultHashBuilder::default(),
            bytes: AtomicUsize::new(0),
            all: OnceLock::new(),
        }
    }
}

impl Texts {
    /// Returns the allocated bytes.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn part(&self, part: usize) -> MutexGuard<'_, Part> {
        self.parts[part].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all assigned codes, by part.
    pub fn numbers(&self) -> impl Iterator<Item = Vec<u64>> {
        let of_part = |part| (0..self.part(part).texts.len()).map(|place| code_of(place, part).into()).collect();
        (0..PARTS).map(of_part)
    }

    /// Returns all strings after all rows have codes.
    pub fn sealed(&self) -> &Sealed {
        let take = |part| {
            let Part { texts, buffers, .. } = std::mem::take(&mut *self.part(part));
            (texts, buffers)
        };
        self.all.get_or_init(|| Sealed((0..PARTS).map(take).collect()))
    }

    /// Returns the strings of codes after all rows have codes.
    pub fn array(&self, numbers: impl Iterator<Item = u64>) -> Result<ArrayRef, ArrowError> {
        let (all, numbers) = (self.sealed(), numbers.collect::<Vec<_>>());
        let places = || numbers.iter().map(|number| number.checked_sub(1).map(|place| place as usize));
        let lengths = places().flatten().map(|place| all.view(place) as u32).filter(|length| *length > INLINE_BYTES);
        let bytes = lengths.map(u64::from).sum::<u64>().clamp(1, BLOCK_BYTES_MAX);
        let mut array = StringViewBuilder::with_capacity(numbers.len()).with_fixed_block_size(bytes as u32);
        for place in places() {
            match place {
                Some(place) => all.with(place, |text| array.try_append_value(text))?,
                None => array.append_null(),
            }
        }
        Ok(Arc::new(array.finish()))
    }

    /// Assigns codes to the strings that were not in the cache: rows of `column` and hashes, by part.
    fn look_up(
        &self,
        missed: &mut [Vec<(u32, u64)>],
        column: &StringViewArray,
        mut put: impl FnMut(usize, u32),
    ) -> Result<(), Overflow> {
        for (number, missed) in missed.iter_mut().enumerate().filter(|(_, missed)| !missed.is_empty()) {
            let mut part = self.part(number);
            let before = part.bytes();
            let slot = |part: &Part, hash: u64| prefetch(&part.table.slots, part.table.home(hash));
            let text = |part: &Part, hash| {
                part.table.candidate(hash).into_iter().for_each(|place| prefetch(&part.texts, place));
            };
            missed.iter().take(AHEAD.0).for_each(|(_, hash)| slot(&part, *hash));
            missed.iter().take(AHEAD.1).for_each(|(_, hash)| text(&part, *hash));
            let done = (0..missed.len()).try_for_each(|at| {
                if let Some((_, hash)) = missed.get(at + AHEAD.0) {
                    slot(&part, *hash);
                }
                if let Some((_, hash)) = missed.get(at + AHEAD.1) {
                    text(&part, *hash);
                }
                let (row, hash) = missed[at];
                let row = row as usize;
                let place = part.place(column.value(row), column.views()[row], hash)?;
                put(row, code_of(place, number));
                Ok(())
            });
            missed.clear();
            done?;
            self.bytes.fetch_add(part.bytes().saturating_sub(before), Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Sealed {
    #[inline]
    pub fn view(&self, place: usize) -> u128 {
        self.0[place % PARTS].0[place >> PART_BITS]
    }

    /// Compares two strings by their bytes.
    pub fn compare(&self, a: usize, b: usize) -> std::cmp::Ordering {
        let (x, y) = (self.view(a), self.view(b));
        let (own_x, own_y) = (x.to_le_bytes(), y.to_le_bytes());
        self.bytes(a, &own_x).cmp(self.bytes(b, &own_y))
    }

    /// Returns the bytes of a string; `view` is its view.
    fn bytes<'a>(&'a self, place: usize, view: &'a [u8; 16]) -> &'a [u8] {
        let known = u128::from_le_bytes(*view);
        match known as u32 {
            length if length > INLINE_BYTES => long(known, &self.0[place % PARTS].1),
            length => &view[4..4 + length as usize],
        }
    }

    fn with(&self, place: usize, put: impl FnOnce(&str) -> Result<(), ArrowError>) -> Result<(), ArrowError> {
        let view = self.view(place);
        if view as u32 > INLINE_BYTES {
            let (buffer, range) = lies_at(view);
            return put(&self.0[place % PARTS].1[buffer][range]);
        }
        let view = view.to_le_bytes();
        put(std::str::from_utf8(self.bytes(place, &view)).map_err(|e| ArrowError::ComputeError(e.to_string()))?)
    }
}

impl Part {
    fn bytes(&self) -> usize {
        let text: usize = self.buffers.iter().map(String::capacity).sum();
        text + self.texts.capacity() * size_of::<u128>() + self.table.slots.capacity() * size_of::<u64>()
    }

    /// Returns the position of a string, which is added if it is new.
    fn place(&mut self, text: &str, view: u128, hash: u64) -> Result<usize, Overflow> {
        let Part { table, texts, buffers } = self;
        let is_long = view as u32 > INLINE_BYTES;
        let is_same = |place: usize| {
            let known = texts[place];
            // The low half has the length and the first bytes.
            match is_long {
                true => known as u64 == view as u64 && long(known, buffers) == text.as_bytes(),
                false => known == view,
            }
        };
        if let Some(place) = table.find(hash, is_same) {
            return Ok(place);
        }
        let place = texts.len();
        if place >= TEXTS_MAX {
            return Err(Overflow);
        }
        texts.push(if is_long { kept(text, view, buffers) } else { view });
        table.insert(hash, place);
        Ok(place)
    }
}

/// Returns the first four bytes of a string as a number with the same order.
#[inline]
pub(super) fn prefix(view: u128) -> u32 {
    ((view >> 32) as u32).swap_bytes()
}

/// Returns the buffer of a long string and its range in the buffer.
#[inline]
fn lies_at(view: u128) -> (usize, Range<usize>) {
    let from = (view >> OFFSET) as usize;
    ((view >> BUFFER) as u32 as usize, from..from + view as u32 as usize)
}

/// Returns the bytes of a long string.
#[inline]
fn long(view: u128, buffers: &[String]) -> &[u8] {
    let (buffer, range) = lies_at(view);
    &buffers[buffer].as_bytes()[range]
}

/// Stores a long string and returns its view.
fn kept(text: &str, view: u128, buffers: &mut Vec<String>) -> u128 {
    if buffers.last().is_none_or(|last| last.len() + text.len() > last.capacity()) {
        let bytes = buffers.last().map_or(BUFFER_BYTES.0, |last| (2 * last.capacity()).min(BUFFER_BYTES.1));
        buffers.push(String::with_capacity(bytes.max(text.len())));
    }
    let buffer = buffers.len() - 1;
    let from = buffers[buffer].len();
    buffers[buffer].push_str(text);
    u128::from(view as u64) | (buffer as u128) << BUFFER | (from as u128) << OFFSET
}

impl TextNumbers {
    pub fn new(texts: Arc<Texts>) -> TextNumbers {
        let cache = vec![[(0, u32::MAX, 0); 2]; 1 << CACHE_BITS];
        TextNumbers {
            texts,
            cache,
            buffers: Vec::new(),
            generation: 0,
            missed: vec![Vec::new(); PARTS],
            known: Vec::new(),
            used: Vec::new(),
        }
    }

    /// Calls `put` with each row and its code, in any order.
    pub fn number(&mut self, column: &StringViewArray, mut put: impl FnMut(usize, u32)) -> Result<(), Overflow> {
        self.note_buffers(column);
        let has_nulls = column.null_count() > 0;
        for (row, view) in column.views().iter().enumerate() {
            if has_nulls && column.is_null(row) {
                put(row, 0);
                continue;
            }
            let generation = self.generation_of(*view);
            let [first, second] = self.cache[cached_at(*view)];
            if first.0 == *view && first.1 == generation {
                put(row, first.2);
            } else if second.0 == *view && second.1 == generation {
                put(row, second.2);
            } else {
                let hash = self.texts.hasher.hash_one(column.value(row).as_bytes());
                self.missed[part_of(hash)].push((row as u32, hash));
            }
        }
        let TextNumbers { texts, cache, generation, missed, .. } = self;
        texts.look_up(missed, column, |row, code| {
            let view = column.views()[row];
            let cached = &mut cache[cached_at(view)];
            *cached = [(view, generation_of(*generation, view), code), cached[0]];
            put(row, code);
        })
    }

    /// Assigns codes like [`TextNumbers::number`] to dictionary-encoded rows: each used string is looked up once.
    pub fn number_shared(&mut self, column: &Shared, mut put: impl FnMut(usize, u32)) -> Result<(), Overflow> {
        let (places, shared) = (column.keys(), column.values().as_string_view_opt().ok_or(Overflow)?);
        let TextNumbers { texts, missed, known, used, .. } = self;
        let has_nulls = places.null_count() > 0;
        let rows = || places.values().iter().enumerate().filter(|(row, _)| !has_nulls || places.is_valid(*row));
        let mut ask = |place: u32| {
            let hash = texts.hasher.hash_one(shared.value(place as usize).as_bytes());
            missed[part_of(hash)].push((place, hash));
        };
        // In storage order, for sequential memory access.
        let are_few = SHARED_A_ROW * places.len() < shared.len();
        if are_few {
            known.resize(known.len().max(shared.len()), 0);
            for (_, place) in rows() {
                if std::mem::replace(&mut known[*place as usize], ASKED) == 0 {
                    used.push(*place);
                }
            }
            used.sort_unstable();
            for (at, place) in used.iter().enumerate() {
                if let Some(ahead) = used.get(at + TEXTS_AHEAD) {
                    prefetch_slice(shared.value(*ahead as usize).as_bytes());
                }
                ask(*place);
            }
        } else {
            known.clear();
            known.resize(shared.len(), 0);
            rows().for_each(|(_, place)| known[*place as usize] = ASKED);
            (0..shared.len() as u32).filter(|place| known[*place as usize] == ASKED).for_each(ask);
        }
        let done = texts.look_up(missed, shared, |place, code| known[place] = code);
        if done.is_ok() {
            rows().for_each(|(row, place)| put(row, known[*place as usize]));
        }
        if are_few {
            used.drain(..).for_each(|place| known[place as usize] = 0);
        } else {
            known.clear();
        }
        done
    }

    /// Starts a new generation if the buffers differ from those of the previous batch.
    fn note_buffers(&mut self, column: &StringViewArray) {
        let is_same = |(a, b): (&Buffer, &Buffer)| a.as_ptr() == b.as_ptr() && a.len() == b.len();
        let count = self.buffers.len();
        if count != column.data_buffers().len() || !self.buffers.iter().zip(column.data_buffers()).all(is_same) {
            // The buffers are kept alive, so that no other buffer gets their address.
            self.buffers = column.data_buffers().to_vec();
            self.generation = self.generation.wrapping_add(1) % (u32::MAX - 1);
        }
    }

    #[inline]
    fn generation_of(&self, view: u128) -> u32 {
        generation_of(self.generation, view)
    }
}

/// Returns the code of a string of a part.
#[inline]
fn code_of(place: usize, part: usize) -> u32 {
    (place << PART_BITS | part) as u32 + 1
}

/// Returns the part of a hash. The tables use the other bits.
#[inline]
fn part_of(hash: u64) -> usize {
    (hash >> 32) as usize % PARTS
}

/// Returns the generation to compare; 0 for short strings, whose view is their content.
#[inline]
fn generation_of(generation: u32, view: u128) -> u32 {
    if view as u32 <= INLINE_BYTES { 0 } else { generation + 1 }
}

#[inline]
fn cached_at(view: u128) -> usize {
    let folded = (view as u64) ^ ((view >> 64) as u64).rotate_left(32);
    (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - CACHE_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_whatever_their_hashes() {
        let mut random = fastrand::Rng::with_seed(8);
        let hashes: [Box<dyn FnMut(u64) -> u64>; 4] = [
            Box::new(|_| u64::from(u32::MAX)),
            Box::new(|n| (n << 32) | (n % 3)),
            Box::new(|n| u64::from(u32::MAX) - n / 5),
            Box::new(move |_| random.u64(..)),
        ];
        for mut hash_of in hashes {
            let (mut places, mut hashes) = (Places::default(), Vec::new());
            for place in 0..500 {
                let hash = hash_of(place as u64);
                assert_eq!(places.find(hash, |known| known == place), None);
                places.insert(hash, place);
                hashes.push(hash);
            }
            for (place, hash) in hashes.into_iter().enumerate() {
                assert_eq!(places.find(hash, |known| known == place), Some(place));
                assert_eq!(places.find(hash, |_| false), None);
            }
        }
    }

    /// Each string has one code for every ratio of rows and strings, and for every preceding batch.
    #[test]
    fn texts_that_rows_share_have_the_numbers_that_they_have_alone() {
        let text =
            |n: u32| if n.is_multiple_of(2) { format!("t{n}") } else { format!("a text longer than a view, {n}") };
        let shared: Arc<StringViewArray> = Arc::new((0..1000).map(|n| Some(text(n))).collect());
        let texts = Arc::new(Texts::default());
        let (mut of_shared, mut alone) = (TextNumbers::new(texts.clone()), TextNumbers::new(texts));
        for rows in [3, 900, 40, 5, 70] {
            let places: Vec<Option<u32>> =
                (0..rows).map(|row| (row % 5 != 2).then_some((row * 7919 + rows) % 1000)).collect();
            let column: StringViewArray = places.iter().map(|place| place.map(text)).collect();
            let keys = arrow::array::UInt32Array::from(places);
            let dictionary = DictionaryArray::new(keys, shared.clone());
            let (mut found, mut expected) = (vec![0; rows as usize], vec![0; rows as usize]);
            of_shared.number_shared(&dictionary, |row, number| found[row] = number).unwrap();
            alone.number(&column, |row, number| expected[row] = number).unwrap();
            assert_eq!(found, expected, "{rows} rows");
            assert!(found.iter().all(|number| *number != ASKED));
        }
    }
}
