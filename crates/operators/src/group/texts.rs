//! Texts as numbers, from 1, over all threads of a query; 0 is NULL.
//!
//! Rows that share texts, as those of a block's dictionary do, have each text looked up once. Else a thread looks a text
//! up in a small cache by its view, which says a short text wholly and a long one within the buffers of its array. What is
//! not there is looked up in tables that all threads share, each for a part of the texts by their hash: a batch's rows are
//! dealt out to the parts first, so that a part is locked once a batch and its table is near the processor while it is
//! asked. Where texts will be looked for is asked of memory ahead.

use super::keys::Overflow;
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

/// Bits of a number.
pub(super) const TEXT_BITS: u32 = 31;
const PART_BITS: u32 = 6;
const PARTS: usize = 1 << PART_BITS;
/// Of one part.
const TEXTS_MAX: usize = 1 << (TEXT_BITS - PART_BITS - 1);
/// Of the first buffer of a part, and of the largest: each is twice as large as the one before, and none grows.
const BUFFER_BYTES: (usize, usize) = (4 << 10, 4 << 20);
/// Of a buffer of a batch that goes out.
const BLOCK_BYTES_MAX: u64 = 16 << 20;
/// Of a part's table; a power of two.
const SLOTS_MIN: usize = 16;
/// Where rows share this many times as many texts as they are, only those that they have are looked at.
const SHARED_A_ROW: usize = 16;
/// So many texts ahead one is asked of memory, before it is hashed.
const TEXTS_AHEAD: usize = 8;
/// So many texts ahead the slot is asked of memory, and so many the view of the text in it.
const AHEAD: (usize, usize) = (16, 8);
/// Pairs of places, of which a view has one.
const CACHE_BITS: u32 = 12;
const OFFSET: u32 = 96;
const BUFFER: u32 = 64;

/// The texts of one column of keys.
#[derive(Debug)]
pub(super) struct Texts {
    parts: Vec<Mutex<Part>>,
    hasher: DefaultHashBuilder,
    bytes: AtomicUsize,
    /// All of them, once there come no more.
    all: OnceLock<Sealed>,
}

#[derive(Debug, Default)]
struct Part {
    table: Places,
    /// Their views.
    texts: Vec<u128>,
    /// What long ones point into. Of text, so that nobody has to ask again whether it is.
    buffers: Vec<String>,
}

/// The texts of all parts, and what long ones point into.
#[derive(Debug)]
pub(super) struct Sealed(Vec<(Vec<u128>, Vec<String>)>);

/// Places of texts by the lower half of their hash; the table is at most half full.
///
/// A slot has that half above the place from 1, so that most texts that are others are told without looking at them, and
/// the table grows without, in its order.
#[derive(Debug, Default)]
struct Places {
    slots: Vec<u64>,
    count: usize,
}

impl Places {
    /// Where a hash is looked for first: the table is in the order of hashes.
    fn home(&self, hash: u64) -> usize {
        ((u64::from(hash as u32) * self.slots.len() as u64) >> 32) as usize
    }

    /// The place that `is_same` accepts.
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

    /// Adds one that is not there.
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

    /// The text that is first compared with one of such a hash, if any may be it.
    fn candidate(&self, hash: u64) -> Option<usize> {
        let slot = *self.slots.get(self.home(hash))?;
        (slot >> 32 == u64::from(hash as u32) && slot != 0).then(|| slot as u32 as usize - 1)
    }
}

/// What one thread knows of them.
pub(super) struct TextNumbers {
    texts: Arc<Texts>,
    /// A view, what tells its buffers from others, and the number.
    cache: Vec<[(u128, u32, u32); 2]>,
    /// Whose buffers long views of this generation point into.
    buffers: Vec<Buffer>,
    generation: u32,
    /// Rows whose text is to be looked up, and its hash, by part.
    missed: Vec<Vec<(u32, u64)>>,
    /// Numbers of texts that rows of a batch share; between batches all 0.
    known: Vec<u32>,
    /// Which of them rows of the batch have, where these are few.
    used: Vec<u32>,
}

/// Rows that share texts.
pub(super) type Shared = DictionaryArray<UInt32Type>;

