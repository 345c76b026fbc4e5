use super::*;
use crate::{Bounds, Zone};
use tidalite_types::{TimeUnit, VECTOR_ROWS, Views};

/// One column type for every physical type, and symbols.
pub(crate) const TYPES: [ColumnType; 16] = [
    ColumnType::Boolean,
    ColumnType::Byte,
    ColumnType::Short,
    ColumnType::Int,
    ColumnType::Long,
    ColumnType::Float,
    ColumnType::Double,
    ColumnType::Decimal { precision: 9, scale: 2 },
    ColumnType::Decimal { precision: 30, scale: 2 },
    ColumnType::Timestamp(TimeUnit::Nanos),
    ColumnType::Date,
    ColumnType::Symbol,
    ColumnType::Varchar,
    ColumnType::Uuid,
    ColumnType::Ipv4,
    ColumnType::Json,
];

/// Encodings that are currently written for blocks with values.
pub(crate) const WRITTEN: [Encoding; 10] = [
    Encoding::Plain,
    Encoding::Constant,
    Encoding::Packed,
    Encoding::Delta,
    Encoding::Runs,
    Encoding::PackedDict,
    Encoding::Alp,
    Encoding::AlpRd,
    Encoding::Fsst,
    Encoding::FsstDict,
];

/// Returns rows with `distinct` values spread by `1 << bits`; on average every `nulls`-th row is NULL.
pub(crate) fn random_column(rng: &mut fastrand::Rng, column_type: ColumnType, rows: usize) -> Column {
    let distinct = [1, 2, 200, 256, 257, 5_000, u64::MAX][rng.usize(..7)];
    let shift = [0, 0, 5, 20, 40, 60][rng.usize(..6)];
    let base = if rng.bool() { rng.u64(..) } else { 0 };
    let nulls = [0, 0, 2, 50, 3_000][rng.usize(..5)];
    let mut column = Column::with_capacity(column_type.physical(), rows);
    let stretch = [1, 1, 700, 2_000][rng.usize(..4)];
    let mut null_until = 0;
    for row in 0..rows {
        if nulls > 0 && rng.usize(..nulls) == 0 {
            null_until = row + rng.usize(1..=stretch);
        }
        let n = base.wrapping_add(rng.u64(..distinct) << shift);
        match &mut column.values {
            _ if row < null_until => {
                column.extend_null(1);
                continue;
            }
            Values::Bit(v) => v.push(n & 1 == 1),
            Values::I8(v) => v.push(n as i8),
            Values::I16(v) => v.push(n as i16),
            Values::I32(v) => v.push(n as i32),
            Values::I64(v) => v.push(n as i64),
            Values::I128(v) => v.push(if base == 0 { i128::from(n) } else { (i128::from(n) << 40) - 7 }),
            Values::F32(v) => v.push(f32::from_bits(n as u32)),
            Values::F64(v) => v.push(if shift == 0 { n as f64 } else { f64::from_bits(n) }),
            Values::U32(v) => v.push(n as u32),
            Values::B16(v) => v.push((u128::from(n) << 3).to_le_bytes()),
            Values::Views(v) => v.push(
                "the same beginning "
                    .repeat(n as usize % 3)
                    .as_bytes()
                    .iter()
                    .copied()
                    .chain(n.to_string().into_bytes())
                    .collect::<Vec<u8>>()
                    .as_slice(),
            ),
        }
        if let Some(validity) = &mut column.validity {
            validity.push(true);
        }
    }
    column
}

