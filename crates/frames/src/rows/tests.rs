use super::*;
use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Decimal256Array, DictionaryArray,
    DurationSecondArray, Float64Array, Int64Array, LargeStringArray, ListArray, RecordBatch, StringArray,
    StringViewArray, TimestampMicrosecondArray, TimestampNanosecondArray, TimestampSecondArray, UInt8Array,
    UInt64Array,
};
use arrow::datatypes::{Float64Type, Int8Type, Int64Type, i256};
use std::sync::Arc;
use tidalite_types::views::NULL_ELEMENT_BITS;
use tidalite_types::{Column, ColumnId, ColumnSchema, PartitionBy, Values};

fn frame(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

fn options(at: Option<&str>, symbols: Symbols) -> RowOptions {
    RowOptions { table: "t".to_owned(), at: at.map(str::to_owned), symbols }
}

fn batch(frame: &RecordBatch, at: Option<&str>, symbols: Symbols) -> Result<Batch> {
    RowPlan::new(&frame.schema(), &options(at, symbols), None)?.batch(frame, 0)
}

fn only(array: ArrayRef) -> (ColumnType, Column) {
    let mut batch = batch(&frame(vec![("c", array)]), None, Symbols::Auto).unwrap();
    let column = batch.columns.remove(0);
    (column.column_type, column.column)
}

#[test]
fn unsigned_numbers_go_to_the_next_wider_type_or_are_refused() {
    let (column_type, column) = only(Arc::new(UInt8Array::from(vec![0, 255])));
    assert_eq!((column_type, column.values), (ColumnType::Short, Values::I16(vec![0, 255])));
    let large = frame(vec![("n", Arc::new(UInt64Array::from(vec![1, u64::MAX])))]);
    let error = batch(&large, None, Symbols::Auto).unwrap_err();
    assert_eq!(error.message, "column \"n\", row 1: value 18446744073709551615 is out of range for type LONG");
    assert_eq!((error.column.as_deref(), error.row), (Some("n"), Some(1)));
    let (_, column) = only(Arc::new(UInt64Array::new(vec![5, u64::MAX].into(), Some(vec![true, false].into()))));
    assert_eq!((column.is_valid(0), column.is_valid(1)), (true, false));
}

#[test]
fn times_are_utc_in_their_own_unit() {
    let seconds = TimestampSecondArray::from(vec![Some(1), None]).with_timezone("Europe/Berlin");
    let (column_type, column) = only(Arc::new(seconds));
    assert_eq!(column_type, ColumnType::Timestamp(TimeUnit::Millis));
    assert_eq!((column.values, column.validity.map(|v| v.count_zeros())), (Values::I64(vec![1000, 0]), Some(1)));
    let (column_type, column) = only(Arc::new(TimestampNanosecondArray::from(vec![i64::MIN])));
    assert_eq!((column_type, column.values), (ColumnType::Timestamp(TimeUnit::Nanos), Values::I64(vec![i64::MIN])));
    let late = frame(vec![("t", Arc::new(TimestampSecondArray::from(vec![i64::MAX])))]);
    assert!(batch(&late, None, Symbols::Auto).unwrap_err().message.contains("row 0"));
}

#[test]
fn a_date_is_a_time_only_where_it_orders_the_rows() {
    let days = frame(vec![("d", Arc::new(Date32Array::from(vec![1, -1])))]);
    let plain = batch(&days, None, Symbols::Auto).unwrap();
    assert_eq!(plain.columns[0].column.values, Values::I32(vec![1, -1]));
    let ordered = batch(&days, Some("d"), Symbols::Auto).unwrap();
    assert_eq!(ordered.columns[0].column.values, Values::I64(vec![86_400_000_000, -86_400_000_000]));
}

#[test]
fn the_time_of_rows_is_there_and_a_time() {
    let rows = frame(vec![
        ("ts", Arc::new(TimestampMicrosecondArray::from(vec![Some(1), None]))),
        ("n", Arc::new(Int64Array::from(vec![1, 2]))),
    ]);
    let error = batch(&rows, Some("ts"), Symbols::Auto).unwrap_err();
    assert_eq!(error.message, "column \"ts\", row 1: the time of a row cannot be NULL");
    assert!(batch(&rows, Some("n"), Symbols::Auto).unwrap_err().message.contains("cannot be of type Int64"));
    let error = batch(&rows, Some("time"), Symbols::Auto).unwrap_err();
    assert_eq!(error.hint.as_deref(), Some("the frame has ts, n"));
}

#[test]
fn text_is_a_symbol_where_asked_for_and_equal_strings_have_one_code() {
    let text: ArrayRef =
        Arc::new(StringViewArray::from(vec![Some("b"), None, Some("a much longer string"), Some("b")]));
    let plain = batch(&frame(vec![("c", text.clone())]), None, Symbols::Auto).unwrap();
    assert_eq!(plain.columns[0].column_type, ColumnType::Varchar);
    for array in
        [text, Arc::new(LargeStringArray::from(vec![Some("b"), None, Some("a much longer string"), Some("b")]))]
    {
        let symbols = batch(&frame(vec![("c", array)]), None, Symbols::Named(vec!["c".to_owned()])).unwrap();
        let column = &symbols.columns[0];
        assert_eq!(column.column.values, Values::U32(vec![0, 0, 1, 0]));
        assert!(!column.column.is_valid(1) && column.column.is_valid(3));
        let strings: Vec<&[u8]> = column.dictionary.iter().collect();
        assert_eq!(strings, [&b"b"[..], b"a much longer string"]);
    }
    let error =
        batch(&frame(vec![("n", Arc::new(Int64Array::from(vec![1])))]), None, Symbols::Named(vec!["n".to_owned()]));
    assert_eq!(error.unwrap_err().message, "column \"n\": a SYMBOL is text, this is Int64");
}

#[test]
fn dictionaries_may_repeat_strings_and_hold_null() {
    let strings = StringArray::from(vec![Some("x"), None, Some("x"), Some("y")]);
    let keys = arrow::array::Int8Array::from(vec![Some(0), Some(1), Some(2), Some(3), None]);
    let array: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::try_new(keys, Arc::new(strings)).unwrap());
    let symbols = batch(&frame(vec![("c", array.clone())]), None, Symbols::Auto).unwrap();
    let column = &symbols.columns[0];
    assert_eq!(column.column_type, ColumnType::Symbol);
    assert_eq!(column.column.values, Values::U32(vec![0, 0, 0, 1, 0]));
    let valid: Vec<bool> = (0..5).map(|row| column.column.is_valid(row)).collect();
    assert_eq!(valid, [true, false, true, true, false]);
    assert_eq!(column.dictionary.len(), 2);
    let text = batch(&frame(vec![("c", array)]), None, Symbols::None).unwrap();
    assert_eq!(text.columns[0].column_type, ColumnType::Varchar);
    assert_eq!(text.columns[0].column.null_count(), 2);
}

