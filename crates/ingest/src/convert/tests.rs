use super::*;
use ColumnType::*;

const MS: ColumnType = Timestamp(TimeUnit::Millis);
const US: ColumnType = Timestamp(TimeUnit::Micros);
const NS: ColumnType = Timestamp(TimeUnit::Nanos);

fn decimal(precision: u8, scale: u8) -> ColumnType {
    Decimal { precision, scale }
}

fn column(column_type: ColumnType, values: Values) -> BatchColumn {
    BatchColumn {
        name: "c".to_owned(),
        column_type,
        column: Column::new(values),
        dictionary: Views::new(),
        narrower: None,
    }
}

fn with_validity(mut column: BatchColumn, validity: &[bool]) -> BatchColumn {
    column.column.validity = Some(validity.iter().copied().collect());
    column
}

fn views(texts: &[&str]) -> Views {
    let mut views = Views::new();
    texts.iter().for_each(|t| views.push(t.as_bytes()));
    views
}

fn text(texts: &[&str]) -> BatchColumn {
    column(Varchar, Values::Views(views(texts)))
}

fn symbol(codes: &[u32], dictionary: &[&str]) -> BatchColumn {
    let mut column = column(Symbol, Values::U32(codes.to_vec()));
    column.dictionary = views(dictionary);
    column
}

fn longs(values: &[i64]) -> BatchColumn {
    column(Long, Values::I64(values.to_vec()))
}

fn doubles(values: &[f64]) -> BatchColumn {
    column(Double, Values::F64(values.to_vec()))
}

fn uuid_bytes(last: u8) -> [u8; 16] {
    [0xa0, 0xee, 0xbc, 0x99, 0x9c, 0x0b, 0x4e, 0xf8, 0xbb, 0x6d, 0x6b, 0xb9, 0xbd, 0x38, 0x0a, last]
}

fn converted(from: &BatchColumn, to: ColumnType) -> BatchColumn {
    let out = convert(from, to).unwrap_or_else(|e| panic!("{:?} to {to}: {}", from.column_type, e.message));
    let out = out.unwrap_or_else(|| panic!("{:?} to {to}: nothing done", from.column_type));
    assert_eq!((out.column_type, out.name.as_str(), out.column.len()), (to, "c", from.column.len()));
    assert_eq!(out.column.values.physical(), to.physical(), "{:?} to {to}", from.column_type);
    out
}

fn assert_values(from: &BatchColumn, to: ColumnType, expected: Values) {
    let out = converted(from, to);
    assert_eq!(out.column.values, expected, "{:?} to {to}", from.column_type);
    assert!(out.dictionary.is_empty());
}

fn assert_text(from: &BatchColumn, expected: &[&str]) {
    assert_values(from, Varchar, Values::Views(views(expected)));
}

fn assert_fails(from: &BatchColumn, to: ColumnType, row: usize, message: &str) {
    match convert(from, to) {
        Err(e) => assert_eq!((e.row, e.message.as_str()), (row, message)),
        Ok(out) => panic!("{:?} to {to} gave {out:?}", from.column_type),
    }
}

#[test]
fn the_same_type_needs_nothing() {
    assert_eq!(convert(&longs(&[1]), Long), Ok(None));
    assert_eq!(convert(&column(decimal(38, 2), Values::I128(vec![1])), decimal(38, 2)), Ok(None));
    assert_eq!(convert(&column(NS, Values::I64(vec![1])), NS), Ok(None));
}

#[test]
fn integers_within_range() {
    let small = longs(&[-128, 0, 127]);
    assert_values(&small, Byte, Values::I8(vec![-128, 0, 127]));
    assert_values(&small, Short, Values::I16(vec![-128, 0, 127]));
    assert_values(&small, Int, Values::I32(vec![-128, 0, 127]));
    assert_values(&small, Float, Values::F32(vec![-128.0, 0.0, 127.0]));
    assert_values(&small, Double, Values::F64(vec![-128.0, 0.0, 127.0]));
    assert_values(&column(Byte, Values::I8(vec![-1, 5])), Long, Values::I64(vec![-1, 5]));
    assert_values(&column(Short, Values::I16(vec![-1, 5])), Byte, Values::I8(vec![-1, 5]));
    assert_values(&column(Int, Values::I32(vec![-1, 5])), Short, Values::I16(vec![-1, 5]));
    assert_fails(&longs(&[1, 128, -129]), Byte, 1, "value 128 is out of range for type BYTE");
    assert_fails(&longs(&[1, -32_769]), Short, 1, "value -32769 is out of range for type SHORT");
    assert_fails(&longs(&[i64::MIN]), Int, 0, "value -9223372036854775808 is out of range for type INT");
    assert_fails(&column(Int, Values::I32(vec![0, 300])), Byte, 1, "value 300 is out of range for type BYTE");
}

