//! Encodes floating point that was written as short decimals: integers at one scale per vector, bit-packed. See
//! [`tidalite_kernels::alp`].
//!
//! ```text
//! scales  i8 a vector
//! frames  of the integers, i64; an exception is the bits of its value, u64
//! ```
//!
//! Exceptions are values that no integer of the scale reproduces bit for bit, and values that would need too many bits.
//! NULL rows are never exceptions.

use super::choice::{Effort, Payload, Scheme, Source};
use super::frames::{Frame, Frames, FramesWriter, plan};
use super::frames::{place, prefetch};
use super::interval::{Interval, Wanted};
use super::mask::{of_vector, put};
use super::picked::Picked;
use super::value::{Fixed, raw};
use super::{EncodedBlock, nulls};
use crate::BlockData;
use crate::segment::buffer::share;
use crate::segment::format::Encoding;
use tidalite_kernels::alp::{self, Decimal, MISS, SCALES};
use tidalite_kernels::{Unpacker, packed_in_range};
use tidalite_types::column_type::Physical;
use tidalite_types::{Bitmap, VECTOR_ROWS};

pub(super) struct Alp;

/// Number of values of a vector that are sampled to choose its scale.
const SAMPLE_ROWS: usize = 32;
/// Number of candidate scales per block.
const CANDIDATES_MAX: usize = 4;
/// Size of an exception in bits: position and bits of the value.
const EXCEPTION_BITS: usize = 80;
/// Size in bytes of stored integers and exceptions.
const VALUE_BYTES: usize = 8;

impl<T: Fixed<Bits = u64> + Decimal> Scheme<T> for Alp {
    fn estimate(&self, source: &Source<'_, T>) -> Option<usize> {
        let sample = source.sample();
        let scales = candidates(&sample)?;
        let mut writer = FramesWriter::new(source.plain_bytes() / 16);
        for vector in &sample {
            push(&mut writer, vector, best_scale(vector, &scales), |_| true);
        }
        let bytes = writer.finish(Vec::new()).len();
        Some(source.scale(&sample, bytes))
    }

    fn encode<'a>(&self, source: &Source<'a, T>) -> Option<Payload<'a>> {
        let candidates = candidates(&source.sample())?;
        let mut writer = FramesWriter::new(source.plain_bytes() / 2);
        let mut scales = Vec::with_capacity(source.rows().div_ceil(VECTOR_ROWS));
        for (i, vector) in source.values.chunks(VECTOR_ROWS).enumerate() {
            let scale = best_scale(vector, &candidates);
            push(&mut writer, vector, scale, |row| is_valid(source.validity, i * VECTOR_ROWS + row));
            scales.push(scale as u8);
        }
        Some(Payload::new(Encoding::Alp, 0, writer.finish(scales)))
    }

    fn weight(&self, _: Effort) -> usize {
        100
    }
}

fn is_valid(validity: Option<&Bitmap>, row: usize) -> bool {
    validity.is_none_or(|v| v.get(row))
}

fn push<T: Fixed<Bits = u64> + Decimal>(
    writer: &mut FramesWriter,
    values: &[T],
    scale: i8,
    is_valid: impl Fn(usize) -> bool,
) {
    let mut room = [0; VECTOR_ROWS];
    let ints = &mut room[..values.len()];
    let (lo, hi, misses) = alp::integers(values, scale, ints);
    let (lo, hi) = if misses == values.len() { (0, 0) } else { (lo, hi) };
    let mut is_miss = [false; VECTOR_ROWS];
    if misses > 0 {
        for (row, d) in ints.iter_mut().enumerate().filter(|(_, d)| **d == MISS) {
            *d = lo;
            is_miss[row] = is_valid(row);
        }
    }
    let plan = plan(ints, lo, hi);
    let is_exception = |row: &usize| is_miss[*row] || (ints[*row].wrapping_sub(lo) as u64) >> plan.width != 0;
    let has_exceptions = misses > 0 || plan.exceptions > 0;
    let rows = 0..if has_exceptions { ints.len() } else { 0 };
    let exceptions = rows.filter(is_exception).map(|row| (row, values[row].bits() as i64));
    writer.push_with(ints, (lo, plan.width), exceptions, VALUE_BYTES);
}

/// Returns evenly spread values of a vector.
fn spread<T: Copy>(vector: &[T]) -> impl Iterator<Item = T> {
    vector.iter().copied().step_by(vector.len().div_ceil(SAMPLE_ROWS).max(1))
}

