//! Packs the integers of a vector as distances from a reference, `width` bits each.
//!
//! The bits are stored in lines of 1,024 bits. A line is divided into words of 16, 32 or 64 bits (see [`word_bits`]),
//! and word `l` of every line belongs to lane `l`. Row `r` is row `r / lanes` of lane `r % lanes`. The distances of a
//! lane are stored consecutively, from the least significant bit of its word in the first line on. A vector of 1,024
//! rows is therefore exactly `width` lines, adjacent rows are in adjacent words, and every step is the same for all
//! words of a line, as vector instructions require. A vector with fewer rows ends with the last line that contains a
//! row.
//!
//! The loops are written once and compiled for AVX2 and for the baseline; [`unpack_plain`] is the reference
//! implementation.

use crate::{Int, dispatch, prefetch};
use std::cell::Cell;
use std::mem::MaybeUninit;

/// Number of rows of a vector.
pub const VECTOR: usize = 1024;
pub const LINE_BYTES: usize = VECTOR / 8;
/// 1,024 bits: little-endian words of [`word_bits`] bits.
pub type Line = [u8; LINE_BYTES];

/// Returns the size in bits of the words into which distances of `width` bits are packed.
#[must_use]
pub fn word_bits(width: u32) -> usize {
    match width {
        0..=16 => 16,
        17..=32 => 32,
        _ => 64,
    }
}

/// Returns the number of lines of `rows` distances of `width` bits.
#[must_use]
pub fn line_count(width: u32, rows: usize) -> usize {
    let bits = word_bits(width);
    (rows.div_ceil(VECTOR / bits) * width as usize).div_ceil(bits)
}

/// Returns a mask of the lowest `width` bits.
#[must_use]
pub fn width_mask(width: u32) -> u64 {
    if width == 0 { 0 } else { u64::MAX >> (64 - width) }
}

/// Scratch memory for the unpacked words of a vector, reused for all vectors.
pub(crate) struct Words {
    pub u16s: [u16; VECTOR],
    pub u32s: [u32; VECTOR],
    pub u64s: [u64; VECTOR],
}

impl Words {
    fn boxed() -> Box<Words> {
        Box::new(Words { u16s: [0; VECTOR], u32s: [0; VECTOR], u64s: [0; VECTOR] })
    }
}

macro_rules! words {
    ($unpack:ident, $pack:ident, $word:ty) => {
        /// Unpacks the rows of all lanes in `lines`; `out` is unchanged after the last row.
        #[inline(always)]
        pub(crate) fn $unpack(lines: &[Line], width: u32, rows: usize, out: &mut [$word; VECTOR]) {
            const BITS: usize = <$word>::BITS as usize;
            const BYTES: usize = BITS / 8;
            const LANES: usize = VECTOR / BITS;
            let mask = width_mask(width) as $word;
            let lane_rows = out.as_chunks_mut::<LANES>().0;
            for (row, out) in lane_rows[..rows.div_ceil(LANES)].iter_mut().enumerate() {
                let bit = row * width as usize;
                let (at, shift) = (bit / BITS, bit % BITS);
                let low = lines[at].as_chunks::<BYTES>().0;
                if shift + width as usize <= BITS {
                    for lane in 0..LANES {
                        out[lane] = <$word>::from_le_bytes(low[lane]) >> shift & mask;
                    }
                } else {
                    let high = lines[at + 1].as_chunks::<BYTES>().0;
                    for lane in 0..LANES {
                        let word = <$word>::from_le_bytes(low[lane]) >> shift;
                        out[lane] = (word | <$word>::from_le_bytes(high[lane]) << (BITS - shift)) & mask;
                    }
                }
            }
        }

        /// Adds the words of `rows` rows to `lines`, which must be zero.
        #[inline(always)]
        fn $pack<T: Int>(values: &[T], reference: T, width: u32, lines: &mut [Line]) {
            const BITS: usize = <$word>::BITS as usize;
            const BYTES: usize = BITS / 8;
            const LANES: usize = VECTOR / BITS;
            let mask = width_mask(width) as $word;
            for (row, values) in values.chunks(LANES).enumerate() {
                let mut words = [0; LANES];
                for (word, value) in words.iter_mut().zip(values) {
                    *word = value.distance(reference) as $word & mask;
                }
                let bit = row * width as usize;
                let (at, shift) = (bit / BITS, bit % BITS);
                let low = lines[at].as_chunks_mut::<BYTES>().0;
                for lane in 0..LANES {
                    low[lane] = (<$word>::from_le_bytes(low[lane]) | words[lane] << shift).to_le_bytes();
                }
                if shift + width as usize > BITS {
                    let high = lines[at + 1].as_chunks_mut::<BYTES>().0;
                    for lane in 0..LANES {
                        high[lane] = (words[lane] >> (BITS - shift)).to_le_bytes();
                    }
                }
            }
        }
    };
}