#[test]
fn integers_become_times_and_decimals() {
    let values = longs(&[-1, 86_400_000, i64::MAX]);
    assert_values(&values, US, Values::I64(vec![-1, 86_400_000, i64::MAX]));
    assert_values(&values, MS, Values::I64(vec![-1, 86_400_000, i64::MAX]));
    assert_values(&longs(&[-1, 0, 86_399_999, 86_400_000]), Date, Values::I32(vec![-1, 0, 0, 1]));
    assert_fails(&values, Date, 2, "value 9223372036854775807 is out of range for type DATE");
    assert_values(&longs(&[-5, 99_999]), decimal(7, 2), Values::I32(vec![-500, 9_999_900]));
    assert_values(&longs(&[i64::MIN]), decimal(38, 19), Values::I128(vec![i128::from(i64::MIN) * 10_i128.pow(19)]));
    assert_fails(&longs(&[0, 100_000]), decimal(7, 2), 1, "value 100000 is out of range for type DECIMAL(7,2)");
    assert_fails(
        &longs(&[i64::MAX]),
        decimal(38, 38),
        0,
        "value 9223372036854775807 is out of range for type DECIMAL(38,38)",
    );
    assert_text(&longs(&[i64::MIN, 0]), &["-9223372036854775808", "0"]);
    assert_fails(&longs(&[7]), Boolean, 0, "cannot cast value 7 of type LONG to type BOOLEAN");
    assert_fails(&longs(&[7]), Uuid, 0, "cannot cast value 7 of type LONG to type UUID");
    assert_fails(&longs(&[7]), DoubleArray { dims: 1 }, 0, "cannot cast value 7 of type LONG to type DOUBLE[]");
}

#[test]
fn booleans_are_zero_or_one() {
    let bits = column(Boolean, Values::Bit([true, false].into_iter().collect()));
    assert_values(&bits, Byte, Values::I8(vec![1, 0]));
    assert_values(&bits, Short, Values::I16(vec![1, 0]));
    assert_values(&bits, Int, Values::I32(vec![1, 0]));
    assert_values(&bits, Long, Values::I64(vec![1, 0]));
    assert_values(&bits, Float, Values::F32(vec![1.0, 0.0]));
    assert_values(&bits, Double, Values::F64(vec![1.0, 0.0]));
    assert_text(&bits, &["true", "false"]);
    assert_fails(&bits, US, 0, "cannot cast value true of type BOOLEAN to type TIMESTAMP");
    assert_fails(&bits, decimal(5, 0), 0, "cannot cast value true of type BOOLEAN to type DECIMAL(5,0)");
}

#[test]
fn doubles_and_floats() {
    let special = doubles(&[0.1, -0.0, f64::INFINITY, f64::NEG_INFINITY, 1e-60]);
    assert_values(&special, Float, Values::F32(vec![0.1, 0.0, f32::INFINITY, f32::NEG_INFINITY, 0.0]));
    let Values::F32(nan) = converted(&doubles(&[f64::NAN]), Float).column.values else { panic!() };
    assert!(nan[0].is_nan());
    assert_fails(&doubles(&[1.0, 1e300]), Float, 1, "value 1e300 is out of range for type FLOAT");
    assert_values(
        &column(Float, Values::F32(vec![0.5, f32::MAX])),
        Double,
        Values::F64(vec![0.5, f64::from(f32::MAX)]),
    );
    assert_text(&doubles(&[1.0, -0.0, 0.1, 1e300, 1e-9, f64::NAN]), &["1", "-0", "0.1", "1e300", "1e-9", "NaN"]);
    assert_text(&doubles(&[f64::INFINITY, f64::NEG_INFINITY, 123_456.75]), &["Infinity", "-Infinity", "123456.75"]);
    assert_text(&column(Float, Values::F32(vec![0.1])), &["0.1"]);
    assert_fails(&doubles(&[1.0]), Long, 0, "cannot cast value 1 of type DOUBLE to type LONG");
    assert_fails(&doubles(&[1.5]), US, 0, "cannot cast value 1.5 of type DOUBLE to type TIMESTAMP");
}