/// Returns the best scales for the vectors of a sample; `None` if most values have no scale.
fn candidates<T: Decimal>(sample: &[&[T]]) -> Option<Vec<i8>> {
    let mut votes: Vec<(usize, i8)> = SCALES.map(|scale| (0, scale)).collect();
    let mut misses = 0;
    for vector in sample {
        let least: Vec<i8> = spread(vector).filter_map(|v| Some(alp::least_scale(v)?.0)).collect();
        let picked = spread(vector).count();
        misses += picked - least.len();
        // A value also has integers at greater scales as long as they fit; only scales that some value requires matter.
        let mut scales = least;
        scales.sort_unstable();
        scales.dedup();
        if let Some(best) = scales.iter().map(|s| (cost(vector, *s), *s)).min() {
            votes[usize::from((best.1 - SCALES.start()) as u8)].0 += 1;
        }
        // Values of full precision are detected early.
        if misses > SAMPLE_ROWS && misses * 2 > sample.len() * SAMPLE_ROWS {
            return None;
        }
    }
    votes.retain(|(count, _)| *count > 0);
    votes.sort_unstable_by(|a, b| b.cmp(a));
    votes.truncate(CANDIDATES_MAX);
    (!votes.is_empty()).then(|| votes.into_iter().map(|(_, scale)| scale).collect())
}

fn best_scale<T: Decimal>(vector: &[T], candidates: &[i8]) -> i8 {
    match candidates {
        [only] => *only,
        _ => candidates.iter().copied().min_by_key(|s| cost(vector, *s)).unwrap_or(0),
    }
}

/// Returns the bits of the vector's sampled values at `scale`.
fn cost<T: Decimal>(vector: &[T], scale: i8) -> usize {
    let (mut lo, mut hi, mut hits, mut misses) = (i64::MAX, i64::MIN, 0, 0);
    for d in spread(vector).map(|v| alp::integer(v, scale)) {
        if d == MISS {
            misses += 1;
        } else {
            (lo, hi, hits) = (lo.min(d), hi.max(d), hits + 1);
        }
    }
    let width = if hits == 0 { 0 } else { 64 - (hi - lo).leading_zeros() as usize };
    (hits + misses) * width + misses * EXCEPTION_BITS
}

/// An encoded block.
pub(super) struct Vectors<'a> {
    scales: &'a [u8],
    frames: Frames<'a>,
}

