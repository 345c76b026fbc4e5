//! Unpacks a block's numbers or codes vector by vector into cache-resident memory.

use super::chunk::Layout;
use super::frames::Framed;
use super::value::Fixed;
use super::{EncodedBlock, alp, dict, packed, runs};
use crate::BlockData;
use crate::segment::buffer::{collect, values_in};
use crate::segment::format::Encoding;
use tidalite_kernels::alp::Decimal;
use tidalite_kernels::{Unpacker, count_picked, extend_bytes};
use tidalite_types::VECTOR_ROWS;
use tidalite_types::column_type::Physical;

/// Appends the values of a vector; NULLs have their packed values.
type Read<'a, T> = Box<dyn FnMut(usize, &mut Vec<T>) + 'a>;

/// The vectors of a block; each is valid until the next is loaded.
pub struct Vectors<'a, T> {
    read: Read<'a, T>,
    rows: usize,
    /// Validity bits in words; empty if all rows have values.
    validity: Vec<u64>,
    values: Vec<T>,
    present: Vec<u8>,
}

impl<T> Vectors<'_, T> {
    /// Reads a vector for [`Vectors::values`].
    pub fn load(&mut self, i: usize) {
        self.values.clear();
        (self.read)(i, &mut self.values);
    }

    /// Returns the values of the vector that was read last; values of NULL rows are unspecified.
    #[must_use]
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Returns a bit per row of a vector that has a value; `None` if all rows have values.
    #[must_use]
    pub fn valid(&self, i: usize) -> Option<&[u64]> {
        let rows = (self.rows - i * VECTOR_ROWS).min(VECTOR_ROWS);
        (!is_whole(&self.validity, i, rows)).then(|| of_vector(&self.validity, i))
    }

    /// Returns the values of a vector and, if some row is NULL, a byte per row: 1 for a value, 0 for NULL.
    ///
    /// Values of NULL rows are unspecified.
    pub fn vector(&mut self, i: usize) -> (&[T], Option<&[u8]>) {
        self.load(i);
        let rows = (self.rows - i * VECTOR_ROWS).min(VECTOR_ROWS);
        if is_whole(&self.validity, i, rows) {
            return (&self.values, None);
        }
        self.present.clear();
        extend_bytes(of_vector(&self.validity, i), rows, &mut self.present);
        (&self.values, Some(&self.present))
    }
}

fn of_vector(validity: &[u64], i: usize) -> &[u64] {
    validity.chunks(VECTOR_ROWS / 64).nth(i).unwrap_or_default()
}

/// Returns true if every row of a vector has a value. Empty `validity` means that all rows of the block have values.
pub(super) fn is_whole(validity: &[u64], i: usize, rows: usize) -> bool {
    let words = of_vector(validity, i);
    words.is_empty() || count_picked(words) == rows
}

