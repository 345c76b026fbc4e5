//! Compares single values of columns as keys or bit by bit, and hashes them.
//!
//! A missing column is NULL in every row.

use std::sync::Arc;
use tidalite_types::views::NULL_ELEMENT_BITS;
use tidalite_types::{Column, ColumnType, Values, Views};

/// Returns a column as a key: elements of arrays with one NaN, and 0 for −0. Other columns stay.
pub(crate) fn as_key(column: &Arc<Column>, column_type: ColumnType) -> Arc<Column> {
    let (ColumnType::DoubleArray { dims }, Values::Views(arrays)) = (column_type, &column.values) else {
        return column.clone();
    };
    let (extents, mut keys) = (4 * usize::from(dims), Views::with_capacity(arrays.len()));
    for row in 0..arrays.len() {
        let mut array = arrays.get(row).to_vec();
        let elements = array.get_mut(extents..).unwrap_or_default().as_chunks_mut().0;
        for element in elements {
            let bits = u64::from_le_bytes(*element);
            if bits != NULL_ELEMENT_BITS {
                *element = key_f64(f64::from_bits(bits)).to_le_bytes();
            }
        }
        // Several views may share their data, which is written once for each here.
        if !keys.has_room(array.len()) {
            return column.clone();
        }
        keys.push(&array);
    }
    Arc::new(Column { values: Values::Views(keys), validity: column.validity.clone() })
}

/// Equal as SQL groups: NULL with NULL, NaN with NaN, −0 with 0. Arrays are compared as [`as_key`] gives them.
pub(crate) fn same_key(a: Option<&Column>, i: usize, b: Option<&Column>, j: usize) -> bool {
    match (valid(a, i), valid(b, j)) {
        (None, None) => true,
        (Some(Values::F32(a)), Some(Values::F32(b))) => key_f32(a[i]) == key_f32(b[j]),
        (Some(Values::F64(a)), Some(Values::F64(b))) => key_f64(a[i]) == key_f64(b[j]),
        (Some(a), Some(b)) => same(a, i, b, j),
        _ => false,
    }
}

/// Compares every bit.
pub(crate) fn same_value(a: Option<&Column>, i: usize, b: Option<&Column>, j: usize) -> bool {
    match (valid(a, i), valid(b, j)) {
        (None, None) => true,
        (Some(a), Some(b)) => same(a, i, b, j),
        _ => false,
    }
}

fn valid(column: Option<&Column>, row: usize) -> Option<&Values> {
    column.filter(|c| c.is_valid(row)).map(|c| &c.values)
}

fn same(a: &Values, i: usize, b: &Values, j: usize) -> bool {
    match (a, b) {
        (Values::Bit(a), Values::Bit(b)) => a.get(i) == b.get(j),
        (Values::I8(a), Values::I8(b)) => a[i] == b[j],
        (Values::I16(a), Values::I16(b)) => a[i] == b[j],
        (Values::I32(a), Values::I32(b)) => a[i] == b[j],
        (Values::I64(a), Values::I64(b)) => a[i] == b[j],
        (Values::I128(a), Values::I128(b)) => a[i] == b[j],
        (Values::F32(a), Values::F32(b)) => a[i].to_bits() == b[j].to_bits(),
        (Values::F64(a), Values::F64(b)) => a[i].to_bits() == b[j].to_bits(),
        (Values::U32(a), Values::U32(b)) => a[i] == b[j],
        (Values::B16(a), Values::B16(b)) => a[i] == b[j],
        (Values::Views(a), Values::Views(b)) => a.get(i) == b.get(j),
        _ => false,
    }
}

/// Maps all NaNs to one, and both zeros to one.
fn key_f64(value: f64) -> u64 {
    if value.is_nan() { f64::NAN.to_bits() } else { (value + 0.0).to_bits() }
}

fn key_f32(value: f32) -> u32 {
    if value.is_nan() { f32::NAN.to_bits() } else { (value + 0.0).to_bits() }
}

pub(crate) fn hash_row<'a>(time: i64, keys: impl Iterator<Item = Option<&'a Column>>, row: usize) -> u64 {
    keys.fold(mix(0, time as u64), |hash, column| hash_value(hash, column, row))
}

fn hash_value(hash: u64, column: Option<&Column>, row: usize) -> u64 {
    let Some(values) = valid(column, row) else { return mix(hash, u64::MAX) };
    match values {
        Values::Bit(v) => mix(hash, u64::from(v.get(row))),
        Values::I8(v) => mix(hash, v[row] as u64),
        Values::I16(v) => mix(hash, v[row] as u64),
        Values::I32(v) => mix(hash, v[row] as u64),
        Values::I64(v) => mix(hash, v[row] as u64),
        Values::I128(v) => mix(mix(hash, v[row] as u64), (v[row] >> 64) as u64),
        Values::F32(v) => mix(hash, u64::from(key_f32(v[row]))),
        Values::F64(v) => mix(hash, key_f64(v[row])),
        Values::U32(v) => mix(hash, u64::from(v[row])),
        Values::B16(v) => hash_bytes(hash, &v[row]),
        Values::Views(v) => hash_bytes(hash, v.get(row)),
    }
}

fn hash_bytes(hash: u64, bytes: &[u8]) -> u64 {
    let mut chunks = bytes.chunks_exact(8);
    let hash = chunks.by_ref().fold(mix(hash, bytes.len() as u64), |hash, chunk| {
        mix(hash, u64::from_le_bytes(chunk.try_into().expect("a chunk has eight bytes")))
    });
    let mut last = [0; 8];
    last[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    mix(hash, u64::from_le_bytes(last))
}

/// Mixes every bit of both inputs into the low bits, which the index uses.
fn mix(hash: u64, value: u64) -> u64 {
    let product = u128::from((hash ^ value).wrapping_add(0x9e37_79b9_7f4a_7c15)) * 0xd6e8_feb8_6659_fd93;
    (product as u64) ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrays(rows: &[&[u64]]) -> Arc<Column> {
        let mut views = Views::with_capacity(rows.len());
        for row in rows {
            let elements = row.iter().flat_map(|bits| bits.to_le_bytes());
            views.push(&(row.len() as u32).to_le_bytes().into_iter().chain(elements).collect::<Vec<u8>>());
        }
        Arc::new(Column::new(Values::Views(views)))
    }

    #[test]
    fn arrays_as_keys() {
        let (zero, minus, nan) = (0.0_f64.to_bits(), (-0.0_f64).to_bits(), f64::NAN.to_bits());
        let column = arrays(&[&[zero, nan], &[minus, nan ^ 1 << 63], &[zero, NULL_ELEMENT_BITS], &[zero], &[]]);
        let keys = as_key(&column, ColumnType::DoubleArray { dims: 1 });
        let same = |i, j| {
            let is_same = same_key(Some(&keys), i, Some(&keys), j);
            let hash = |row| hash_row(7, [Some(&*keys)].into_iter(), row);
            assert!(!is_same || hash(i) == hash(j));
            is_same
        };
        assert!(same(0, 1) && same(4, 4));
        assert_eq!([same(0, 2), same(0, 3), same(3, 4)], [false; 3], "NULL is not NaN");
        assert!(Arc::ptr_eq(&as_key(&column, ColumnType::Binary), &column));
    }
}
