//! Sorts rows by several columns, as ORDER BY specifies.
//!
//! Columns are converted to numbers from 0, in as few bits as their values differ in, and adjacent columns of few bits
//! are combined into one number. The columns are sorted stably from the last to the first; columns that are already
//! sorted are skipped.

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringViewArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type, UInt32Type};
use tidalite_kernels::{order_of_float, sort_permutation};

/// Numbers of at most this many bits are sorted in two passes.
const JOINED_BITS: u32 = 22;

/// A sort key.
pub struct SortKey {
    pub column: ArrayRef,
    /// For a column of codes: the strings of the codes, which are compared.
    pub dictionary: Option<StringViewArray>,
    pub descending: bool,
    pub nulls_first: bool,
}

/// Returns true if columns of the type can be sorted.
#[must_use]
pub fn is_sortable(data_type: &DataType) -> bool {
    use DataType::{Boolean, Date32, Date64, Duration, Float32, Float64, Int8, Int16, Int32, Int64};
    use DataType::{Time32, Time64, Timestamp, UInt8, UInt16, UInt32};
    matches!(data_type, Boolean | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | Float32 | Float64)
        || matches!(data_type, Date32 | Date64 | Time32(_) | Time64(_) | Timestamp(..) | Duration(_))
}

/// Returns the row numbers in order; rows that are equal in all keys keep their order.
///
/// Returns `None` for types that are not sortable, and for values so far apart that no number is left for NULL.
#[must_use]
pub fn sort_order(keys: &[SortKey], rows: usize) -> Option<Vec<u32>> {
    let mut joined: Vec<Numbers> = Vec::new();
    for key in keys {
        let own = Numbers::of(key)?;
        match joined.last_mut().filter(|last| last.bits + own.bits <= JOINED_BITS) {
            Some(last) => last.join(&own),
            None => joined.push(own),
        }
    }
    let mut order: Option<Vec<u32>> = None;
    for numbers in joined.iter().rev().filter(|numbers| numbers.bits > 0) {
        // Converts to the order of unsigned numbers.
        let signed = |number: u64| (number ^ 1 << 63).cast_signed();
        let values = &numbers.values;
        order = Some(match order {
            None => sort_permutation(&values.iter().map(|v| signed(*v)).collect::<Vec<_>>()),
            Some(order) => {
                let own: Vec<i64> = order.iter().map(|row| signed(values[*row as usize])).collect();
                sort_permutation(&own).iter().map(|at| order[*at as usize]).collect()
            }
        });
    }
    Some(order.unwrap_or_else(|| (0..rows as u32).collect()))
}

/// A column converted to numbers from 0 with the requested order.
struct Numbers {
    values: Vec<u64>,
    bits: u32,
}

impl Numbers {
    fn of(key: &SortKey) -> Option<Numbers> {
        let ints = ints(key)?;
        let (least, greatest) = (ints.iter().flatten().min(), ints.iter().flatten().max());
        let least = least.unwrap_or(0);
        let range = greatest.unwrap_or(0).wrapping_sub(least).cast_unsigned();
        let (shift, null) = match (ints.null_count() > 0, key.nulls_first) {
            (false, _) => (0, 0),
            (true, true) => (1, 0),
            (true, false) => (0, range.checked_add(1)?),
        };
        let last = range.checked_add(shift)?.max(null);
        let number = |value: i64| {
            let above = value.wrapping_sub(least).cast_unsigned();
            shift + if key.descending { range - above } else { above }
        };
        let values = match ints.null_count() {
            0 => ints.values().iter().map(|value| number(*value)).collect(),
            _ => ints.iter().map(|value| value.map_or(null, number)).collect(),
        };
        Some(Numbers { values, bits: u64::BITS - last.leading_zeros() })
    }

    /// Appends the bits of the next column.
    fn join(&mut self, behind: &Numbers) {
        for (own, value) in self.values.iter_mut().zip(&behind.values) {
            *own = *own << behind.bits | value;
        }
        self.bits += behind.bits;
    }
}

fn ints(key: &SortKey) -> Option<Int64Array> {
    let column = &key.column;
    if let Some(dictionary) = &key.dictionary {
        return ranks(column, dictionary);
    }
    if !is_sortable(column.data_type()) {
        return None;
    }
    if column.data_type().is_floating() {
        let floats = cast(column, &DataType::Float64).ok()?;
        return Some(floats.as_primitive::<Float64Type>().unary::<_, Int64Type>(order_of_float));
    }
    // Arrow casts 32-bit types in two steps.
    let wide = match column.data_type() {
        DataType::Date32 | DataType::Time32(_) => cast(&cast(column, &DataType::Int32).ok()?, &DataType::Int64),
        _ => cast(column, &DataType::Int64),
    };
    Some(wide.ok()?.as_primitive::<Int64Type>().clone())
}

