//! Reads a few rows of a block without NULLs one by one and appends them as the requested numeric type.
//!
//! Input: the row numbers, ascending. The result is false if the encoding has no access by row.

use super::chunk::Layout;
use super::frames::{Framed, place, prefetch};
use super::value::raw;
use super::{EncodedBlock, alp, packed};
use crate::segment::format::Encoding;
use tidalite_types::column_type::Physical;

type Found = Result<bool, String>;

impl EncodedBlock {
    /// Appends integers of 8 to 64 bits.
    pub(in crate::segment) fn few_ints(&self, numbers: &[u16], out: &mut Vec<i64>) -> Found {
        match self.physical {
            Physical::I8 => self.few::<i8>(numbers, |value| out.push(i64::from(value))),
            Physical::I16 => self.few::<i16>(numbers, |value| out.push(i64::from(value))),
            Physical::I32 => self.few::<i32>(numbers, |value| out.push(i64::from(value))),
            Physical::I64 => self.few::<i64>(numbers, |value| out.push(value)),
            _ => Ok(false),
        }
    }

    /// Appends floating point of 64 bits, or integers as floating point.
    pub(in crate::segment) fn few_floats(&self, numbers: &[u16], out: &mut Vec<f64>) -> Found {
        match self.physical {
            Physical::I8 => self.few::<i8>(numbers, |value| out.push(f64::from(value))),
            Physical::I16 => self.few::<i16>(numbers, |value| out.push(f64::from(value))),
            Physical::I32 => self.few::<i32>(numbers, |value| out.push(f64::from(value))),
            Physical::I64 => self.few::<i64>(numbers, |value| out.push(value as f64)),
            Physical::F64 if self.entry.encoding == Encoding::Alp => {
                let layout = Layout::of(&self.entry, self.physical, self.rows)?;
                alp::few(layout.payload(&self.bytes), self, numbers, out)?;
                Ok(true)
            }
            Physical::F64 => self.few_plain::<f64>(numbers, |value| out.push(value)),
            _ => Ok(false),
        }
    }

    /// Appends symbol codes.
    pub(in crate::segment) fn few_codes(&self, numbers: &[u16], out: &mut Vec<u32>) -> Found {
        match self.physical {
            Physical::U32 => self.few::<u32>(numbers, |value| out.push(value)),
            _ => Ok(false),
        }
    }

    fn few<T: Framed>(&self, numbers: &[u16], mut push: impl FnMut(T)) -> Found {
        if self.entry.encoding != Encoding::Packed {
            return self.few_plain(numbers, push);
        }
        let layout = Layout::of(&self.entry, self.physical, self.rows)?;
        let frames = packed::frames(layout.payload(&self.bytes), self)?;
        prefetch(&frames, numbers);
        for (i, row) in numbers.iter().map(|number| place(*number)) {
            push(frames.vector::<T>(i).row(row));
        }
        Ok(true)
    }

    /// Reads plain values.
    fn few_plain<T: bytemuck::Pod>(&self, numbers: &[u16], mut push: impl FnMut(T)) -> Found {
        let layout = Layout::of(&self.entry, self.physical, self.rows)?;
        match self.entry.encoding {
            Encoding::Plain => {
                let (values, width) = (layout.first(&self.bytes), size_of::<T>());
                for number in numbers {
                    push(raw(&values[usize::from(*number) * width..][..width]));
                }
            }
            Encoding::Constant => {
                let value = raw::<T>(layout.payload(&self.bytes));
                numbers.iter().for_each(|_| push(value));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{TYPES, random_column};
    use crate::segment::encoding::{encode, to_column};
    use crate::segment::{Effort, Selection};
    use std::collections::HashSet;
    use tidalite_types::Values;

    #[test]
    fn few_rows_are_those_that_are_taken() {
        let mut rng = fastrand::Rng::with_seed(17);
        let mut seen = HashSet::new();
        for round in 0..24 * TYPES.len() {
            let column_type = TYPES[round % TYPES.len()];
            let mut column = random_column(&mut rng, column_type, [1, 1_024, 3_000, 9_000][round / TYPES.len() % 4]);
            column.validity = None;
            let effort = if rng.bool() { Effort::Fresh } else { Effort::Sealed };
            let block = encode(column_type, &column, 0, column.len(), effort);
            let mut mask = vec![0_u64; column.len().div_ceil(64)];
            for _ in 0..rng.usize(1..60) {
                let row = rng.usize(..column.len());
                mask[row / 64] |= 1 << (row % 64);
            }
            let numbers: Vec<u16> = tidalite_kernels::picked(&mask).map(|row| row as u16).collect();
            let taken = to_column(&block.take(&Selection::new(mask)).unwrap());
            let (mut ints, mut floats, mut codes) = (Vec::new(), Vec::new(), Vec::new());
            let is_int = block.few_ints(&numbers, &mut ints).unwrap();
            let is_float = block.few_floats(&numbers, &mut floats).unwrap();
            let is_code = block.few_codes(&numbers, &mut codes).unwrap();
            assert_eq!((ints.is_empty(), floats.is_empty(), codes.is_empty()), (!is_int, !is_float, !is_code));
            let expected: Option<Vec<i64>> = match &taken.values {
                Values::I8(v) => Some(v.iter().map(|v| i64::from(*v)).collect()),
                Values::I16(v) => Some(v.iter().map(|v| i64::from(*v)).collect()),
                Values::I32(v) => Some(v.iter().map(|v| i64::from(*v)).collect()),
                Values::I64(v) => Some(v.clone()),
                _ => None,
            };
            assert!(expected.is_some() || !is_int);
            if let Some(expected) = expected {
                assert_eq!(is_int, is_float);
                assert!(!is_int || ints == expected);
                let wide = expected.iter().map(|v| *v as f64).collect::<Vec<_>>();
                assert!(!is_float || floats == wide);
            } else if let Values::F64(values) = &taken.values {
                let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
                assert!(!is_float || bits(&floats) == bits(values));
            } else if let Values::U32(values) = &taken.values {
                assert!(!is_code || codes == *values);
            } else {
                assert!(!is_float && !is_code, "{column_type}");
            }
            if is_int || is_float || is_code {
                seen.insert(format!("{:?} {:?}", block.physical, block.entry.encoding));
            }
        }
        for kind in ["I64 Packed", "I32 Packed", "U32 Packed", "F64 Alp", "I32 Plain", "F64 Constant"] {
            assert!(seen.contains(kind), "{kind} not in {seen:?}");
        }
    }
}
