//! Encodes integers as bit-packed distances from the reference of their vector: see [`frames`].

use super::EncodedBlock;
use super::choice::{Effort, Payload, Scheme, Source};
use super::frames::{Framed, Frames, FramesWriter, plan};
use super::interval::Wanted;
use super::mask::{of_vector, put, words_of};
use super::picked::Picked;
use crate::BlockData;
use crate::segment::buffer::share;
use crate::segment::format::Encoding;
use tidalite_kernels::{Unpacker, min_max, packed_in_range, packed_in_ranges};
use tidalite_types::VECTOR_ROWS;
use tidalite_types::column_type::Physical;

pub(super) struct Packed;

impl<T: Framed> Scheme<T> for Packed {
    fn estimate(&self, source: &Source<'_, T>) -> Option<usize> {
        let sample = source.sample();
        let bytes = sample.iter().filter_map(|v| min_max(v).map(|(lo, hi)| plan(v, lo, hi).bytes + size_of::<T>() + 3));
        Some(source.scale(&sample, bytes.sum()))
    }

    fn encode<'a>(&self, source: &Source<'a, T>) -> Option<Payload<'a>> {
        let mut writer = FramesWriter::new(source.plain_bytes() / 2);
        for vector in source.values.chunks(VECTOR_ROWS) {
            let (lo, hi) = min_max(vector)?;
            writer.push(vector, plan(vector, lo, hi), size_of::<T>());
        }
        Some(Payload::new(Encoding::Packed, 0, writer.finish(Vec::new())))
    }

    fn weight(&self, _: Effort) -> usize {
        100
    }
}

/// [`Packed`] for integers of sixteen bytes, if all of them fit eight bytes.
pub(super) struct PackedWide;

impl Scheme<i128> for PackedWide {
    fn estimate(&self, source: &Source<'_, i128>) -> Option<usize> {
        let sample: Vec<i64> = narrowed(&source.sample().concat())?;
        let bytes = sample.chunks(VECTOR_ROWS).filter_map(|v| min_max(v).map(|(lo, hi)| plan(v, lo, hi).bytes + 11));
        Some(source.scale(&source.sample(), bytes.sum()))
    }

    fn encode<'a>(&self, source: &Source<'a, i128>) -> Option<Payload<'a>> {
        let values: Vec<i64> = narrowed(source.values)?;
        let source = Source { given: &values, values: &values, validity: source.validity, effort: source.effort };
        let payload = Packed.encode(&source)?;
        let sections = payload.sections.into_iter().map(|section| section.into_owned().into()).collect();
        Some(Payload { encoding: payload.encoding, parameter: 0, data_bytes: 0, sections })
    }

    fn weight(&self, _: Effort) -> usize {
        100
    }
}

fn narrowed(values: &[i128]) -> Option<Vec<i64>> {
    values.iter().map(|v| i64::try_from(*v).ok()).collect()
}

/// Returns the bytes of references and exceptions; `None` for types that are not packed.
pub(super) fn value_bytes(physical: Physical) -> Option<usize> {
    match physical {
        Physical::I8 | Physical::I16 | Physical::I32 | Physical::U32 | Physical::I64 => physical.width(),
        Physical::I128 => Some(8),
        _ => None,
    }
}

pub(super) fn frames<'a>(payload: &'a [u8], block: &EncodedBlock) -> Result<Frames<'a>, String> {
    let bytes = value_bytes(block.physical).ok_or_else(|| format!("packed values of {:?}", block.physical))?;
    Frames::parse(payload, 0, block.rows, bytes)
}

pub(super) fn check(payload: &[u8], block: &EncodedBlock) -> Result<(), String> {
    frames(payload, block)?.check()
}

pub(super) fn decode(payload: &[u8], validity: &[u8], block: &EncodedBlock) -> Result<BlockData, String> {
    let frames = frames(payload, block)?;
    Ok(BlockData::Fixed(match block.physical {
        Physical::I8 => share(values::<i8>(&frames, validity, block.rows)),
        Physical::I16 => share(values::<i16>(&frames, validity, block.rows)),
        Physical::I32 => share(values::<i32>(&frames, validity, block.rows)),
        Physical::U32 => share(values::<u32>(&frames, validity, block.rows)),
        Physical::I64 => share(values::<i64>(&frames, validity, block.rows)),
        _ => share(values::<i64>(&frames, validity, block.rows).into_iter().map(i128::from).collect()),
    }))
}

fn values<T: Framed>(frames: &Frames<'_>, validity: &[u8], rows: usize) -> Vec<T> {
    let mut unpacker = Unpacker::new();
    let mut out = Vec::with_capacity(rows);
    (0..frames.vector_count()).for_each(|i| frames.vector::<T>(i).unpack(&mut unpacker, &mut out));
    super::nulls::zero_nulls(&mut out, validity);
    out
}

