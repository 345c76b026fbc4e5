use super::*;
use crate::segment::encoding::compare::tests::holds;
use crate::segment::encoding::tests::{assert_same, encode_bare};
use crate::segment::encoding::{chunk::Layout, to_column};
use crate::segment::{Comparison, Constant};
use bytes::Bytes;
use tidalite_types::{BLOCK_ROWS, Column, ColumnType, Values};

const ROWS: [usize; 6] = [1, 700, 1024, 5_000, BLOCK_ROWS - 1, BLOCK_ROWS];

fn strange(rng: &mut fastrand::Rng) -> f64 {
    let special = [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 5e-324, 1e300];
    if rng.bool() { special[rng.usize(..special.len())] } else { f64::from_bits(rng.u64(..)) }
}

/// Returns values of a shape: decimals of one or several scales, a walk of full precision, or any bits; some special,
/// some NULL.
fn column(rng: &mut fastrand::Rng, rows: usize, is_narrow: bool) -> Column {
    let shape = rng.u8(0..7);
    let power = 10f64.powi(rng.i32(0..8));
    let range_bits = rng.u32(1..40);
    let range = rng.i64(1..1 << range_bits);
    let strange_of = [0, 0, 2_000, 40, 2][rng.usize(..5)];
    let nulls_of = [0, 0, 3, 500][rng.usize(..4)];
    let stretch = [1, 3_000][rng.usize(..2)];
    let mut null_until = 0;
    let mut at = 100.0;
    let mut column = Column::with_capacity(if is_narrow { Physical::F32 } else { Physical::F64 }, rows);
    for row in 0..rows {
        at += rng.f64() - 0.5;
        if nulls_of > 0 && rng.usize(..nulls_of) == 0 {
            null_until = row + rng.usize(1..=stretch);
        }
        if row < null_until {
            column.extend_null(1);
            continue;
        }
        let v = match shape {
            _ if strange_of > 0 && rng.usize(..strange_of) == 0 => strange(rng),
            0 => at,
            1 => f64::from_bits(rng.u64(..)),
            2 => rng.i64(0..range) as f64 / if row / 3_000 % 2 == 0 { 10.0 } else { power },
            3 => rng.i64(0..range) as f64 * power,
            _ => rng.i64(-range..range) as f64 / power,
        };
        match &mut column.values {
            Values::F32(values) => values.push(v as f32),
            Values::F64(values) => values.push(v),
            _ => unreachable!(),
        }
        if let Some(validity) = &mut column.validity {
            validity.push(true);
        }
    }
    column
}

fn blocks(seed: u64, count: usize) -> impl Iterator<Item = (Column, EncodedBlock)> {
    let mut rng = fastrand::Rng::with_seed(seed);
    (0..count).map(move |i| {
        let is_narrow = rng.u8(..) < 80;
        let column = column(&mut rng, ROWS[i % ROWS.len()], is_narrow);
        let column_type = if is_narrow { ColumnType::Float } else { ColumnType::Double };
        let effort = if rng.bool() { Effort::Fresh } else { Effort::Sealed };
        let block = encode_bare(column_type, &column, effort);
        (column, block)
    })
}

#[test]
fn every_bit_pattern_comes_back() {
    let mut seen = Vec::new();
    for (column, block) in blocks(1, 120) {
        block.check().unwrap();
        let mut expected = column.clone();
        let decoded = to_column(&block.decode().unwrap());
        // Values of NULL rows are unspecified before encoding and zero after decoding.
        if let Some(validity) = &expected.validity {
            match &mut expected.values {
                Values::F32(values) => nulls::fill_nulls(values, validity.words(), 0.0),
                Values::F64(values) => nulls::fill_nulls(values, validity.words(), 0.0),
                _ => unreachable!(),
            }
        }
        assert_same(&expected, &decoded);
        seen.push(block.entry.encoding);
    }
    for encoding in [Encoding::Alp, Encoding::AlpRd, Encoding::Plain] {
        assert!(seen.iter().filter(|e| **e == encoding).count() > 3, "{encoding:?} among {seen:?}");
    }
}