#[test]
fn doubles_become_decimals_by_their_shortest_text() {
    assert_values(&doubles(&[0.1, -2.25, 1e3, 0.0]), decimal(9, 2), Values::I32(vec![10, -225, 100_000, 0]));
    assert_values(&column(Float, Values::F32(vec![0.1])), decimal(9, 1), Values::I32(vec![1]));
    assert_fails(
        &doubles(&[0.125]),
        decimal(9, 2),
        0,
        "value 0.125 does not fit type DECIMAL(9,2) without losing digits",
    );
    assert_fails(&doubles(&[1e8]), decimal(9, 2), 0, "value 100000000 is out of range for type DECIMAL(9,2)");
    assert_fails(&doubles(&[f64::NAN]), decimal(9, 2), 0, "value NaN is out of range for type DECIMAL(9,2)");
    assert_fails(
        &doubles(&[f64::NEG_INFINITY]),
        decimal(9, 2),
        0,
        "value -Infinity is out of range for type DECIMAL(9,2)",
    );
    assert_fails(&doubles(&[1e300]), decimal(38, 0), 0, "value 1e300 is out of range for type DECIMAL(38,0)");
    assert_fails(
        &doubles(&[5e-324]),
        decimal(38, 38),
        0,
        "value 5e-324 does not fit type DECIMAL(38,38) without losing digits",
    );
}

#[test]
fn decimals_keep_every_digit_or_fail() {
    let prices = column(decimal(38, 4), Values::I128(vec![300_005_000, -12_300, 0]));
    assert_values(&prices, decimal(18, 2), Values::I64(vec![3_000_050, -123, 0]));
    assert_values(&prices, decimal(9, 3), Values::I32(vec![30_000_500, -1_230, 0]));
    assert_values(&prices, decimal(38, 10), Values::I128(vec![300_005_000_000_000, -12_300_000_000, 0]));
    assert_values(&prices, Double, Values::F64(vec![30_000.5, -1.23, 0.0]));
    assert_values(&prices, Float, Values::F32(vec![30_000.5, -1.23, 0.0]));
    assert_text(&prices, &["30000.5000", "-1.2300", "0.0000"]);
    assert_fails(&prices, decimal(18, 0), 0, "value 30000.5000 does not fit type DECIMAL(18,0) without losing digits");
    assert_fails(&prices, decimal(5, 1), 0, "value 30000.5000 is out of range for type DECIMAL(5,1)");
    assert_fails(&prices, Long, 0, "cannot cast value 30000.5000 of type DECIMAL(38,4) to type LONG");
    let most = 10_i128.pow(38) - 1;
    let wide = column(decimal(38, 0), Values::I128(vec![most, -most]));
    assert_values(&wide, Double, Values::F64(vec![1e38, -1e38]));
    assert_text(&wide, &["99999999999999999999999999999999999999", "-99999999999999999999999999999999999999"]);
    assert!(convert(&wide, decimal(38, 1)).is_err());
    assert_text(&column(decimal(9, 9), Values::I32(vec![-5])), &["-0.000000005"]);
    // One rounding only: 9007199254740993 is between two doubles, and .1 more decides for the upper one.
    let near = column(decimal(18, 1), Values::I64(vec![90_071_992_547_409_931]));
    assert_values(&near, Double, Values::F64(vec![9_007_199_254_740_994.0]));
}

