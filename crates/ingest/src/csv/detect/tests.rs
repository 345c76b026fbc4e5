use super::*;
use crate::csv::{CsvParser, OnBad};
use crate::csv::{DateOrder, NumberFormat, Thousands, TimeFormat};
use tidalite_types::ColumnType;
use tidalite_types::Values;

/// Returns the columns as `name TYPE format`, and the detection result.
fn found(text: &str, known: &Known) -> Result<(Vec<String>, Detected)> {
    let found = detect(text.as_bytes(), true, known)?;
    let one = |c: &CsvColumn| {
        let format = c.times.as_ref().map_or(String::new(), |f| format!(" {f}"));
        format!("{} {}{format}", c.name, c.column_type.map_or("-".to_owned(), |t| t.to_string()))
    };
    Ok((found.columns.iter().map(one).collect(), found))
}

fn columns(text: &str) -> Vec<String> {
    found(text, &Known::default()).expect(text).0
}

fn refused(text: &str, known: &Known) -> String {
    found(text, known).expect_err(text).to_string()
}

/// Returns the type of a column with these values under a header, next to another column.
fn type_of(name: &str, values: &[&str], other: &str) -> String {
    let rows: Vec<String> = values.iter().map(|v| format!("{other};{v}\n")).collect();
    columns(&format!("w;{name}\n{}", rows.concat())).swap_remove(1)
}

#[test]
fn types_by_their_values() {
    for (values, expected) in [
        (&["true", "FALSE"][..], "v BOOLEAN"),
        (&["yes", "No"], "v BOOLEAN"),
        (&["y", "n"], "v BOOLEAN"),
        (&["T", "F"], "v BOOLEAN"),
        (&["on", "off"], "v BOOLEAN"),
        (&["n", "n"], "v SYMBOL"),
        (&["n", "s", "e"], "v VARCHAR"),
        (&["1", "0"], "v LONG"),
        (&["+1", "-2"], "v LONG"),
        (&["+491701234567", "+491701234568"], "v VARCHAR"),
        (&["01234", "12345"], "v VARCHAR"),
        (&["0", "10"], "v LONG"),
        (&["0.5", "-0.25"], "v DOUBLE"),
        (&["1", "NA", "N/A", "null", "\\N", "NULL", "nan", ""], "v LONG"),
        (&["1.5", "NaN"], "v DOUBLE"),
        (&["9223372036854775807", "1"], "v LONG"),
        (&["9223372036854775808", "1"], "v DECIMAL(38,0)"),
        (&["9007199254740993", "0.5"], "v DECIMAL(38,1)"),
        (&["9007199254740993", "1e5"], "v VARCHAR"),
        (&["100000000000000000000000000000000000000000", "1"], "v VARCHAR"),
        (&["1,5", "2,25"], "v DOUBLE"),
        (&["1.234,5", "0,5"], "v DOUBLE"),
        (&["1,234.5", "0.5"], "v DOUBLE"),
        (&["1'234'567", "12"], "v LONG"),
        (&["1 234,5", "12,5"], "v DOUBLE"),
        (&["030 123 456", "089 123 456"], "v VARCHAR"),
        (&["123 456", "789 123"], "v VARCHAR"),
        (&["5%", "6%"], "v VARCHAR"),
        (&["$5", "$6"], "v VARCHAR"),
        (&["0x1f", "0x20"], "v VARCHAR"),
        (&["1", "x"], "v VARCHAR"),
        (&["2024-01-31", "2024-02-01"], "v DATE auto"),
        (&["2024-01-31 10:00", "2024-02-01 10:00:01.5"], "v TIMESTAMP auto"),
        (&["2024-01-31 10:00:00.1234567", "2024-02-01 10:00:01.5"], "v TIMESTAMP_NS auto"),
        (&["2024-01-31 10:00:00 UTC", "2024-02-01 10:00:01+01"], "v TIMESTAMP auto"),
        (&["31.01.2024", "01.02.2024"], "v DATE auto"),
        (&["31/01/2024 10:00", "01/02/2024 10:00"], "v TIMESTAMP dmy"),
        (&["01/31/2024 3:00 PM", "01/02/2024 3:00 AM"], "v TIMESTAMP mdy"),
        (&["01/01/2024", "02/02/2024"], "v DATE dmy"),
        (&["13/01/2024", "01/13/2024"], "v VARCHAR"),
        (&["01/02/24", "03/04/24"], "v VARCHAR"),
        (&["1.2.24", "3.4.24"], "v VARCHAR"),
        (&["20240131 150405123", "20240131 150405124"], "v TIMESTAMP auto"),
        (&["20240131", "20240201"], "v LONG"),
        (&["1706713445", "1706713446"], "v LONG"),
        (&["10.0.0.1", "10.0.0.2"], "v IPV4"),
        (&["00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"], "v UUID"),
    ] {
        assert_eq!(type_of("v", values, "2024-01-31T00:00:00"), expected, "{values:?}");
    }
    for (name, values, expected) in [
        ("ts", ["1706713445", "1706713446"], "ts TIMESTAMP auto"),
        ("ts", ["1706713445.5", "1706713446.5"], "ts TIMESTAMP auto"),
        ("open_time", ["1706713445000", "1706713446000"], "open_time TIMESTAMP_MS auto"),
        ("timestamp", ["1706713445000000000", "1706713446000000000"], "timestamp TIMESTAMP_NS auto"),
        ("date", ["20240131", "20240201"], "date TIMESTAMP auto"),
        ("ts", ["5", "6"], "ts LONG"),
        ("date", ["01.02.24", "03.04.24"], "date TIMESTAMP auto"),
    ] {
        assert_eq!(type_of(name, &values, "x"), expected, "{name} {values:?}");
    }
}

