//! Columns travel to Arrow and back unchanged, whatever their type, and those of fixed width without a copy.

use super::*;
use crate::door::arrays::{Raw, dictionary_array};
use crate::door::{arrow_type, field};
use datafusion::arrow::datatypes::Schema;
use std::sync::Arc;

const ROWS: usize = 200;

fn every_type() -> Vec<ColumnType> {
    let decimal = |precision, scale| ColumnType::Decimal { precision, scale };
    vec![
        ColumnType::Boolean,
        ColumnType::Byte,
        ColumnType::Short,
        ColumnType::Int,
        ColumnType::Long,
        ColumnType::Float,
        ColumnType::Double,
        decimal(9, 2),
        decimal(18, 0),
        decimal(38, 38),
        ColumnType::Timestamp(TimeUnit::Millis),
        ColumnType::Timestamp(TimeUnit::Micros),
        ColumnType::Timestamp(TimeUnit::Nanos),
        ColumnType::Date,
        ColumnType::Symbol,
        ColumnType::Varchar,
        ColumnType::Binary,
        ColumnType::Uuid,
        ColumnType::Ipv4,
        ColumnType::DoubleArray { dims: 1 },
        ColumnType::DoubleArray { dims: 3 },
        ColumnType::Json,
    ]
}

/// Values with both signs, both sides of the inline limit of views, and symbols of a dictionary of five.
fn column(column_type: ColumnType) -> Column {
    let numbers = (0..ROWS).map(|i| i as i64 * 7 % 127 - 60);
    let values = match column_type.physical() {
        Physical::Bit => Values::Bit(numbers.map(|n| n % 3 == 0).collect()),
        Physical::I8 => Values::I8(numbers.map(|n| n as i8).collect()),
        Physical::I16 => Values::I16(numbers.map(|n| n as i16 * 100).collect()),
        Physical::I32 => Values::I32(numbers.map(|n| n as i32 * 1000).collect()),
        Physical::I64 => Values::I64(numbers.map(|n| n * 1_000_000_007).collect()),
        Physical::I128 => Values::I128(numbers.map(|n| i128::from(n) * 10_i128.pow(30)).collect()),
        Physical::F32 => Values::F32(numbers.map(|n| n as f32 / 3.0).collect()),
        Physical::F64 => Values::F64(numbers.map(|n| if n == 0 { f64::INFINITY } else { n as f64 / 3.0 }).collect()),
        Physical::U32 if column_type == ColumnType::Symbol => Values::U32((0..ROWS as u32).map(|i| i % 5).collect()),
        Physical::U32 => Values::U32((0..ROWS as u32).map(|i| i.wrapping_mul(0x9E37_79B9)).collect()),
        Physical::B16 => Values::B16((0..ROWS).map(|i| [i as u8; 16]).collect()),
        Physical::Views => Values::Views(views_of(column_type)),
    };
    Column::new(values)
}

fn views_of(column_type: ColumnType) -> Views {
    let mut views = Views::new();
    for row in 0..ROWS {
        let value = match column_type {
            ColumnType::DoubleArray { dims: 1 } => array(&[row as u32 % 4], row % 4),
            ColumnType::DoubleArray { .. } => array(&[2, 3, row as u32 % 2 + 1], 6 * (row % 2 + 1)),
            ColumnType::Json => format!("{{\"n\": {row}}}").into_bytes(),
            _ => "é".repeat(row % 20).into_bytes(),
        };
        views.push(&value);
    }
    views
}

fn array(extents: &[u32], count: usize) -> Vec<u8> {
    let numbers = (0..count).flat_map(|i| (i as f64 * 0.5).to_le_bytes());
    extents.iter().flat_map(|e| e.to_le_bytes()).chain(numbers).collect()
}

fn symbols() -> Views {
    let mut views = Views::new();
    ["a", "", "a symbol of more than twelve bytes", "ü", "b"].iter().for_each(|s| views.push(s.as_bytes()));
    views
}

fn to_array(column: &Arc<Column>, column_type: ColumnType) -> ArrayRef {
    let dictionary = dictionary_array(Arc::new(symbols())).expect("valid strings");
    let array =
        Raw::of_column(column, 0, column.len()).into_array(column_type, Some(&dictionary)).expect("valid values");
    assert_eq!(array.data_type(), &arrow_type(column_type));
    array
}

#[test]
fn values_of_every_type_come_back_as_they_went() {
    for column_type in every_type() {
        for has_nulls in [false, true] {
            let mut column = column(column_type);
            if has_nulls {
                column.validity = Some((0..ROWS).map(|i| i % 3 != 1).collect());
            }
            let array = to_array(&Arc::new(column.clone()), column_type);
            let schema = Arc::new(Schema::new(vec![field("c", column_type, true)]));
            let rows = RecordBatch::try_new(schema.clone(), vec![array]).expect("the array is of the field's type");
            assert_eq!(crate::door::type_name(schema.field(0)), column_type.to_string());
            let target = Target { name: "c".to_owned(), column_type, is_designated: false };
            let batch = to_batch(&rows, "t", &[target], 0).expect("values of the type itself");
            let back = &batch.columns[0];
            assert_eq!(back.column.validity, column.validity, "{column_type}");
            let known = if column_type == ColumnType::Symbol { symbols() } else { Views::new() };
            for row in (0..ROWS).filter(|row| column.is_valid(*row)) {
                assert_eq!(
                    value(&back.column, &back.dictionary, row),
                    value(&column, &known, row),
                    "{column_type} row {row}"
                );
            }
        }
    }
}