#[test]
fn times_change_their_unit() {
    let nanos = column(NS, Values::I64(vec![-1, 1_999_999, 86_400_000_000_000]));
    assert_values(&nanos, US, Values::I64(vec![-1, 1_999, 86_400_000_000]));
    assert_values(&nanos, MS, Values::I64(vec![-1, 1, 86_400_000]));
    assert_values(&nanos, Date, Values::I32(vec![-1, 0, 1]));
    let micros = column(US, Values::I64(vec![1_451_606_400_000_000, i64::MAX]));
    assert_fails(&micros, NS, 1, "value 294247-01-10T04:00:54.775807Z is out of range for type TIMESTAMP_NS");
    assert_values(&column(MS, Values::I64(vec![5, -5])), NS, Values::I64(vec![5_000_000, -5_000_000]));
    assert_text(&column(US, Values::I64(vec![1_451_606_400_000_001])), &["2016-01-01T00:00:00.000001Z"]);
    assert_fails(&nanos, Long, 0, "cannot cast value 1969-12-31T23:59:59.999999999Z of type TIMESTAMP_NS to type LONG");
    let dates = column(Date, Values::I32(vec![-1, 16_801, i32::MAX]));
    assert_values(&dates, MS, Values::I64(vec![-86_400_000, 1_451_606_400_000, 185_542_587_100_800_000]));
    assert!(convert(&dates, NS).is_err_and(|e| e.row == 2));
    assert_text(&column(Date, Values::I32(vec![-1, 16_801])), &["1969-12-31", "2016-01-01"]);
}

#[test]
fn text_becomes_times() {
    // 2016-01-01T00:00:00Z is 1451606400 s.
    let at = |seconds: i64, micros: i64| 1_451_606_400_000_000 + seconds * 1_000_000 + micros;
    for (written, expected) in [
        ("2016-01-01", at(0, 0)),
        ("2016-01-01T00:00", at(0, 0)),
        ("2016-01-01 00:00:00", at(0, 0)),
        ("2016-01-01T12:34:56.7Z", at(45_296, 700_000)),
        ("2016-01-01T12:34:56.123456789Z", at(45_296, 123_456)),
        ("2016-01-01T01:00:00+01:00", at(0, 0)),
        ("2015-12-31T22:30:00.000001-0130", at(0, 1)),
        ("2016-01-01T05:00+05", at(0, 0)),
        ("1969-12-31T23:59:59.999999Z", -1),
        ("0001-01-01", -62_135_596_800_000_000),
    ] {
        assert_values(&text(&[written]), US, Values::I64(vec![expected]));
    }
    for written in [
        "",
        "now",
        "2016",
        "2016-01",
        "2016-1-1",
        "2016-00-01",
        "2016-13-01",
        "2016-02-30",
        "2015-02-29",
        "2016-01-00",
        "2016-01-01T",
        "2016-01-01T24:00",
        "2016-01-01T12",
        "2016-01-01T12:60",
        "2016-01-01T12:00:60",
        "2016-01-01T12:00:00.",
        "2016-01-01T12:00:00.1234567890",
        "2016-01-01T12:00:00+",
        "2016-01-01T12:00:00+1",
        "2016-01-01T12:00:00+01:",
        "2016-01-01T12:00:00+01:0",
        "2016-01-01T12:00:00ZZ",
        "2016-01-01Z",
        "+016-01-01",
        "2016-01-01T-1:00",
        " 2016-01-01",
        "20१6-01-01",
    ] {
        assert_fails(&text(&[written]), US, 0, &format!("invalid input syntax for type TIMESTAMP: {written:?}"));
    }
    assert_fails(
        &text(&["2016-01-01", "9999-01-01"]),
        NS,
        1,
        "value \"9999-01-01\" is out of range for type TIMESTAMP_NS",
    );
    assert_values(&text(&["2016-01-01T23:59:59Z", "1969-12-31T23:00"]), Date, Values::I32(vec![16_801, -1]));
}