/// Returns the ranks of the strings of codes. Only strings that occur are compared.
fn ranks(column: &ArrayRef, dictionary: &StringViewArray) -> Option<Int64Array> {
    let codes = column.as_primitive_opt::<UInt32Type>()?;
    let mut ranks = vec![0_i64; dictionary.len()];
    for code in codes.iter().flatten() {
        *ranks.get_mut(code as usize)? = 1;
    }
    let mut present: Vec<usize> = (0..ranks.len()).filter(|code| ranks[*code] == 1).collect();
    present.sort_unstable_by(|a, b| dictionary.value(*a).cmp(dictionary.value(*b)));
    present.iter().zip(0..).for_each(|(code, rank)| ranks[*code] = rank);
    Some(codes.iter().map(|code| code.map(|code| ranks[code as usize])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{BooleanArray, Date32Array, Float64Array, TimestampNanosecondArray, UInt32Array, UInt64Array};
    use arrow::compute::{SortColumn, SortOptions, lexsort, take};
    use std::sync::Arc;

    fn random_key(random: &mut fastrand::Rng, rows: usize) -> SortKey {
        let mut nullable = |value: i64| (random.u8(0..10) > 0).then_some(value);
        let wide = [0, 40, 62][rows % 3];
        let ints: Vec<Option<i64>> =
            (0..rows as i64).map(|row| nullable(row.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64) >> wide)).collect();
        let dictionary: StringViewArray = ["m", "", "z", "aa", "ä", "b", "never"].into_iter().map(Some).collect();
        let (column, dictionary): (ArrayRef, _) = match random.u8(0..6) {
            0 => (Arc::new(Int64Array::from(ints)), None),
            1 => (Arc::new(TimestampNanosecondArray::from(ints)), None),
            2 => (Arc::new(ints.iter().map(|v| v.map(|v| v % 2 == 0)).collect::<BooleanArray>()), None),
            3 => (Arc::new(ints.iter().map(|v| v.map(|v| v as i32)).collect::<Date32Array>()), None),
            4 => {
                let special = [f64::NAN, 0.0, f64::INFINITY, f64::NEG_INFINITY];
                let float = |v: i64| special.get(v.rem_euclid(9) as usize).copied().unwrap_or(v as f64);
                (Arc::new(ints.iter().map(|v| v.map(float)).collect::<Float64Array>()), None)
            }
            _ => {
                let codes = ints.iter().map(|v| v.map(|v| v.rem_euclid(6) as u32));
                (Arc::new(codes.collect::<UInt32Array>()), Some(dictionary))
            }
        };
        SortKey { column, dictionary, descending: random.bool(), nulls_first: random.bool() }
    }

    #[test]
    fn rows_are_ordered_as_arrow_orders_them() {
        let mut random = fastrand::Rng::with_seed(4);
        for round in 0..300 {
            let rows = [0, 1, 2, 100, 3_000][round % 5];
            let keys: Vec<SortKey> = (0..=round % 4).map(|_| random_key(&mut random, rows)).collect();
            let plain = |key: &SortKey| match &key.dictionary {
                Some(texts) => take(texts, key.column.as_ref(), None).expect("codes of the dictionary"),
                None => key.column.clone(),
            };
            // The row numbers are the last key: equal rows keep their order.
            let numbers: ArrayRef = Arc::new((0..rows as u64).collect::<UInt64Array>());
            let mut columns: Vec<SortColumn> = keys
                .iter()
                .map(|key| SortColumn {
                    values: plain(key),
                    options: Some(SortOptions { descending: key.descending, nulls_first: key.nulls_first }),
                })
                .collect();
            columns.push(SortColumn { values: numbers.clone(), options: None });
            let expected = lexsort(&columns, None).expect("columns to sort");
            let order = sort_order(&keys, rows).expect("columns that are understood");
            let found = take(&numbers, &UInt32Array::from(order), None).expect("rows that are there");
            assert_eq!(&found, &expected[keys.len()], "round {round}");
        }
    }

    #[test]
    fn what_is_not_understood_is_said() {
        let texts: ArrayRef = Arc::new(StringViewArray::from(vec!["a"]));
        let key = |column: ArrayRef| SortKey { column, dictionary: None, descending: false, nulls_first: false };
        assert_eq!(sort_order(&[key(texts)], 1), None);
        let far = Int64Array::from(vec![Some(i64::MIN), None, Some(i64::MAX)]);
        assert_eq!(sort_order(&[key(Arc::new(far))], 3), None, "no number is left for NULL");
    }
}
