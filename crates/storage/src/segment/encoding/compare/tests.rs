use super::super::tests::{TYPES, random_column, shapes};
use super::*;
use crate::segment::encoding::encode;
use crate::segment::{Effort, to_column};
use tidalite_types::{Column, ColumnType, Values};

const COMPARISONS: [Comparison; 6] = [
    Comparison::Equal,
    Comparison::NotEqual,
    Comparison::Less,
    Comparison::LessOrEqual,
    Comparison::Greater,
    Comparison::GreaterOrEqual,
];

/// Compares in the order of PostgreSQL: NaN is greater than every number and equal to itself.
fn order(a: f64, b: f64) -> std::cmp::Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

pub(in crate::segment::encoding) fn holds(comparison: Comparison, order: std::cmp::Ordering) -> bool {
    match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    }
}

fn int_at(values: &Values, row: usize) -> Option<i128> {
    Some(match values {
        Values::Bit(v) => v.get(row).into(),
        Values::I8(v) => v[row].into(),
        Values::I16(v) => v[row].into(),
        Values::I32(v) => v[row].into(),
        Values::I64(v) => v[row].into(),
        Values::I128(v) => v[row],
        Values::U32(v) => v[row].into(),
        _ => return None,
    })
}

fn float_at(values: &Values, row: usize) -> Option<f64> {
    match values {
        Values::F32(v) => Some(v[row].into()),
        Values::F64(v) => Some(v[row]),
        _ => None,
    }
}

/// Decodes, then compares row by row.
fn expected(column: &Column, comparison: Comparison, constant: Constant) -> Option<Vec<u64>> {
    let mut mask = vec![0; column.len().div_ceil(64)];
    for row in 0..column.len() {
        let order = match constant {
            Constant::Int(c) => int_at(&column.values, row)?.cmp(&c),
            Constant::Float(c) => order(float_at(&column.values, row)?, c),
        };
        if column.is_valid(row) && holds(comparison, order) {
            mask[row / 64] |= 1 << (row % 64);
        }
    }
    Some(mask)
}

/// Compares with values of the column, adjacent values and extremes. Returns the number of results other than `None`.
fn check(rng: &mut fastrand::Rng, column_type: ColumnType, column: &Column, effort: Effort) -> usize {
    let block = encode(column_type, column, 0, column.len(), effort);
    let decoded = to_column(&block.decode().unwrap());
    let rows: Vec<usize> = (0..4).map(|_| rng.usize(..column.len())).collect();
    let mut constants = vec![
        Constant::Int(i128::MAX),
        Constant::Int(i64::MIN.into()),
        Constant::Int(i64::MAX.into()),
        Constant::Int(0),
        Constant::Int(1),
    ];
    constants.extend([f64::NAN, -0.0, f64::INFINITY, f64::NEG_INFINITY, 1.5].map(Constant::Float));
    let ints = rows.iter().filter_map(|r| int_at(&column.values, *r));
    constants.extend(ints.flat_map(|v| [v, v.saturating_add(1), v.saturating_sub(1)]).map(Constant::Int));
    constants.extend(rows.iter().filter_map(|r| float_at(&column.values, *r)).map(Constant::Float));
    let mut answers = 0;
    for constant in constants {
        for comparison in COMPARISONS {
            let Some(mask) = block.compare(comparison, constant) else { continue };
            answers += 1;
            // An impossible range has a result for every type.
            let Some(expected) = expected(&decoded, comparison, constant) else {
                assert!(mask.iter().all(|word| *word == 0));
                continue;
            };
            let encoding = block.entry.encoding;
            assert!(mask == expected, "{column_type} {encoding:?} {comparison:?} {constant:?}");
        }
    }
    answers
}

#[test]
fn answers_are_those_of_decoding_first() {
    let mut rng = fastrand::Rng::with_seed(1);
    let sizes = [1, 2, 63, 64, 65, 1023, 1024, 1025, 3_000, 10_000];
    for round in 0..40 {
        let effort = if round % 2 == 0 { Effort::Fresh } else { Effort::Sealed };
        for column_type in TYPES {
            let column = random_column(&mut rng, column_type, sizes[round % sizes.len()]);
            check(&mut rng, column_type, &column, effort);
        }
    }
}

#[test]
fn packed_blocks_of_every_shape_are_compared() {
    let mut rng = fastrand::Rng::with_seed(2);
    for (rows, effort) in [(5_000, Effort::Fresh), (65_536, Effort::Sealed), (1_024, Effort::Sealed)] {
        for (name, column_type, column) in shapes(&mut rng, rows) {
            assert!(check(&mut rng, column_type, &column, effort) > 0, "{name}");
        }
    }
}

#[test]
fn text_and_uuids_have_no_answer() {
    let mut rng = fastrand::Rng::with_seed(3);
    for column_type in [ColumnType::Varchar, ColumnType::Uuid] {
        let column = random_column(&mut rng, column_type, 100);
        let block = encode(column_type, &column, 0, 100, Effort::Fresh);
        assert_eq!(block.compare(Comparison::Equal, Constant::Int(1)), None);
    }
}