/// Returns columns with the shapes of real tables; some have NULL rows.
pub(crate) fn shapes(rng: &mut fastrand::Rng, rows: usize) -> Vec<(&'static str, ColumnType, Column)> {
    let start = 1_451_606_400_000_000i64;
    let timestamp = ColumnType::Timestamp(TimeUnit::Micros);
    let count = rows as i64;
    let mut walk = start;
    let mut jittered = || {
        walk += 900 + rng.i64(0..200);
        walk
    };
    let walk: Vec<i64> = (0..rows).map(|_| jittered()).collect();
    let mut i64s = |make: &mut dyn FnMut(&mut fastrand::Rng, i64) -> i64| -> Values {
        Values::I64((0..count).map(|i| make(rng, i)).collect())
    };
    let longs = vec![
        ("even steps", timestamp, i64s(&mut |_, i| start + i * 1_000)),
        ("jitter around even steps", timestamp, i64s(&mut |rng, i| start + i * 1_000 + rng.i64(0..300))),
        ("rows of one time", timestamp, i64s(&mut |_, i| start + i / 400 * 1_000_000)),
        ("gaps", timestamp, i64s(&mut |rng, i| start + i * 1_000 + i / 900 * (1 << 40) + rng.i64(0..4))),
        ("growing steps", ColumnType::Long, i64s(&mut |_, i| i * i * 7 - 3 * i)),
        ("outliers above", ColumnType::Long, i64s(&mut |rng, i| if i % 300 == 7 { 1 << 60 } else { rng.i64(0..50) })),
        ("outliers below", ColumnType::Long, i64s(&mut |rng, i| if i % 300 == 7 { i64::MIN } else { rng.i64(0..50) })),
        ("extremes", ColumnType::Long, i64s(&mut |rng, _| [i64::MIN, i64::MAX, 0, -1][rng.usize(..4)])),
        ("extremes in turn", ColumnType::Long, i64s(&mut |_, i| if i % 2 == 0 { i64::MIN } else { i64::MAX })),
        ("far apart", ColumnType::Long, i64s(&mut |rng, _| rng.i64(0..90) << 50)),
        ("17 bits", ColumnType::Long, i64s(&mut |rng, _| rng.i64(-60_000..60_000))),
        ("40 bits", ColumnType::Long, i64s(&mut |rng, _| rng.i64(0..1 << 40))),
        ("random", ColumnType::Long, i64s(&mut |rng, _| rng.i64(..))),
        ("same", ColumnType::Long, i64s(&mut |_, _| 42)),
        ("walk", timestamp, Values::I64(walk)),
    ];
    let mut columns = longs;
    let cyclic = (0..rows).map(|i| (i % 700) as u32).collect();
    columns.push(("cyclic symbols", ColumnType::Symbol, Values::U32(cyclic)));
    let symbols = (0..rows).map(|_| rng.u32(..1_000)).collect();
    columns.push(("symbols", ColumnType::Symbol, Values::U32(symbols)));
    let addresses = (0..rows).map(|i| if i % 2 == 0 { u32::MAX } else { rng.u32(..3) }).collect();
    columns.push(("addresses", ColumnType::Ipv4, Values::U32(addresses)));
    let steps = (0..rows).map(|i| i32::MIN + i as i32 * 3).collect();
    columns.push(("dates", ColumnType::Date, Values::I32(steps)));
    let wrapping = (0..rows).map(|i| if i % 2 == 0 { i32::MIN } else { i32::MAX }).collect();
    columns.push(("int extremes", ColumnType::Int, Values::I32(wrapping)));
    columns.push(("bytes", ColumnType::Byte, Values::I8((0..rows).map(|_| rng.i8(-8..8)).collect())));
    columns.push(("shorts", ColumnType::Short, Values::I16((0..rows).map(|_| rng.i16(..)).collect())));
    let decimal = ColumnType::Decimal { precision: 30, scale: 2 };
    columns.push(("decimals", decimal, Values::I128((0..rows).map(|_| i128::from(rng.i32(..))).collect())));
    let wide = (0..rows).map(|_| i128::from(rng.i64(0..3)) << 90).collect();
    columns.push(("wide decimals", decimal, Values::I128(wide)));
    let floats = [f64::NAN, -f64::NAN, 0.0, -0.0, 1.5, f64::INFINITY];
    let floats = (0..rows).map(|_| floats[rng.usize(..6)]).collect();
    columns.push(("doubles", ColumnType::Double, Values::F64(floats)));
    let prices = (0..rows).map(|i| f64::from(rng.i32(0..100_000)) / if i < 1_500 { 100.0 } else { 8.0 }).collect();
    columns.push(("prices", ColumnType::Double, Values::F64(prices)));
    let temperatures = (0..rows).map(|_| f32::from(rng.i16(-400..400)) / 10.0).collect();
    columns.push(("temperatures", ColumnType::Float, Values::F32(temperatures)));
    let full = (0..rows).map(|i| 100.0 + i as f64 + rng.f64()).collect();
    columns.push(("full precision", ColumnType::Double, Values::F64(full)));
    let mut text = |make: &mut dyn FnMut(&mut fastrand::Rng) -> String| {
        let mut views = Views::new();
        (0..rows).for_each(|_| views.push(make(rng).as_bytes()));
        Values::Views(views)
    };
    let lines = text(&mut |rng| format!("GET /orders/{} took {} ms", rng.u32(..), rng.u16(..900)));
    columns.push(("lines", ColumnType::Varchar, lines));
    let names = text(&mut |rng| format!("a name of an instrument with number {}", rng.u8(..100)));
    columns.push(("names", ColumnType::Varchar, names));
    columns.push(("all true", ColumnType::Boolean, Values::Bit(Bitmap::filled(rows, true))));
    columns.push(("flags", ColumnType::Boolean, Values::Bit((0..rows).map(|i| i / 100 % 2 == 0).collect())));
    let with_nulls = |(i, (name, column_type, values)): (usize, (&'static str, ColumnType, Values))| {
        let validity = (i % 3 == 1).then(|| (0..rows).map(|_| rng.usize(..20) > 0).collect());
        (name, column_type, Column { values, validity })
    };
    columns.into_iter().enumerate().map(with_nulls).collect()
}

/// Encodes a block like a sealed block for which compression does not pay.
pub(crate) fn encode_bare(column_type: ColumnType, column: &Column, effort: Effort) -> EncodedBlock {
    encode_with(column_type, column, (0, column.len()), effort, false)
}

#[test]
fn real_shapes_come_back_with_right_zones() {
    let mut rng = fastrand::Rng::with_seed(4);
    let mut seen = std::collections::HashSet::new();
    for rows in [1, 2, 3, 1_023, 1_024, 1_025, 2_049, 30_000, 65_536] {
        for (name, column_type, column) in shapes(&mut rng, rows) {
            for effort in [Effort::Fresh, Effort::Sealed] {
                let block = encode(column_type, &column, 0, rows, effort);
                block.check().unwrap_or_else(|problem| panic!("{name}: {problem}"));
                // NULL rows are decoded as zeros.
                let mut expected = Column::with_capacity(column_type.physical(), 0);
                (0..rows).for_each(|row| match column.is_valid(row) {
                    true => expected.extend_from_range(&column, row, 1),
                    false => expected.extend_null(1),
                });
                assert_same(&expected, &to_column(&block.decode().unwrap()));
                assert!(same_zone(block.zone(), naive_zone(column_type, &column, 0, rows)), "{name}");
                check_vectors(column_type, &column, 0, &block);
                seen.insert(block.entry.encoding as u8);
            }
        }
    }
    assert!([1, 4, 5, 6, 7, 8, 13].iter().all(|tag| seen.contains(tag)), "{seen:?}");
}

#[test]
fn sealed_blocks_are_small() {
    let mut rng = fastrand::Rng::with_seed(5);
    let mut bits = std::collections::HashMap::new();
    for (name, column_type, column) in shapes(&mut rng, BLOCK_ROWS) {
        let column = Column::new(column.values);
        let block = encode(column_type, &column, 0, BLOCK_ROWS, Effort::Sealed);
        bits.insert(name, 8.0 * block.bytes.len() as f64 / BLOCK_ROWS as f64);
    }
    // The information in the values, and a fraction of a bit for bounds and references of vectors.
    for (name, most) in [
        ("even steps", 0.5),
        ("jitter around even steps", 10.5),
        ("walk", 8.5),
        ("gaps", 3.5),
        ("growing steps", 0.6),
        ("outliers above", 6.8),
        ("outliers below", 6.8),
        ("17 bits", 17.5),
        ("same", 0.01),
        ("cyclic symbols", 0.6),
        ("symbols", 10.2),
        ("dates", 0.5),
        ("decimals", 32.5),
        ("all true", 0.0),
    ] {
        assert!(bits[name] <= most, "{name}: {:.2} bits", bits[name]);
    }
}

/// Compares bits, so that NaNs and the two zeros are distinguished.
pub(crate) fn assert_same(a: &Column, b: &Column) {
    let bits = |c: &Column| match &c.values {
        Values::F32(v) => v.iter().map(|v| u64::from(v.to_bits())).collect::<Vec<_>>(),
        Values::F64(v) => v.iter().map(|v| v.to_bits()).collect(),
        _ => Vec::new(),
    };
    assert_eq!(a.len(), b.len());
    assert_eq!(a.validity.as_ref().filter(|v| v.count_zeros() > 0), b.validity.as_ref());
    match (&a.values, &b.values) {
        (Values::F32(_) | Values::F64(_), _) => assert_eq!(bits(a), bits(b)),
        (Values::Views(a), Values::Views(b)) => assert!(a.iter().eq(b.iter())),
        (a, b) => assert_eq!(a, b),
    }
}

/// Returns the expected zone map of rows `from..from + rows`.
pub(crate) fn naive_zone(column_type: ColumnType, column: &Column, from: usize, rows: usize) -> Zone {
    let valid: Vec<usize> = (from..from + rows).filter(|r| column.is_valid(*r)).collect();
    let ints = |get: &dyn Fn(usize) -> i128| -> Bounds {
        let (lo, hi) = (valid.iter().map(|r| get(*r)).min(), valid.iter().map(|r| get(*r)).max());
        match (lo.map(i64::try_from), hi.map(i64::try_from)) {
            (Some(Ok(lo)), Some(Ok(hi))) => Bounds::Int(lo, hi),
            _ => Bounds::None,
        }
    };
    let floats = |get: &dyn Fn(usize) -> f64| -> Bounds {
        let values: Vec<f64> = valid.iter().map(|r| get(*r) + 0.0).collect();
        let less = |a: &f64, b: &f64| a.partial_cmp(b).unwrap_or(a.is_nan().cmp(&b.is_nan()));
        let bounds = values.iter().copied().min_by(less).zip(values.iter().copied().max_by(less));
        bounds.map_or(Bounds::None, |(lo, hi)| Bounds::Float(lo, hi))
    };
    let bounds = match &column.values {
        Values::U32(_) if column_type == ColumnType::Symbol => Bounds::None,
        Values::Bit(v) => ints(&|r| i128::from(v.get(r))),
        Values::I8(v) => ints(&|r| v[r].into()),
        Values::I16(v) => ints(&|r| v[r].into()),
        Values::I32(v) => ints(&|r| v[r].into()),
        Values::I64(v) => ints(&|r| v[r].into()),
        Values::I128(v) => ints(&|r| v[r]),
        Values::U32(v) => ints(&|r| v[r].into()),
        Values::F32(v) => floats(&|r| v[r].into()),
        Values::F64(v) => floats(&|r| v[r]),
        Values::B16(_) | Values::Views(_) => Bounds::None,
    };
    Zone { null_count: (rows - valid.len()) as u32, bounds }
}

pub(crate) fn same_zone(a: Zone, b: Zone) -> bool {
    let same = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan());
    a.null_count == b.null_count
        && match (a.bounds, b.bounds) {
            (Bounds::Float(a, b), Bounds::Float(c, d)) => same(a, c) && same(b, d),
            (a, b) => a == b,
        }
}