impl<'a> Vectors<'a> {
    pub fn parse(payload: &'a [u8], block: &EncodedBlock) -> Result<Vectors<'a>, String> {
        if !matches!(block.physical, Physical::F32 | Physical::F64) {
            return Err(format!("decimals of {:?}", block.physical));
        }
        let count = block.rows.div_ceil(VECTOR_ROWS);
        let scales = payload.get(..count).ok_or("the scales of its vectors are cut off")?;
        if let Some(scale) = scales.iter().find(|s| !SCALES.contains(&(**s as i8))) {
            return Err(format!("a scale of {}", *scale as i8));
        }
        Ok(Vectors { scales, frames: Frames::parse(payload, count, block.rows, VALUE_BYTES)? })
    }

    fn count(&self) -> usize {
        self.scales.len()
    }

    /// Returns the scale and the integers of vector `i`; exceptions are the bits of values.
    pub fn vector(&self, i: usize) -> (i8, Frame<'a, i64>) {
        (self.scales[i] as i8, self.frames.vector(i))
    }

    /// Appends the rows of vector `i`.
    pub fn append<T: Fixed + Decimal>(&self, i: usize, unpacker: &mut Unpacker, out: &mut Vec<T>) {
        let (scale, frame) = self.vector(i);
        let start = out.len();
        alp::unpack(unpacker, frame.lines, frame.width, (frame.reference, scale), frame.rows, out);
        for (row, bits) in frame.exceptions() {
            out[start + row] = raw(&bits.to_le_bytes());
        }
    }

    fn row<T: Fixed + Decimal>(&self, i: usize, row: usize) -> T {
        let (scale, frame) = self.vector(i);
        match frame.exception(row) {
            Some(bits) => raw(&bits.to_le_bytes()),
            None => alp::value(frame.packed(row), scale),
        }
    }

    fn some<T: Fixed + Decimal + Default>(&self, picked: &Picked<'_>) -> Vec<T> {
        let mut unpacker = Unpacker::new();
        picked.by_row(|i| self.frames.packed(i), |i, row| self.row(i, row), |i, out| self.append(i, &mut unpacker, out))
    }
}

pub(super) fn check(payload: &[u8], block: &EncodedBlock) -> Result<(), String> {
    Vectors::parse(payload, block)?.frames.check()
}

pub(super) fn decode(payload: &[u8], validity: &[u8], block: &EncodedBlock) -> Result<BlockData, String> {
    let vectors = Vectors::parse(payload, block)?;
    Ok(BlockData::Fixed(match block.physical {
        Physical::F32 => share(values::<f32>(&vectors, validity, block.rows)),
        _ => share(values::<f64>(&vectors, validity, block.rows)),
    }))
}

/// Calls `show` with the values of each vector; NULLs have their packed values.
pub(super) fn each_vector<T: Fixed + Decimal>(
    payload: &[u8],
    block: &EncodedBlock,
    mut each: impl FnMut(&[T]),
) -> Result<(), String> {
    let vectors = Vectors::parse(payload, block)?;
    let (mut unpacker, mut values) = (Unpacker::new(), Vec::with_capacity(VECTOR_ROWS));
    for i in 0..vectors.count() {
        values.clear();
        vectors.append(i, &mut unpacker, &mut values);
        each(&values);
    }
    Ok(())
}

fn values<T: Fixed + Decimal>(vectors: &Vectors<'_>, validity: &[u8], rows: usize) -> Vec<T> {
    let (mut unpacker, mut out) = (Unpacker::new(), Vec::with_capacity(rows));
    (0..vectors.count()).for_each(|i| vectors.append(i, &mut unpacker, &mut out));
    nulls::zero_nulls(&mut out, validity);
    out
}

pub(super) fn take(payload: &[u8], block: &EncodedBlock, picked: &Picked<'_>) -> Result<BlockData, String> {
    let vectors = Vectors::parse(payload, block)?;
    Ok(BlockData::Fixed(match block.physical {
        Physical::F32 => share(vectors.some::<f32>(picked)),
        _ => share(vectors.some::<f64>(picked)),
    }))
}

/// Appends a few rows of a block without NULLs.
pub(super) fn few(payload: &[u8], block: &EncodedBlock, numbers: &[u16], out: &mut Vec<f64>) -> Result<(), String> {
    let vectors = Vectors::parse(payload, block)?;
    prefetch(&vectors.frames, numbers);
    out.extend(numbers.iter().map(|number| place(*number)).map(|(i, row)| vectors.row::<f64>(i, row)));
    Ok(())
}

pub(super) fn rows_in(payload: &[u8], block: &EncodedBlock, wanted: &Wanted<'_>, mask: &mut [u64]) -> Option<()> {
    let vectors = Vectors::parse(payload, block).ok()?;
    let Interval::Floats(lo, hi) = wanted.interval else { return None };
    match block.physical {
        Physical::F32 => compare::<f32>(&vectors, lo, hi, wanted, mask),
        _ => compare::<f64>(&vectors, lo, hi, wanted, mask),
    }
    Some(())
}

/// Compares integers with converted bounds, which is possible because values never decrease as their integers grow.
fn compare<T: Fixed + Decimal>(vectors: &Vectors<'_>, lo: f64, hi: f64, wanted: &Wanted<'_>, mask: &mut [u64]) {
    let mut unpacker = Unpacker::new();
    // Adjacent vectors mostly have the same scale.
    let mut known = None;
    let are_all = wanted.are_all();
    for i in wanted.vectors() {
        if are_all {
            vectors.frames.ask_ahead(i);
        }
        let (scale, frame) = vectors.vector(i);
        let (first, last) = match known {
            Some((of, range)) if of == scale => range,
            _ => (alp::first_from::<T>(lo, true, scale), alp::first_from::<T>(hi, false, scale) - 1),
        };
        known = Some((scale, (first, last)));
        let mask = of_vector(mask, i);
        // Converts to distances; values below the reference have none.
        let (from, to) = (first.saturating_sub(frame.reference), last.saturating_sub(frame.reference));
        let (from, to) = if to < 0 { (1, 0) } else { (from.max(0) as u64, to as u64) };
        let words = packed_in_range(&mut unpacker, frame.lines, frame.width, frame.rows, from, to);
        mask.copy_from_slice(&words[..mask.len()]);
        for (row, bits) in frame.exceptions() {
            put(mask, row, wanted.interval.has_float(raw::<T>(&bits.to_le_bytes()).wide()));
        }
    }
}

#[cfg(test)]
mod tests;
