use super::*;
use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float32Array, Float64Array, Int32Array,
    LargeStringArray, ListArray, RunArray, StringArray, TimestampMicrosecondArray, TimestampNanosecondArray,
    UInt64Array,
};
use arrow::datatypes::{Float64Type, Int32Type};
use std::sync::Arc;

fn frame(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

fn options(version: u8, at: At, symbols: Symbols) -> LineOptions {
    LineOptions { version, table: Table::Named("my table".to_owned()), at, symbols }
}

fn text(rows: &RecordBatch, options: &LineOptions) -> Result<String> {
    let mut out = Vec::new();
    LinePlan::new(&rows.schema(), options)?.write(rows, 0..rows.num_rows(), 0, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

fn times(values: Vec<i64>) -> ArrayRef {
    Arc::new(TimestampNanosecondArray::from(values))
}

#[test]
fn a_line_has_tags_then_fields_then_its_time() {
    let rows = frame(vec![
        ("f", Arc::new(Float64Array::from(vec![Some(0.1), None, Some(f64::NAN)]))),
        ("s", Arc::new(StringArray::from(vec![Some("a b,c=d\\"), Some("x"), None]))),
        ("n", Arc::new(Int32Array::from(vec![-7, 8, 9]))),
        ("q", Arc::new(StringArray::from(vec![Some("say \"hi\"\n"), None, Some("")]))),
        ("b", Arc::new(BooleanArray::from(vec![true, false, true]))),
        ("ts", times(vec![1, 2, 3])),
    ]);
    let options = options(1, At::Column("ts".to_owned()), Symbols::Named(vec!["s".to_owned()]));
    let expected = "my\\ table,s=a\\ b\\,c\\=d\\\\ f=0.1,n=-7i,q=\"say \\\"hi\\\"\\\n\",b=t 1\n\
                    my\\ table,s=x n=8i,b=f 2\nmy\\ table f=NaN,n=9i,q=\"\",b=t 3\n";
    assert_eq!(text(&rows, &options).unwrap(), expected);
}

#[test]
fn tags_that_need_no_escapes_are_those_of_the_rows_sent() {
    let texts = ["a b", "plain", "longer than sixteen bytes", "", "c,d"];
    for array in
        [Arc::new(StringArray::from(texts.to_vec())) as ArrayRef, Arc::new(LargeStringArray::from(texts.to_vec()))]
    {
        let rows = frame(vec![("s", array), ("n", Arc::new(Int32Array::from(vec![1, 2, 3, 4, 5])))]);
        let options = options(1, At::Server, Symbols::Named(vec!["s".to_owned()]));
        let lines = ["a\\ b n=1i", "plain n=2i", "longer\\ than\\ sixteen\\ bytes n=3i", " n=4i", "c\\,d n=5i"];
        for from in 0..texts.len() {
            for to in from..=texts.len() {
                let expected: String = lines[from..to].iter().map(|line| format!("my\\ table,s={line}\n")).collect();
                assert_eq!(text(&rows.slice(from, to - from), &options).unwrap(), expected, "{from} to {to}");
            }
        }
    }
}

#[test]
fn doubles_are_shortest_and_read_back() {
    let values = [0.0, -0.0, 1.0, 5e-324, 1.797_693_134_862_315_7e308, 0.1, 1e16, 123_456_789.125, 1.0 / 3.0];
    let rows = frame(vec![("f", Arc::new(Float64Array::from(values.to_vec())))]);
    let text = text(&rows, &options(1, At::Server, Symbols::Auto)).unwrap();
    for (line, value) in text.lines().zip(values) {
        let digits = line.strip_prefix("my\\ table f=").unwrap();
        assert_eq!(digits.parse::<f64>().unwrap().to_bits(), value.to_bits(), "{line}");
        assert!(digits.len() <= format!("{value:?}").len().max(digits.find('e').map_or(0, |_| 24)), "{line}");
    }
    let rows = frame(vec![("f", Arc::new(Float64Array::from(vec![f64::INFINITY, f64::NEG_INFINITY])))]);
    let text = super::tests::text(&rows, &options(1, At::Server, Symbols::Auto)).unwrap();
    assert_eq!(text, "my\\ table f=Infinity\nmy\\ table f=-Infinity\n");
}

#[test]
fn singles_are_widened_exactly() {
    let rows = frame(vec![("f", Arc::new(Float32Array::from(vec![0.1_f32])))]);
    let line = text(&rows, &options(1, At::Server, Symbols::Auto)).unwrap();
    assert_eq!(line, format!("my\\ table f={:?}\n", f64::from(0.1_f32)));
}

#[test]
fn version_two_sends_bytes_and_units() {
    let lists = ListArray::from_iter_primitive::<Float64Type, _, _>(vec![Some(vec![Some(2.0)])]);
    let rows = frame(vec![
        ("f", Arc::new(Float64Array::from(vec![1.5]))),
        ("a", Arc::new(lists)),
        ("n", times(vec![5])),
        ("ts", Arc::new(TimestampMicrosecondArray::from(vec![7]))),
    ]);
    let options = options(2, At::Column("ts".to_owned()), Symbols::Auto);
    let lines = LinePlan::new(&rows.schema(), &options).unwrap().lines(&rows, 0, 1).unwrap().concat();
    let mut expected = b"my\\ table f==\x10".to_vec();
    expected.extend_from_slice(&1.5_f64.to_le_bytes());
    expected.extend_from_slice(b",a==\x0e\x0a\x01\x01\0\0\0");
    expected.extend_from_slice(&2.0_f64.to_le_bytes());
    expected.extend_from_slice(b",n=5n 7t\n");
    assert_eq!(lines, expected);
}

#[test]
fn a_type_of_a_newer_version_is_refused_with_the_column() {
    let decimals: ArrayRef = Arc::new(Decimal128Array::from(vec![-5, 12_345]).with_precision_and_scale(10, 3).unwrap());
    let rows = frame(vec![("d", decimals)]);
    let error = text(&rows, &options(2, At::Server, Symbols::Auto)).unwrap_err();
    assert_eq!(error.message, "column \"d\": decimals need version 3 of the protocol, this is 2");
    let lines = text(&rows, &options(3, At::Server, Symbols::Auto)).unwrap();
    assert_eq!(lines, "my\\ table d=-0.005d\nmy\\ table d=12.345d\n");
}

#[test]
fn dictionaries_are_tags_and_their_nulls_are_left_out() {
    let strings = StringArray::from(vec![Some("p q"), None]);
    let keys = arrow::array::Int32Array::from(vec![Some(0), Some(1), None, Some(0)]);
    let array: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::try_new(keys, Arc::new(strings)).unwrap());
    let rows = frame(vec![("t", array), ("n", Arc::new(Int32Array::from(vec![1, 2, 3, 4])))]);
    let lines = text(&rows, &options(1, At::Nanos(9), Symbols::Auto)).unwrap();
    assert_eq!(lines, "my\\ table,t=p\\ q n=1i 9\nmy\\ table n=2i 9\nmy\\ table n=3i 9\nmy\\ table,t=p\\ q n=4i 9\n");
    let fields = text(&rows, &options(1, At::Server, Symbols::None)).unwrap();
    assert!(fields.starts_with("my\\ table t=\"p q\",n=1i\nmy\\ table n=2i\n"), "{fields}");
}

#[test]
fn bad_values_are_named_with_column_and_row() {
    let rows = frame(vec![("n", Arc::new(UInt64Array::from(vec![1, u64::MAX])))]);
    let error = text(&rows, &options(1, At::Server, Symbols::Auto)).unwrap_err();
    assert_eq!((error.column.as_deref(), error.row), (Some("n"), Some(1)));
    let rows = frame(vec![("n", Arc::new(Int32Array::from(vec![Some(1), None])))]);
    assert_eq!(
        text(&rows, &options(1, At::Server, Symbols::Auto)).unwrap_err().message,
        "row 1 has no value that could be sent"
    );
    let rows = frame(vec![("a\tb", Arc::new(Int32Array::from(vec![1])))]);
    assert!(text(&rows, &options(1, At::Server, Symbols::Auto)).unwrap_err().message.contains("'\\t'"));
}

#[test]
fn any_number_of_threads_writes_the_same_text() {
    let count = 20_000;
    let tables = StringArray::from_iter_values((0..count).map(|i| format!("t{}", i % 3)));
    let rows = frame(vec![
        ("table", Arc::new(tables)),
        ("f", Arc::new(Float64Array::from_iter_values((0..count).map(|i| f64::from(i) / 7.0)))),
        ("ts", times((0..i64::from(count)).collect())),
    ]);
    let options = LineOptions {
        version: 1,
        table: Table::Column("table".to_owned()),
        at: At::Column("ts".to_owned()),
        symbols: Symbols::Auto,
    };
    let plan = LinePlan::new(&rows.schema(), &options).unwrap();
    let one = plan.lines(&rows, 0, 1).unwrap().concat();
    for threads in [2, 3, 16] {
        let pieces = plan.lines(&rows, 0, threads).unwrap();
        assert!(pieces.len() > 1);
        assert!(pieces.concat() == one, "{threads} threads");
    }
    assert!(one.starts_with(b"t0 f=0.0 0\nt1 f="));
}

#[test]
fn dictionaries_and_runs_are_what_they_stand_for() {
    let keys = Int32Array::from(vec![Some(1), None, Some(0)]);
    let numbers: ArrayRef = Arc::new(Float64Array::from(vec![0.5, 1.5]));
    let runs = |values: &dyn Array| -> ArrayRef {
        Arc::new(RunArray::<Int32Type>::try_new(&Int32Array::from(vec![2, 3]), values).unwrap())
    };
    let rows = frame(vec![
        ("n", Arc::new(DictionaryArray::<Int32Type>::new(keys.clone(), numbers))),
        ("s", runs(&StringArray::from(vec![Some("a"), None]))),
        ("i", runs(&Int32Array::from(vec![7, 8]))),
        ("t", Arc::new(vec!["one", "two", "one"].into_iter().collect::<DictionaryArray<Int32Type>>())),
    ]);
    let options = LineOptions {
        version: 1,
        table: Table::Column("t".to_owned()),
        at: At::Server,
        symbols: Symbols::Named(vec!["s".to_owned()]),
    };
    assert_eq!(text(&rows, &options).unwrap(), "one,s=a n=1.5,i=7i\ntwo,s=a i=7i\none n=0.5,i=8i\n");
    let lines = LinePlan::new(&rows.schema(), &options).unwrap().lines(&rows.slice(1, 2), 1, 1).unwrap().concat();
    assert_eq!(String::from_utf8(lines).unwrap(), "two,s=a i=7i\none n=0.5,i=8i\n");
}

#[test]
fn dates_that_are_no_times_are_named() {
    let days: ArrayRef = Arc::new(Date32Array::from(vec![1, 213_520_000]));
    let error = text(&frame(vec![("d", days)]), &options(2, At::Server, Symbols::Auto)).unwrap_err();
    assert_eq!(error.message, "column \"d\", row 1: the time is out of range of microseconds");
}