fn constants(rng: &mut fastrand::Rng, values: &[f64]) -> Vec<f64> {
    let value = values[rng.usize(..values.len())];
    let other = values[rng.usize(..values.len())];
    vec![
        value,
        value.next_up(),
        value.next_down(),
        (value + other) / 2.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        0.0,
        -0.0,
        f64::from_bits(rng.u64(..)),
    ]
}

#[test]
fn comparing_integers_is_comparing_values() {
    let mut rng = fastrand::Rng::with_seed(2);
    let mut compared = 0;
    for (column, block) in blocks(3, 120).filter(|(_, block)| block.entry.encoding == Encoding::Alp) {
        let values: Vec<f64> = match &column.values {
            Values::F32(values) => values.iter().map(|v| f64::from(*v)).collect(),
            Values::F64(values) => values.clone(),
            _ => unreachable!(),
        };
        for constant in constants(&mut rng, &values) {
            use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
            let comparison = [Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual][rng.usize(..6)];
            let mask = block.compare(comparison, Constant::Float(constant)).unwrap();
            for (row, value) in values.iter().enumerate() {
                let bit = mask[row / 64] >> (row % 64) & 1 == 1;
                let order = value.partial_cmp(&constant).unwrap_or_else(|| value.is_nan().cmp(&constant.is_nan()));
                let expected = column.is_valid(row) && holds(comparison, order);
                assert_eq!(bit, expected, "{value} {comparison:?} {constant}");
            }
            compared += 1;
        }
    }
    assert!(compared > 300, "{compared}");
}

#[test]
fn damaged_bytes_are_refused_or_decoded() {
    let mut rng = fastrand::Rng::with_seed(4);
    let mut refused = 0;
    let kinds = [Encoding::Alp, Encoding::AlpRd];
    for (_, block) in blocks(5, 60).filter(|(_, b)| kinds.contains(&b.entry.encoding) && b.rows <= 5_000) {
        let layout = Layout::of(&block.entry, block.physical, block.rows).unwrap();
        let payload_at = block.bytes.len() - layout.payload(&block.bytes).len();
        for _ in 0..300 {
            let mut damaged = block.clone();
            let mut bytes = block.bytes.to_vec();
            // The headers of the vectors more often than the lines.
            let end = if rng.bool() { bytes.len() } else { bytes.len().min(payload_at + 60) };
            for _ in 0..rng.usize(1..4) {
                bytes[rng.usize(payload_at..end)] = rng.u8(..);
            }
            if rng.u8(..) < 20 {
                bytes.truncate(rng.usize(payload_at..bytes.len()));
                damaged.entry.bytes = bytes.len() as u32;
            }
            damaged.bytes = Bytes::from(bytes);
            match damaged.check() {
                Ok(()) => {
                    assert_eq!(to_column(&damaged.decode().unwrap()).len(), block.rows);
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 300, "{refused}");
}

#[test]
fn shapes_take_what_they_must() {
    let mut rng = fastrand::Rng::with_seed(6);
    let mut bits_of = |make: &mut dyn FnMut(&mut fastrand::Rng) -> f64| {
        let values = (0..BLOCK_ROWS).map(|_| make(&mut rng)).collect();
        let block = encode_bare(ColumnType::Double, &Column::new(Values::F64(values)), Effort::Sealed);
        (block.entry.encoding, block.bytes.len() as f64 * 8.0 / BLOCK_ROWS as f64)
    };
    // Zones take at most 2 bits per row, headers of vectors 0.1.
    let (encoding, bits) = bits_of(&mut |rng| f64::from(rng.u8(0..=100)));
    assert!(encoding == Encoding::Alp && bits < 7.4, "{encoding:?} {bits}");
    let (encoding, bits) = bits_of(&mut |rng| f64::from(rng.i32(-9_000_000..9_000_000)) / 1e5);
    assert!(encoding == Encoding::Alp && bits < 25.4, "{encoding:?} {bits}");
    let mut at = 100.0;
    let (encoding, bits) = bits_of(&mut |rng| {
        at += rng.f64() - 0.5;
        at
    });
    assert!(encoding == Encoding::AlpRd && bits < 58.0, "{encoding:?} {bits}");
    let (encoding, _) = bits_of(&mut |rng| f64::from_bits(rng.u64(..)));
    assert_eq!(encoding, Encoding::Plain);
}