#[test]
fn dates_of_two_meanings_are_refused_unless_another_column_or_an_option_tells() {
    let text = "d;v\n01/02/2024;1\n03/04/2024;2\n";
    let error = refused(text, &Known::default());
    assert!(error.contains("column \"d\"") && error.contains("date_order"), "{error}");
    let said = |order| Known { date_order: Some(order), ..Known::default() };
    assert_eq!(found(text, &said(DateOrder::MonthFirst)).unwrap().0[0], "d TIMESTAMP mdy");
    assert_eq!(found(text, &said(DateOrder::DayFirst)).unwrap().0[0], "d TIMESTAMP dmy");
    assert_eq!(columns("d;e\n01/02/2024;12/25/2024\n03/04/2024;12/26/2024\n")[0], "d TIMESTAMP mdy");
    let format = TimeFormat::from_text("dd/MM/yyyy").unwrap();
    let known = Known { formats: vec![("d".to_owned(), format)], ..Known::default() };
    assert_eq!(found(text, &known).unwrap().0[0], "d TIMESTAMP dd/MM/yyyy");
    let known = Known { columns: vec![("d".to_owned(), ColumnType::Varchar)], ..Known::default() };
    assert_eq!(found(text, &known).unwrap().0[0], "d VARCHAR");
}

#[test]
fn a_column_of_one_comma_follows_the_rest_of_the_file() {
    let numbers = |text: &str, n: usize| found(text, &Known::default()).unwrap().1.columns[n].numbers;
    let comma = NumberFormat { has_decimal_comma: true, thousands: Thousands::None };
    let thousands = NumberFormat { has_decimal_comma: false, thousands: Thousands::Comma };
    assert_eq!(numbers("a;b\n1,234;x\n2,345;y\n", 0), comma);
    assert_eq!(numbers("a,b\n\"1,234\",x\n\"2,345\",y\n", 0), thousands);
    assert_eq!(numbers("a;b\n1,234;0.5\n2,345;1.25\n", 0), thousands);
    assert_eq!(numbers("a\tb\n1,234\t0,5\n2,345\t1,25\n", 0), comma);
    let points = NumberFormat { has_decimal_comma: true, thousands: Thousands::Point };
    assert_eq!(numbers("a;b\n1.234;0,5\n2.345;1,25\n", 0), points);
    assert_eq!(numbers("a;b\n1.234;x\n2.345;y\n", 0), NumberFormat::PLAIN);
}

#[test]
fn a_header_of_a_table_names_its_columns() {
    let text = |name: &str| (name.to_owned(), ColumnType::Varchar);
    let known = Known { table: Some(vec![text("name"), text("city")]), ..Known::default() };
    let has_names = |text: &str| found(text, &known).expect(text).1.has_names();
    assert!(!has_names("Ann,Rome\nBob,Oslo\n"));
    assert!(!has_names("Ann,Rome\n"));
    assert!(has_names("name,city\nAnn,Rome\n"));
    assert!(has_names("City,NAME\n"));
    assert!(has_names("name,city,age\nAnn,Rome,5\n"));
    assert!(refused("Ann,Rome,5\n", &known).contains("has 2 columns"), "no columns out of data");
    assert!(refused("first,second,third\nAnn,Rome,5\n", &known).contains("header"));
    let said = Known { has_header: Some(true), ..known.clone() };
    assert_eq!(found("first,name\nAnn,Rome\n", &said).unwrap().0, ["first VARCHAR", "name VARCHAR"]);
}