/// A value as text; a symbol as its string.
fn value(column: &Column, dictionary: &Views, row: usize) -> String {
    match &column.values {
        Values::U32(ids) if !dictionary.is_empty() && (ids[row] as usize) < dictionary.len() => {
            String::from_utf8_lossy(dictionary.get(ids[row] as usize)).into_owned()
        }
        values => tidalite_types::match_values!(
            values,
            v => format!("{:?}", v[row]),
            Bit(bits) => bits.get(row).to_string(),
            Views(views) => format!("{:?}", views.get(row)),
        ),
    }
}

#[test]
fn fixed_width_values_and_views_are_not_copied() {
    for column_type in every_type() {
        let is_made_anew = matches!(
            column_type,
            ColumnType::Decimal { precision: ..=18, .. } | ColumnType::Symbol | ColumnType::DoubleArray { .. }
        );
        let column = Arc::new(column(column_type));
        let array = to_array(&column, column_type);
        let address = tidalite_types::match_values!(
            &column.values,
            v => v.as_ptr().cast::<u8>(),
            Bit(bits) => bits.words().as_ptr().cast::<u8>(),
            Views(views) => views.views().as_ptr().cast::<u8>(),
        );
        let is_shared = array.to_data().buffers().first().is_some_and(|buffer| buffer.as_ptr() == address);
        assert_eq!(is_shared, !is_made_anew, "{column_type}");
    }
}

#[test]
fn what_does_not_fit_names_its_row_and_column() {
    let refused = |values: Vec<&str>, column_type| {
        let array: ArrayRef = Arc::new(datafusion::arrow::array::StringArray::from(values));
        let rows = RecordBatch::try_from_iter([("x", array)]).expect("one column");
        let target = Target { name: "c".to_owned(), column_type, is_designated: false };
        to_batch(&rows, "t", &[target], 10).expect_err("refused").to_string()
    };
    assert_eq!(
        refused(vec!["1", "300"], ColumnType::Byte),
        "value \"300\" is out of range for type BYTE (column \"c\", row 12)"
    );
    assert_eq!(
        refused(vec!["1.1.1.1", "x"], ColumnType::Ipv4),
        "invalid input for type IPV4: \"x\" (column \"c\", row 12)"
    );
    assert_eq!(refused(vec!["{"], ColumnType::Json).split(':').next(), Some("invalid input for type JSON"));
}

/// The codes are those of PostgreSQL for the same values.
#[test]
fn errors_of_a_row_keep_their_codes() {
    use tidalite_types::SqlState;
    let code = |array: ArrayRef, column_type| {
        let rows = RecordBatch::try_from_iter([("x", array)]).expect("one column");
        let target = Target { name: "c".to_owned(), column_type, is_designated: false };
        to_batch(&rows, "t", &[target], 0).expect_err("refused").code
    };
    let text = |value: &str| Arc::new(datafusion::arrow::array::StringArray::from(vec![value])) as ArrayRef;
    assert_eq!(code(text("2024-02-30"), ColumnType::Date), Some(SqlState::DATETIME_FIELD_OVERFLOW));
    let micros = ColumnType::Timestamp(TimeUnit::Micros);
    assert_eq!(code(text("2024-13-01T00:00:00"), micros), Some(SqlState::DATETIME_FIELD_OVERFLOW));
    assert_eq!(code(text("infinity"), micros), Some(SqlState::FEATURE_NOT_SUPPORTED));
    assert_eq!(code(text("x"), ColumnType::Uuid), Some(SqlState::INVALID_TEXT_REPRESENTATION));
    assert_eq!(code(text(&"[".repeat(300)), ColumnType::Json), Some(SqlState::PROGRAM_LIMIT_EXCEEDED));
    assert_eq!(code(text(&"[".repeat(300)), ColumnType::Jsonb), Some(SqlState::PROGRAM_LIMIT_EXCEEDED));
    assert_eq!(code(text("{"), ColumnType::Jsonb), Some(SqlState::INVALID_TEXT_REPRESENTATION));
}

#[test]
fn numbers_that_a_column_would_change_are_refused() {
    let refused = |array: ArrayRef, column_type| {
        let rows = RecordBatch::try_from_iter([("x", array)]).expect("one column");
        let target = Target { name: "c".to_owned(), column_type, is_designated: false };
        to_batch(&rows, "t", &[target], 0).expect_err("refused").to_string()
    };
    // The nearest double of 9007199254740993.5 is a whole number.
    let decimals = datafusion::arrow::array::Decimal128Array::from(vec![90_071_992_547_409_935_i128]);
    let decimals: ArrayRef = Arc::new(decimals.with_precision_and_scale(20, 1).expect("a decimal type"));
    let error = refused(decimals, ColumnType::Long);
    assert!(error.starts_with("invalid input for type LONG: \"9007199254740993.5\""), "{error}");
    for value in [1e-60, -1e-60, 1e60] {
        let doubles: ArrayRef = Arc::new(datafusion::arrow::array::Float64Array::from(vec![value]));
        let error = refused(doubles, ColumnType::Float);
        assert!(error.contains("is out of range for type FLOAT"), "{error}");
    }
}
