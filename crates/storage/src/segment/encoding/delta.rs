//! Encodes integers as differences from the previous row, or as differences of these, for values with regular steps,
//! such as timestamps. Each vector is decoded independently.
//!
//! ```text
//! firsts    the value of the first row of each vector
//! steps     where differences were taken twice: second row − first row of each vector
//! frames    the differences; those of rows that have none are the reference of their vector
//! ```
//!
//! All numbers have the width of the values, and sums wrap.

use super::EncodedBlock;
use super::choice::{Effort, Payload, Scheme, Source};
use super::frames::{Frame, Framed, Frames, FramesWriter, Plan, plan_both_ways};
use super::interval::Wanted;
use super::mask::of_vector;
use super::picked::Picked;
use super::plain::{Limited, in_vector};
use super::value::raw;
use crate::BlockData;
use crate::segment::buffer::share;
use crate::segment::format::Encoding;
use tidalite_kernels::{Unpacker, deltas, extend_steps, min_max, sum_up};
use tidalite_types::VECTOR_ROWS;
use tidalite_types::column_type::Physical;

/// An integer of 32 or 64 bits that widens to 64 bits.
pub(super) trait Widened: Framed {
    fn widened(self) -> i64;
}

impl Widened for i32 {
    fn widened(self) -> i64 {
        i64::from(self)
    }
}

impl Widened for u32 {
    fn widened(self) -> i64 {
        i64::from(self)
    }
}

impl Widened for i64 {
    fn widened(self) -> i64 {
        self
    }
}

/// The number of times that differences are taken: once or twice.
pub(super) struct Delta(pub usize);

impl<T: Widened> Scheme<T> for Delta {
    fn estimate(&self, source: &Source<'_, T>) -> Option<usize> {
        let sample = source.sample();
        let own = size_of::<T>() * (1 + self.0) + 3;
        let bytes = sample.iter().map(|vector| Differences::of(vector, self.0).plan.bytes + own);
        Some(source.scale(&sample, bytes.sum()))
    }

    fn encode<'a>(&self, source: &Source<'a, T>) -> Option<Payload<'a>> {
        let mut writer = FramesWriter::new(source.plain_bytes() / 4);
        let (mut firsts, mut steps) = (Vec::new(), Vec::new());
        for vector in source.values.chunks(VECTOR_ROWS) {
            let differences = Differences::of(vector, self.0);
            if differences.plan.width as usize > 8 * size_of::<T>() {
                return None;
            }
            firsts.extend_from_slice(bytemuck::bytes_of(&vector[0]));
            if self.0 == 2 {
                steps.extend_from_slice(&differences.step.to_le_bytes()[..size_of::<T>()]);
            }
            writer.push(&differences.values[..vector.len()], differences.plan, size_of::<T>());
        }
        firsts.extend_from_slice(&steps);
        Some(Payload::new(Encoding::Delta, self.0 as u32, writer.finish(firsts)))
    }

    fn weight(&self, effort: Effort) -> usize {
        // Sums take time, and the values cannot be compared before they are summed.
        match effort {
            // Sums of small integers are far slower than unpacking them.
            _ if size_of::<T>() < 8 => 150,
            Effort::Fresh => 125,
            Effort::Sealed => 115,
        }
    }
}

/// The differences of a vector, and their packing.
struct Differences {
    values: [i64; VECTOR_ROWS],
    plan: Plan<i64>,
    /// Second value − first value, if there is a second value.
    step: i64,
}

impl Differences {
    fn of<T: Widened>(vector: &[T], order: usize) -> Differences {
        let rows = vector.len();
        let mut widened = [0; VECTOR_ROWS];
        vector.iter().zip(&mut widened).for_each(|(v, out)| *out = v.widened());
        let mut values = [0; VECTOR_ROWS];
        deltas(&widened[..rows], &mut values[1..]);
        let step = if rows > 1 { values[1] } else { 0 };
        if order == 2 {
            widened = values;
            deltas(&widened[1..rows.max(1)], &mut values[2..]);
        }
        let real = &values[order.min(rows)..rows];
        let plan = match min_max(real) {
            Some((lo, hi)) => plan_both_ways(real, lo, hi),
            None => Plan::simple(0, 0, 0),
        };
        values[..order].fill(plan.reference);
        Differences { values, plan, step }
    }
}

/// First values, steps (none if differences are taken once) and differences.
struct DeltaParts<'a> {
    firsts: &'a [u8],
    steps: &'a [u8],
    frames: Frames<'a>,
}

