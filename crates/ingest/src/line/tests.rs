use super::*;
use tidalite_types::{BatchColumn, ColumnType, TimeUnit, Values};

const NOW: i64 = 1_700_000_000_123_456_789;

fn options() -> LineOptions {
    LineOptions { series_after_lines: 0, ..LineOptions::default() }
}

fn parse_all(options: LineOptions, input: &[u8]) -> Result<Vec<Batch>, LineError> {
    let mut parser = LineParser::new(options);
    parser.finish(input, NOW)?;
    Ok(parser.take())
}

fn show(batches: &[Batch]) -> String {
    let tables: Vec<String> = batches.iter().map(show_batch).collect();
    tables.join(" & ")
}

/// `table: column TYPE [values], … @unit [timestamps]`
fn show_batch(batch: &Batch) -> String {
    assert_eq!(batch.lines.len(), batch.rows);
    let mut out = format!("{}:", batch.table);
    for column in &batch.columns {
        assert_eq!(column.column.len(), batch.rows, "{batch:?}");
        assert!(column.column.validity.as_ref().is_none_or(|v| v.len() == batch.rows && v.count_zeros() > 0));
        let values: Vec<String> = (0..batch.rows).map(|row| show_value(column, row)).collect();
        out += &format!(" {} {} [{}]", column.name, column.column_type, values.join(" "));
    }
    let timestamps = batch.timestamps.as_ref().expect("timestamps");
    let unit = match timestamps.unit {
        TimeUnit::Nanos => "ns",
        TimeUnit::Micros => "us",
        TimeUnit::Millis => "ms",
    };
    let values: Vec<String> =
        timestamps.values.iter().map(|t| if *t == NOW { "now".into() } else { t.to_string() }).collect();
    assert_eq!(values.len(), batch.rows);
    out + &format!(" @{unit} [{}]", values.join(" "))
}

fn show_value(column: &BatchColumn, row: usize) -> String {
    if !column.column.is_valid(row) {
        return "NULL".to_owned();
    }
    let text = |bytes: &[u8]| format!("{:?}", std::str::from_utf8(bytes).expect("UTF-8"));
    match (&column.column.values, column.column_type) {
        (Values::Bit(v), _) => v.get(row).to_string(),
        (Values::I64(v), _) => v[row].to_string(),
        (Values::F64(v), _) => format!("{:?}", v[row]),
        (Values::I128(v), _) => v[row].to_string(),
        (Values::U32(v), _) => text(column.dictionary.get(v[row] as usize)),
        (Values::Views(v), ColumnType::DoubleArray { dims }) => {
            let bytes = v.get(row);
            let (shape, values) = bytes.split_at(4 * usize::from(dims));
            let shape: Vec<u32> =
                shape.chunks(4).map(|c| u32::from_le_bytes(c.try_into().expect("whole values"))).collect();
            let values: Vec<f64> =
                values.chunks(8).map(|c| f64::from_le_bytes(c.try_into().expect("whole values"))).collect();
            format!("{shape:?}{values:?}")
        }
        (Values::Views(v), _) => text(v.get(row)),
        other => unreachable!("{other:?}"),
    }
}

#[track_caller]
fn check(input: &str, expected: &str) {
    check_bytes(input.as_bytes(), expected);
}

#[track_caller]
fn check_bytes(input: &[u8], expected: &str) {
    let got = match parse_all(options(), input) {
        Ok(batches) => show(&batches),
        Err(e) => e.to_string(),
    };
    assert_eq!(got, expected, "for {:?}", String::from_utf8_lossy(input));
}

#[test]
fn lines_and_their_parts() {
    check("", "");
    check("\n\r\n# a comment, with \" and =\n", "");
    check("t a=1i 5", "t: a LONG [1] @ns [5]");
    check("t a=1i 5\r\n", "t: a LONG [1] @ns [5]");
    check("t a=1i\n", "t: a LONG [1] @ns [now]");
    check("t a=1i \n", "t: a LONG [1] @ns [now]");
    check("t a=1i -7\n", "t: a LONG [1] @ns [-7]");
    check("t,s=x a=1i,b=2i 5\n", "t: s SYMBOL [\"x\"] a LONG [1] b LONG [2] @ns [5]");
    check("t,s=x 5\n", "t: s SYMBOL [\"x\"] @ns [5]");
    check("t,s=x\n", "t: s SYMBOL [\"x\"] @ns [now]");
    check("t,s=x \n", "t: s SYMBOL [\"x\"] @ns [now]");
    check("t,s=x  5\n", "t: s SYMBOL [\"x\"] @ns [5]");
    check("#c\nt a=1i 5\n\nt a=2i 6\n#", "t: a LONG [1 2] @ns [5 6]");
    // Spare commas, as QuestDB takes them.
    check("t,s=x, a=1i, 5\n", "t: s SYMBOL [\"x\"] a LONG [1] @ns [5]");
    check("t, a=1i,\n", "t: a LONG [1] @ns [now]");
    check("t,s=x,\n", "t: s SYMBOL [\"x\"] @ns [now]");
}

#[test]
fn tables_and_columns_come_in_order_of_first_appearance_without_regard_to_case() {
    check("b x=1i 1\na x=1i 2\nb y=2i 3\n", "b: x LONG [1 NULL] y LONG [NULL 2] @ns [1 3] & a: x LONG [1] @ns [2]");
    check(
        "T Ab=1i 1\nt aB=2i 2\nt,AB=x c=1i 3\n",
        "column \"Ab\" is LONG earlier in the same batch and SYMBOL here".join_line(3, 6),
    );
    check("T Ab=1i 1\nt aB=2i 2\n", "T: Ab LONG [1 2] @ns [1 2]");
    check("t Ä=1i 1\nt ä=2i 2\n", "t: Ä LONG [1 2] @ns [1 2]");
    check("t a=1i,b=2i,A=3i,a=x 1\n", "line 1, column 20: \"x\" is no number, boolean, timestamp or quoted string");
    check("t a=1i,b=2i,A=3i,a=\"x\" 1\n", "t: a LONG [1] b LONG [2] @ns [1]");
    check("t,a=x,a=y a=1i 1\nt,a=z 2\n", "t: a SYMBOL [\"x\" \"z\"] @ns [1 2]");
}

trait JoinLine {
    fn join_line(&self, line: u64, column: usize) -> &'static str;
}