impl EncodedBlock {
    /// Returns integers of 8 to 64 bits.
    pub(in crate::segment) fn ints(&self) -> Result<Vectors<'_, i64>, String> {
        let read = match self.physical {
            Physical::I8 => as_wide(self.read_ints::<i8>()?, i64::from),
            Physical::I16 => as_wide(self.read_ints::<i16>()?, i64::from),
            Physical::I32 => as_wide(self.read_ints::<i32>()?, i64::from),
            Physical::I64 => self.read_ints()?,
            other => return Err(format!("integers of {other:?}")),
        };
        self.vectors(read)
    }

    /// Returns floating point, or integers as floating point.
    pub(in crate::segment) fn floats(&self) -> Result<Vectors<'_, f64>, String> {
        let read = match self.physical {
            Physical::I8 => as_wide(self.read_ints::<i8>()?, f64::from),
            Physical::I16 => as_wide(self.read_ints::<i16>()?, f64::from),
            Physical::I32 => as_wide(self.read_ints::<i32>()?, f64::from),
            Physical::I64 => as_wide(self.read_ints::<i64>()?, |value| value as f64),
            Physical::F32 => as_wide(self.read_floats::<f32>()?, f64::from),
            Physical::F64 => self.read_floats()?,
            other => return Err(format!("numbers of {other:?}")),
        };
        self.vectors(read)
    }

    /// Returns symbol codes.
    pub(in crate::segment) fn codes(&self) -> Result<Vectors<'_, u32>, String> {
        match self.physical {
            Physical::U32 => self.vectors(self.read_ints()?),
            other => Err(format!("codes of {other:?}")),
        }
    }

    /// Returns only the validity of the rows, for any type.
    pub(in crate::segment) fn presence(&self) -> Result<Vectors<'_, i64>, String> {
        self.vectors(Box::new(|_, _| {}))
    }

    /// Returns the validity words; empty if all rows have values.
    pub(super) fn validity(&self) -> Result<Vec<u64>, String> {
        Ok(match self.entry.encoding {
            Encoding::Nulls => vec![0; self.rows.div_ceil(64)],
            _ => collect(Layout::of(&self.entry, self.physical, self.rows)?.validity(&self.bytes)),
        })
    }

    fn vectors<'a, T>(&'a self, read: Read<'a, T>) -> Result<Vectors<'a, T>, String> {
        Ok(Vectors {
            read,
            rows: self.rows,
            validity: self.validity()?,
            values: Vec::with_capacity(VECTOR_ROWS),
            present: Vec::new(),
        })
    }

    fn read_ints<T: Framed + Fixed>(&self) -> Result<Read<'_, T>, String> {
        if self.entry.encoding != Encoding::Packed {
            return self.read_others();
        }
        let layout = Layout::of(&self.entry, self.physical, self.rows)?;
        let frames = packed::frames(layout.payload(&self.bytes), self)?;
        let mut unpacker = Unpacker::new();
        Ok(Box::new(move |i, out| frames.vector::<T>(i).unpack(&mut unpacker, out)))
    }

    fn read_floats<T: Fixed + Decimal>(&self) -> Result<Read<'_, T>, String> {
        if self.entry.encoding != Encoding::Alp {
            return self.read_others();
        }
        let layout = Layout::of(&self.entry, self.physical, self.rows)?;
        let vectors = alp::Vectors::parse(layout.payload(&self.bytes), self)?;
        let mut unpacker = Unpacker::new();
        Ok(Box::new(move |i, out| vectors.append(i, &mut unpacker, out)))
    }

    /// Reads encodings that exist for all types.
    fn read_others<T: Fixed>(&self) -> Result<Read<'_, T>, String> {
        if self.entry.encoding == Encoding::PackedDict {
            let layout = Layout::of(&self.entry, self.physical, self.rows)?;
            let distinct = values_in::<T>(layout.first(&self.bytes));
            let mut codes = dict::Codes::new(layout.codes(&self.bytes), distinct.len(), self.rows);
            return Ok(Box::new(move |i, out| {
                out.extend(codes.vector(i).iter().map(|code| distinct[usize::from(*code)]));
            }));
        }
        if self.entry.encoding == Encoding::Runs {
            let layout = Layout::of(&self.entry, self.physical, self.rows)?;
            return Ok(Box::new(runs::vectors(layout.payload(&self.bytes), self)?));
        }
        match self.decode()?.data {
            BlockData::Fixed(bytes) => Ok(Box::new(move |i, out| {
                let at = (i * VECTOR_ROWS * size_of::<T>()).min(bytes.len());
                let end = bytes.len().min(at + VECTOR_ROWS * size_of::<T>());
                out.extend_from_slice(&values_in(&bytes[at..end]));
            })),
            BlockData::Views { .. } => Err(format!("text in a column of {:?}", self.physical)),
        }
    }
}

