use super::plain::{DELTA, FRAME, STEP};
use super::*;

const PHYSICALS: [Physical; 11] = [
    Physical::Bit,
    Physical::I8,
    Physical::I16,
    Physical::I32,
    Physical::I64,
    Physical::I128,
    Physical::F32,
    Physical::F64,
    Physical::U32,
    Physical::B16,
    Physical::Views,
];

fn encoded(column: &Column) -> Vec<u8> {
    let mut bytes = vec![7]; // existing bytes are kept
    encode_column(column, &mut bytes);
    assert_eq!(bytes.remove(0), 7);
    bytes
}

/// Returns the bytes of row `row`, so that doubles are compared by their bits.
fn value_bytes(values: &Values, row: usize) -> Vec<u8> {
    tidalite_types::match_values!(
        values,
        v => bytemuck::bytes_of(&v[row]).to_vec(),
        Bit(b) => vec![u8::from(b.get(row))],
        Views(v) => v.get(row).to_vec(),
    )
}

fn assert_same(a: &Column, b: &Column, seed: u64) {
    assert_eq!(a.len(), b.len(), "seed {seed}");
    let zero = Column::nulls(a.values.physical(), 1);
    for row in 0..a.len() {
        assert_eq!(a.is_valid(row), b.is_valid(row), "seed {seed} row {row}");
        let expected = if a.is_valid(row) { value_bytes(&a.values, row) } else { value_bytes(&zero.values, 0) };
        assert_eq!(expected, value_bytes(&b.values, row), "seed {seed} row {row}");
    }
}

fn round_trip(column: &Column, seed: u64) -> Vec<u8> {
    let bytes = encoded(column);
    let mut input = bytes.as_slice();
    let back = decode_column(&mut input, column.values.physical(), column.len())
        .unwrap_or_else(|e| panic!("seed {seed}: {e} in {column:?}"));
    assert!(input.is_empty(), "seed {seed}: {} bytes left", input.len());
    assert_same(column, &back, seed);
    bytes
}

/// Returns integers of all shapes that the encodings detect, and of other shapes.
fn random_long(rng: &mut fastrand::Rng, shape: u8, row: usize) -> i64 {
    match shape {
        0 => 42,
        1 => rng.i64(..),
        2 => [i64::MIN, i64::MAX, 0, -1][rng.usize(..4)],
        3 => 1_451_606_400_000_000_000 + (row as i64 / 10) * 10_000_000_000,
        4 => -5_000_000_000 + row as i64 * 1_000_000 + rng.i64(0..1_000_000),
        5 => rng.i64(-100..100),
        6 => rng.i64(-40_000..40_000),
        7 => i64::MAX - rng.i64(0..1_000) * 6_000_000,
        8 => rng.i64(-1_000..1_000) << 40,
        _ => i64::MIN + row as i64 * 0x0010_0000_0001,
    }
}

fn random_double(rng: &mut fastrand::Rng, shape: u8, row: usize) -> f64 {
    match shape {
        0..=4 => random_long(rng, shape, row) as f64,
        5 => f64::from_bits(rng.u64(..)),
        6 => [0.0, -0.0, f64::NAN, f64::INFINITY, f64::from_bits(0xfff8_0000_0000_0123)][rng.usize(..5)],
        7 => rng.f64() * 100.0,
        8 => f64::from(rng.i32(..)),
        _ => [1e15, 2_251_799_813_685_248.0, 4_503_599_627_370_496.5, -3.0][rng.usize(..4)],
    }
}

fn random_bytes(rng: &mut fastrand::Rng, shape: u8) -> Vec<u8> {
    let len = match shape {
        0..=2 => 5,
        3..=5 => rng.usize(0..=13),
        6..=8 => rng.usize(0..40),
        _ => rng.usize(0..400),
    };
    (0..len).map(|_| rng.u8(..)).collect()
}