#[test]
fn nan_is_a_value_unless_the_frame_has_no_null() {
    let array: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.0), Some(f64::NAN), None]));
    let (_, column) = only(array.clone());
    assert_eq!(column.null_count(), 1);
    let metadata = [(NAN_IS_NULL.to_owned(), String::new())].into();
    let field = Field::new("c", DataType::Float64, true).with_metadata(metadata);
    let rows = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![array]).unwrap();
    let column = &batch(&rows, None, Symbols::Auto).unwrap().columns[0].column;
    assert_eq!((column.is_valid(0), column.is_valid(1), column.is_valid(2)), (true, false, false));
}

#[test]
fn lists_of_numbers_are_arrays() {
    let lists = ListArray::from_iter_primitive::<Float64Type, _, _>(vec![Some(vec![Some(1.5), Some(2.0)]), None]);
    let (column_type, column) = only(Arc::new(lists));
    assert_eq!(column_type, ColumnType::DoubleArray { dims: 1 });
    let Values::Views(views) = column.values else { panic!("arrays are views") };
    let expected: Vec<u8> =
        [2_u32.to_le_bytes().to_vec(), 1.5_f64.to_le_bytes().to_vec(), 2.0_f64.to_le_bytes().to_vec()].concat();
    assert_eq!(views.get(0), expected);
    let holes = ListArray::from_iter_primitive::<Float64Type, _, _>(vec![Some(vec![Some(f64::NAN), None])]);
    let (_, column) = only(Arc::new(holes));
    let Values::Views(views) = column.values else { panic!("arrays are views") };
    assert_eq!(views.get(0)[4..12], f64::NAN.to_le_bytes());
    assert_eq!(views.get(0)[12..], NULL_ELEMENT_BITS.to_le_bytes());
}

#[test]
fn decimals_keep_their_digits_or_are_refused() {
    let values = Decimal256Array::from(vec![i256::from_i128(12_345)]).with_precision_and_scale(38, 2).unwrap();
    let (column_type, column) = only(Arc::new(values));
    assert_eq!(column_type, ColumnType::Decimal { precision: 38, scale: 2 });
    assert_eq!(column.values, Values::I128(vec![12_345]));
    let large = Decimal256Array::from(vec![i256::MAX]).with_precision_and_scale(76, 2).unwrap();
    assert!(batch(&frame(vec![("d", Arc::new(large))]), None, Symbols::Auto).is_err());
}

