//! Values of every type, in shapes that affect encodings.

use super::model::Cell;
use std::sync::Arc;
use tidalite_types::ColumnType;
use tidalite_types::column_type::Physical;

/// The shape of the values of one column in one batch.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    shape: Shape,
    /// Number of NULLs in 8 rows.
    nulls: u32,
    seed: u32,
}

#[derive(Clone, Copy, Debug)]
enum Shape {
    Constant,
    Few,
    Ramp,
    Near,
    Any,
}

impl Style {
    pub fn draw(rng: &mut fastrand::Rng) -> Style {
        let shape = [Shape::Constant, Shape::Few, Shape::Ramp, Shape::Near, Shape::Any][rng.usize(..5)];
        Style { shape, nulls: [0, 0, 0, 1, 4, 8][rng.usize(..6)], seed: rng.u32(..1000) }
    }
}

pub fn cell(rng: &mut fastrand::Rng, column_type: ColumnType, style: Style, row: usize) -> Cell {
    if rng.u32(..8) < style.nulls {
        return Cell::Null;
    }
    let base = i64::from(style.seed);
    let number = match style.shape {
        Shape::Constant => base,
        Shape::Few => base + rng.i64(0..4),
        Shape::Ramp => base + row as i64 * 3,
        Shape::Near => base + rng.i64(-50..50),
        Shape::Any => rng.i64(..),
    };
    let is_any = matches!(style.shape, Shape::Any);
    match column_type {
        ColumnType::Boolean => Cell::Int((number & 1).into()),
        ColumnType::Float => Cell::Int(float(rng, number, is_any, true)),
        ColumnType::Double => Cell::Int(float(rng, number, is_any, false)),
        ColumnType::Decimal { precision, .. } => Cell::Int(i128::from(number) % 10i128.pow(precision.into())),
        ColumnType::Date => Cell::Int((number % 2_000_000).into()),
        ColumnType::Timestamp(_) if is_any => Cell::Int((number >> 8).into()),
        ColumnType::Symbol if is_any => text(rng, number % 10_000),
        ColumnType::Symbol => text(rng, number % 16),
        ColumnType::Varchar => text(rng, number),
        ColumnType::Binary => Cell::Bytes(bytes(rng)),
        ColumnType::Json | ColumnType::Jsonb => Cell::Bytes(format!("{{\"n\": {number}}}").into_bytes().into()),
        ColumnType::Uuid => Cell::Int(if is_any { rng.i128(..) } else { number.into() }),
        ColumnType::DoubleArray { .. } => array(rng, number),
        _ => Cell::Int(match column_type.physical() {
            Physical::I8 => (number as i8).into(),
            Physical::I16 => (number as i16).into(),
            Physical::I32 => (number as i32).into(),
            Physical::U32 => (number as u32).into(),
            _ => number.into(),
        }),
    }
}

fn float(rng: &mut fastrand::Rng, number: i64, is_any: bool, is_single: bool) -> i128 {
    let value = match (is_any, rng.u32(..20)) {
        (true, 0) => f64::NAN,
        (true, 1) => f64::INFINITY,
        (true, 2) => -0.0,
        (true, 3) => f64::NEG_INFINITY,
        (true, 4) => f64::MIN_POSITIVE / 8.0,
        (true, 5..12) => f64::from_bits(number as u64),
        (true, _) => rng.f64(),
        (false, _) => number as f64 / 100.0,
    };
    if is_single { (value as f32).to_bits().into() } else { value.to_bits().into() }
}

fn text(rng: &mut fastrand::Rng, number: i64) -> Cell {
    let text = match number.rem_euclid(5) {
        0 => format!("a value longer than a view {number}"),
        1 => String::new(),
        2 => format!("ä€𐍈{number}"),
        3 if rng.u32(..50) == 0 => "x".repeat(rng.usize(..3000)),
        _ => format!("s{number}"),
    };
    Cell::Bytes(text.into_bytes().into())
}

fn bytes(rng: &mut fastrand::Rng) -> Arc<[u8]> {
    (0..rng.usize(..30)).map(|_| rng.u8(..)).collect()
}

fn array(rng: &mut fastrand::Rng, number: i64) -> Cell {
    let count = rng.u32(..5);
    let mut bytes = count.to_le_bytes().to_vec();
    (0..count).for_each(|n| bytes.extend((number as f64 / f64::from(n + 1)).to_le_bytes()));
    Cell::Bytes(bytes.into())
}