words!(unpack_u16, pack_u16, u16);
words!(unpack_u32, pack_u32, u32);
words!(unpack_u64, pack_u64, u64);

dispatch! {
    fn pack_lines<T: Int>(values: &[T], reference: T, width: u32, lines: &mut [Line]) {
        match width {
            0 => {}
            1..=16 => pack_u16(values, reference, width, lines),
            17..=32 => pack_u32(values, reference, width, lines),
            _ => pack_u64(values, reference, width, lines),
        }
    }
}

/// Appends the lines of at most [`VECTOR`] values. Distances are truncated to their lower `width` bits.
///
/// # Panics
/// Panics with more values, or a width above 64.
pub fn pack<T: Int>(values: &[T], reference: T, width: u32, out: &mut Vec<u8>) {
    assert!(values.len() <= VECTOR && width <= 64, "{} values of {width} bits", values.len());
    let start = out.len();
    out.resize(start + line_count(width, values.len()) * LINE_BYTES, 0);
    pack_lines(values, reference, width, out[start..].as_chunks_mut().0);
}

/// Unpacks vectors and appends them to a column.
#[derive(Default)]
pub struct Unpacker {
    /// Allocated by the first vector.
    words: Option<Box<Words>>,
}

thread_local! {
    /// Scratch memory of a dropped unpacker. Blocks are often so small that clearing new memory would take longer than
    /// unpacking.
    static SPARE: Cell<Option<Box<Words>>> = const { Cell::new(None) };
}

impl Unpacker {
    #[must_use]
    pub fn new() -> Unpacker {
        Unpacker::default()
    }

    /// Appends `rows` values: `reference` plus the distances in `lines`, with wrapping arithmetic of the type.
    ///
    /// # Panics
    /// Panics with more than [`VECTOR`] rows, a width above 64, or fewer than [`line_count`] lines.
    pub fn unpack<T: Int>(&mut self, lines: &[Line], width: u32, reference: T, rows: usize, out: &mut Vec<T>) {
        assert!(rows <= VECTOR && width <= 64 && lines.len() >= line_count(width, rows), "{rows} rows of {width} bits");
        out.reserve(rows);
        unpack_lines(self.words(), lines, width, reference, &mut out.spare_capacity_mut()[..rows]);
        // SAFETY: `unpack_lines` has written each of the `rows` elements after the current end.
        unsafe { out.set_len(out.len() + rows) }
    }

    pub(crate) fn words(&mut self) -> &mut Words {
        let spare = || SPARE.try_with(Cell::take).ok().flatten();
        self.words.get_or_insert_with(|| spare().unwrap_or_else(Words::boxed))
    }
}

impl Drop for Unpacker {
    fn drop(&mut self) {
        if let Some(words) = self.words.take() {
            // A thread that ends does not keep its words.
            let _ = SPARE.try_with(|spare| spare.set(Some(words)));
        }
    }
}

dispatch! {
    fn unpack_lines<T: Int>(
        words: &mut Words,
        lines: &[Line],
        width: u32,
        reference: T,
        out: &mut [MaybeUninit<T>],
    ) {
        let rows = out.len();
        match width {
            0 => out.iter_mut().for_each(|out| _ = out.write(reference)),
            1..=16 => {
                unpack_u16(lines, width, rows, &mut words.u16s);
                for (out, word) in out.iter_mut().zip(&words.u16s) {
                    out.write(reference.plus(u64::from(*word)));
                }
            }
            17..=32 => {
                unpack_u32(lines, width, rows, &mut words.u32s);
                for (out, word) in out.iter_mut().zip(&words.u32s) {
                    out.write(reference.plus(u64::from(*word)));
                }
            }
            _ => {
                unpack_u64(lines, width, rows, &mut words.u64s);
                for (out, word) in out.iter_mut().zip(&words.u64s) {
                    out.write(reference.plus(*word));
                }
            }
        }
    }
}