/// Stands for a number until it is known.
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
    /// Memory that they take.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn part(&self, part: usize) -> MutexGuard<'_, Part> {
        self.parts[part].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All numbers that were given, by part.
    pub fn numbers(&self) -> impl Iterator<Item = Vec<u64>> {
        let of_part = |part| (0..self.part(part).texts.len()).map(|place| code_of(place, part).into()).collect();
        (0..PARTS).map(of_part)
    }

    /// All of them, when all rows have their numbers.
    pub fn sealed(&self) -> &Sealed {
        let take = |part| {
            let Part { texts, buffers, .. } = std::mem::take(&mut *self.part(part));
            (texts, buffers)
        };
        self.all.get_or_init(|| Sealed((0..PARTS).map(take).collect()))
    }

    /// The texts of numbers, when all rows have theirs.
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

    /// Gives the numbers of what was missed: places in `column` and hashes, by part.
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

    /// Texts by the bytes that they begin with.
    pub fn compare(&self, a: usize, b: usize) -> std::cmp::Ordering {
        let (x, y) = (self.view(a), self.view(b));
        let (own_x, own_y) = (x.to_le_bytes(), y.to_le_bytes());
        self.bytes(a, &own_x).cmp(self.bytes(b, &own_y))
    }

    /// `view` is that of the text.
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

    /// The place of a text, which is added if it is new.
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

/// The first bytes of a text, as a number in their order.
#[inline]
pub(super) fn prefix(view: u128) -> u32 {
    ((view >> 32) as u32).swap_bytes()
}

/// In which buffer a long text lies, and where in it.
#[inline]
fn lies_at(view: u128) -> (usize, Range<usize>) {
    let from = (view >> OFFSET) as usize;
    ((view >> BUFFER) as u32 as usize, from..from + view as u32 as usize)
}

/// The bytes of a long text.
#[inline]
fn long(view: u128, buffers: &[String]) -> &[u8] {
    let (buffer, range) = lies_at(view);
    &buffers[buffer].as_bytes()[range]
}

/// Keeps a long text; gives the view of it.
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

    /// Gives the number of each row, in no order.
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

    /// As [`TextNumbers::number`], of rows that share texts: each text that a row has is looked up once.
    pub fn number_shared(&mut self, column: &Shared, mut put: impl FnMut(usize, u32)) -> Result<(), Overflow> {
        let (places, shared) = (column.keys(), column.values().as_string_view_opt().ok_or(Overflow)?);
        let TextNumbers { texts, missed, known, used, .. } = self;
        let has_nulls = places.null_count() > 0;
        let rows = || places.values().iter().enumerate().filter(|(row, _)| !has_nulls || places.is_valid(*row));
        let mut ask = |place: u32| {
            let hash = texts.hasher.hash_one(shared.value(place as usize).as_bytes());
            missed[part_of(hash)].push((place, hash));
        };
        // In the order in which they lie, so that memory delivers them without being asked for each.
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

    /// Tells buffers from those before.
    fn note_buffers(&mut self, column: &StringViewArray) {
        let is_same = |(a, b): (&Buffer, &Buffer)| a.as_ptr() == b.as_ptr() && a.len() == b.len();
        let count = self.buffers.len();
        if count != column.data_buffers().len() || !self.buffers.iter().zip(column.data_buffers()).all(is_same) {
            // Kept, so that nothing else comes to lie where they are.
            self.buffers = column.data_buffers().to_vec();
            self.generation = self.generation.wrapping_add(1) % (u32::MAX - 1);
        }
    }

    #[inline]
    fn generation_of(&self, view: u128) -> u32 {
        generation_of(self.generation, view)
    }
}

/// Of a text of a part.
#[inline]
fn code_of(place: usize, part: usize) -> u32 {
    (place << PART_BITS | part) as u32 + 1
}

/// Of a text's hash, whose other bits tables use.
#[inline]
fn part_of(hash: u64) -> usize {
    (hash >> 32) as usize % PARTS
}

/// A short text is the same wherever it came from.
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

    /// Whether rows share few texts or many of a batch, and whatever the batch before was, each text has one number.
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
