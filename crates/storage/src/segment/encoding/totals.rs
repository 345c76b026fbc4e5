//! Sums a block's numbers vector by vector while unpacking them, so that intermediate values are not written to memory.

use super::chunk::Layout;
use super::frames::Framed;
use super::value::Fixed;
use super::{EncodedBlock, alp, dict, packed};
use crate::segment::buffer::{collect, values_in};
use crate::segment::format::Encoding;
use crate::segment::selection::Selection;
use crate::{Block, BlockData, Sum};
use tidalite_kernels::alp::Decimal;
use tidalite_kernels::{picked, sum_floats, sum_ints};
use tidalite_types::column_type::Physical;

/// Totals of rows of a numeric column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Totals {
    /// Number of rows that are not NULL.
    pub present: usize,
    pub sum: Sum,
}

impl EncodedBlock {
    /// Returns the totals of `selection` or of all rows; `None` for other types than integers of 8 to 64 bits and
    /// floating point.
    pub(in crate::segment) fn totals(&self, selection: Option<&Selection>) -> Result<Option<Totals>, String> {
        match self.physical {
            Physical::I8 => self.of_ints::<i8>(selection),
            Physical::I16 => self.of_ints::<i16>(selection),
            Physical::I32 => self.of_ints::<i32>(selection),
            Physical::I64 => self.of_ints::<i64>(selection),
            Physical::F32 => self.of_floats::<f32>(selection),
            Physical::F64 => self.of_floats::<f64>(selection),
            _ => Ok(None),
        }
    }

    /// Returns true if all rows are selected and have values.
    fn is_whole(&self, selection: Option<&Selection>) -> bool {
        selection.is_none() && self.entry.zone.null_count == 0
    }

    fn some(&self, selection: Option<&Selection>) -> Result<Block, String> {
        selection.map_or_else(|| self.decode(), |some| self.take(some))
    }

    fn of_ints<T: Framed + Into<i64>>(&self, selection: Option<&Selection>) -> Result<Option<Totals>, String> {
        let mut sum = 0;
        let mut add = |values: &[T]| sum += sum_ints(values);
        let present = match self.entry.encoding {
            Encoding::Packed if self.is_whole(selection) => {
                let layout = Layout::of(&self.entry, self.physical, self.rows)?;
                packed::each_vector(layout.payload(&self.bytes), self, add)?;
                self.rows
            }
            Encoding::PackedDict if self.is_whole(selection) => self.each_of_dictionary(add)?,
            _ => {
                // NULL rows are 0.
                let block = self.some(selection)?;
                add(&values_in(fixed(&block)?));
                block.rows - block.null_count
            }
        };
        Ok(Some(Totals { present, sum: Sum::Ints(sum) }))
    }

    fn of_floats<T: Fixed + Decimal + Into<f64>>(
        &self,
        selection: Option<&Selection>,
    ) -> Result<Option<Totals>, String> {
        let mut sum = -0.0;
        let mut add = |values: &[T]| sum += sum_floats(values);
        let present = match self.entry.encoding {
            Encoding::Alp if self.is_whole(selection) => {
                let layout = Layout::of(&self.entry, self.physical, self.rows)?;
                alp::each_vector(layout.payload(&self.bytes), self, add)?;
                self.rows
            }
            Encoding::PackedDict if self.is_whole(selection) => self.each_of_dictionary(add)?,
            _ => {
                let block = self.some(selection)?;
                let values = values_in::<T>(fixed(&block)?);
                match &block.validity {
                    // A 0 for NULL would change a sum of −0 only to 0.
                    Some(valid) if block.null_count > 0 => {
                        let valid = collect::<u64>(valid);
                        let rows = picked(&valid).take_while(|row| *row < block.rows);
                        add(&rows.map(|row| values[row]).collect::<Vec<_>>());
                    }
                    _ => add(&values),
                }
                block.rows - block.null_count
            }
        };
        Ok(Some(Totals { present, sum: Sum::Floats(sum) }))
    }

    /// Calls `each` with all rows, by vector.
    fn each_of_dictionary<T: bytemuck::Pod>(&self, each: impl FnMut(&[T])) -> Result<usize, String> {
        let layout = Layout::of(&self.entry, self.physical, self.rows)?;
        let distinct = values_in::<T>(layout.first(&self.bytes));
        dict::each_vector(&distinct, layout.codes(&self.bytes), self.rows, each);
        Ok(self.rows)
    }
}

