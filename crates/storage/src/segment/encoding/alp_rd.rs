//! Encodes floating point of full precision: codes of the frequent left parts above the right parts, bit-packed. See
//! [`tidalite_kernels::alp_rd`].
//!
//! ```text
//! right bits  u8
//! lefts       u8: how many there are: 1, 2, 4 or 8
//! left parts  u16 each, 8 of them, those not used 0
//! frames      of the words, which all have the reference 0; an exception is the bits of its value
//! ```
//!
//! Words, references and exceptions have the width of the values.

use super::choice::{Effort, Payload, Scheme, Source};
use super::frames::{Framed, Frames, FramesWriter};
use super::interval::{Interval, Wanted};
use super::mask::of_vector;
use super::picked::Picked;
use super::value::Fixed;
use super::{EncodedBlock, nulls};
use crate::BlockData;
use crate::segment::buffer::share;
use crate::segment::format::Encoding;
use tidalite_kernels::alp_rd::{LEFTS_MAX, Split};
use tidalite_kernels::bitpack::unpack_one;
use tidalite_kernels::{Unpacker, f64_in_range};
use tidalite_types::VECTOR_ROWS;
use tidalite_types::column_type::Physical;

pub(super) struct AlpRd;

/// Number of values of each sampled vector that are used to choose the split.
const SAMPLE_ROWS: usize = 64;
/// Size in bytes of the header before the frames.
const HEAD_BYTES: usize = 2 + 2 * LEFTS_MAX;

impl<T: Fixed<Bits = u64>> Scheme<T> for AlpRd {
    fn estimate(&self, source: &Source<'_, T>) -> Option<usize> {
        let (_, bits) = choose(source)?;
        Some((source.rows() as f64 * bits / 8.0) as usize)
    }

    fn encode<'a>(&self, source: &Source<'a, T>) -> Option<Payload<'a>> {
        let (split, _) = choose(source)?;
        let mut writer = FramesWriter::new(source.plain_bytes());
        let (mut words, mut misses) = (Vec::with_capacity(VECTOR_ROWS), Vec::new());
        for vector in source.values.chunks(VECTOR_ROWS) {
            words.clear();
            misses.clear();
            split.split(vector.iter().map(|v| v.bits()), &mut words, &mut misses);
            let exceptions = misses.iter().map(|row| (usize::from(*row), vector[usize::from(*row)].bits()));
            writer.push_with(&words, (0, u32::from(split.word_bits())), exceptions, size_of::<T>());
        }
        Some(Payload::new(Encoding::AlpRd, 0, writer.finish(head(&split))))
    }

    fn weight(&self, _: Effort) -> usize {
        // Reading is slower than for plain values, and comparisons require decoding: chosen if at least about a tenth
        // smaller.
        104
    }
}

fn choose<T: Fixed<Bits = u64>>(source: &Source<'_, T>) -> Option<(Split, f64)> {
    let spread = |vector: &&[T]| {
        let step = vector.len().div_ceil(SAMPLE_ROWS).max(1);
        vector.iter().step_by(step).map(|v| v.bits()).collect::<Vec<u64>>()
    };
    Split::choose(source.sample().iter().flat_map(spread).collect(), 8 * size_of::<T>() as u8)
}

fn head(split: &Split) -> Vec<u8> {
    let mut head = vec![split.right_bits, split.lefts.len() as u8];
    head.extend(split.lefts.iter().flat_map(|left| left.to_le_bytes()));
    head.resize(HEAD_BYTES, 0);
    head
}

struct Words<'a> {
    split: Split,
    frames: Frames<'a>,
}