impl DeltaParts<'_> {
    /// Appends the values of one vector.
    fn vector<T: Widened>(&self, i: usize, unpacker: &mut Unpacker, out: &mut Vec<T>) {
        let at = |bytes: &[u8]| raw::<T>(&bytes[i * size_of::<T>()..]);
        let start = out.len();
        let frame = self.frames.vector::<T>(i);
        if frame.width == 0 && self.steps.is_empty() {
            return steps(at(self.firsts), &frame, out);
        }
        frame.unpack(unpacker, out);
        let vector = &mut out[start..];
        if !self.steps.is_empty() {
            // The differences of rows 0 and 1 are the reference; after them the sum is the step.
            let before = at(self.steps).wrapping_minus(vector[0]);
            sum_up(vector, vector.get(1).map_or(before, |second| before.wrapping_minus(*second)));
        }
        let before = at(self.firsts).wrapping_minus(vector[0]);
        sum_up(vector, before);
    }
}

/// Appends values with a constant step, except for some rows.
fn steps<T: Widened>(first: T, frame: &Frame<'_, T>, out: &mut Vec<T>) {
    let (mut value, mut from) = (first, 0);
    for (row, difference) in frame.exceptions().filter(|(row, _)| *row > 0) {
        extend_steps(value, frame.reference, row - from, out);
        value = out[out.len() - 1].wrapping_plus(difference);
        from = row;
    }
    extend_steps(value, frame.reference, frame.rows - from, out);
}

fn split<'a>(payload: &'a [u8], block: &EncodedBlock) -> Result<DeltaParts<'a>, String> {
    let width = match block.physical {
        Physical::I32 | Physical::U32 => 4,
        Physical::I64 => 8,
        physical => return Err(format!("differences of {physical:?}")),
    };
    let order = block.entry.parameter as usize;
    if !(1..=2).contains(&order) {
        return Err(format!("differences taken {order} times"));
    }
    let bytes = block.rows.div_ceil(VECTOR_ROWS) * width;
    let head = payload.get(..order * bytes).ok_or("its first values are cut off")?;
    let (firsts, steps) = head.split_at(bytes);
    Ok(DeltaParts { firsts, steps, frames: Frames::parse(payload, order * bytes, block.rows, width)? })
}

pub(super) fn check(payload: &[u8], block: &EncodedBlock) -> Result<(), String> {
    split(payload, block)?.frames.check()
}

pub(super) fn decode(payload: &[u8], validity: &[u8], block: &EncodedBlock) -> Result<BlockData, String> {
    let parts = split(payload, block)?;
    Ok(BlockData::Fixed(match block.physical {
        Physical::I64 => share(values::<i64>(&parts, validity, block.rows)),
        // Sums of unsigned and signed numbers have the same bits.
        _ => share(values::<i32>(&parts, validity, block.rows)),
    }))
}

fn values<T: Widened>(parts: &DeltaParts<'_>, validity: &[u8], rows: usize) -> Vec<T> {
    let mut unpacker = Unpacker::new();
    let mut out = Vec::with_capacity(rows);
    (0..parts.frames.vector_count()).for_each(|i| parts.vector(i, &mut unpacker, &mut out));
    super::nulls::zero_nulls(&mut out, validity);
    out
}

pub(super) fn take(payload: &[u8], block: &EncodedBlock, picked: &Picked<'_>) -> Result<BlockData, String> {
    let (parts, mut unpacker) = (split(payload, block)?, Unpacker::new());
    Ok(BlockData::Fixed(match block.physical {
        Physical::I64 => share(picked.by_vector::<i64>(|i, out| parts.vector(i, &mut unpacker, out))),
        _ => share(picked.by_vector::<i32>(|i, out| parts.vector(i, &mut unpacker, out))),
    }))
}

/// Decodes the vectors that must be examined, one at a time.
pub(super) fn rows_in(payload: &[u8], block: &EncodedBlock, wanted: &Wanted<'_>, mask: &mut [u64]) -> Option<()> {
    let parts = split(payload, block).ok()?;
    let (lo, hi) = wanted.interval.of_i64()?;
    match block.physical {
        Physical::I64 => compare::<i64>(&parts, lo, hi, wanted, mask),
        Physical::U32 => compare::<u32>(&parts, lo, hi, wanted, mask),
        _ => compare::<i32>(&parts, lo, hi, wanted, mask),
    }
    Some(())
}

fn compare<T: Widened + Limited>(parts: &DeltaParts<'_>, lo: i64, hi: i64, wanted: &Wanted<'_>, mask: &mut [u64]) {
    let (mut unpacker, mut values) = (Unpacker::new(), Vec::with_capacity(VECTOR_ROWS));
    for i in wanted.vectors() {
        values.clear();
        parts.vector::<T>(i, &mut unpacker, &mut values);
        in_vector(&values, lo, hi, of_vector(mask, i));
    }
}