#[test]
fn comments_preambles_and_an_excel_line_stand_before_the_names() {
    for (text, lines) in [
        ("# made by x\n# at y\na,b\n1,2\n", 3),
        ("#a,b\n1,2\n", 1),
        ("# made by x\n# a,b\n1,2\n", 2),
        ("Report of x\nAccount 5\n\na,b\n1,2\n3,4\n", 4),
        ("sep=;\na;b\n1;2\n", 2),
        ("a,b\n# middle\n1,2\n# end\n", 1),
        ("# x, y, z\na,b\n# middle\n1,2\n", 2),
    ] {
        let (columns, found) = found(text, &Known::default()).expect(text);
        assert_eq!((columns, found.header_lines), (vec!["a LONG".to_owned(), "b LONG".to_owned()], lines), "{text}");
        let mut parser = CsvParser::new(&found.format, "t", &found.columns, None, 1);
        let parsed = parser.parse(&text.as_bytes()[found.header_bytes..], OnBad::Skip);
        assert_eq!(parsed.bad, [], "{text}");
        assert!(matches!(&parsed.batch.columns[0].column.values, Values::I64(v) if v[0] == 1), "{text}");
        assert_eq!(text[found.names.clone()].trim(), if text.starts_with("sep") { "a;b" } else { "a,b" });
    }
    // Rows of text that begin with the character are rows.
    for text in ["#tag,x\n#other,y\n", "#tag\n#other\n", "#tag,1\nb,2\n", "#x\ny\nz\n"] {
        let (_, found) = found(text, &Known::default()).expect(text);
        assert_eq!((found.header_bytes, found.format.comment), (0, None), "{text}");
    }
    let known = Known { skipped_lines: 2, ..Known::default() };
    assert_eq!(found("x,y,z\n\"\na,b\n1,2\n", &known).unwrap().0, ["a LONG", "b LONG"]);
}

#[test]
fn delimiters_and_quotes() {
    for (text, delimiter, quote) in [
        ("a,b\n1,2\n", b',', b'"'),
        ("a;b\n1,5;2,5\n", b';', b'"'),
        ("2024-01-01;1,5;2,5\n2024-01-02;1,5;2,5\n", b';', b'"'),
        ("a\tb\n1,5\tx y\n", b'\t', b'"'),
        ("a|b\n1|2\n", b'|', b'"'),
        ("'a','b'\n'x, y','it''s'\n", b',', b'\''),
        ("a,b\n'tis,5\nit's,6\n", b',', b'"'),
        ("a,b\n\"x\",'y'\n", b',', b'"'),
        ("v\n1\n2\n", b',', b'"'),
    ] {
        let found = found(text, &Known::default()).expect(text).1;
        assert_eq!((found.format.delimiter, found.format.quote), (delimiter, quote), "{text}");
    }
}

#[test]
fn a_date_and_a_time_are_one_timestamp() {
    let known = Known { date_and_time: Some(("Day".to_owned(), "clock".to_owned())), ..Known::default() };
    for (text, expected) in [
        ("day,clock,v\n20240131,150405,1\n20240201,000000,2\n", [1_706_713_445_000_000_i64, 1_706_745_600_000_000]),
        (
            "day,clock,v\n31/01/2024,3:04:05 PM,1\n01/02/2024,12:00 AM,2\n",
            [1_706_713_445_000_000, 1_706_745_600_000_000],
        ),
    ] {
        let found = detect(text.as_bytes(), true, &known).unwrap();
        assert_eq!(found.timestamp.as_deref(), Some("timestamp"));
        let mut parser = CsvParser::new(&found.format, "t", &found.columns, found.timestamp.as_deref(), 1);
        let parsed = parser.parse(&text.as_bytes()[found.header_bytes..], OnBad::Skip);
        assert_eq!(parsed.bad, []);
        assert_eq!(parsed.batch.timestamps.unwrap().values, expected);
        assert_eq!(parsed.batch.columns.len(), 1);
    }
    assert!(refused("day,v\n20240131,1\n", &known).contains("\"clock\" is not in the file"));
}

#[test]
fn few_bad_values_keep_a_time_column() {
    let known = Known { skips_bad: true, ..Known::default() };
    let file = |bad: usize| {
        let good: String = (0..200).map(|n| format!("2024-01-01T00:{:02}:{:02},{n}\n", n / 60, n % 60)).collect();
        format!("ts,v\n{good}{}", "yesterday,1\n".repeat(bad))
    };
    let (types, detected) = found(&file(2), &known).unwrap();
    assert_eq!((&types[0][..], detected.timestamp.as_deref()), ("ts TIMESTAMP auto", Some("ts")));
    assert!(detected.findings[0].why.contains("2 of 202 values are not times"), "{:?}", detected.findings[0]);
    // Too many, or without the option: text.
    assert_eq!(found(&file(3), &known).unwrap().0[0], "ts VARCHAR");
    assert_eq!(columns(&file(2))[0], "ts VARCHAR");
}