impl<'a> Words<'a> {
    fn parse(payload: &'a [u8], block: &EncodedBlock) -> Result<Words<'a>, String> {
        let width = match block.physical {
            Physical::F32 => 4,
            Physical::F64 => 8,
            physical => return Err(format!("split values of {physical:?}")),
        };
        let head = payload.get(..HEAD_BYTES).ok_or("its left parts are cut off")?;
        let (right_bits, count) = (head[0], usize::from(head[1]));
        if !matches!(count, 1 | 2 | 4 | 8) || usize::from(right_bits) >= 8 * width {
            return Err(format!("{count} left parts above {right_bits} bits"));
        }
        let lefts = head[2..2 + 2 * count].as_chunks().0.iter().map(|left| u16::from_le_bytes(*left)).collect();
        Ok(Words { split: Split { right_bits, lefts }, frames: Frames::parse(payload, HEAD_BYTES, block.rows, width)? })
    }

    /// Appends the rows of vector `i`. References are 0; other references in a damaged file are ignored.
    fn vector<T: Bits>(&self, i: usize, unpacker: &mut Unpacker, words: &mut Vec<u64>, out: &mut Vec<T>) {
        let frame = self.frames.vector::<T>(i);
        words.clear();
        unpacker.unpack(frame.lines, frame.width, 0, frame.rows, words);
        self.split.join(words);
        let start = out.len();
        T::append(words, out);
        for (row, value) in frame.exceptions() {
            out[start + row] = value;
        }
    }

    fn row<T: Bits>(&self, i: usize, row: usize) -> T {
        let frame = self.frames.vector::<T>(i);
        let packed = || {
            let mut word = [unpack_one(frame.lines, frame.width, row)];
            self.split.join(&mut word);
            T::of(word[0])
        };
        frame.exception(row).unwrap_or_else(packed)
    }

    fn values<T: Bits>(&self, validity: &[u8], rows: usize) -> Vec<T> {
        let (mut unpacker, mut words) = (Unpacker::new(), Vec::with_capacity(VECTOR_ROWS));
        let mut out = Vec::with_capacity(rows);
        (0..self.frames.vector_count()).for_each(|i| self.vector(i, &mut unpacker, &mut words, &mut out));
        nulls::zero_nulls(&mut out, validity);
        out
    }

    fn some<T: Bits>(&self, picked: &Picked<'_>) -> Vec<T> {
        let (mut unpacker, mut words) = (Unpacker::new(), Vec::with_capacity(VECTOR_ROWS));
        picked.by_row(
            |i| self.frames.packed(i),
            |i, row| self.row(i, row),
            |i, out| self.vector(i, &mut unpacker, &mut words, out),
        )
    }
}

/// The bits of a value.
trait Bits: Framed {
    fn of(word: u64) -> Self;
    fn append(words: &[u64], out: &mut Vec<Self>);
}

impl Bits for u32 {
    fn of(word: u64) -> u32 {
        word as u32
    }

    fn append(words: &[u64], out: &mut Vec<u32>) {
        out.extend(words.iter().map(|word| *word as u32));
    }
}

impl Bits for u64 {
    fn of(word: u64) -> u64 {
        word
    }

    fn append(words: &[u64], out: &mut Vec<u64>) {
        out.extend_from_slice(words);
    }
}

pub(super) fn check(payload: &[u8], block: &EncodedBlock) -> Result<(), String> {
    Words::parse(payload, block)?.frames.check()
}

pub(super) fn decode(payload: &[u8], validity: &[u8], block: &EncodedBlock) -> Result<BlockData, String> {
    let words = Words::parse(payload, block)?;
    Ok(BlockData::Fixed(match block.physical {
        Physical::F32 => share(words.values::<u32>(validity, block.rows)),
        _ => share(words.values::<u64>(validity, block.rows)),
    }))
}

pub(super) fn take(payload: &[u8], block: &EncodedBlock, picked: &Picked<'_>) -> Result<BlockData, String> {
    let words = Words::parse(payload, block)?;
    Ok(BlockData::Fixed(match block.physical {
        Physical::F32 => share(words.some::<u32>(picked)),
        _ => share(words.some::<u64>(picked)),
    }))
}

/// Compares the vectors of interest after decoding them one at a time: the parts have no order.
pub(super) fn rows_in(payload: &[u8], block: &EncodedBlock, wanted: &Wanted<'_>, mask: &mut [u64]) -> Option<()> {
    let parts = Words::parse(payload, block).ok()?;
    let Interval::Floats(lo, hi) = wanted.interval else { return None };
    let (mut unpacker, mut words, mut values) = (Unpacker::new(), Vec::with_capacity(VECTOR_ROWS), Vec::new());
    for i in wanted.vectors() {
        let mask = of_vector(mask, i);
        values.clear();
        if block.physical == Physical::F32 {
            let mut bits = Vec::with_capacity(VECTOR_ROWS);
            parts.vector::<u32>(i, &mut unpacker, &mut words, &mut bits);
            values.extend(bits.into_iter().map(|bits| f64::from(f32::from_bits(bits))));
        } else {
            let mut bits = Vec::with_capacity(VECTOR_ROWS);
            parts.vector::<u64>(i, &mut unpacker, &mut words, &mut bits);
            values.extend(bits.into_iter().map(f64::from_bits));
        }
        mask.copy_from_slice(&f64_in_range(&values, lo, hi)[..mask.len()]);
    }
    Some(())
}