fn random_values(rng: &mut fastrand::Rng, physical: Physical, rows: usize) -> Values {
    let shape = rng.u8(..10);
    let mut longs = || (0..rows).map(|row| random_long(&mut *rng, shape, row)).collect::<Vec<_>>();
    match physical {
        Physical::I8 => Values::I8(longs().into_iter().map(|v| v as i8).collect()),
        Physical::I16 => Values::I16(longs().into_iter().map(|v| v as i16).collect()),
        Physical::I32 => Values::I32(longs().into_iter().map(|v| v as i32).collect()),
        Physical::U32 => Values::U32(longs().into_iter().map(|v| v as u32).collect()),
        Physical::I64 => Values::I64(longs()),
        Physical::I128 => {
            let factor = if rng.bool() { 1 } else { i128::from(i64::MAX) };
            Values::I128((0..rows).map(|row| i128::from(random_long(rng, shape, row)) * factor).collect())
        }
        Physical::Bit => Values::Bit((0..rows).map(|_| rng.bool()).collect()),
        Physical::F32 => Values::F32((0..rows).map(|_| f32::from_bits(rng.u32(..))).collect()),
        Physical::F64 => Values::F64((0..rows).map(|row| random_double(rng, shape, row)).collect()),
        Physical::B16 => Values::B16((0..rows).map(|_| rng.u128(..).to_le_bytes()).collect()),
        Physical::Views => {
            let mut views = Views::new();
            (0..rows).for_each(|_| views.push(&random_bytes(rng, shape)));
            Values::Views(views)
        }
    }
}

fn random_column(rng: &mut fastrand::Rng, physical: Physical) -> Column {
    let rows = [rng.usize(..4), rng.usize(..70), rng.usize(..400)][rng.usize(..3)];
    let values = random_values(rng, physical, rows);
    let validity = match rng.u8(..6) {
        0 | 1 => None,
        2 => Some(Bitmap::filled(rows, true)),
        3 => Some(Bitmap::filled(rows, false)),
        4 => Some((0..rows).map(|_| rng.u8(..20) == 0).collect()),
        _ => Some((0..rows).map(|_| rng.u8(..20) != 0).collect()),
    };
    Column { values, validity }
}

#[test]
fn every_column_comes_back() {
    for seed in 0..600 {
        let mut rng = fastrand::Rng::with_seed(seed);
        for physical in PHYSICALS {
            let column = random_column(&mut rng, physical);
            round_trip(&column, seed);
        }
    }
}

#[test]
fn columns_follow_each_other() {
    let mut rng = fastrand::Rng::with_seed(1);
    let columns: Vec<Column> = PHYSICALS.iter().map(|&p| random_column(&mut rng, p)).collect();
    let mut bytes = Vec::new();
    columns.iter().for_each(|c| encode_column(c, &mut bytes));
    let mut input = bytes.as_slice();
    for column in &columns {
        let back = decode_column(&mut input, column.values.physical(), column.len()).unwrap();
        assert_same(column, &back, 1);
    }
    assert!(input.is_empty());
}

#[test]
fn a_column_cut_short_is_an_error() {
    for seed in 0..60 {
        let mut rng = fastrand::Rng::with_seed(seed);
        for physical in PHYSICALS {
            let column = random_column(&mut rng, physical);
            let bytes = encoded(&column);
            for cut in 0..bytes.len() {
                let result = decode_column(&mut &bytes[..cut], physical, column.len());
                assert!(result.is_err(), "seed {seed}: {physical:?} cut at {cut} of {}", bytes.len());
            }
        }
    }
}

#[test]
fn damaged_bytes_never_panic() {
    for seed in 0..2_000 {
        let mut rng = fastrand::Rng::with_seed(seed);
        for physical in PHYSICALS {
            let column = random_column(&mut rng, physical);
            let mut bytes = encoded(&column);
            for _ in 0..rng.usize(1..4) {
                // Headers determine how the rest is read, so they are damaged most often.
                let at = if rng.bool() { rng.usize(..bytes.len().min(30)) } else { rng.usize(..bytes.len()) };
                bytes[at] = if rng.bool() { rng.u8(..6) } else { bytes[at] ^ 1 << rng.u8(..8) };
            }
            let rows = if rng.u8(..4) == 0 { rng.usize(..500) } else { column.len() };
            let other = PHYSICALS[rng.usize(..PHYSICALS.len())];
            for physical in [physical, other] {
                if let Ok(back) = decode_column(&mut bytes.as_slice(), physical, rows) {
                    assert_eq!((back.len(), back.values.physical()), (rows, physical), "seed {seed}");
                }
            }
        }
    }
    for rows in [0, 1, 65, usize::MAX] {
        for physical in PHYSICALS {
            for tag in 0..=6 {
                for width in [0, 1, 3, 8, 255] {
                    let bytes = [0, tag, width, 255, 255, 255, 255, 255, 255, 255, 255, 255];
                    if rows < usize::MAX || width != 0 {
                        let _ = decode_column(&mut bytes.as_slice(), physical, rows);
                    }
                }
            }
        }
    }
}