#[test]
fn text_becomes_uuids_addresses_and_decimals() {
    let upper = "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11";
    let forms = [upper, &upper.to_lowercase(), &upper.replace('-', ""), &format!("{{{upper}}}")];
    assert_values(&text(&forms), Uuid, Values::B16(vec![uuid_bytes(0x11); 4]));
    for bad in ["", &upper[..35], "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "g0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"] {
        assert_fails(&text(&[bad]), Uuid, 0, &format!("invalid input syntax for type UUID: {bad:?}"));
    }
    assert_values(&text(&["1.2.3.4", "255.255.255.255", "0.0.0.0"]), Ipv4, Values::U32(vec![0x0102_0304, u32::MAX, 0]));
    for bad in ["", "1.2.3", "1.2.3.256", "1.2.3.4.5", "::1", "1.2.3.4 "] {
        assert_fails(&text(&[bad]), Ipv4, 0, &format!("invalid input syntax for type IPV4: {bad:?}"));
    }
    let written =
        ["30000.50", "-.5", "+5.", "12e-1", "1.20000", "0.000e9", "1E2", "000000000000000000000000000000000000000001"];
    let expected = vec![3_000_050, -50, 500, 120, 120, 0, 10_000, 100];
    assert_values(&text(&written), decimal(18, 2), Values::I64(expected));
    for bad in ["", ".", "-", "+-1", "1.2.3", "1e", "1e+", "e5", "0x10", "1_000", "NaN", "Infinity", "1,5", "٣"] {
        assert_fails(
            &text(&[bad]),
            decimal(18, 2),
            0,
            &format!("invalid input syntax for type DECIMAL(18,2): {bad:?}"),
        );
    }
    let long =
        ["1".repeat(39), format!("0.{}", "1".repeat(39)), "1e999999999999".to_owned(), "1e-999999999999".to_owned()];
    let problem = |t: &str| convert(&text(&[t]), decimal(38, 0)).unwrap_err().message;
    assert!(problem(&long[0]).ends_with("is out of range for type DECIMAL(38,0)"));
    assert!(problem(&long[1]).ends_with("does not fit type DECIMAL(38,0) without losing digits"));
    assert_eq!(problem(&long[2]), "value \"1e999999999999\" is out of range for type DECIMAL(38,0)");
    assert!(problem(&long[3]).ends_with("without losing digits"));
    let most = "9".repeat(38);
    assert_values(&text(&[&most]), decimal(38, 0), Values::I128(vec![10_i128.pow(38) - 1]));
}

#[test]
fn text_does_not_become_numbers() {
    for to in [Boolean, Byte, Long, Float, Double, Binary, DoubleArray { dims: 1 }] {
        assert_fails(&text(&["1"]), to, 0, &format!("cannot cast value \"1\" of type VARCHAR to type {to}"));
        assert_fails(&symbol(&[0], &["1"]), to, 0, &format!("cannot cast value \"1\" of type SYMBOL to type {to}"));
    }
}

#[test]
fn json_is_checked_and_kept_as_written() {
    let good = [
        "null",
        " true ",
        "-0.5e+10",
        "\"\"",
        "[]",
        "{}",
        "[1, 2,[3]]",
        "{\"a\" : {\"b\":[null,false]} , \"\\u00e9\\n\":1}",
        "\"é\"",
        "0",
    ];
    assert_values(&text(&good), Json, Values::Views(views(&good)));
    let deep = |n: usize| "[".repeat(n) + &"]".repeat(n);
    assert_eq!(json::check(&deep(256)), Ok(()));
    assert_eq!([json::check(&deep(257)), json::check(&"[".repeat(1_000_000))], [Err(Problem::Depth); 2]);
    for bad in [
        "",
        " ",
        "nul",
        "tru",
        "True",
        "01",
        "+1",
        "1.",
        ".5",
        "1e",
        "-",
        "\"",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"\n\"",
        "[1,]",
        "[1 2]",
        "[,]",
        "{a:1}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{\"a\":1]",
        "[1}",
        "1 2",
        "{} x",
        "'a'",
        "[",
        "{\"a\":1",
        "NaN",
        "// c\n1",
    ] {
        assert_fails(&text(&[bad]), Json, 0, &format!("invalid input syntax for type JSON: {bad:?}"));
    }
    let spaced = text(&["{ \"b\":1, \"a\" : [] }", "1e1"]);
    assert_values(&spaced, Jsonb, Values::Views(views(&["{\"a\": [], \"b\": 1}", "10"])));
    assert_fails(&text(&["{}", "{"]), Jsonb, 1, "invalid input syntax for type JSONB: \"{\"");
    let stored = column(Json, Values::Views(views(&["{}"])));
    assert_text(&stored, &["{}"]);
    assert_fails(&stored, US, 0, "cannot cast value \"{}\" of type JSON to type TIMESTAMP");
}

