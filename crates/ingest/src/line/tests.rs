use super::*;
use tidalite_types::EpochUnit;
use tidalite_types::{BatchColumn, ColumnType, TimeUnit, Values};

mod random;
mod reference;

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

/// Formats a batch as `table: column TYPE [values], … @unit [timestamps]`.
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
    // Extra commas, which QuestDB accepts.
    check("t,s=x, a=1i, 5\n", "t: s SYMBOL [\"x\"] a LONG [1] @ns [5]");
    check("t, a=1i,\n", "t: a LONG [1] @ns [now]");
    check("t,s=x,\n", "t: s SYMBOL [\"x\"] @ns [now]");
}

#[test]
fn tables_and_columns_come_in_order_of_first_appearance_without_regard_to_case() {
    check("b x=1i 1\na x=1i 2\nb y=2i 3\n", "b: x LONG [1 NULL] y LONG [NULL 2] @ns [1 3] & a: x LONG [1] @ns [2]");
    check(
        "T Ab=1i 1\nt aB=2i 2\nt,AB=x c=1i 3\n",
        "column \"AB\" of table \"T\": value is SYMBOL, but earlier values of the same batch are LONG".join_line(3, 6),
    );
    check("T Ab=1i 1\nt aB=2i 2\n", "T: Ab LONG [1 2] @ns [1 2]");
    check("t Ä=1i 1\nt ä=2i 2\n", "t: Ä LONG [1 2] @ns [1 2]");
    check(
        "t a=1i,b=2i,A=3i,a=x 1\n",
        "line 1, position 20: column \"a\" of table \"t\": \"x\" is not a number, boolean, timestamp or quoted string",
    );
    check("t a=1i,b=2i,A=3i,a=\"x\" 1\n", "t: a LONG [1] b LONG [2] @ns [1]");
    check("t,a=x,a=y a=1i 1\nt,a=z 2\n", "t: a SYMBOL [\"x\" \"z\"] @ns [1 2]");
}

trait JoinLine {
    fn join_line(&self, line: u64, position: usize) -> &'static str;
}

impl JoinLine for str {
    fn join_line(&self, line: u64, position: usize) -> &'static str {
        format!("line {line}, position {position}: {self}").leak()
    }
}

