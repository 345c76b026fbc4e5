//! Bounds of the vectors of a block.
//!
//! Stored if a block has more than one vector and their bounds can differ: 8 bytes per vector for the smallest values,
//! then as many for the greatest values. In a vector without values the smallest value exceeds the greatest value.

use super::chunk::{Chunk, Layout};
use super::{EncodedBlock, nulls};
use crate::segment::format::{Encoding, u64_at};
use crate::{Bounds, Zone};
use tidalite_types::VECTOR_ROWS;

/// Stores the bounds of the block and its vectors in `chunk`.
///
/// `pairs` has a pair per vector, in order; the pair of a vector without values is arbitrary, and `None` means that a
/// bound does not fit.
pub(super) fn set_int(chunk: &mut Chunk, pairs: impl Iterator<Item = Option<(i64, i64)>>) {
    let (mut lo, mut hi) = (Vec::new(), Vec::new());
    for (vector, pair) in pairs.enumerate() {
        let Some(pair) = pair else { return };
        let pair = if chunk.has_values(vector) { pair } else { (i64::MAX, i64::MIN) };
        lo.push(pair.0);
        hi.push(pair.1);
    }
    let bounds = (lo.iter().copied().min().unwrap_or(0), hi.iter().copied().max().unwrap_or(0));
    chunk.set_bounds(Bounds::Int(bounds.0, bounds.1));
    if lo.len() > 1 && bounds.0 != bounds.1 {
        chunk.set_zones(lo.into_iter().chain(hi).map(|v| v as u64).collect());
    }
}

/// Stores bounds like [`set_int`], with pairs of `kernels::min_max_f64`.
pub(super) fn set_float(chunk: &mut Chunk, pairs: impl Iterator<Item = (f64, f64)>) {
    let (mut lo, mut hi) = (Vec::new(), Vec::new());
    for (vector, pair) in pairs.enumerate() {
        let pair = if chunk.has_values(vector) { pair } else { (f64::INFINITY, f64::NEG_INFINITY) };
        lo.push(pair.0);
        hi.push(pair.1);
    }
    let numbers = lo.iter().zip(&hi).filter(|(lo, hi)| !lo.is_nan() && (lo <= hi || hi.is_nan()));
    let smallest = numbers.map(|(lo, _)| *lo).reduce(f64::min).unwrap_or(f64::NAN);
    let greatest =
        if hi.iter().any(|v| v.is_nan()) { f64::NAN } else { hi.iter().copied().fold(f64::NEG_INFINITY, f64::max) };
    chunk.set_bounds(Bounds::Float(smallest, greatest));
    if lo.len() > 1 && smallest != greatest {
        chunk.set_zones(lo.into_iter().chain(hi).map(f64::to_bits).collect());
    }
}

/// Returns the null count and bounds of every vector. Without stored bounds of vectors, the bounds of the block are
/// used.
pub fn of_vectors(block: &EncodedBlock) -> Result<Vec<Zone>, String> {
    let layout = Layout::of(&block.entry, block.physical, block.rows)?;
    Ok(each_vector(block, &layout).collect())
}

/// Iterates over the zones of [`of_vectors`].
pub(super) fn each_vector<'a>(block: &'a EncodedBlock, layout: &Layout) -> impl Iterator<Item = Zone> + 'a {
    let vectors = block.rows.div_ceil(VECTOR_ROWS);
    let (stored, validity) = (layout.zones(&block.bytes), layout.validity(&block.bytes));
    let bounds = move |vector: usize| (u64_at(stored, vector * 8), u64_at(stored, (vectors + vector) * 8));
    (0..vectors).map(move |vector| {
        let rows = (block.rows - vector * VECTOR_ROWS).min(VECTOR_ROWS) as u32;
        let null_count = match block.entry.encoding {
            Encoding::Nulls => rows,
            _ if validity.is_empty() => 0,
            _ => rows - nulls::count_ones(&validity[vector * VECTOR_ROWS / 8..]),
        };
        let bounds = match block.entry.zone.bounds {
            _ if null_count == rows => Bounds::None,
            Bounds::Int(..) if !stored.is_empty() => {
                let (lo, hi) = bounds(vector);
                Bounds::Int(lo as i64, hi as i64)
            }
            Bounds::Float(..) if !stored.is_empty() => {
                let (lo, hi) = bounds(vector);
                Bounds::Float(f64::from_bits(lo), f64::from_bits(hi))
            }
            bounds => bounds,
        };
        Zone { null_count, bounds }
    })
}