#[test]
fn symbols_are_numbered_as_they_appear() {
    let out = converted(&text(&["b", "a", "b", ""]), Symbol);
    assert_eq!(out.column.values, Values::U32(vec![0, 1, 0, 2]));
    assert_eq!(out.dictionary, views(&["b", "a", ""]));
    let out = converted(&longs(&[7, -7, 7]), Symbol);
    assert_eq!((out.column.values, out.dictionary), (Values::U32(vec![0, 1, 0]), views(&["7", "-7"])));
    let bits = column(Boolean, Values::Bit([true, true].into_iter().collect()));
    assert_eq!(converted(&bits, Symbol).dictionary, views(&["true"]));
    let nulls = with_validity(text(&["x", "y"]), &[false, true]);
    let out = converted(&nulls, Symbol);
    assert_eq!((out.column.values, out.dictionary), (Values::U32(vec![0, 0]), views(&["y"])));
    assert_text(&symbol(&[1, 0, 1], &["a longer one than twelve", "b"]), &["b", "a longer one than twelve", "b"]);
    assert_values(&symbol(&[1, 0], &["1.1.1.1", "2.2.2.2"]), Ipv4, Values::U32(vec![0x0202_0202, 0x0101_0101]));
    assert_fails(&symbol(&[1, 0], &["x", "2.2.2.2"]), Ipv4, 1, "invalid input syntax for type IPV4: \"x\"");
}

#[test]
fn types_without_conversions() {
    let uuids = column(Uuid, Values::B16(vec![uuid_bytes(0x11)]));
    assert_fails(&uuids, Varchar, 0, "cannot cast value a0eebc999c0b4ef8bb6d6bb9bd380a11 of type UUID to type VARCHAR");
    let addresses = column(Ipv4, Values::U32(vec![0x0102_0304]));
    assert_fails(&addresses, Symbol, 0, "cannot cast value 1.2.3.4 of type IPV4 to type SYMBOL");
    let arrays = column(DoubleArray { dims: 1 }, Values::Views(views(&["....12345678"])));
    assert_fails(
        &arrays,
        DoubleArray { dims: 2 },
        0,
        "cannot cast value of 12 bytes of type DOUBLE[] to type DOUBLE[][]",
    );
    assert_fails(
        &column(Binary, Values::Views(views(&["x"]))),
        Varchar,
        0,
        "cannot cast value of 1 bytes of type BINARY to type VARCHAR",
    );
}

#[test]
fn nulls_stay_and_are_never_looked_at() {
    let out = converted(&with_validity(longs(&[1_000, 5, 1_000]), &[false, true, false]), Byte);
    assert_eq!(out.column.validity, Some([false, true, false].into_iter().collect()));
    let Values::I8(v) = out.column.values else { panic!() };
    assert_eq!(v[1], 5);
    assert_fails(
        &with_validity(longs(&[1_000, 5, 1_000]), &[false, true, true]),
        Byte,
        2,
        "value 1000 is out of range for type BYTE",
    );
    assert_fails(
        &with_validity(text(&["x", "y"]), &[false, true]),
        Uuid,
        1,
        "invalid input syntax for type UUID: \"y\"",
    );
    let all = [
        Boolean,
        Byte,
        Long,
        Double,
        decimal(9, 0),
        decimal(38, 9),
        NS,
        Date,
        Symbol,
        Varchar,
        Binary,
        Uuid,
        Ipv4,
        Json,
        Jsonb,
    ];
    for from in all {
        let mut nulls = column(from, Column::nulls(from.physical(), 3).values);
        nulls.column.validity = Some(Bitmap::filled(3, false));
        for to in all.into_iter().filter(|&to| to != from) {
            let out = converted(&nulls, to);
            assert_eq!(out.column.null_count(), 3, "{from} to {to}");
            assert!(out.dictionary.is_empty());
        }
    }
}

#[test]
fn long_texts_are_cut_in_messages() {
    let message = convert(&text(&["é".repeat(100).as_str()]), Uuid).unwrap_err().message;
    assert_eq!(message, format!("invalid input syntax for type UUID: \"{}\"…", "é".repeat(64)));
}

#[test]
fn a_new_column_has_the_type_of_the_batch_but_for_decimals() {
    assert_eq!(type_of_new_column(decimal(38, 2)), decimal(38, 18));
    for other in [Long, Symbol, NS, decimal(18, 3), DoubleArray { dims: 2 }] {
        assert_eq!(type_of_new_column(other), other);
    }
}