fn value_tag(values: Values) -> (u8, usize) {
    let bytes = round_trip(&Column::new(values), 0);
    (bytes[1], bytes.len())
}

#[test]
fn columns_that_are_regular_take_few_bytes() {
    let n = 1_000;
    let longs = |f: fn(i64) -> i64| Values::I64((0..n).map(f).collect());
    assert_eq!(value_tag(longs(|_| i64::MIN)), (FRAME, 1 + 10));
    assert_eq!(value_tag(longs(|i| -3 + i % 200)), (FRAME, 1 + 10 + 1_000));
    assert_eq!(value_tag(longs(|i| i * i)), (DELTA, 1 + 26 + 2 * 999));
    // Every 10 s in nanoseconds; ten hosts with equal times; times in shuffled order.
    assert_eq!(value_tag(longs(|i| i * 10_000_000_000)), (DELTA, 1 + 26));
    assert_eq!(value_tag(longs(|i| i / 10 * 10_000_000_000)), (STEP, 1 + 18 + 1_000));
    assert_eq!(value_tag(longs(|i| i * 7_919 % 1_000 * 1_000_003)), (STEP, 1 + 18 + 2_000));
    assert_eq!(value_tag(longs(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64))).0, PLAIN);
    assert_eq!(value_tag(Values::U32((0..1_000).map(|i| 70_000 + i).collect())), (FRAME, 1 + 10 + 2_000));
    assert_eq!(value_tag(Values::F64((0..n).map(|i| (i % 100) as f64).collect())), (LONG, 1 + 1 + 10 + 1_000));
    assert_eq!(value_tag(Values::F64((0..n).map(|i| (i % 100) as f64 / 10.0).collect())), (PLAIN, 2 + 8_000));
    assert_eq!(value_tag(Values::I128((0..n).map(|i| i128::from(i % 100)).collect())), (LONG, 1 + 1 + 10 + 1_000));
}

#[test]
fn one_odd_value_among_regular_ones_is_kept() {
    for odd in [-0.0, f64::NAN, 0.5, f64::INFINITY, 1e300, 5e-324, -1e16] {
        for at in [0, 1, 517, 999] {
            let mut values: Vec<f64> = (0..1_000).map(f64::from).collect();
            values[at] = odd;
            round_trip(&Column::new(Values::F64(values)), at as u64);
        }
    }
    for odd in [1, -1, i64::MIN, i64::MAX, 10_000_000_001] {
        for at in [0, 1, 517, 999] {
            let mut values: Vec<i64> = (0..1_000).map(|i| i * 10_000_000_000).collect();
            values[at] = odd;
            round_trip(&Column::new(Values::I64(values)), at as u64);
        }
    }
}

#[test]
fn nulls_take_no_room() {
    let mut column = Column::nulls(Physical::I64, 6_400);
    assert_eq!(round_trip(&column, 0), [ALL_NULLS]);
    column.validity = Some((0..6_400).map(|i| i == 5).collect());
    assert_eq!(round_trip(&column, 0).len(), 1 + 800 + 9);
}

/// The bytes that `docs/FORMAT.md` specifies.
#[test]
fn the_format_is_what_the_header_says() {
    let column = Column::new(Values::I16((0..12).map(|i| 1_000 + i).collect()));
    let mut expected = vec![0, 1, 1];
    expected.extend(1_000_i64.to_le_bytes());
    expected.extend(0..12);
    assert_eq!(encoded(&column), expected);

    let mut views = Views::new();
    views.push(b"ab");
    views.push(b"");
    views.push(b"longer than twelve");
    let column = Column { values: Values::Views(views), validity: Some([true, false, true].into_iter().collect()) };
    let mut expected = vec![1, 5, 0, 0, 0, 0, 0, 0, 0, 4, 20, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 18, 0, 0, 0];
    expected.extend(b"ablonger than twelve");
    assert_eq!(encoded(&column), expected);
}