impl JoinLine for str {
    fn join_line(&self, line: u64, column: usize) -> &'static str {
        format!("line {line}, column {column}: {self}").leak()
    }
}

#[test]
fn escapes() {
    check(
        r"my\ t\,\=,t\ g=a\ b\,c\=d\\e f\ 1=1i 1",
        r#"line 1, column 1: table name "my t,=" has a ',', which names may not have"#,
    );
    check(r"my\ t,t\ g=a\ b\,c\=d\\e f\ 1=1i 1", r#"my t: t g SYMBOL ["a b,c=d\\e"] f 1 LONG [1] @ns [1]"#);
    check(
        "t,s=a\\\nb x=\"c\\\nd\\\"e\\\\ \\f, =\" 1\n",
        r#"t: s SYMBOL ["a\nb"] x VARCHAR ["c\nd\"e\\ f, ="] @ns [1]"#,
    );
    check("t,s=\"quoted\" x=1i 1\n", r#"t: s SYMBOL ["\"quoted\""] x LONG [1] @ns [1]"#);
    check("t,s=a\\\rb x=\"a\\\rb\rc\" 1\n", "t: s SYMBOL [\"a\\rb\"] x VARCHAR [\"a\\rb\\rc\"] @ns [1]");
    check("t,s=héß x=\"日本\" 1\n", "t: s SYMBOL [\"héß\"] x VARCHAR [\"日本\"] @ns [1]");
    check(r"t x=1\2i 1", "t: x LONG [12] @ns [1]");
    check("t,s= x=\"\",y=1i 1\n", r#"t: s SYMBOL [""] x VARCHAR [""] y LONG [1] @ns [1]"#);
    check("t x=\"tab\tand\0zero\" 1\n", r#"t: x VARCHAR ["tab\tand\0zero"] @ns [1]"#);
    check("t\\ x=1i 1\n", "line 1, column 5: table name \"t\\\\ x\" must be followed by a comma or a space");
}

#[test]
fn field_types() {
    for (value, expected) in [
        ("0i", "LONG [0]"),
        ("-0i", "LONG [0]"),
        ("+12i", "LONG [12]"),
        ("-1234567i", "LONG [-1234567]"),
        ("12345678i", "LONG [12345678]"),
        ("123456789i", "LONG [123456789]"),
        ("9223372036854775807i", "LONG [9223372036854775807]"),
        ("-9223372036854775808i", "LONG [-9223372036854775808]"),
        ("0x1fi", "LONG [31]"),
        ("0X7fffffffffffffffi", "LONG [9223372036854775807]"),
        ("0x00000000000000000000000000001i", "LONG [1]"),
        ("1451606400000000t", "TIMESTAMP [1451606400000000]"),
        ("-1t", "TIMESTAMP [-1]"),
        ("1451606400000000000n", "TIMESTAMP_NS [1451606400000000000]"),
        ("1451606400000m", "TIMESTAMP [1451606400000000]"),
        ("1.5", "DOUBLE [1.5]"),
        ("15", "DOUBLE [15.0]"),
        ("-0.1", "DOUBLE [-0.1]"),
        ("-0", "DOUBLE [-0.0]"),
        ("1e3", "DOUBLE [1000.0]"),
        ("1.5E-3", "DOUBLE [0.0015]"),
        (".5", "DOUBLE [0.5]"),
        ("5.", "DOUBLE [5.0]"),
        ("0.1234567890123456789", "DOUBLE [0.12345678901234568]"),
        ("9007199254740993", "DOUBLE [9007199254740992.0]"),
        ("Infinity", "DOUBLE [inf]"),
        ("-Infinity", "DOUBLE [-inf]"),
        ("t", "BOOLEAN [true]"),
        ("T", "BOOLEAN [true]"),
        ("true", "BOOLEAN [true]"),
        ("TRUE", "BOOLEAN [true]"),
        ("True", "BOOLEAN [true]"),
        ("f", "BOOLEAN [false]"),
        ("F", "BOOLEAN [false]"),
        ("False", "BOOLEAN [false]"),
        ("\"x\"", "VARCHAR [\"x\"]"),
        ("1.50d", "DECIMAL(38,2) [150]"),
        ("-12d", "DECIMAL(38,0) [-12]"),
        ("1.5e-3d", "DECIMAL(38,4) [15]"),
        ("1.5e3d", "DECIMAL(38,0) [1500]"),
        ("0.00000000000000000000000000000000000001d", "DECIMAL(38,38) [1]"),
        ("0e-99d", "DECIMAL(38,38) [0]"),
        ("99999999999999999999999999999999999999d", "DECIMAL(38,0) [99999999999999999999999999999999999999]"),
    ] {
        check(&format!("t x={value} 1\n"), &format!("t: x {expected} @ns [1]"));
    }
    for missing in ["", "NaN", "NaNd", "Infinityd"] {
        check(&format!("t x={missing},y=1i 1\n"), "t: y LONG [1] @ns [1]");
        check(&format!("t x=1.5d 1\nt x={missing} 2\n"), "t: x DECIMAL(38,1) [15 NULL] @ns [1 2]");
    }
    let kept = parse_all(LineOptions { nan_is_null: false, ..options() }, b"t x=NaN 1\n").expect("a row");
    assert_eq!(show(&kept), "t: x DOUBLE [NaN] @ns [1]");
}

#[test]
fn bad_values() {
    let no = "is no number, boolean, timestamp or quoted string";
    for (value, expected) in [
        ("x", format!("\"x\" {no}")),
        ("1x", format!("\"1x\" {no}")),
        ("i", format!("\"i\" {no}")),
        ("-i", format!("\"-i\" {no}")),
        ("1.5i", format!("\"1.5i\" {no}")),
        ("n", format!("\"n\" {no}")),
        ("nan", format!("\"nan\" {no}")),
        ("1e", format!("\"1e\" {no}")),
        ("e", format!("\"e\" {no}")),
        ("tr", format!("\"tr\" {no}")),
        ("yes\"", format!("\"yes\\\"\" {no}")),
        ("9223372036854775808i", "\"9223372036854775808i\" is out of range for LONG".into()),
        ("0x8000000000000000i", "\"0x8000000000000000i\" is out of range for LONG".into()),
        ("0xi", format!("\"0xi\" {no}")),
        ("1e999", "\"1e999\" is out of range for DOUBLE".into()),
        ("1.5.5d", "\"1.5.5d\" is no decimal of at most 38 digits".into()),
        ("d", "\"d\" is no decimal of at most 38 digits".into()),
        ("999999999999999999999999999999999999999d", "\"999999999999999999999999999999999999999d\" is no decimal of at most 38 digits".into()),
        ("9223372036854775807t", "timestamp \"9223372036854775807t\" is out of range, years 1 to 9999 are possible, in nanoseconds 1677 to 2262".into()),
        ("\"x", "a quoted string is not closed before the end of the line".into()),
        ("a=b", "an equals sign within an unquoted value".into()),
    ] {
        let column = if value == "a=b" { 6 } else { 5 };
        check(&format!("t  x={value}\n").replacen("  ", " ", 1), expected.join_line(1, column - usize::from(false)));
    }
    check(
        "t x=\"a\"b 1\n",
        "line 1, column 8: a quoted string must be followed by a comma, a space or the end of the line",
    );
    check("t x=\"abc", "line 1, column 5: a quoted string is not closed before the end of the line");
}

#[test]
fn bad_lines() {
    for (line, expected) in [
        ("t", "column 2: table name \"t\" must be followed by a comma or a space"),
        ("t ", "column 2: a line of table \"t\" without tags and fields"),
        ("t 123", "column 3: field \"123\" has no value"),
        (" x=1i", "column 1: table name is empty"),
        ("t,x", "column 3: tag \"x\" has no value"),
        ("t,x y=1i", "column 3: tag \"x\" has no value"),
        ("t x", "column 3: field \"x\" has no value"),
        ("t x,y=1i", "column 3: field \"x\" has no value"),
        ("t =1i", "column 3: a field without a name"),
        ("t,=a x=1i", "column 3: a tag without a name"),
        ("t,s=a=b x=1i", "column 6: an equals sign within the value of a tag must be escaped by a backslash"),
        ("t x=1i abc", "column 8: \"abc\" is no timestamp: an integer, alone or with suffix n, t or m"),
        ("t x=1i 1i", "column 8: \"1i\" is no timestamp: an integer, alone or with suffix n, t or m"),
        ("t x=1i 1 ", "column 9: a space after \"1\", where a timestamp ends the line"),
        ("t x=1i  1", "column 8: a space after \"\", where a timestamp ends the line"),
        ("t  x=1i 1", "column 2: a line of table \"t\" without tags and fields"),
        ("t x=1i 1,y=2i", "column 9: more after \"1\", where a timestamp ends the line"),
        (
            "t x=1i 9223372036854775808",
            "column 8: timestamp \"9223372036854775808\" is out of range, years 1 to 9999 are possible, in nanoseconds 1677 to 2262",
        ),
        (
            "t x=1i 253402300800000m",
            "column 8: timestamp \"253402300800000m\" is out of range, years 1 to 9999 are possible, in nanoseconds 1677 to 2262",
        ),
        ("a/b x=1i", "column 1: table name \"a/b\" has a '/', which names may not have"),
        ("t a-b=1i", "column 3: column name \"a-b\" has a '-', which names may not have"),
        ("t,a.b=1i", "column 3: column name \"a.b\" has a '.', which names may not have"),
        ("t a\\\\b=1i", "column 3: column name \"a\\\\b\" has a '\\\\', which names may not have"),
        ("t x=1i\r2 5", "column 7: a carriage return within a line must be escaped by a backslash"),
        ("t x=1\0i 5", "column 6: a zero byte outside of a quoted string"),
    ] {
        check(&format!("ok a=1i 1\n{line}\nt x=1i 1\n"), &format!("line 2, {expected}"));
    }
    let long = "n".repeat(128);
    check(&format!("t {long}=1i\n"), "line 1, column 3: column name of 128 bytes is longer than 127");
    check_bytes(
        b"t,s=\xff x=1i 1\n",
        "line 1, column 5: value \"\u{fffd}\" of column \"s\" is not UTF-8 from its byte 1 on",
    );
    check_bytes(
        b"t x=\"a\xc3\" 1\n",
        "line 1, column 5: value \"a\u{fffd}\" of column \"x\" is not UTF-8 from its byte 2 on",
    );
    check_bytes(b"t\xff x=1i 1\n", "line 1, column 1: table name \"t\u{fffd}\" is not UTF-8 from its byte 2 on");
    check_bytes(b"t \xff=1i 1\n", "line 1, column 3: column name \"\u{fffd}\" is not UTF-8 from its byte 1 on");
}

#[test]
fn limits() {
    let small = LineOptions { line_bytes_max: 20, ..options() };
    assert!(
        parse_all(small.clone(), b"t x=1i 1234567890123\n").is_err_and(|e| e.message == "line is longer than 20 bytes")
    );
    assert!(parse_all(small.clone(), b"t x=1i 123456789012\n").is_ok());
    let mut parser = LineParser::new(small);
    assert_eq!(parser.parse(b"t x=1i 1\nt x=\"aaaaaaaaaaaaaaaaaaaaaaaa", NOW).map_err(|e| e.line), Err(2));
    assert_eq!(show(&parser.take()), "t: x LONG [1] @ns [1]");

    let wide = |count: usize| {
        let fields: Vec<String> = (0..count).map(|i| format!("c{i}=1i")).collect();
        parse_all(options(), format!("t {} 1\n", fields.join(",")).as_bytes())
    };
    assert_eq!(wide(4095).expect("as many as there may be")[0].columns.len(), 4095);
    assert_eq!(wide(4096).expect_err("one too many").message, "table \"t\" gets more than 4096 columns");
}

#[test]
fn timestamps_and_their_units() {
    for (unit, value, expected) in [
        ("ns", "1451606400000000001", "@ns [1451606400000000001]"),
        ("n", "5", "@ns [5]"),
        ("u", "1451606400000001", "@us [1451606400000001]"),
        ("us", "1451606400000001", "@us [1451606400000001]"),
        ("ms", "1451606400001", "@us [1451606400001000]"),
        ("s", "1451606400", "@us [1451606400000000]"),
        ("m", "24193440", "@us [1451606400000000]"),
        ("h", "403224", "@us [1451606400000000]"),
        ("s", "1451606400000000001n", "@ns [1451606400000000001]"),
        ("n", "1451606400000001t", "@us [1451606400000001]"),
        ("n", "1451606400001m", "@us [1451606400001000]"),
        ("ms", "", "@us [1700000000123456]"),
        ("ms", "-62135596800000", "@us [-62135596800000000]"),
    ] {
        let timestamp_unit = LineTimeUnit::from_precision(unit).expect("a unit");
        let batches = parse_all(LineOptions { timestamp_unit, ..options() }, format!("t a=1i {value}\n").as_bytes());
        assert_eq!(show(&batches.expect("a row")), format!("t: a LONG [1] {expected}"), "{unit} {value}");
    }
    assert_eq!(LineTimeUnit::from_precision("d"), None);
    // The finest unit wins, whatever the order; the server's own time takes the unit that is there.
    check("t a=1i 5t\nt a=1i 7n\nt a=1i 6m\nt a=1i\n", "t: a LONG [1 1 1 1] @ns [5000 7 6000000 now]");
    check("t a=1i 7n\nt a=1i 5t\n", "t: a LONG [1 1] @ns [7 5000]");
    check("t a=1i 5t\nt a=1i\n", "t: a LONG [1 1] @us [5 1700000000123456]");
    let late = "253402300799999999t";
    check(&format!("t a=1i {late}\n"), "t: a LONG [1] @us [253402300799999999]");
    check(
        &format!("t a=1i {late}\nt a=1i 7n\n"),
        "line 2, column 8: timestamp in nanoseconds, which timestamps of earlier lines do not fit",
    );
    check(
        &format!("t a=1i 7n\nt a=1i {late}\n"),
        "line 2, column 8: timestamp is out of range for nanoseconds, the unit of earlier lines",
    );
}

#[test]
fn a_column_widens_where_nothing_is_lost_by_it() {
    check("t x=1i 1\nt x=1.5 2\nt x=2i 3\n", "t: x DOUBLE [1.0 1.5 2.0] @ns [1 2 3]");
    check("t x=1i 1\nt x=1.5d 2\nt x=2i 3\nt x=2.25d 4\n", "t: x DECIMAL(38,2) [100 150 200 225] @ns [1 2 3 4]");
    check("t x=5t 1\nt x=7n 2\nt x=6t 3\n", "t: x TIMESTAMP_NS [5000 7 6000] @ns [1 2 3]");
    check("t,x=a 1\nt x=\"b\" 2\n", "t: x SYMBOL [\"a\" \"b\"] @ns [1 2]");
    check("t x=\"b\" 1\nt,x=a 2\n", "t: x VARCHAR [\"b\" \"a\"] @ns [1 2]");
    for (first, second, expected) in [
        ("t", "1i", "BOOLEAN earlier in the same batch and LONG"),
        ("1i", "t", "LONG earlier in the same batch and BOOLEAN"),
        ("1.5", "1d", "DOUBLE earlier in the same batch and DECIMAL"),
        ("1i", "\"a\"", "LONG earlier in the same batch and VARCHAR"),
        ("\"a\"", "1.5", "VARCHAR earlier in the same batch and DOUBLE"),
        ("5t", "1i", "TIMESTAMP earlier in the same batch and LONG"),
    ] {
        check(
            &format!("t x={first} 1\nt y=1i,x={second} 2\n"),
            format!("column \"x\" is {expected} here").join_line(2, 10),
        );
    }
    check(
        "t x=99999999999999999999999999999999999999d 1\nt x=1.5d 2\n",
        "line 2, column 5: column \"x\" is DECIMAL(38,0) earlier in the same batch and DECIMAL here, and values before it do not fit its precision",
    );
    check(
        "t x=1.5d 1\nt x=99999999999999999999999999999999999999d 2\n",
        "line 2, column 5: value of column \"x\" has more than 38 digits at its scale of 1",
    );
}

fn binary(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

fn doubles(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

#[test]
fn binary_values() {
    let line = |value: &[u8]| binary(&[b"t,s=a x==", value, b",y=1i 1\n"]);
    // Bytes of a newline, comma and space within the values.
    let awkward = f64::from_le_bytes(*b"\n, =\"\\\r\x40");
    let tail = "y LONG [1] @ns [1]";
    check_bytes(&line(&binary(&[&[16], &doubles(&[1.5])])), &format!("t: s SYMBOL [\"a\"] x DOUBLE [1.5] {tail}"));
    check_bytes(
        &line(&binary(&[&[16], &doubles(&[awkward])])),
        &format!("t: s SYMBOL [\"a\"] x DOUBLE [{awkward:?}] {tail}"),
    );
    check_bytes(&line(&binary(&[&[16], &doubles(&[f64::NAN])])), &format!("t: s SYMBOL [\"a\"] {tail}"));
    check_bytes(
        &line(&binary(&[&[14, 10, 1, 3, 0, 0, 0], &doubles(&[1.0, awkward, -0.0])])),
        &format!("t: s SYMBOL [\"a\"] x DOUBLE[] [[3][1.0, {awkward:?}, -0.0]] {tail}"),
    );
    check_bytes(
        &line(&binary(&[&[14, 10, 2, 1, 0, 0, 0, 2, 0, 0, 0], &doubles(&[1.0, 2.0])])),
        &format!("t: s SYMBOL [\"a\"] x DOUBLE[][] [[1, 2][1.0, 2.0]] {tail}"),
    );
    check_bytes(
        &line(&[14, 10, 2, 0, 0, 0, 0, 2, 0, 0, 0]),
        &format!("t: s SYMBOL [\"a\"] x DOUBLE[][] [[0, 2][]] {tail}"),
    );
    check_bytes(&line(&[14, 10, 0]), &format!("t: s SYMBOL [\"a\"] {tail}"));
    check_bytes(&line(&[14, 33]), &format!("t: s SYMBOL [\"a\"] {tail}"));
    check_bytes(&line(&[23, 2, 2, 0x30, 0x39]), &format!("t: s SYMBOL [\"a\"] x DECIMAL(38,2) [12345] {tail}"));
    check_bytes(&line(&[23, 0, 1, 0xff]), &format!("t: s SYMBOL [\"a\"] x DECIMAL(38,0) [-1] {tail}"));
    check_bytes(&line(&[23, 3, 0]), &format!("t: s SYMBOL [\"a\"] {tail}"));
    let wide = binary(&[&[23, 0, 20], &[0xff; 19], b"\n"]);
    check_bytes(&line(&wide), &format!("t: s SYMBOL [\"a\"] x DECIMAL(38,0) [-246] {tail}"));
    let sixteen = binary(&[&[23, 0, 17, 0], &[0x80; 16]]);
    check_bytes(&line(&sixteen), "line 1, column 11: decimal has more than 38 digits");
    check_bytes(&line(&[23, 76, 1, 1]), "line 1, column 11: decimal has more than 38 digits");
    check_bytes(
        &line(&[14, 9, 1, 0, 0, 0, 0]),
        "line 1, column 11: arrays of element type 9 are not supported, only of double (10)",
    );
    check_bytes(&line(&[14, 10, 33]), "line 1, column 12: an array of 33 dimensions, at most 32 are possible");
    check_bytes(
        &line(&[14, 10, 1, 255, 255, 255, 255]),
        "line 1, column 11: an array of 34359738360 bytes is longer than a line may be (8388608 bytes)",
    );
    check_bytes(
        &line(&[99]),
        "line 1, column 10: unknown binary type 99: known are 16 (double), 14 (array) and 23 (decimal)",
    );
    check_bytes(
        &line(b"\x10\0\0\0\0\0\0\0\0x"),
        "line 1, column 19: a binary value must be followed by a comma, a space or the end of the line",
    );
    check_bytes(b"t x==\x10\0\0", "line 1, column 9: the input ends within a line");
    check_bytes(
        b"t x==\x0e\x0a\x01\0\0\0\0 1\nt x==\x0e\x0a\x02\0\0\0\0\0\0\0\0 1\n",
        "line 2, column 5: column \"x\" is DOUBLE[] earlier in the same batch and DOUBLE[][] here",
    );
}

#[test]
fn what_a_failed_line_did_is_undone() {
    // Lines that change everything a line can change, and then fail in their last value.
    let before =
        "t,s=a,s2=long_enough_for_a_view_with_data x=1i,v=\"also longer than twelve bytes\",w=1d,q=5t 1t\nu a=1i 1\n";
    for bad in [
        "t,s=b,s2=another_string_with_its_own_data,s3=new x=1i,v=\"one more longer than twelve\" y\n",
        "t x=1.5,w=1.5d,q=7n,new=1i y\n",
        "t x=1i,v=\"another longer than twelve bytes\",new=\"x\" 1x\n",
        "new,s=a x=1i x\n",
        "t w=1.25d,b=t,x=\"string\"\n",
        "t,s=c,s=\u{e9} x=0i,new=1i 253402300799999999t7n\n",
    ] {
        for after in ["", "t,s=b,s2=another_string_with_its_own_data x=2i 2\n", "t w=1.5d,x=0.5,new=t 3\n"] {
            let mut parser = LineParser::new(options());
            let input = [before, bad].concat();
            parser.parse(input.as_bytes(), NOW).expect_err("a bad line");
            parser.parse(after.as_bytes(), NOW).expect("good lines");
            let mut twin = LineParser::new(options());
            twin.parse([before, after].concat().as_bytes(), NOW).expect("good lines");
            let (mut got, mut expected) = (parser.take(), twin.take());
            for batch in got.iter_mut().chain(&mut expected) {
                batch.lines.clear();
            }
            assert_eq!(got, expected, "{bad} then {after}");
        }
    }
}

#[test]
fn lines_are_counted_over_the_life_of_the_parser() {
    let mut parser = LineParser::new(options());
    parser.parse(b"t a=1i 1\n\nt a=2i 2\n", NOW).expect("good lines");
    assert_eq!(parser.rows(), 2);
    assert!(parser.byte_count() >= 2 * 20);
    assert_eq!(parser.take()[0].lines, [1, 3]);
    assert_eq!((parser.rows(), parser.byte_count()), (0, 0));
    assert_eq!(parser.parse(b"t a=1i 1\nt a=x 1\n", NOW).expect_err("a bad line").line, 5);
    assert_eq!(parser.take()[0].lines, [4]);
    parser.parse(b"t a=1i 1\n", NOW).expect("a good line");
    parser.reset();
    assert!(parser.take().is_empty());
    parser.parse(b"t b=1i 1\n", NOW).expect("a good line");
    let batches = parser.take();
    assert_eq!((show(&batches).as_str(), &batches[0].lines[..]), ("t: b LONG [1] @ns [1]", &[1][..]));
}

#[test]
fn the_spelling_of_names_is_that_of_the_batch() {
    let mut parser = LineParser::new(options());
    parser.parse(b"T,S=x X=1i 1\nNew,S=x x\n", NOW).expect_err("a bad line");
    parser.reset();
    parser.parse(b"t,s=x x=1i 1\nT,S=y X=2i 2\nnew,s=x y=1i 1\n", NOW).expect("good lines");
    let expected = "t: s SYMBOL [\"x\" \"y\"] x LONG [1 2] @ns [1 2] & new: s SYMBOL [\"x\"] y LONG [1] @ns [1]";
    assert_eq!(show(&parser.take()), expected);
}

#[test]
fn what_was_learnt_is_dropped_past_its_limit() {
    let mut parser = LineParser::new(LineOptions { cache_bytes_max: 10_000, ..options() });
    for round in 0..50 {
        let lines: String = (0..20).map(|i| format!("t{},s=host_{round}_{i} a=1i {i}\n", i % 3)).collect();
        parser.parse(lines.as_bytes(), NOW).expect("good lines");
        let batches = parser.take();
        assert_eq!(batches.iter().map(|b| b.rows).sum::<usize>(), 20);
        assert!(show(&batches).starts_with(&format!("t0: s SYMBOL [\"host_{round}_0\" \"host_{round}_3\"")));
        assert!(parser.tables.len() <= 3 && parser.cache_bytes < 40_000);
    }
}

/// Lines with every kind of value and change of shape.
fn samples() -> Vec<u8> {
    let mut text = Vec::new();
    text.extend_from_slice(b"cpu,host=a,region=eu-central-1 u=58i,s=2.5,ok=t,note=\"all well\" 1451606400000000000\n");
    text.extend_from_slice(b"cpu,host=b,region=eu-central-1 u=5i,s=-2.5,ok=f,note=\"a \\\"b\\\" \\\nc\" 1451606400000000001\r\n# comment\n\n");
    text.extend_from_slice(b"cpu,host=a,region=a\\ b u=123456789012i,s=1e5,ok=true,note=\"\" 1451606400000000002\n");
    text.extend_from_slice(b"cpu,region=eu-central-1,host=c s=1,u=1i\n");
    text.extend_from_slice(b"mem,host=a,region=eu used=1i,free=2i,at=5t,price=1.5d 1451606400000000t\n");
    text.extend_from_slice(b"cpu,host=a s==\x10\n\n\n, =\"\\,u=4i,arr==\x0e\x0a\x01\x02\0\0\0\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n 1451606400000000003\n");
    text.extend_from_slice(
        b"cpu,host=a dec==\x17\x01\x02\n\n,u=4i 1451606400000000004n\nCPU,host=b u=2i 5\ncpu,host=d 6\nlast a=1i",
    );
    text
}

/// Feeds the chunks one after another as a connection does.
fn feed(parser: &mut LineParser, chunks: &[&[u8]]) -> Result<(), LineError> {
    let mut rest: Vec<u8> = Vec::new();
    for chunk in chunks {
        rest.extend_from_slice(chunk);
        let used = parser.parse(&rest, NOW)?;
        rest.drain(..used);
    }
    parser.finish(&rest, NOW)
}

#[test]
fn any_split_gives_the_same_batches() {
    let text = samples();
    let whole = parse_all(options(), &text).expect("good lines");
    assert_eq!(whole.iter().map(|b| b.rows).sum::<usize>(), 10);
    for cut in 0..=text.len() {
        let mut parser = LineParser::new(options());
        feed(&mut parser, &[&text[..cut], &text[cut..]]).expect("good lines");
        assert_eq!(parser.take(), whole, "cut at {cut}");
    }
    for size in [1, 2, 3, 7, 64] {
        let mut parser = LineParser::new(options());
        feed(&mut parser, &text.chunks(size).collect::<Vec<_>>()).expect("good lines");
        assert_eq!(parser.take(), whole, "chunks of {size}");
    }
}

/// What a parser made of some input: its batches, also those before an error, and the error.
fn outcome(parser: &mut LineParser, chunks: &[&[u8]]) -> (String, Option<LineError>) {
    let error = feed(parser, chunks).err();
    // As text, because a NaN is not equal to itself.
    (format!("{:?}", parser.take()), error)
}

#[test]
fn any_split_and_any_past_give_the_same_error() {
    for bad in [
        &b"t,s=x x=\"\xff\"y\n"[..],
        b"t,s=x x==\x17\0\x01\x01x\n",
        b"t, a=1i\nt, \n",
        b"t,s=\xff\xff\xff\xff\xff x=1i,y\n",
        b"t,s=x,q=z x=1i 1\nt,s=x,q=z x=1i x\n",
    ] {
        let mut parser = LineParser::new(options());
        let whole = outcome(&mut parser, &[bad]);
        assert!(whole.1.is_some());
        for cut in 0..=bad.len() {
            parser.reset();
            assert_eq!(outcome(&mut parser, &[&bad[..cut], &bad[cut..]]), whole, "cut at {cut}");
        }
    }
}

#[test]
fn prediction_changes_nothing_on_random_lines() {
    for seed in 0..300 {
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut plain = LineParser::new(LineOptions { predict: false, ..options() });
        let mut quick = LineParser::new(LineOptions { seed, ..options() });
        for round in 0..4 {
            let text = random_lines(&mut dice);
            let cut = dice.usize(..=text.len());
            let chunks = [&text[..cut], &text[cut..]];
            assert_eq!(outcome(&mut quick, &chunks), outcome(&mut plain, &chunks), "seed {seed} round {round}");
            quick.reset();
            plain.reset();
        }
    }
}

#[test]
fn series_in_no_order_keep_their_tags_over_batches_and_undone_rows() {
    for seed in 0..40 {
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut plain = LineParser::new(LineOptions { predict: false, ..options() });
        let mut quick = LineParser::new(LineOptions { seed, ..options() });
        for round in 0..5 {
            let mut text = String::new();
            for _ in 0..dice.usize(1..400) {
                let host = dice.usize(..50);
                // Tags over one and over many words, one of them missing now and then.
                let rack = if host.is_multiple_of(7) { String::new() } else { format!(",rack=rack_{}", host % 3) };
                let place = "x".repeat(host * 3);
                let value = match dice.u16(..400) {
                    0 => "1z".to_owned(),
                    1..=8 => format!("1,new{}=2", dice.u8(..9)),
                    _ => dice.u8(..).to_string(),
                };
                text += &format!("cpu,host=host_{host}{rack},place=p{place} v={value} {}\n", dice.u32(..));
            }
            let (a, b) = (dice.usize(..=text.len()), dice.usize(..=text.len()));
            let (a, b) = (a.min(b), a.max(b));
            let chunks = [&text.as_bytes()[..a], &text.as_bytes()[a..b], &text.as_bytes()[b..]];
            assert_eq!(outcome(&mut quick, &chunks), outcome(&mut plain, &chunks), "seed {seed} round {round}");
            quick.reset();
            plain.reset();
        }
    }
}

/// What a batch says must not depend on the batches before it, whether its dictionaries began with it or went on.
#[test]
fn dictionaries_that_go_on_change_no_value() {
    let mut went_on = 0;
    for seed in 0..60 {
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut parser = LineParser::new(LineOptions { seed, ..options() });
        let mut goes_on = false;
        for round in 0..12 {
            // Few symbols or many for the rows; of a table that comes now and then, and of a tag that is a field elsewhere.
            let (rows, hosts) = (dice.usize(1..300), [3, 20, 200][dice.usize(..3)]);
            let mut text = String::new();
            for _ in 0..rows {
                let table = if dice.u8(..20) == 0 { "other" } else { "cpu" };
                let rack = if dice.bool() { format!(",rack=r{}", dice.u8(..3)) } else { String::new() };
                let field = if round % 5 == 4 { ",zone=\"z\"" } else { "" };
                let zone = if round % 5 == 3 { ",zone=z" } else { "" };
                text += &format!(
                    "{table},host=h{}{rack}{zone} v={}i{field} {}\n",
                    dice.usize(..hosts),
                    dice.u8(..),
                    dice.u32(..)
                );
            }
            let bad = dice.u8(..6) == 0;
            if bad {
                text += "cpu,host=never_seen,rack=nowhere v=1z\n";
            }
            assert_eq!(feed(&mut parser, &[text.as_bytes()]).is_err(), bad);
            let batches = parser.take();
            let mut fresh = LineParser::new(LineOptions { seed, ..options() });
            let _ = feed(&mut fresh, &[text.as_bytes()]);
            let expected = fresh.take();
            assert_eq!(show(&batches), show(&expected), "seed {seed} round {round}");
            let strings =
                |batches: &[Batch]| batches.iter().flat_map(|b| &b.columns).map(|c| c.dictionary.len()).sum::<usize>();
            went_on += usize::from(strings(&batches) > strings(&expected));
            assert!(strings(&batches) == strings(&expected) || goes_on, "they began anew");
            let may_go_on = |b: &Batch| b.columns.iter().all(|c| 2 * c.dictionary.len() <= b.rows);
            goes_on = batches.iter().all(may_go_on);
            let texts = |b: &Batch| b.columns.iter().any(|c| c.dictionary.iter().any(|text| text == b"never_seen"));
            assert!(!batches.iter().any(texts), "a string of a row that was refused");
            if bad || dice.u8(..8) == 0 {
                parser.reset();
                goes_on = false;
            }
        }
    }
    assert!(went_on > 60, "{went_on} batches had strings of others");
}

#[test]
fn nothing_of_a_request_is_in_the_dictionaries_of_the_next() {
    let mut parser = LineParser::new(options());
    let lines = |host: &str| format!("t,host={host} v=1i 1\n").repeat(10);
    for host in ["a", "b"] {
        parser.parse(lines(host).as_bytes(), NOW).expect("good lines");
        let batches = parser.take();
        assert!(batches[0].columns[0].dictionary.iter().eq([host.as_bytes()]), "{batches:?}");
        parser.reset();
    }
}

/// Rows of known series wait before they go to their columns: whatever comes between them, all are there in their order.
#[test]
fn rows_that_wait_keep_their_place_beside_others() {
    for seed in 0..30 {
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut plain = LineParser::new(LineOptions { predict: false, ..options() });
        let mut quick = LineParser::new(LineOptions { seed, ..options() });
        let odd_in = [30, 300, 3_000][seed as usize % 3];
        for round in 0..3 {
            let mut text = String::new();
            let mut host = 0;
            for _ in 0..dice.usize(1..3_000) {
                // In turn or in no order; of one table for long, or of both.
                host = if seed % 2 == 0 { (host + 1) % 40 } else { dice.usize(..40) };
                let table = if dice.usize(..odd_in) == 0 || host % 20 == 19 { "mem" } else { "cpu" };
                let rack = if host % 10 == 9 { ",rack=r" } else { "" };
                let (a, b, time) = (dice.i16(..), dice.u8(..), dice.u32(..));
                let line = format!("{table},host=host_{host}{rack},zone=z{} a={a}i,b={b}", host % 3);
                text += &match if dice.usize(..odd_in) == 0 { dice.u8(..8) } else { 8 } {
                    0 => format!("{line},c={}i {time}", dice.u8(..)),
                    1 => format!("{line} {time}t"),
                    2 => line,
                    3 => format!("# nothing\n\n{line} {time}"),
                    4 => format!("{table},host=host_{host} b={b} {time}"),
                    5 => format!("{table} a={a}i,b={b} {time}"),
                    6 => format!("{line},a=x {time}"),
                    7 => format!("{table},new=n{host},host=host_{host},zone=z a={a}i {time}"),
                    _ => format!("{line} {time}"),
                };
                text.push('\n');
            }
            let cut = dice.usize(..=text.len());
            let chunks = [&text.as_bytes()[..cut], &text.as_bytes()[cut..]];
            assert_eq!(outcome(&mut quick, &chunks), outcome(&mut plain, &chunks), "seed {seed} round {round}");
            quick.reset();
            plain.reset();
        }
    }
}

/// Whatever they have in common at first, each is learnt once and found again; also where its tags have spaces.
#[test]
fn series_that_begin_alike_are_told_apart() {
    for common in [0, 20, 100, 500, 2_500] {
        let mut dice = fastrand::Rng::with_seed(common as u64);
        let mut plain = LineParser::new(LineOptions { predict: false, ..options() });
        let mut quick = LineParser::new(LineOptions { seed: 5, ..options() });
        let alike = "y".repeat(common);
        for _ in 0..3 {
            let line = |host: u32| format!("cpu,place={alike}\\ {},host=h{host} v={host} {host}\n", host % 7);
            let text: String = (0..2_000).map(|_| line(dice.u32(..100))).collect();
            assert_eq!(outcome(&mut quick, &[text.as_bytes()]), outcome(&mut plain, &[text.as_bytes()]), "{common}");
            assert_eq!(quick.series.count(), 100, "{common} bytes alike");
            quick.reset();
            plain.reset();
        }
    }
}

#[test]
fn fields_of_one_shape_are_read_the_same_whatever_differs_now_and_then() {
    for seed in 0..60 {
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut plain = LineParser::new(LineOptions { predict: false, ..options() });
        let mut quick = LineParser::new(LineOptions { seed, ..options() });
        // Integers and doubles, or all of one of them: then mostly short ones, or those in binary.
        let all = [None, Some(true), Some(false)][seed as usize / 3 % 3];
        let fields: Vec<bool> = (0..dice.usize(1..12)).map(|_| all.unwrap_or_else(|| dice.bool())).collect();
        let odd_in = [40, 400, u32::MAX][dice.usize(..3)];
        for round in 0..4 {
            let mut text = Vec::new();
            for _ in 0..dice.usize(1..600) {
                let mut is_odd = || dice.u32(..odd_in) == 0;
                let (odd_tag, odd_end, odd_field) = (is_odd(), is_odd(), is_odd().then(|| dice.usize(..fields.len())));
                let tags = if odd_tag { ",other=x" } else { ["", ",host=a", ",host=b"][seed as usize % 3] };
                text.extend(format!("cpu{tags}").bytes());
                for (at, is_long) in fields.iter().enumerate() {
                    let mut name = format!("{}usage_{at}", if at == 0 { ' ' } else { ',' });
                    let is_usual = all.is_some() && dice.u8(..50) > 0;
                    let mut value = match is_long {
                        true if is_usual => format!("{}i", dice.u32(..) >> dice.u32(8..32)).into_bytes(),
                        false if is_usual => [b"=\x10".as_slice(), &dice.f64().to_le_bytes()].concat(),
                        true => format!("{}i", dice.i64(..) >> dice.u32(..64)).into_bytes(),
                        false if dice.u8(..3) == 0 => format!("{}", dice.u16(..)).into_bytes(),
                        false if dice.bool() => format!("{:.1}", dice.f64() * 100.0).into_bytes(),
                        false => [b"=\x10".as_slice(), &dice.f64().to_le_bytes()].concat(),
                    };
                    if odd_field == Some(at) {
                        match dice.u8(..10) {
                            0 => continue,
                            1 => value = b"NaN".to_vec(),
                            2 => value = b"t".to_vec(),
                            3 => value.push(b'x'),
                            4 => name = format!("{}usage_0", &name[..1]),
                            5 => value = b"12345678901234567890i".to_vec(),
                            6 => value = b"\"text\"".to_vec(),
                            7 => value = [b"=\x10".as_slice(), &f64::NAN.to_le_bytes()].concat(),
                            8 => value.extend(format!(",new{}=1i", dice.u8(..3)).bytes()),
                            _ => value.push(b' '),
                        }
                    }
                    text.extend(name.bytes());
                    text.extend(value);
                }
                match if odd_end { dice.u8(..5) } else { 9 } {
                    0 => text.push(b'\n'),
                    1 => text.extend(b" 17t\n"),
                    2 => text.extend(b" 17n\r\n"),
                    3 => text.extend(b", 9999999999999999999999\n"),
                    4 => text.extend(b" 1x\n"),
                    _ => text.extend(format!(" {}\n", dice.u32(..)).bytes()),
                }
            }
            let cut = dice.usize(..=text.len());
            let chunks = [&text[..cut], &text[cut..]];
            assert_eq!(outcome(&mut quick, &chunks), outcome(&mut plain, &chunks), "seed {seed} round {round}");
            quick.reset();
            plain.reset();
        }
    }
}

fn random_lines(dice: &mut fastrand::Rng) -> Vec<u8> {
    let shapes: Vec<Vec<(usize, usize)>> = (0..dice.usize(1..4))
        .map(|_| (0..dice.usize(1..9)).map(|_| (dice.usize(..9), dice.usize(..10))).collect())
        .collect();
    let mut text = String::new();
    for _ in 0..dice.usize(1..60) {
        let which = dice.usize(..shapes.len());
        text += ["cpu", "mem", "Mem", "a\\ b"][which.min(3)];
        let tags = dice.usize(..4);
        for tag in 0..tags {
            if dice.u8(..8) > 0 {
                text += &format!(
                    ",tag{tag}={}",
                    ["a", "some_host_17", "a\\ b", "something that is longer than sixteen".replace(' ', "_").as_str()]
                        [dice.usize(..4)]
                );
            }
        }
        let mut separator = ' ';
        for (name, kind) in &shapes[which] {
            if dice.u8(..10) == 0 {
                continue;
            }
            let kind = if dice.u16(..300) == 0 { dice.usize(..10) } else { *kind };
            text.push(separator);
            text += &format!("field_{name}={}", random_value(dice, kind));
            separator = ',';
        }
        if separator == ' ' {
            text += " z=1i";
        }
        text += &match dice.u8(..8) {
            0 => String::new(),
            1 => format!(" {}t", dice.i64(0..4_000_000_000_000_000)),
            2 => format!(" {}", dice.i64(..)),
            _ => format!(" {}", 1_451_606_400_000_000_000 + dice.i64(0..1_000)),
        };
        text += if dice.u8(..20) == 0 { "\r\n" } else { "\n" };
    }
    text.into_bytes()
}

fn random_value(dice: &mut fastrand::Rng, kind: usize) -> String {
    match kind {
        0 | 1 => format!("{}i", dice.i64(..) >> dice.u32(..64)),
        2 => format!("{}", dice.u32(..1000)),
        3 => format!("{:.*}", dice.usize(..20), dice.f64() * 1000.0 - 500.0),
        4 => format!("{:e}", f64::from_bits(dice.u64(..))),
        5 => ["t", "f", "true", "FALSE"][dice.usize(..4)].to_owned(),
        6 => format!("\"{}\"", ["", "short", "longer than twelve bytes", "with \\\" quote", "é, = "][dice.usize(..5)]),
        7 => format!(
            "{}{}",
            dice.i64(-1_000_000..1_451_606_400_000_000),
            ["t", "n", "m"][if dice.u8(..9) == 0 { dice.usize(..3) } else { 0 }]
        ),
        8 => format!("{}.{}d", dice.u32(..), dice.u32(..1000)),
        _ => String::new(),
    }
}

#[test]
fn mutated_input_never_panics_and_reads_the_same_without_prediction() {
    let sample = samples();
    for seed in 0..20_000 {
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut text = sample.clone();
        for _ in 0..dice.usize(1..4) {
            let at = dice.usize(..text.len());
            match dice.u8(..5) {
                0 => text[at] = dice.u8(..),
                1 => text[at] = *dice.choice(b"\n\r ,=\\\"0i.t-#\x10\x0e\x17").expect("not empty"),
                2 => drop(text.drain(at..(at + dice.usize(1..9)).min(text.len()))),
                3 => text.insert(at, *dice.choice(b"\n\r ,=\\\"0i.t-#").expect("not empty")),
                _ => {
                    let from = dice.usize(..sample.len());
                    let piece = sample[from..(from + dice.usize(1..60)).min(sample.len())].to_vec();
                    text.splice(at..at, piece);
                }
            }
            if text.is_empty() {
                break;
            }
        }
        let cut = dice.usize(..=text.len());
        let chunks = [&text[..cut], &text[cut..]];
        let mut plain = LineParser::new(LineOptions { predict: false, ..options() });
        let mut quick = LineParser::new(options());
        // Learn the shapes first.
        quick.finish(&sample, NOW).expect("good lines");
        quick.reset();
        assert_eq!(outcome(&mut quick, &chunks), outcome(&mut plain, &chunks), "seed {seed}");
    }
}

#[test]
fn doubles_are_read_as_the_standard_library_reads_them() {
    let mut dice = fastrand::Rng::with_seed(7);
    for _ in 0..200_000 {
        let text = match dice.u8(..3) {
            0 => format!("{}.{:0width$}", dice.u32(..10_000), dice.u32(..1000), width = dice.usize(1..12)),
            1 => format!("-{}", dice.u64(..)),
            _ => format!("{}", dice.f64() * 10_f64.powi(dice.i32(-3..10))),
        };
        let input = format!("{text},                        ");
        if let Some((value, end)) = scan::double(input.as_bytes(), 0) {
            assert_eq!(
                (value.to_bits(), end),
                (text.parse::<f64>().expect("a number").to_bits(), text.len()),
                "{text}"
            );
        }
    }
}