/// Calls `each` with the values of each vector; NULLs have their packed values.
pub(super) fn each_vector<T: Framed>(
    payload: &[u8],
    block: &EncodedBlock,
    mut each: impl FnMut(&[T]),
) -> Result<(), String> {
    let frames = frames(payload, block)?;
    let (mut unpacker, mut values) = (Unpacker::new(), Vec::with_capacity(VECTOR_ROWS));
    for i in 0..frames.vector_count() {
        values.clear();
        frames.vector::<T>(i).unpack(&mut unpacker, &mut values);
        each(&values);
    }
    Ok(())
}

pub(super) fn take(payload: &[u8], block: &EncodedBlock, picked: &Picked<'_>) -> Result<BlockData, String> {
    let frames = frames(payload, block)?;
    Ok(BlockData::Fixed(match block.physical {
        Physical::I8 => share(some::<i8>(&frames, picked)),
        Physical::I16 => share(some::<i16>(&frames, picked)),
        Physical::I32 => share(some::<i32>(&frames, picked)),
        Physical::U32 => share(some::<u32>(&frames, picked)),
        Physical::I64 => share(some::<i64>(&frames, picked)),
        _ => share(some::<i64>(&frames, picked).into_iter().map(i128::from).collect()),
    }))
}

fn some<T: Framed>(frames: &Frames<'_>, picked: &Picked<'_>) -> Vec<T> {
    let mut unpacker = Unpacker::new();
    let of_row = |i, row| frames.vector::<T>(i).row(row);
    picked.by_row(|i| frames.packed(i), of_row, |i, out| frames.vector::<T>(i).unpack(&mut unpacker, out))
}

pub(super) fn rows_in(payload: &[u8], block: &EncodedBlock, wanted: &Wanted<'_>, mask: &mut [u64]) -> Option<()> {
    let frames = frames(payload, block).ok()?;
    let (lo, hi) = wanted.interval.of_i64()?;
    match block.physical {
        Physical::I8 => compare::<i8>(&frames, lo, hi, wanted, mask),
        Physical::I16 => compare::<i16>(&frames, lo, hi, wanted, mask),
        Physical::I32 => compare::<i32>(&frames, lo, hi, wanted, mask),
        Physical::U32 => compare::<u32>(&frames, lo, hi, wanted, mask),
        _ => compare::<i64>(&frames, lo, hi, wanted, mask),
    }
    Some(())
}

fn compare<T: Framed + Into<i64>>(frames: &Frames<'_>, lo: i64, hi: i64, wanted: &Wanted<'_>, mask: &mut [u64]) {
    let mut unpacker = Unpacker::new();
    let are_all = wanted.are_all();
    for i in wanted.vectors() {
        if are_all {
            frames.ask_ahead(i);
        }
        let frame = frames.vector::<T>(i);
        let mask = of_vector(mask, i);
        let (from, to) = distances(frame.reference.into(), lo, hi);
        let words = packed_in_range(&mut unpacker, frame.lines, frame.width, frame.rows, from, to);
        mask.copy_from_slice(&words[..mask.len()]);
        for (row, value) in frame.exceptions() {
            put(mask, row, wanted.interval.has_int(i128::from(value.into())));
        }
    }
}

/// Converts bounds to distances; the reference is the smallest value, so smaller bounds have no distance.
fn distances(reference: i64, lo: i64, hi: i64) -> (u64, u64) {
    let distance = |bound: i64| bound.wrapping_sub(reference) as u64;
    if lo > hi || hi < reference { (1, 0) } else { (distance(lo.max(reference)), distance(hi)) }
}

/// Returns the rows in any of the ranges; `None` for too many ranges. Vectors without a bit in `among` may be skipped.
pub(super) fn rows_in_any(
    payload: &[u8],
    block: &EncodedBlock,
    ranges: &[(i64, i64)],
    among: &[u64],
) -> Option<Vec<u64>> {
    let frames = frames(payload, block).ok()?;
    match block.physical {
        Physical::I8 => any_of::<i8>(&frames, ranges, among),
        Physical::I16 => any_of::<i16>(&frames, ranges, among),
        Physical::I32 => any_of::<i32>(&frames, ranges, among),
        Physical::U32 => any_of::<u32>(&frames, ranges, among),
        _ => any_of::<i64>(&frames, ranges, among),
    }
}

fn any_of<T: Framed + Into<i64>>(frames: &Frames<'_>, ranges: &[(i64, i64)], among: &[u64]) -> Option<Vec<u64>> {
    let (mut unpacker, mut found) = (Unpacker::new(), vec![0; among.len()]);
    let mut inside = Vec::with_capacity(ranges.len());
    for i in (0..frames.vector_count()).filter(|i| words_of(among, *i).iter().any(|word| *word != 0)) {
        let frame = frames.vector::<T>(i);
        inside.clear();
        inside.extend(ranges.iter().map(|(lo, hi)| distances(frame.reference.into(), *lo, *hi)));
        let words = packed_in_ranges(&mut unpacker, frame.lines, frame.width, frame.rows, &inside)?;
        let found = of_vector(&mut found, i);
        found.copy_from_slice(&words[..found.len()]);
        for (row, value) in frame.exceptions() {
            let value: i64 = value.into();
            put(found, row, ranges.iter().any(|(lo, hi)| (*lo..=*hi).contains(&value)));
        }
    }
    Some(found)
}