#[test]
fn every_type_comes_back_with_right_zones() {
    let mut rng = fastrand::Rng::with_seed(1);
    let sizes = [1, 2, 63, 64, 65, 1023, 1024, 1025, 4096, 10_000, 65_535, 65_536];
    let mut seen = std::collections::HashSet::new();
    for column_type in TYPES {
        for round in 0..60 {
            let rows = sizes[round % sizes.len()];
            let from = if round % 3 == 0 { 0 } else { rng.usize(..100) };
            let column = random_column(&mut rng, column_type, from + rows);
            let effort = if round % 2 == 0 { Effort::Fresh } else { Effort::Sealed };
            let block = encode(column_type, &column, from, rows, effort);
            block.check().unwrap();
            let mut expected = Column::with_capacity(column_type.physical(), rows);
            expected.extend_from_range(&column, from, rows);
            let decoded = block.decode().unwrap();
            assert_same(&expected, &to_column(&decoded));
            assert_eq!(decoded.null_count, expected.null_count());
            let expected_zone = naive_zone(column_type, &column, from, rows);
            assert!(same_zone(block.zone(), expected_zone), "{column_type} {:?} {expected_zone:?}", block.zone());
            check_vectors(column_type, &column, from, &block);
            seen.insert((column_type.physical(), block.entry.encoding as u8, block.entry.parameter > 256));
            assert_eq!(
                encode(column_type, &expected, 0, rows, effort).bytes,
                block.bytes,
                "the same rows give the same bytes"
            );
        }
    }
    // Booleans have only two encodings and bytes are too narrow for a dictionary; other types have at least three.
    assert!(seen.len() > 30, "{seen:?}");
}

