//! The smallest value, and the distance from it in 0, 1, 2 or 4 bytes a row.

use super::chunk::Chunk;
use super::fixed::Integer;
use crate::segment::format::Encoding;

/// Bytes that hold every distance up to `range`.
pub(super) fn distance_bytes(range: u32) -> usize {
    match range {
        0 => 0,
        1..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 4,
    }
}

pub(super) fn write<T: Integer>(chunk: &mut Chunk, values: &[T], lo: T, bytes: usize) {
    chunk.begin(Encoding::Narrow, bytes as u32, 0);
    chunk.section(bytemuck::bytes_of(&lo));
    match bytes {
        0 => {}
        1 => chunk.section(&distances(values, lo, |d| d as u8)),
        2 => chunk.section(bytemuck::cast_slice(&distances(values, lo, |d| d as u16))),
        _ => chunk.section(bytemuck::cast_slice(&distances(values, lo, |d| d))),
    }
}

fn distances<T: Integer, D>(values: &[T], lo: T, narrow: impl Fn(u32) -> D) -> Vec<D> {
    values.iter().map(|v| narrow(v.distance_wrapping(lo))).collect()
}

/// `rows` values from their distances, which start at a multiple of their width.
pub(super) fn widen<T: Integer>(lo: T, distances: &[u8], bytes: usize, rows: usize) -> Vec<T> {
    match bytes {
        0 => vec![lo; rows],
        1 => distances.iter().map(|d| lo.plus(u32::from(*d))).collect(),
        2 => bytemuck::cast_slice::<u8, u16>(distances).iter().map(|d| lo.plus(u32::from(*d))).collect(),
        _ => bytemuck::cast_slice::<u8, u32>(distances).iter().map(|d| lo.plus(*d)).collect(),
    }
}
