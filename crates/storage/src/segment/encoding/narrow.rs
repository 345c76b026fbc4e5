//! The smallest value, and the distance from it in 0, 1, 2 or 4 bytes per row. Read but no longer written: `packed`
//! replaced it.

use super::value::Integer;
use tidalite_types::column_type::Physical;

/// Returns `rows` values from their distances, which are aligned to their width.
pub(super) fn widen<T: Integer>(lo: T, distances: &[u8], bytes: usize, rows: usize) -> Vec<T> {
    match bytes {
        0 => vec![lo; rows],
        1 => distances.iter().map(|d| lo.plus(u32::from(*d))).collect(),
        2 => bytemuck::cast_slice::<u8, u16>(distances).iter().map(|d| lo.plus(u32::from(*d))).collect(),
        _ => bytemuck::cast_slice::<u8, u32>(distances).iter().map(|d| lo.plus(*d)).collect(),
    }
}

pub(super) fn check(physical: Physical) -> Result<(), String> {
    match physical {
        Physical::I8 | Physical::I16 | Physical::I32 | Physical::I64 | Physical::I128 | Physical::U32 => Ok(()),
        physical => Err(format!("distances between values of {physical:?}")),
    }
}