fn check_vectors(column_type: ColumnType, column: &Column, from: usize, block: &EncodedBlock) {
    let vectors = zones::of_vectors(block).unwrap();
    assert_eq!(vectors.len(), block.rows.div_ceil(VECTOR_ROWS));
    let is_exact = column_type != ColumnType::Boolean && block.zone().bounds != Bounds::None;
    for (vector, zone) in vectors.iter().enumerate() {
        let at = vector * VECTOR_ROWS;
        let expected = naive_zone(column_type, column, from + at, (block.rows - at).min(VECTOR_ROWS));
        assert_eq!(zone.null_count, expected.null_count);
        assert!(!is_exact || same_zone(*zone, expected), "{column_type} vector {vector}: {zone:?} {expected:?}");
    }
}

#[test]
fn what_repeats_is_small_and_plain_is_shared() {
    let encoded = |t, values| encode(t, &Column::new(values), 0, BLOCK_ROWS, Effort::Fresh);
    let long = ColumnType::Long;
    let small_range = encoded(long, Values::I64((0..BLOCK_ROWS as i64).map(|i| i * 7919 % 200 - 100).collect()));
    assert_eq!(small_range.entry.encoding, Encoding::Packed);
    assert!(small_range.bytes.len() < BLOCK_ROWS + 2_000);
    let stamps =
        Values::I64((0..BLOCK_ROWS as i64).map(|i| 1_451_606_400_000_000_000 + i / 4_000 * 10_000_000_000).collect());
    let stamps = encoded(ColumnType::Timestamp(TimeUnit::Nanos), stamps);
    assert_eq!((stamps.entry.encoding, stamps.entry.parameter), (Encoding::Runs, 17));
    let same = encoded(ColumnType::Double, Values::F64(vec![2.5; BLOCK_ROWS]));
    assert_eq!((same.entry.encoding, same.bytes.len()), (Encoding::Constant, 8));
    let mut rng = fastrand::Rng::with_seed(1);
    let random = encoded(ColumnType::Double, Values::F64((0..BLOCK_ROWS).map(|_| rng.f64()).collect()));
    assert_eq!(random.entry.encoding, Encoding::Plain);
    let BlockData::Fixed(values) = random.decode().unwrap().data else { unreachable!() };
    assert!(random.bytes.as_ptr_range().contains(&values.as_ptr()), "plain values are the chunk's own bytes");
    let mut text = Views::new();
    (0..BLOCK_ROWS).for_each(|i| text.push(format!("a longer text with number {}", i % 300).as_bytes()));
    let text = encoded(ColumnType::Varchar, Values::Views(text));
    assert_eq!((text.entry.encoding, text.entry.parameter), (Encoding::PackedDict, 300));
    let nulls = encode(long, &Column::nulls(Physical::I64, 100), 0, 100, Effort::Fresh);
    assert_eq!((nulls.entry.encoding, nulls.bytes.len()), (Encoding::Nulls, 0));
}

#[test]
fn a_chunk_whose_structure_is_wrong_is_refused() {
    let mut text = Views::new();
    (0..2_000).for_each(|i| text.push(format!("number {} of twenty", i % 20).as_bytes()));
    let good = encode(ColumnType::Varchar, &Column::new(Values::Views(text)), 0, 2_000, Effort::Fresh);
    let layout = Layout::of(&good.entry, good.physical, good.rows).unwrap();
    good.check().unwrap();
    let with = |at: usize, byte: u8| {
        let mut bytes = good.bytes.to_vec();
        bytes[at] = byte;
        EncodedBlock { bytes: Bytes::from(bytes), ..good.clone() }.check()
    };
    let codes_at = good.bytes.len() - layout.codes(&good.bytes).len();
    assert!(with(codes_at + 5, 255).is_err(), "a code past the dictionary");
    assert!(with(1, 200).is_err(), "a view longer than the data");
    assert!(with(13, 99).is_err(), "a view far into the data");
    let shorter = EncodedBlock { bytes: good.bytes.slice(1..), ..good.clone() };
    assert!(shorter.check().is_err());
}