fn fixed(block: &Block) -> Result<&[u8], String> {
    match &block.data {
        BlockData::Fixed(bytes) => Ok(bytes),
        BlockData::Views { .. } => Err(format!("text in a column of {:?}", block.physical)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{TYPES, random_column};
    use super::*;
    use crate::segment::{Effort, encode, to_column};
    use std::collections::HashSet;
    use tidalite_types::{ColumnType, Values};

    fn is_summed(of: ColumnType) -> bool {
        use Physical::{F32, F64, I8, I16, I32, I64};
        matches!(of.physical(), I8 | I16 | I32 | I64 | F32 | F64)
    }

    /// Reference implementation, row by row.
    fn plainly(block: &EncodedBlock, selection: Option<&Selection>) -> Totals {
        let column = to_column(&block.decode().unwrap());
        let is_wanted = |row: usize| selection.is_none_or(|some| some.mask()[row / 64] >> (row % 64) & 1 == 1);
        let rows: Vec<usize> = (0..block.rows).filter(|row| is_wanted(*row) && column.is_valid(*row)).collect();
        let sum = match &column.values {
            Values::I8(v) => Sum::Ints(rows.iter().map(|row| i128::from(v[*row])).sum()),
            Values::I16(v) => Sum::Ints(rows.iter().map(|row| i128::from(v[*row])).sum()),
            Values::I32(v) => Sum::Ints(rows.iter().map(|row| i128::from(v[*row])).sum()),
            Values::I64(v) => Sum::Ints(rows.iter().map(|row| i128::from(v[*row])).sum()),
            Values::F32(v) => Sum::Floats(rows.iter().fold(-0.0, |sum, row| sum + f64::from(v[*row]))),
            Values::F64(v) => Sum::Floats(rows.iter().fold(-0.0, |sum, row| sum + v[*row])),
            _ => unreachable!("numbers only"),
        };
        Totals { present: rows.len(), sum }
    }

    fn assert_alike(found: Totals, expected: Totals, encoding: Encoding) {
        assert_eq!(found.present, expected.present);
        match (found.sum, expected.sum) {
            (Sum::Floats(a), Sum::Floats(b)) => {
                let is_close = (a - b).abs() <= 1e-9 * (a.abs() + b.abs() + 1.0);
                let is_same = a.is_nan() == b.is_nan() && (a.is_nan() || a == b || is_close);
                assert!(is_same || !b.is_finite() || b.abs() > 1e200, "{a} {b} {encoding:?}");
            }
            (a, b) => assert_eq!(a, b, "{encoding:?}"),
        }
    }

    #[test]
    fn totals_are_those_of_the_rows() {
        let mut rng = fastrand::Rng::with_seed(8);
        let types: Vec<ColumnType> = TYPES.into_iter().filter(|of| is_summed(*of)).collect();
        let mut seen = HashSet::new();
        for round in 0..40 * types.len() {
            let column_type = types[round % types.len()];
            let column = random_column(&mut rng, column_type, [1, 70, 3_000, 9_000][round / types.len() % 4]);
            let effort = if rng.bool() { Effort::Fresh } else { Effort::Sealed };
            let block = encode(column_type, &column, 0, column.len(), effort);
            seen.insert(format!("{:?}", block.entry.encoding));
            assert_alike(block.totals(None).unwrap().unwrap(), plainly(&block, None), block.entry.encoding);
            let is_sparse = rng.bool();
            let word = |_| if is_sparse { 1 << rng.u32(..64) } else { rng.u64(..) };
            let mask: Vec<u64> = (0..block.rows.div_ceil(64)).map(word).collect();
            let mask = tidalite_types::Bitmap::from_words(mask, block.rows);
            let mut mask = mask.words().to_vec();
            let last = mask.len() - 1;
            mask[last] &= u64::MAX >> (last * 64 + 64 - block.rows);
            let some = Selection::new(mask);
            assert_alike(
                block.totals(Some(&some)).unwrap().unwrap(),
                plainly(&block, Some(&some)),
                block.entry.encoding,
            );
        }
        for encoding in ["Packed", "PackedDict", "Alp"] {
            assert!(seen.contains(encoding), "{seen:?}");
        }
    }

    #[test]
    fn what_is_not_summed_has_none() {
        let mut rng = fastrand::Rng::with_seed(9);
        for column_type in TYPES.into_iter().filter(|of| !is_summed(*of)) {
            let column = random_column(&mut rng, column_type, 100);
            let totals = encode(column_type, &column, 0, 100, Effort::Fresh).totals(None).unwrap();
            assert_eq!(totals, None, "{column_type:?}");
        }
    }
}
