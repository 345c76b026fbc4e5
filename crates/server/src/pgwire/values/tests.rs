use super::super::types::{Column, columns};
use super::*;
use arrow::array::*;
use arrow::datatypes::Schema;
use tidalite::OutputColumn;

fn column(array: &ArrayRef, type_name: &str) -> Column {
    let output = [OutputColumn { name: "c".to_owned(), type_name: type_name.to_owned(), ..OutputColumn::default() }];
    let schema = Arc::new(Schema::new(vec![Field::new("c", array.data_type().clone(), true)]));
    columns(&output, &schema).remove(0)
}

fn values(array: &ArrayRef, type_name: &str, is_binary: bool) -> Vec<Option<Vec<u8>>> {
    let column = column(array, type_name);
    let array = canonical(&column, array).unwrap();
    let cells = Cells::new(column.pg_type, column.is_ipv4, array.as_ref());
    let value = |row| {
        let mut out = Vec::new();
        cells.write(row, is_binary, &mut out).unwrap();
        let length = i32::from_be_bytes(out[..4].try_into().unwrap());
        (length >= 0).then(|| {
            assert_eq!(out.len() - 4, length as usize);
            out.split_off(4)
        })
    };
    (0..array.len()).map(value).collect()
}

fn text(array: ArrayRef, type_name: &str) -> Vec<String> {
    let texts = values(&array, type_name, false).into_iter();
    texts.map(|v| v.map_or("NULL".to_owned(), |v| String::from_utf8(v).unwrap())).collect()
}

/// As PostgreSQL 15 writes them.
#[test]
fn every_type_has_its_text() {
    let list =
        ListArray::from_iter_primitive::<Float64Type, _, _>(vec![Some(vec![Some(1.0), None]), Some(vec![]), None]);
    let cases: Vec<(ArrayRef, &str, Vec<&str>)> = vec![
        (Arc::new(BooleanArray::from(vec![Some(true), Some(false), None])), "BOOLEAN", vec!["t", "f", "NULL"]),
        (Arc::new(Int8Array::from(vec![-128])), "BYTE", vec!["-128"]),
        (Arc::new(Int64Array::from(vec![i64::MIN])), "LONG", vec!["-9223372036854775808"]),
        (Arc::new(UInt64Array::from(vec![7])), "LONG", vec!["7"]),
        (Arc::new(Float64Array::from(vec![1.0, f64::NAN])), "DOUBLE", vec!["1", "NaN"]),
        (
            Arc::new(TimestampMicrosecondArray::from(vec![0, -1, 1_500_000])),
            "TIMESTAMP",
            vec!["1970-01-01 00:00:00", "1969-12-31 23:59:59.999999", "1970-01-01 00:00:01.5"],
        ),
        (
            Arc::new(TimestampNanosecondArray::from(vec![9_223_372_036_854_775_807, 1])),
            "TIMESTAMP_NS",
            vec!["2262-04-11 23:47:16.854775807", "1970-01-01 00:00:00.000000001"],
        ),
        (
            Arc::new(TimestampMillisecondArray::from(vec![-62_167_219_200_001])),
            "TIMESTAMP_MS",
            vec!["0002-12-31 23:59:59.999 BC"],
        ),
        (Arc::new(Date32Array::from(vec![19_723, -719_529])), "DATE", vec!["2024-01-01", "0002-12-31 BC"]),
        (Arc::new(StringArray::from(vec!["a\"b", ""])), "VARCHAR", vec!["a\"b", ""]),
        (
            Arc::new(vec![Some("x"), None].into_iter().collect::<DictionaryArray<Int32Type>>()),
            "SYMBOL",
            vec!["x", "NULL"],
        ),
        (Arc::new(BinaryArray::from(vec![&b"\x01\xff"[..]])), "BINARY", vec!["\\x01ff"]),
        (
            Arc::new(FixedSizeBinaryArray::try_from_iter([[0x11u8; 16]].into_iter()).unwrap()),
            "UUID",
            vec!["11111111-1111-1111-1111-111111111111"],
        ),
        (Arc::new(UInt32Array::from(vec![0x0102_0304])), "IPV4", vec!["1.2.3.4"]),
        (
            Arc::new(Decimal128Array::from(vec![12_345, -1]).with_precision_and_scale(10, 3).unwrap()),
            "DECIMAL(10,3)",
            vec!["12.345", "-0.001"],
        ),
        (Arc::new(list), "DOUBLE[]", vec!["{1,NULL}", "{}", "NULL"]),
        (Arc::new(NullArray::new(1)), "NULL", vec!["NULL"]),
        (
            Arc::new(IntervalMonthDayNanoArray::from(vec![
                IntervalMonthDayNano::new(14, 3, 14_706_700_000_000),
                IntervalMonthDayNano::new(0, 0, 0),
                IntervalMonthDayNano::new(0, -1, -1_000_000_000),
            ])),
            "INTERVAL",
            vec!["1 year 2 mons 3 days 04:05:06.7", "00:00:00", "-1 days -00:00:01"],
        ),
    ];
    for (array, type_name, expected) in cases {
        assert_eq!(text(array, type_name), expected, "{type_name}");
    }
}