#[test]
fn escapes() {
    check(r"my\ t\,\=x\\,t\ g=a\ b\,c\=d\\e f\ 1=1i 1", r#"my t,=x\: t g SYMBOL ["a b,c=d\\e"] f 1 LONG [1] @ns [1]"#);
    check(
        "t,s=a\\\nb x=\"c\\\nd\\\"e\\\\ \\f, =\" 1\n",
        r#"t: s SYMBOL ["a\nb"] x VARCHAR ["c\nd\"e\\ \\f, ="] @ns [1]"#,
    );
    check("t,s=\"quoted\" x=1i 1\n", r#"t: s SYMBOL ["\"quoted\""] x LONG [1] @ns [1]"#);
    check("t,s=a\\\rb x=\"a\\\rb\rc\" 1\n", "t: s SYMBOL [\"a\\rb\"] x VARCHAR [\"a\\rb\\rc\"] @ns [1]");
    check("t,s=héß x=\"日本\" 1\n", "t: s SYMBOL [\"héß\"] x VARCHAR [\"日本\"] @ns [1]");
    check("t,s= x=\"\",y=1i 1\n", r#"t: s SYMBOL [""] x VARCHAR [""] y LONG [1] @ns [1]"#);
    check("t x=\"tab\tand\0zero\" 1\n", r#"t: x VARCHAR ["tab\tand\0zero"] @ns [1]"#);
    check("t\\ x=1i 1\n", "line 1, position 9: table \"t x=1i\": field \"1\" has no value");
}

/// The examples of InfluxDB's documentation, and text that the clients of InfluxDB and Telegraf leave unescaped.
#[test]
fn a_backslash_that_escapes_nothing_stays() {
    check(r"m,instance=a\private$ v=1 1", r#"m: instance SYMBOL ["a\\private$"] v DOUBLE [1.0] @ns [1]"#);
    check(r"m\x,t\y=a\n\z\tb f\g=1i 1", r#"m\x: t\y SYMBOL ["a\\n\\z\\tb"] f\g LONG [1] @ns [1]"#);
    check(r#"m msg="one\ntwo \, \= \  \t" 1"#, r#"m: msg VARCHAR ["one\\ntwo \\, \\= \\  \\t"] @ns [1]"#);
    check(r#"m,p=C:\dir\file v="C:\\dir\\" 1"#, r#"m: p SYMBOL ["C:\\dir\\file"] v VARCHAR ["C:\\dir\\"] @ns [1]"#);
    // One backslash or two in a row are one; three and four are two.
    check(r#"m b="\\",c="\\\\",d="a\b" 1"#, r#"m: b VARCHAR ["\\"] c VARCHAR ["\\\\"] d VARCHAR ["a\\b"] @ns [1]"#);
    check(r"m,s=a\\b,t=a\\\b v=1i 1", r#"m: s SYMBOL ["a\\b"] t SYMBOL ["a\\\\b"] v LONG [1] @ns [1]"#);
    check(
        r"t x=1\2i 1",
        r#"line 1, position 5: column "x" of table "t": "1\\2i" is not a number, boolean, timestamp or quoted string"#,
    );
}

#[test]
fn quoted_strings_have_newlines_as_they_are() {
    check("m a=\"one\ntwo\",b=1i 1\nm a=\"\n\" 2\n", "m: a VARCHAR [\"one\\ntwo\" \"\\n\"] b LONG [1 NULL] @ns [1 2]");
    check("m a=\"one\r\n\r\ntwo\" 1\r\nm a=\"x\" 2", "m: a VARCHAR [\"one\\r\\n\\r\\ntwo\" \"x\"] @ns [1 2]");
    check("m a=\"# no comment\n# neither\" 1\n", "m: a VARCHAR [\"# no comment\\n# neither\"] @ns [1]");
    check("m a=1i 1\nm a=2i,b=\"one\n\nm c=3i 3\n", "line 2, position 10: quoted string is not closed");
}

#[test]
fn names_have_every_character_but_control_characters() {
    for name in [
        "usage.idle",
        "usage-idle",
        "a/b",
        "%cpu",
        "cpu(0)",
        "a:b",
        "7z",
        "1",
        "*",
        "a+b",
        "~",
        "?",
        "it's",
        "a\"b",
        "..",
        "µ°C",
        "[x]",
        "@",
        "$1",
    ] {
        check(
            &format!("{name},{name}_t=x {name}=1i 1\n"),
            &format!("{name}: {name}_t SYMBOL [\"x\"] {name} LONG [1] @ns [1]"),
        );
    }
    check("a=b,x=y c=1i 1\n", "a=b: x SYMBOL [\"y\"] c LONG [1] @ns [1]");
    check("a\tb c=1i 1\n", "line 1, position 1: table name \"a\\tb\" has a '\\t', which names cannot have");
    check(
        "t a\u{7f}b=1i 1\n",
        "line 1, position 3: table \"t\": column name \"a\\u{7f}b\" has a '\\u{7f}', which names cannot have",
    );
}

/// InfluxDB skips spaces between the parts of a line, and its client for Python writes two behind a trailing backslash.
#[test]
fn spaces_between_the_parts_of_a_line_may_be_several() {
    let expected = "t: s SYMBOL [\"x\"] a LONG [1] b LONG [2] @ns [5]";
    for line in ["t,s=x  a=1i,b=2i  5", "t,s=x a=1i,b=2i 5  ", "  t,s=x   a=1i,b=2i   5 \r", "\tt,s=x a=1i,b=2i 5"] {
        check(&format!("{line}\n"), expected);
    }
    check("t,s=x  5 \n", "t: s SYMBOL [\"x\"] @ns [5]");
    check("t,s=x  \n", "t: s SYMBOL [\"x\"] @ns [now]");
    check("t  a=1i  \n", "t: a LONG [1] @ns [now]");
    check("   \n \t\r\n  # comment\nt a=1i 5\n  ", "t: a LONG [1] @ns [5]");
    check(r"t,s=C:\\  a=1i 5", "t: s SYMBOL [\"C:\\\\\"] a LONG [1] @ns [5]");
}

#[test]
fn columns_of_nothing_but_nan_come_into_being() {
    check("t a=NaN,b=1i 1\n", "t: a DOUBLE [NULL] b LONG [1] @ns [1]");
    check("t a=NaN 1\nt a=NaN,b=NaNd 2\n", "t: a DOUBLE [NULL NULL] b DECIMAL(38,0) [NULL NULL] @ns [1 2]");
    check("t a=NaN 1\nt a=1i 2\nt a=NaN 3\n", "t: a LONG [NULL 1 NULL] @ns [1 2 3]");
    check("t a=NaN 1\nt,a=x 2\n", "t: a SYMBOL [NULL \"x\"] @ns [1 2]");
    check("t a= 1\nt b=1i 2\n", "t: b LONG [NULL 1] @ns [1 2]");
    // A line that fails leaves no column.
    let mut parser = LineParser::new(options());
    parser.parse(b"t b=1i 1\nt a=NaN,b=x 2\n", NOW).expect_err("a bad line");
    assert_eq!(show(&parser.take()), "t: b LONG [1] @ns [1]");
    parser.parse(b"t a=NaN 1\n", NOW).expect("a good line");
    assert_eq!(show(&parser.take()), "t: a DOUBLE [NULL] @ns [1]");
    parser.parse(b"t b=1i 1\n", NOW).expect("a good line");
    assert_eq!(show(&parser.take()), "t: b LONG [1] @ns [1]");
}

#[test]
fn new_tables_have_nanoseconds_only_where_they_are_stated() {
    let new_unit = |options: LineOptions, text: &str| {
        let batches = parse_all(options, text.as_bytes()).expect("good lines");
        batches[0].timestamps.as_ref().expect("timestamps").new_unit()
    };
    let stated = |unit: EpochUnit| LineOptions { timestamp_unit: unit, ..options() };
    let ns = "1451606400000000001";
    let (micros, nanos) = (TimeUnit::Micros, TimeUnit::Nanos);
    for (unit, expected) in [
        (EpochUnit::Unstated, micros),
        (EpochUnit::Auto, micros),
        (EpochUnit::Nanos, nanos),
        (EpochUnit::Micros, micros),
        (EpochUnit::Seconds, micros),
    ] {
        let time = if unit == EpochUnit::Seconds { "5" } else { "1451606400000001" };
        assert_eq!(new_unit(stated(unit), &format!("t a=1i {time}\n")), expected, "{unit:?}");
        assert_eq!(new_unit(stated(unit), "t a=1i\n"), expected, "{unit:?}");
        assert_eq!(new_unit(stated(unit), &format!("t a=1i {ns}n\n")), nanos, "{unit:?}");
    }
    for (text, expected) in [
        (format!("t a=1i {ns}\nt a=1i {ns}n\nt a=1i {ns}\n"), nanos),
        (format!("t a=1i 5t\nt a=1i {ns}\n"), micros),
        (format!("t a=1i {ns}\nt a=1i 5t\n"), micros),
        (format!("t a=1i 5t\nt a=1i {ns}n\n"), nanos),
        (format!("t timestamp={ns}n\n"), nanos),
        ("t timestamp=5t\n".to_owned(), micros),
        (format!("t other={ns}n 5\n"), micros),
    ] {
        assert_eq!(new_unit(options(), &text), expected, "{text}");
        for unit in [micros, nanos] {
            let set = LineOptions { new_table_unit: Some(unit), ..options() };
            assert_eq!(new_unit(set, &text), unit, "{text}");
        }
    }
}

/// The limits of InfluxDB 3.
#[test]
fn auto_finds_the_unit_of_each_timestamp() {
    let auto = LineOptions { timestamp_unit: EpochUnit::Auto, ..options() };
    for (value, expected) in [
        ("1451606400", "@us [1451606400000000]"),
        ("4999999999", "@us [4999999999000000]"),
        ("5000000000", "@us [5000000000000]"),
        ("1451606400001", "@us [1451606400001000]"),
        ("1451606400000001", "@us [1451606400000001]"),
        ("1451606400000000001", "@ns [1451606400000000001]"),
        ("-1451606400", "@us [-1451606400000000]"),
        ("7t", "@us [7]"),
        ("", "@ns [now]"),
    ] {
        let batches = parse_all(auto.clone(), format!("t a=1i {value}\n").as_bytes()).expect("a row");
        assert_eq!(show(&batches), format!("t: a LONG [1] {expected}"), "{value}");
    }
}

#[test]
fn good_lines_are_taken_beside_bad_ones() {
    let text =
        "t a=1i 1\nt a=x 2\n\nt b=\"one\ntwo\",a=2i 3\nt a=\"text\" 5\n# c\nt b=\"open\nt a=3i 4\nt a=4i 6\nt,\n";
    let mut parser = LineParser::new(LineOptions { widens: false, ..options() });
    let found = parser.parse_valid(text.as_bytes(), NOW);
    let rows: Vec<String> = found.batches.iter().map(show_batch).collect();
    assert_eq!(
        rows,
        [
            "t: a LONG [1 2] b VARCHAR [NULL \"one\\ntwo\"] @ns [1 3]",
            "t: a VARCHAR [\"text\"] @ns [5]",
            "t: a LONG [3 4] @ns [4 6]",
        ]
    );
    let refused: Vec<(u64, &str)> = found.refused.iter().map(|r| (r.error.line, &text[r.text.clone()])).collect();
    assert_eq!(refused, [(2, "t a=x 2"), (7, "t b=\"open"), (10, "t,")]);
    assert_eq!(&text[found.text(text.as_bytes(), 4)], "t b=\"one\ntwo\",a=2i 3");
    assert_eq!(found.batches.iter().flat_map(|b| b.lines.clone()).collect::<Vec<_>>(), [1, 4, 5, 8, 9]);
    let bad = "t a=x 1\n".repeat(1_500);
    let found = LineParser::new(options()).parse_valid(bad.as_bytes(), NOW);
    assert_eq!((found.refused.len(), found.refused_more), (1_000, 500));
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
        ("0u", "LONG [0]"),
        ("5u", "LONG [5]"),
        ("9223372036854775807u", "LONG [9223372036854775807]"),
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
        ("inf", "DOUBLE [inf]"),
        ("-Inf", "DOUBLE [-inf]"),
        ("+INFINITY", "DOUBLE [inf]"),
        ("t", "BOOLEAN [true]"),
        ("T", "BOOLEAN [true]"),
        ("true", "BOOLEAN [true]"),
        ("TRUE", "BOOLEAN [true]"),
        ("True", "BOOLEAN [true]"),
        ("f", "BOOLEAN [false]"),
        ("F", "BOOLEAN [false]"),
        ("False", "BOOLEAN [false]"),
        ("FALSE", "BOOLEAN [false]"),
        ("false", "BOOLEAN [false]"),
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
    check("t x=,y=1i 1\n", "t: y LONG [1] @ns [1]");
    for missing in ["", "NaN", "nan", "NAN", "NaNd", "Infinityd"] {
        check(&format!("t x=1.5d 1\nt x={missing} 2\n"), "t: x DECIMAL(38,1) [15 NULL] @ns [1 2]");
    }
    let kept = parse_all(LineOptions { nan_is_null: false, ..options() }, b"t x=NaN 1\n").expect("a row");
    assert_eq!(show(&kept), "t: x DOUBLE [NaN] @ns [1]");
}

#[test]
fn bad_values() {
    let no = "is not a number, boolean, timestamp or quoted string";
    for (value, expected) in [
        ("x", format!("\"x\" {no}")),
        ("1x", format!("\"1x\" {no}")),
        ("i", format!("\"i\" {no}")),
        ("-i", format!("\"-i\" {no}")),
        ("1.5i", format!("\"1.5i\" {no}")),
        ("n", format!("\"n\" {no}")),
        ("-5u", format!("\"-5u\" {no}")),
        ("u", format!("\"u\" {no}")),
        ("1.5u", format!("\"1.5u\" {no}")),
        ("18446744073709551615u", "\"18446744073709551615u\" is out of range for LONG".into()),
        ("1e", format!("\"1e\" {no}")),
        ("e", format!("\"e\" {no}")),
        ("tr", format!("\"tr\" {no}")),
        ("yes\"", format!("\"yes\\\"\" {no}")),
        ("9223372036854775808i", "\"9223372036854775808i\" is out of range for LONG".into()),
        ("0x8000000000000000i", "\"0x8000000000000000i\" is out of range for LONG".into()),
        ("0xi", format!("\"0xi\" {no}")),
        ("1e999", "\"1e999\" is out of range for DOUBLE".into()),
        ("1.5.5d", "\"1.5.5d\" is not a decimal of at most 38 digits".into()),
        ("d", "\"d\" is not a decimal of at most 38 digits".into()),
        ("999999999999999999999999999999999999999d", "\"999999999999999999999999999999999999999d\" is not a decimal of at most 38 digits".into()),
        ("9223372036854775807t", "timestamp \"9223372036854775807t\" is out of range, years 1 to 9999 are possible, in nanoseconds 1677 to 2262".into()),
        ("a=b", "equals sign within a value without quotes".into()),
    ] {
        let column = if value == "a=b" { 6 } else { 5 };
        check(&format!("t x={value}\n"), format!("column \"x\" of table \"t\": {expected}").join_line(1, column));
    }
    check(
        "t x=\"a\"b 1\n",
        "line 1, position 8: column \"x\" of table \"t\": quoted string must be followed by a comma, a space or the end of the line",
    );
    check("t x=\"abc", "line 1, position 5: quoted string is not closed");
}

#[test]
fn bad_lines() {
    for (line, expected) in [
        ("t", "position 2: table name \"t\" must be followed by a comma or a space"),
        ("t ", "position 2: table \"t\": line without tags and fields"),
        ("t 123", "position 3: table \"t\": field \"123\" has no value"),
        (" x=1i", "position 6: table name \"x=1i\" must be followed by a comma or a space"),
        (",x=1i", "position 1: table name is empty"),
        ("t,x", "position 3: table \"t\": tag \"x\" has no value"),
        ("t,x y=1i", "position 3: table \"t\": tag \"x\" has no value"),
        ("t x", "position 3: table \"t\": field \"x\" has no value"),
        ("t x,y=1i", "position 3: table \"t\": field \"x\" has no value"),
        ("t =1i", "position 3: table \"t\": field without a name"),
        ("t,=a x=1i", "position 3: table \"t\": tag without a name"),
        (
            "t,s=a=b x=1i",
            "position 6: column \"s\" of table \"t\": equals sign within the value of a tag must follow a backslash",
        ),
        (
            "t x=1i abc",
            "position 8: table \"t\": \"abc\" is not a timestamp: an integer, alone or with suffix n, t or m",
        ),
        ("t x=1i 1i", "position 8: table \"t\": \"1i\" is not a timestamp: an integer, alone or with suffix n, t or m"),
        ("t x=1i 1 2", "position 9: table \"t\": more after \"1\", where a timestamp ends the line"),
        ("t x=1i y=2i", "position 9: table \"t\": more after \"y\", where a timestamp ends the line"),
        ("t x=1i 1,y=2i", "position 9: table \"t\": more after \"1\", where a timestamp ends the line"),
        (
            "t x=1i 9223372036854775808",
            "position 8: table \"t\": timestamp \"9223372036854775808\" is out of range, years 1 to 9999 are possible, in nanoseconds 1677 to 2262",
        ),
        (
            "t x=1i 253402300800000m",
            "position 8: table \"t\": timestamp \"253402300800000m\" is out of range, years 1 to 9999 are possible, in nanoseconds 1677 to 2262",
        ),
        (
            "t x=1i\r2 5",
            "position 7: column \"x\" of table \"t\": carriage return within a line must follow a backslash",
        ),
        ("t x=1\0i 5", "position 6: column \"x\" of table \"t\": zero byte outside of a quoted string"),
    ] {
        check(&format!("ok a=1i 1\n{line}\nt x=1i 1\n"), &format!("line 2, {expected}"));
    }
    let long = "n".repeat(128);
    check(&format!("t {long}=1i\n"), "line 1, position 3: table \"t\": column name of 128 bytes is longer than 127");
    check_bytes(
        b"t,s=\xff x=1i 1\n",
        "line 1, position 5: column \"s\" of table \"t\": value \"\u{fffd}\" is not UTF-8 from its byte 1 on",
    );
    check_bytes(
        b"t x=\"a\xc3\" 1\n",
        "line 1, position 5: column \"x\" of table \"t\": value \"a\u{fffd}\" is not UTF-8 from its byte 2 on",
    );
    check_bytes(b"t\xff x=1i 1\n", "line 1, position 1: table name \"t\u{fffd}\" is not UTF-8 from its byte 2 on");
    check_bytes(
        b"t \xff=1i 1\n",
        "line 1, position 3: table \"t\": column name \"\u{fffd}\" is not UTF-8 from its byte 1 on",
    );
}

#[test]
fn limits() {
    let small = LineOptions { line_bytes_max: 20, ..options() };
    assert!(
        parse_all(small.clone(), b"t x=1i 1234567890123\n")
            .is_err_and(|e| e.message.contains("line is longer than 20 bytes"))
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
    assert_eq!(
        wide(4096).expect_err("one too many").message,
        "column \"c4095\" of table \"t\": table cannot have more than 4096 columns"
    );
}

#[test]
fn timestamps_and_their_units() {
    for (unit, value, expected) in [
        ("", "1451606400000000001", "@ns [1451606400000000001]"),
        ("ns", "1451606400000000001", "@ns [1451606400000000001]"),
        ("nanosecond", "5", "@ns [5]"),
        ("microsecond", "5", "@us [5]"),
        ("millisecond", "5", "@us [5000]"),
        ("second", "5", "@us [5000000]"),
        ("µ", "5", "@us [5]"),
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
        let timestamp_unit = EpochUnit::from_precision(unit).expect("a unit");
        let batches = parse_all(LineOptions { timestamp_unit, ..options() }, format!("t a=1i {value}\n").as_bytes());
        assert_eq!(show(&batches.expect("a row")), format!("t: a LONG [1] {expected}"), "{unit} {value}");
    }
    assert_eq!(EpochUnit::from_precision("d"), None);
    // The finest unit wins, in any order; the server's own time takes the unit of the batch.
    check("t a=1i 5t\nt a=1i 7n\nt a=1i 6m\nt a=1i\n", "t: a LONG [1 1 1 1] @ns [5000 7 6000000 now]");
    check("t a=1i 7n\nt a=1i 5t\n", "t: a LONG [1 1] @ns [7 5000]");
    check("t a=1i 5t\nt a=1i\n", "t: a LONG [1 1] @us [5 1700000000123456]");
    let late = "253402300799999999t";
    check(&format!("t a=1i {late}\n"), "t: a LONG [1] @us [253402300799999999]");
    check(
        &format!("t a=1i {late}\nt a=1i 7n\n"),
        "line 2, position 8: table \"t\": timestamp in nanoseconds, which timestamps of earlier lines do not fit",
    );
    check(
        &format!("t a=1i 7n\nt a=1i {late}\n"),
        "line 2, position 8: table \"t\": timestamp is out of range for nanoseconds, the unit of earlier lines",
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
        ("t", "1i", ("LONG", "BOOLEAN")),
        ("1i", "t", ("BOOLEAN", "LONG")),
        ("1.5", "1d", ("DECIMAL", "DOUBLE")),
        ("1i", "\"a\"", ("VARCHAR", "LONG")),
        ("\"a\"", "1.5", ("DOUBLE", "VARCHAR")),
        ("5t", "1i", ("LONG", "TIMESTAMP")),
    ] {
        check(
            &format!("t x={first} 1\nt y=1i,x={second} 2\n"),
            format!(
                "column \"x\" of table \"t\": value is {}, but earlier values of the same batch are {}",
                expected.0, expected.1
            )
            .join_line(2, 10),
        );
    }
    check(
        "t x=99999999999999999999999999999999999999d 1\nt x=1.5d 2\n",
        "line 2, position 5: column \"x\" of table \"t\": value is DECIMAL, but earlier values of the same batch are DECIMAL(38,0), and earlier values do not fit its precision",
    );
    check(
        "t x=1.5d 1\nt x=99999999999999999999999999999999999999d 2\n",
        "line 2, position 5: column \"x\" of table \"t\": value has more than 38 digits at the scale of 1",
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
    check_bytes(
        &line(&binary(&[&[16], &doubles(&[f64::NAN])])),
        &format!("t: s SYMBOL [\"a\"] x DOUBLE [NULL] {tail}"),
    );
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
    check_bytes(&line(&[23, 3, 0]), &format!("t: s SYMBOL [\"a\"] x DECIMAL(38,0) [NULL] {tail}"));
    let wide = binary(&[&[23, 0, 20], &[0xff; 19], b"\n"]);
    check_bytes(&line(&wide), &format!("t: s SYMBOL [\"a\"] x DECIMAL(38,0) [-246] {tail}"));
    let sixteen = binary(&[&[23, 0, 17, 0], &[0x80; 16]]);
    check_bytes(&line(&sixteen), "line 1, position 11: column \"x\" of table \"t\": decimal has more than 38 digits");
    check_bytes(
        &line(&[23, 76, 1, 1]),
        "line 1, position 11: column \"x\" of table \"t\": decimal has more than 38 digits",
    );
    check_bytes(
        &line(&[14, 9, 1, 0, 0, 0, 0]),
        "line 1, position 11: column \"x\" of table \"t\": arrays of element type 9 are not supported, only of double (10)",
    );
    check_bytes(
        &line(&[14, 10, 33]),
        "line 1, position 12: column \"x\" of table \"t\": an array of 33 dimensions, at most 32 are possible",
    );
    check_bytes(
        &line(&[14, 10, 1, 255, 255, 255, 255]),
        "line 1, position 11: column \"x\" of table \"t\": an array of 34359738360 bytes is longer than a line may be (8388608 bytes)",
    );
    check_bytes(
        &line(&[99]),
        "line 1, position 10: column \"x\" of table \"t\": unknown binary type 99: known are 16 (double), 14 (array) and 23 (decimal)",
    );
    check_bytes(
        &line(b"\x10\0\0\0\0\0\0\0\0x"),
        "line 1, position 19: column \"x\" of table \"t\": binary value must be followed by a comma, a space or the end of the line",
    );
    check_bytes(b"t x==\x10\0\0", "line 1, position 9: the input ends within a line");
    check_bytes(
        b"t x==\x0e\x0a\x01\0\0\0\0 1\nt x==\x0e\x0a\x02\0\0\0\0\0\0\0\0 1\n",
        "line 2, position 5: column \"x\" of table \"t\": value is DOUBLE[][], but earlier values of the same batch are DOUBLE[]",
    );
}

#[test]
fn what_a_failed_line_did_is_undone() {
    // Lines that make every possible change, and then fail in their last value.
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

/// Returns lines with every kind of value and change of shape.
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

/// Feeds the chunks one after another, like a connection.
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

/// Returns the result of a parser: its batches, including those before an error, and the error.
fn outcome(parser: &mut LineParser, chunks: &[&[u8]]) -> (String, Option<LineError>) {
    let error = feed(parser, chunks).err();
    // Compared as text, because a NaN is not equal to itself.
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