#[test]
fn what_has_no_place_is_named() {
    let error =
        batch(&frame(vec![("d", Arc::new(DurationSecondArray::from(vec![1])))]), None, Symbols::Auto).unwrap_err();
    assert_eq!(error.message, "column \"d\": type Duration(s) has no place in a table");
    let twice = frame(vec![("A", Arc::new(Int64Array::from(vec![1]))), ("a", Arc::new(Int64Array::from(vec![1])))]);
    assert_eq!(
        batch(&twice, None, Symbols::Auto).unwrap_err().message,
        "column \"a\": it is there twice, also as \"A\""
    );
}

#[test]
fn bits_bytes_and_null_columns() {
    let rows = frame(vec![
        ("b", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)]))),
        ("x", Arc::new(BinaryArray::from(vec![&b"\x00\xff"[..], b"", b"abc"]))),
        ("none", Arc::new(arrow::array::NullArray::new(3))),
    ]);
    let batch = batch(&rows.slice(1, 2), None, Symbols::Auto).unwrap();
    assert_eq!(batch.columns.len(), 2);
    assert_eq!((batch.columns[0].column.is_valid(0), batch.columns[0].column.is_valid(1)), (false, true));
    let Values::Views(bytes) = &batch.columns[1].column.values else { panic!("bytes are views") };
    assert_eq!(bytes.iter().collect::<Vec<_>>(), [&b""[..], b"abc"]);
    assert_eq!(batch.lines, [1, 2]);
}

#[test]
fn a_table_that_exists_decides() {
    let column = |id, name: &str, column_type| ColumnSchema { id: ColumnId(id), name: name.to_owned(), column_type };
    let table = TableSchema {
        name: "t".to_owned(),
        columns: vec![column(0, "time", ColumnType::Timestamp(TimeUnit::Micros)), column(1, "s", ColumnType::Symbol)],
        designated: Some(ColumnId(0)),
        partition_by: PartitionBy::Day,
        next_column: ColumnId(2),
        ttl: None,
        lag_us: None,
        dedup: Vec::new(),
        view: None,
    };
    let rows = frame(vec![
        ("ts", Arc::new(TimestampMicrosecondArray::from(vec![1]))),
        ("S", Arc::new(StringArray::from(vec!["x"]))),
    ]);
    let plan = RowPlan::new(&rows.schema(), &options(Some("ts"), Symbols::Auto), Some(&table)).unwrap();
    let planned: Vec<_> = plan.columns().collect();
    assert_eq!(planned, [("time", ColumnType::Timestamp(TimeUnit::Micros)), ("S", ColumnType::Symbol)]);
    let error = RowPlan::new(&rows.schema(), &options(None, Symbols::Auto), Some(&table)).unwrap_err();
    assert_eq!(error.message, "table \"t\" is ordered by \"time\", which the frame does not have");
}

#[test]
fn times_that_no_table_can_have_are_named() {
    let second_of_year_10000 = 253_402_300_800;
    let rows = frame(vec![("t", Arc::new(TimestampSecondArray::from(vec![0, second_of_year_10000])))]);
    let error = batch(&rows, Some("t"), Symbols::Auto).unwrap_err();
    assert_eq!(error.message, "column \"t\", row 1: timestamp 253402300800000 is outside the years 0001 to 9999");
    assert_eq!((error.column.as_deref(), error.row), (Some("t"), Some(1)));
    // 213520000 days are 2^64 µs and a few years.
    let days = frame(vec![("d", Arc::new(Date32Array::from(vec![0, 213_520_000])))]);
    let error = batch(&days, Some("d"), Symbols::Auto).unwrap_err();
    assert_eq!(error.message, "column \"d\", row 1: value 213520000 is out of range for type TIMESTAMP");
    // Only the time of the rows must be in the calendar's range.
    assert!(batch(&rows, None, Symbols::Auto).is_ok());
}

#[test]
fn numbers_of_lists_are_not_rounded() {
    let list = |n: i64| {
        frame(vec![(
            "a",
            Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(vec![Some(vec![Some(1), Some(n)])])),
        )])
    };
    assert!(batch(&list(1 << 53), None, Symbols::Auto).is_ok());
    for n in [(1 << 53) + 1, i64::MAX] {
        let error = batch(&list(n), None, Symbols::Auto).unwrap_err();
        assert_eq!(error.message, format!("column \"a\", row 0: value {n} has more digits than a DOUBLE"));
    }
}

#[test]
fn a_decimal_that_is_too_long_is_named() {
    let values = Decimal128Array::from(vec![1, 12_345]).with_precision_and_scale(4, 2).unwrap();
    let error = batch(&frame(vec![("d", Arc::new(values))]), None, Symbols::Auto).unwrap_err();
    assert_eq!(error.message, "column \"d\", row 1: value 123.45 is out of range for type DECIMAL(4,2)");
}