#[test]
fn elements_that_would_be_misread_are_quoted() {
    let mut list = ListBuilder::new(StringViewBuilder::new());
    for item in ["a", "", "NULL", "a,b", "a\"b\\", " "] {
        list.values().append_value(item);
    }
    list.append(true);
    assert_eq!(text(Arc::new(list.finish()), "VARCHAR[]"), ["{a,\"\",\"NULL\",\"a,b\",\"a\\\"b\\\\\",\" \"}"]);
}

#[test]
fn binary_forms_count_from_2000() {
    let bytes = |array: ArrayRef, type_name: &str| values(&array, type_name, true).remove(0).unwrap();
    let epoch_us = 946_684_800_000_000i64;
    assert_eq!(bytes(Arc::new(TimestampMicrosecondArray::from(vec![epoch_us + 1])), "TIMESTAMP"), 1i64.to_be_bytes());
    let nanos = TimestampNanosecondArray::from(vec![epoch_us * 1000 - 1]);
    assert_eq!(bytes(Arc::new(nanos), "TIMESTAMP_NS"), (-1i64).to_be_bytes());
    let millis = TimestampMillisecondArray::from(vec![epoch_us / 1000 + 1]);
    assert_eq!(bytes(Arc::new(millis), "TIMESTAMP_MS"), 1000i64.to_be_bytes());
    assert_eq!(bytes(Arc::new(Date32Array::from(vec![10_958])), "DATE"), 1i32.to_be_bytes());
    assert_eq!(bytes(Arc::new(Int8Array::from(vec![-1])), "BYTE"), (-1i16).to_be_bytes());
    assert_eq!(bytes(Arc::new(StringViewArray::from(vec!["é"])), "VARCHAR"), "é".as_bytes());
    for extreme in [i64::MIN, i64::MAX] {
        let array: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![extreme]));
        assert_eq!(bytes(array.clone(), "TIMESTAMP_MS").len(), 8);
        assert_eq!(text(array, "TIMESTAMP_MS").len(), 1);
    }
}

#[test]
fn binary_arrays_have_dimensions() {
    let mut nested = ListBuilder::new(ListBuilder::new(Float64Builder::new()));
    for row in [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]] {
        nested.values().values().append_slice(&row);
        nested.values().append(true);
    }
    nested.append(true);
    let bytes = values(&(Arc::new(nested.finish()) as ArrayRef), "DOUBLE[][]", true).remove(0).unwrap();
    let words: Vec<i32> = bytes[..28].chunks(4).map(|b| i32::from_be_bytes(b.try_into().unwrap())).collect();
    assert_eq!(words, [2, 0, 701, 3, 1, 2, 1]);
    assert_eq!(bytes.len(), 28 + 6 * 12);
    let empty = ListArray::from_iter_primitive::<Float64Type, _, _>(vec![Some(vec![])]);
    let bytes = values(&(Arc::new(empty) as ArrayRef), "DOUBLE[]", true).remove(0).unwrap();
    assert_eq!(bytes, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 189]);
}

#[test]
fn ragged_lists_have_no_binary_form() {
    let mut nested = ListBuilder::new(ListBuilder::new(Float64Builder::new()));
    for row in [&[1.0, 2.0][..], &[3.0]] {
        nested.values().values().append_slice(row);
        nested.values().append(true);
    }
    nested.append(true);
    let array: ArrayRef = Arc::new(nested.finish());
    let column = column(&array, "DOUBLE[][]");
    let cells = Cells::new(column.pg_type, false, array.as_ref());
    assert!(cells.write(0, true, &mut Vec::new()).unwrap_err().message.contains("matching dimensions"));
    assert_eq!(text(array.clone(), "DOUBLE[][]"), ["{{1,2},{3}}"]);
}

#[test]
fn a_value_of_another_type_than_announced_is_cast() {
    let announced = column(&(Arc::new(StringViewArray::from(vec!["x"])) as ArrayRef), "VARCHAR");
    let number: ArrayRef = Arc::new(Int64Array::from(vec![5]));
    let array = canonical(&announced, &number).unwrap();
    let cells = Cells::new(announced.pg_type, false, array.as_ref());
    let mut out = Vec::new();
    cells.write(0, true, &mut out).unwrap();
    assert_eq!(out, b"\0\0\0\x015");
    let announced = column(&number, "LONG");
    let words: ArrayRef = Arc::new(StringViewArray::from(vec!["x"]));
    assert!(canonical(&announced, &words).is_err());
}