/// Widens vectors of a narrower type.
fn as_wide<'a, T: Copy + 'a, V>(mut read: Read<'a, T>, wide: impl Fn(T) -> V + 'a) -> Read<'a, V> {
    let mut narrow = Vec::with_capacity(VECTOR_ROWS);
    Box::new(move |i, out| {
        narrow.clear();
        read(i, &mut narrow);
        out.extend(narrow.iter().map(|value| wide(*value)));
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{TYPES, random_column};
    use super::*;
    use crate::segment::{Effort, encode, to_column};
    use std::collections::HashSet;
    use tidalite_types::{Column, Values};

    /// Compares with the bits of the expected rows, which distinguish −0 and NaN.
    fn check<T: Copy>(vectors: &mut Vectors<'_, T>, column: &Column, expected: &[u64], bits: impl Fn(T) -> u64) {
        for (i, expected) in expected.chunks(VECTOR_ROWS).enumerate() {
            let (values, present) = vectors.vector(i);
            assert_eq!(values.len(), expected.len());
            for (row, (value, expected)) in values.iter().zip(expected).enumerate() {
                let is_valid = column.is_valid(i * VECTOR_ROWS + row);
                assert_eq!(present.is_none_or(|present| present[row] == 1), is_valid);
                assert!(!is_valid || bits(*value) == *expected, "row {row} of vector {i}");
            }
        }
    }

    #[test]
    fn vectors_have_the_values_of_their_rows() {
        let mut rng = fastrand::Rng::with_seed(3);
        let mut seen = HashSet::new();
        for round in 0..12 * TYPES.len() {
            let column_type = TYPES[round % TYPES.len()];
            let column = random_column(&mut rng, column_type, [1, 1_024, 3_000, 9_000][round / TYPES.len() % 4]);
            let effort = if rng.bool() { Effort::Fresh } else { Effort::Sealed };
            let block = encode(column_type, &column, 0, column.len(), effort);
            let rows = to_column(&block.decode().unwrap());
            seen.insert(format!("{:?}", block.entry.encoding));
            let int = |value: i64| value as u64;
            let ints: Vec<i64> = match &rows.values {
                Values::I8(v) => v.iter().map(|v| i64::from(*v)).collect(),
                Values::I16(v) => v.iter().map(|v| i64::from(*v)).collect(),
                Values::I32(v) => v.iter().map(|v| i64::from(*v)).collect(),
                Values::I64(v) => v.clone(),
                Values::U32(v) => {
                    let expected: Vec<u64> = v.iter().map(|v| u64::from(*v)).collect();
                    check(&mut block.codes().unwrap(), &rows, &expected, u64::from);
                    continue;
                }
                Values::F32(v) => {
                    let expected: Vec<u64> = v.iter().map(|v| f64::from(*v).to_bits()).collect();
                    check(&mut block.floats().unwrap(), &rows, &expected, f64::to_bits);
                    continue;
                }
                Values::F64(v) => {
                    let expected: Vec<u64> = v.iter().map(|v| v.to_bits()).collect();
                    check(&mut block.floats().unwrap(), &rows, &expected, f64::to_bits);
                    continue;
                }
                _ => {
                    let mut presence = block.presence().unwrap();
                    let is_there =
                        |row: usize| presence.vector(row / VECTOR_ROWS).1.is_none_or(|p| p[row % VECTOR_ROWS] == 1);
                    assert!((0..rows.len()).map(is_there).eq((0..rows.len()).map(|row| rows.is_valid(row))));
                    assert!(block.ints().is_err() && block.floats().is_err() && block.codes().is_err());
                    continue;
                }
            };
            let expected: Vec<u64> = ints.iter().map(|v| int(*v)).collect();
            check(&mut block.ints().unwrap(), &rows, &expected, int);
            let expected: Vec<u64> = ints.iter().map(|v| (*v as f64).to_bits()).collect();
            check(&mut block.floats().unwrap(), &rows, &expected, f64::to_bits);
        }
        for encoding in ["Packed", "PackedDict", "Alp", "Plain", "Runs"] {
            assert!(seen.contains(encoding), "{seen:?}");
        }
    }
}
