use super::*;
use arrow::array::*;
use std::sync::Arc;

const JSON: Style = Style::Json { long_quotes: false, not_finite_quotes: false };

fn written(array: ArrayRef, type_name: &str, style: Style) -> Vec<String> {
    let array = prepared(&array);
    let cells = Cells::new(array.as_ref(), type_name);
    (0..array.len())
        .map(|row| {
            let mut out = Vec::new();
            cells.write(row, style, &mut out);
            String::from_utf8(out).unwrap()
        })
        .collect()
}

#[test]
fn every_type_in_three_styles() {
    let cases: Vec<(ArrayRef, &str, [&str; 3])> = vec![
        (Arc::new(BooleanArray::from(vec![true])), "BOOLEAN", ["true", "true", "true"]),
        (Arc::new(Int8Array::from(vec![-1])), "BYTE", ["-1", "-1", "-1"]),
        (Arc::new(Int64Array::from(vec![i64::MIN])), "LONG", ["-9223372036854775808"; 3]),
        (Arc::new(UInt64Array::from(vec![u64::MAX])), "LONG", ["18446744073709551615"; 3]),
        (Arc::new(Float32Array::from(vec![1.1])), "FLOAT", ["1.1"; 3]),
        (Arc::new(Float64Array::from(vec![f64::NAN])), "DOUBLE", ["null", "NaN", "NaN"]),
        (
            Arc::new(TimestampMicrosecondArray::from(vec![1]).with_timezone("UTC")),
            "TIMESTAMP",
            ["\"1970-01-01T00:00:00.000001Z\"", "\"1970-01-01T00:00:00.000001Z\"", "1970-01-01T00:00:00.000001Z"],
        ),
        (
            Arc::new(Date32Array::from(vec![19_723])),
            "DATE",
            ["\"2024-01-01T00:00:00.000Z\"", "\"2024-01-01T00:00:00.000Z\"", "2024-01-01"],
        ),
        (Arc::new(StringArray::from(vec!["a\"b"])), "VARCHAR", ["\"a\\\"b\"", "\"a\"\"b\"", "a\"b"]),
        (
            Arc::new(vec![Some("x")].into_iter().collect::<DictionaryArray<arrow::datatypes::Int32Type>>()),
            "SYMBOL",
            ["\"x\"", "\"x\"", "x"],
        ),
        (
            Arc::new(BinaryViewArray::from(vec![&b"\x01\xff"[..]])),
            "BINARY",
            ["\"\\\\x01ff\"", "\"\\x01ff\"", "\\x01ff"],
        ),
        (
            Arc::new(FixedSizeBinaryArray::try_from_iter([[0x11u8; 16]].into_iter()).unwrap()),
            "UUID",
            [
                "\"11111111-1111-1111-1111-111111111111\"",
                "11111111-1111-1111-1111-111111111111",
                "11111111-1111-1111-1111-111111111111",
            ],
        ),
        (Arc::new(UInt32Array::from(vec![0x0102_0304])), "IPV4", ["\"1.2.3.4\"", "1.2.3.4", "1.2.3.4"]),
        (
            Arc::new(Decimal128Array::from(vec![12_345]).with_precision_and_scale(10, 3).unwrap()),
            "DECIMAL(10,3)",
            ["\"12.345\"", "\"12.345\"", "12.345"],
        ),
        (
            Arc::new(ListArray::from_iter_primitive::<arrow::datatypes::Float64Type, _, _>(vec![Some(vec![
                Some(1.0),
                None,
            ])])),
            "DOUBLE[]",
            ["[1.0,null]", "\"[1.0,null]\"", "[1.0,null]"],
        ),
        (Arc::new(NullArray::new(1)), "VARCHAR", ["null", "", ""]),
        (Arc::new(Int32Array::from(vec![None])), "INT", ["null", "", ""]),
    ];
    for (array, type_name, expected) in cases {
        for (style, expected) in [JSON, Style::Csv, Style::Text].into_iter().zip(expected) {
            assert_eq!(written(array.clone(), type_name, style), [expected], "{type_name} as {style:?}");
        }
    }
}

#[test]
fn longs_are_quoted_on_request() {
    let array: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    assert_eq!(written(array, "LONG", Style::Json { long_quotes: true, not_finite_quotes: false }), ["\"1\"", "null"]);
}