dispatch! {
    /// Unpacks the distances in `lines` into the first elements of `out`. Elements after the rows are unspecified.
    ///
    /// # Panics
    /// Panics with more than [`VECTOR`] rows, a width above 32, or fewer than [`line_count`] lines.
    pub fn unpack_distances(lines: &[Line], width: u32, rows: usize, out: &mut [u32; VECTOR]) {
        assert!(rows <= VECTOR && width <= 32 && lines.len() >= line_count(width, rows), "{rows} rows of {width} bits");
        match width {
            0 => out.fill(0),
            1..=16 => {
                let mut words = [0; VECTOR];
                unpack_u16(lines, width, rows, &mut words);
                for (out, word) in out.iter_mut().zip(&words) {
                    *out = u32::from(*word);
                }
            }
            _ => unpack_u32(lines, width, rows, out),
        }
    }
}

dispatch! {
    /// Unpacks distances of at most 16 bits into `u16`, like [`unpack_distances`].
    ///
    /// # Panics
    /// Panics with more than [`VECTOR`] rows, a width above 16, or fewer than [`line_count`] lines.
    pub fn unpack_narrow(lines: &[Line], width: u32, rows: usize, out: &mut [u16; VECTOR]) {
        assert!(rows <= VECTOR && width <= 16 && lines.len() >= line_count(width, rows), "{rows} rows of {width} bits");
        if width == 0 { out.fill(0) } else { unpack_u16(lines, width, rows, out) }
    }
}

/// Returns the distance of one row. Faster than unpacking the vector if few rows are needed.
///
/// # Panics
/// Panics if the lines do not contain the row, or the width is above 64.
#[must_use]
pub fn unpack_one(lines: &[Line], width: u32, row: usize) -> u64 {
    if width == 0 {
        return 0;
    }
    let (bits, at, bit) = place(width, row);
    let word = |line: &Line| {
        let from = &line[at..];
        match bits {
            16 => from.first_chunk().map_or(0, |word| u64::from(u16::from_le_bytes(*word))),
            32 => from.first_chunk().map_or(0, |word| u64::from(u32::from_le_bytes(*word))),
            _ => from.first_chunk().map_or(0, |word| u64::from_le_bytes(*word)),
        }
    };
    let (line, shift) = (bit / bits, bit % bits);
    let low = word(&lines[line]) >> shift;
    let is_split = shift + width as usize > bits;
    let all = if is_split { low | word(&lines[line + 1]) << (bits - shift) } else { low };
    all & width_mask(width)
}

/// Prefetches the memory that [`unpack_one`] will read.
#[inline]
pub fn prefetch_one(lines: &[Line], width: u32, row: usize) {
    let (bits, at, bit) = place(width, row);
    let (first, last) = (bit / bits, (bit + width.max(1) as usize - 1) / bits);
    for line in lines.iter().skip(first).take(last + 1 - first) {
        prefetch(line, at);
    }
}

/// Returns the bits of a word, the byte offset of the row's word in its line, and the row's first bit in its lane.
#[inline(always)]
fn place(width: u32, row: usize) -> (usize, usize, usize) {
    let bits = word_bits(width);
    let lanes = VECTOR / bits;
    (bits, row % lanes * bits / 8, row / lanes * width as usize)
}

/// Returns the distance of one row, bit by bit. Reference implementation of packing.
#[must_use]
pub fn unpack_plain(lines: &[Line], width: u32, row: usize) -> u64 {
    let bits = word_bits(width);
    let lanes = VECTOR / bits;
    let (lane, first) = (row % lanes, row / lanes * width as usize);
    (0..width as usize).fold(0, |distance, i| {
        let (line, bit) = ((first + i) / bits, lane * bits + (first + i) % bits);
        distance | u64::from(lines[line][bit / 8] >> (bit % 8) & 1) << i
    })
}

#[cfg(test)]
mod tests;
