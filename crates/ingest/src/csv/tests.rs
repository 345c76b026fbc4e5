use super::*;
use fastrand::Rng;
use tidalite_types::{Batch, BatchColumn, TimeUnit, Values};

fn detect(sample: &[u8], known: &Known) -> crate::Result<Detected> {
    super::detect(sample, true, known)
}

fn columns(types: &[(&str, ColumnType)]) -> Vec<CsvColumn> {
    types
        .iter()
        .map(|(n, t)| CsvColumn { name: (*n).to_owned(), column_type: Some(*t), ..CsvColumn::default() })
        .collect()
}

fn parse(types: &[(&str, ColumnType)], designated: Option<&str>, text: &str) -> Parsed {
    let format = CsvFormat::default();
    CsvParser::new(&format, "t", &columns(types), designated, 7).parse(text.as_bytes(), OnBad::Skip)
}

fn texts(column: &BatchColumn) -> Vec<Option<String>> {
    let text = |row: usize| match &column.column.values {
        Values::Views(views) => views.get(row).to_vec(),
        Values::U32(codes) => column.dictionary.get(codes[row] as usize).to_vec(),
        other => panic!("no text: {other:?}"),
    };
    let one = |row| column.column.is_valid(row).then(|| String::from_utf8(text(row)).unwrap());
    (0..column.column.len()).map(one).collect()
}

/// Writes a field like Python's csv.writer, except that any field may be quoted.
fn write_field(out: &mut String, value: Option<&str>, random: &mut Rng) {
    let Some(value) = value else { return };
    if value.is_empty() || value.contains([',', '"', '\n', '\r']) || random.u8(..8) == 0 {
        out.push('"');
        out.push_str(&value.replace('"', "\"\""));
        out.push('"');
    } else {
        out.push_str(value);
    }
}

fn any_text(random: &mut Rng) -> Option<String> {
    if random.u8(..6) == 0 {
        return None;
    }
    let alphabet: Vec<char> = "ab,\"\n\r 1ä€".chars().collect();
    let long = if random.u8(..10) == 0 { 40 } else { 6 };
    Some((0..random.usize(..long)).map(|_| alphabet[random.usize(..alphabet.len())]).collect())
}

#[test]
fn texts_of_any_kind_come_back_however_the_input_is_cut() {
    let types = [("a", ColumnType::Varchar), ("b", ColumnType::Symbol), ("c", ColumnType::Varchar)];
    for seed in 0..400 {
        let mut random = Rng::with_seed(seed);
        let rows: Vec<[Option<String>; 3]> =
            (0..random.usize(1..30)).map(|_| [(); 3].map(|()| any_text(&mut random))).collect();
        let end = if random.bool() { "\r\n" } else { "\n" };
        let mut text = String::new();
        for row in &rows {
            for (i, value) in row.iter().enumerate() {
                text.push_str(if i > 0 { "," } else { "" });
                write_field(&mut text, value.as_deref(), &mut random);
            }
            text.push_str(end);
        }
        if random.bool() {
            text.truncate(text.len() - end.len());
        }
        let format = CsvFormat::default();
        let mut parser = CsvParser::new(&format, "t", &columns(&types), None, seed);
        let mut splitter = Splitter::new(&format);
        let (mut held, mut found, mut lines) = (Vec::new(), Vec::new(), 0);
        let mut take = |piece: &[u8]| {
            let parsed = parser.parse(piece, OnBad::Skip);
            assert_eq!(parsed.bad, vec![], "seed {seed}: {text:?}");
            lines += parsed.lines;
            let columns: Vec<_> = parsed.batch.columns.iter().map(texts).collect();
            found.extend((0..parsed.batch.rows).map(|row| [0, 1, 2].map(|c| columns[c][row].clone())));
        };
        for piece in text.as_bytes().chunks(random.usize(1..40)) {
            held.extend_from_slice(piece);
            let whole = splitter.split(&held);
            take(&held[..whole]);
            held.drain(..whole);
        }
        take(&held);
        assert_eq!(found, rows, "seed {seed}: {text:?}");
        assert_eq!(lines, text.matches('\n').count() as u64);
    }
}

#[test]
fn the_short_way_agrees_with_the_general_one() {
    use ColumnType::{Double, Float, Int, Long, Timestamp, Varchar};
    let times = [
        "2026-02-29T00:00:00",
        "2024-02-29 23:59:59.5",
        "0001-01-01T00:00:00Z",
        "1970-01-01T00:00:00Z",
        "1969-12-31T23:59:59.999999Z",
        "2020-01-01T24:00:00",
        "2020-01-01T00:60:00",
        "2020-13-01T00:00:00Z",
        "2020-01-01T1:00:00",
        "2020-01-01T01:00:00+02:00",
        "9999-12-31T23:59:59.999999999Z",
        "2262-04-12T00:00:00Z",
        "2020-01-01T00:00:00.",
        "2020-01-01",
        "1577836800000000",
        "0000-01-01T00:00:00Z",
    ];
    let numbers = [
        "0",
        "-0",
        "1.5",
        "-1.25",
        "+3",
        "123456789012345678",
        "9223372036854775807",
        "-9223372036854775808",
        "9223372036854775808",
        "1e5",
        "1.",
        ".5",
        "0.1234567890123456789",
        "9007199254740993",
        "90071992547409.93",
        "inf",
        "NaN",
        "1e400",
        "2147483648",
        "12,",
        "x",
        "-",
        "16777217",
        "0.1",
        "3.4e39",
    ];
    let all = numbers.iter().map(|n| vec![Long, Double, Int, Float].into_iter().map(|t| (t, *n)).collect::<Vec<_>>());
    let units = [TimeUnit::Millis, TimeUnit::Micros, TimeUnit::Nanos];
    let all = all.chain(times.iter().map(|t| units.map(|unit| (Timestamp(unit), *t)).to_vec()));
    for (column_type, text) in all.flatten() {
        let text = text.trim_end_matches(',');
        let types = [("v", column_type), ("rest", Varchar)];
        // Quoted and unquoted, with and without following bytes: only the second and third can use fast paths.
        let forms = [format!("\"{text}\",x\n"), format!("{text},{}\n", "x".repeat(40)), format!("{text},x")];
        let parsed = forms.each_ref().map(|form| parse(&types, None, form));
        let value = |p: &Parsed| {
            (format!("{:?}", p.batch.columns[0].column), p.bad.iter().map(|b| b.reason.clone()).collect::<Vec<_>>())
        };
        assert_eq!(value(&parsed[0]), value(&parsed[1]), "{text} as {column_type}");
        assert_eq!(value(&parsed[0]), value(&parsed[2]), "{text} as {column_type}");
        // The value is the value that Rust parses.
        if let (Values::F64(v), Ok(expected)) = (&parsed[1].batch.columns[0].column.values, text.parse::<f64>())
            && parsed[1].bad.is_empty()
        {
            assert_eq!(v[0].to_bits(), expected.to_bits(), "{text}");
        }
        if let (Values::F32(v), Ok(expected)) = (&parsed[1].batch.columns[0].column.values, text.parse::<f32>())
            && parsed[1].bad.is_empty()
        {
            assert_eq!(v[0].to_bits(), expected.to_bits(), "{text}");
        }
    }
}

#[test]
fn random_doubles_are_read_as_rust_reads_them() {
    let mut random = Rng::with_seed(3);
    let text: Vec<String> = (0..20_000)
        .map(|i| match i % 4 {
            0 => format!("{:.4}", random.f64() * 1e3 - 500.0),
            1 => format!("{}", f64::from_bits(random.u64(..))),
            2 => format!("{:.12}", random.f64()),
            _ => format!("{:e}", random.f64() * 1e-9),
        })
        .collect();
    let parsed = parse(&[("v", ColumnType::Double)], None, &(text.join("\n") + "\n"));
    assert_eq!(parsed.bad, vec![]);
    let Values::F64(values) = &parsed.batch.columns[0].column.values else { panic!("no doubles") };
    for (value, text) in values.iter().zip(&text) {
        assert_eq!(value.to_bits(), text.parse::<f64>().unwrap().to_bits(), "{text}");
    }
}

#[test]
fn every_type_is_read_and_null_is_a_field_without_a_character() {
    use ColumnType::{Boolean, Byte, Date, Decimal, Ipv4, Json, Short, Uuid};
    let types = [
        ("a", Boolean),
        ("b", Byte),
        ("c", Short),
        ("d", Decimal { precision: 9, scale: 2 }),
        ("e", Date),
        ("f", Uuid),
        ("g", Ipv4),
        ("h", Json),
    ];
    let text = "TRUE,-128, 7 ,1.5,1970-01-02,00000000-0000-0000-0000-0000000000ff,1.2.3.4,\"{\"\"a\"\": 1}\"\n,,,,,,,\n\"\",\"\",\"\",\"\",\"\",\"\",\"\",\n";
    let parsed = parse(&types, None, text);
    assert_eq!(parsed.bad, vec![]);
    let values: Vec<&Values> = parsed.batch.columns.iter().map(|c| &c.column.values).collect();
    assert!(matches!(values[0], Values::Bit(b) if b.get(0)));
    assert_eq!(
        values[1..5],
        [
            &Values::I8(vec![-128, 0, 0]),
            &Values::I16(vec![7, 0, 0]),
            &Values::I32(vec![150, 0, 0]),
            &Values::I32(vec![1, 0, 0])
        ]
    );
    assert!(matches!(values[5], Values::B16(v) if v[0][15] == 0xff));
    assert_eq!(values[6], &Values::U32(vec![0x0102_0304, 0, 0]));
    assert_eq!(texts(&parsed.batch.columns[7]), [Some("{\"a\": 1}".to_owned()), None, None]);
    assert!(parsed.batch.columns.iter().all(|c| c.column.null_count() == 2));
}

#[test]
fn a_bad_record_leaves_no_trace_and_says_where_it_is() {
    let types = [("ts", ColumnType::Timestamp(TimeUnit::Micros)), ("s", ColumnType::Symbol), ("v", ColumnType::Double)];
    let text = "1970-01-01T00:00:01Z,a,1\n1970-01-01T00:00:02Z,lost,x\n\n1970-01-01T00:00:03Z,b\n,c,3\n1970-01-01T00:00:04Z,\"new\nline\",4,5\n1970-01-01T00:00:05Z,\"a\"b,5\n1970-01-01T00:00:06Z,d,6\n";
    let parsed = parse(&types, Some("ts"), text);
    let Batch { rows, timestamps, columns, .. } = parsed.batch;
    assert_eq!((rows, timestamps.unwrap().values), (2, vec![1_000_000, 6_000_000]));
    assert_eq!(texts(&columns[0]), [Some("a".to_owned()), Some("d".to_owned())]);
    assert_eq!(columns[0].dictionary.len(), 2);
    let bad: Vec<_> = parsed.bad.iter().map(|b| (b.line, b.position, b.column.as_deref(), b.reason.as_str())).collect();
    assert_eq!(
        bad,
        [
            (1, 27, Some("v"), "invalid input syntax for type DOUBLE: \"x\""),
            (3, 23, None, "only 2 of 3 fields"),
            (4, 1, Some("ts"), "the designated timestamp may not be NULL"),
            (5, 34, None, "more than the 3 fields that there are columns"),
            (7, 25, Some("s"), "a closing quote must be followed by the delimiter or the end of the line"),
        ]
    );
    assert_eq!(parsed.bad[3].record, b"1970-01-01T00:00:04Z,\"new\nline\",4,5\n");
    assert_eq!(parsed.lines, 9);
}

#[test]
fn bytes_that_are_no_utf8_and_a_text_for_null_are_noticed() {
    let format = CsvFormat { nulls: Nulls::new(&["NA"]), ..CsvFormat::default() };
    let types = columns(&[("a", ColumnType::Long), ("b", ColumnType::Varchar)]);
    let mut parser = CsvParser::new(&format, "t", &types, None, 1);
    let parsed = parser.parse(b"NA,NA\n1,\"NA\"\n2,\xff\n", OnBad::Skip);
    assert_eq!(texts(&parsed.batch.columns[1]), [None, Some("NA".to_owned())]);
    assert_eq!(parsed.batch.columns[0].column.null_count(), 1);
    assert_eq!(parsed.bad[0].reason, "\"\u{fffd}\" is not UTF-8");
}

fn types_of(detected: &Detected) -> Vec<String> {
    detected.columns.iter().map(|c| format!("{} {}", c.name, c.column_type.unwrap())).collect()
}

#[test]
fn a_file_says_what_it_is() {
    let mut text = "Time;price;n;ok;side;id;host;note!\n".to_owned();
    for i in 0..40 {
        let note = format!("\"text; {i}\"");
        let side = if i % 2 == 0 { "buy" } else { "sell" };
        text += &format!(
            "2026-01-01 00:{i:02}:00.123;{i}.5;{i};true;{side};00000000-0000-0000-0000-0000000000{i:02};10.0.0.{i};{note}\n"
        );
    }
    let found = detect(text.as_bytes(), &Known::default()).unwrap();
    let expected = [
        "Time TIMESTAMP",
        "price DOUBLE",
        "n LONG",
        "ok BOOLEAN",
        "side SYMBOL",
        "id UUID",
        "host IPV4",
        "note! VARCHAR",
    ];
    assert_eq!(types_of(&found), expected);
    assert_eq!((found.format.delimiter, found.header_lines, found.timestamp.as_deref()), (b';', 1, Some("Time")));
    // 40 rows in 39 minutes: half a million rows span more than a year.
    assert_eq!(found.partition_by, PartitionBy::Year);
}

use tidalite_types::PartitionBy;

#[test]
fn what_is_known_goes_before_what_is_found() {
    let text = b"1500000000000,1,x\n1500000060000,2,y\n";
    let found = detect(text, &Known::default()).unwrap();
    assert_eq!(types_of(&found), ["c0 LONG", "c1 LONG", "c2 VARCHAR"]);
    assert_eq!((found.header_bytes, found.timestamp, found.partition_by), (0, None, PartitionBy::None));
    let known = Known { timestamp: Some("C0".to_owned()), ..Known::default() };
    let found = detect(text, &known).unwrap();
    assert_eq!((types_of(&found)[0].as_str(), found.timestamp.as_deref()), ("c0 TIMESTAMP_MS", Some("c0")));
    let table = vec![
        ("at".to_owned(), ColumnType::Timestamp(TimeUnit::Millis)),
        ("n".to_owned(), ColumnType::Int),
        ("s".to_owned(), ColumnType::Symbol),
    ];
    let known = Known { table: Some(table), timestamp: Some("at".to_owned()), ..Known::default() };
    assert_eq!(types_of(&detect(text, &known).unwrap()), ["at TIMESTAMP_MS", "n INT", "s SYMBOL"]);
    let known =
        Known { columns: vec![("nosuch".to_owned(), ColumnType::Int)], has_header: Some(true), ..Known::default() };
    assert!(detect(b"a,b\n1,2\n", &known).unwrap_err().to_string().starts_with("column \"nosuch\" is not in the file"));
}

#[test]
fn headers_are_told_from_rows() {
    let has_header = |text: &str| detect(text.as_bytes(), &Known::default()).unwrap().header_lines == 1;
    assert!(has_header("a,b\n1,2\n"));
    assert!(has_header("name,city\nAnn,Rome\nBob,Oslo\n"));
    assert!(!has_header("Ann,Rome\nBob,Oslo\nAnn,Oslo\n"));
    assert!(has_header("a,a\n1,2\n"));
    assert!(!has_header("a,a\nb,c\n"));
    // An index as pandas writes it, which is no evidence.
    assert!(has_header(",name,v\n0,Ann,1\n1,Bob,2\n"));
    assert!(has_header(",name,city\n0,Ann,Rome\n1,Bob,Oslo\n"));
    assert!(!has_header(",Ann,Rome\n,Bob,Rome\n"));
    assert!(!has_header(",\n1,2\n"));
    assert!(!has_header("1,2\n3,4\n"));
    assert!(detect(b"", &Known::default()).is_err());
    let odd = detect(b"a b,a b,,x.y\n1,2,3,4\n", &Known { has_header: Some(true), ..Known::default() }).unwrap();
    assert_eq!(types_of(&odd), ["a b LONG", "a b_2 LONG", "c2 LONG", "x_y LONG"]);
}

#[test]
fn a_record_is_read_the_general_way() {
    let format = CsvFormat::default();
    let (fields, next) = field::record(b"a,\"b\"\"c\",,\"\"\r\nrest", 0, &format, 4).unwrap();
    let fields: Vec<_> = fields.iter().map(|(t, q)| (std::str::from_utf8(t).unwrap(), *q)).collect();
    assert_eq!((fields, next), (vec![("a", false), ("b\"c", true), ("", false), ("", true)], 14));
}

#[test]
fn many_fields_of_one_name_are_named_at_once_and_more_than_a_table_can_have_are_refused() {
    let known = Known { has_header: Some(true), ..Known::default() };
    let text = |n: usize| vec!["A"; n].join(",") + "\n";
    let found = detect(text(4096).as_bytes(), &known).unwrap();
    assert_eq!((found.columns[1].name.as_str(), found.columns[4095].name.as_str()), ("A_2", "A_4096"));
    let error = detect(text(4097).as_bytes(), &known).unwrap_err().to_string();
    assert!(error.contains("more fields than a table can have columns (position 8193)"), "{error}");
    // Names that other columns have, and long names.
    let taken = "a_2,A,a,a_3,a\n".to_owned() + "1,2,3,4,5\n";
    let names = |text: &str| types_of(&detect(text.as_bytes(), &known).unwrap()).join(" ");
    assert_eq!(names(&taken), "a_2 LONG A LONG a_3 LONG a_3_2 LONG a_4 LONG");
    let long = "é".repeat(80);
    let cut = "é".repeat(63);
    assert_eq!(names(&format!("{long},{long}\n1,2\n")), format!("{cut} LONG {}_2 LONG", "é".repeat(62)));
}

#[test]
fn columns_of_a_table_are_found_by_name() {
    let table = vec![("Ts".to_owned(), ColumnType::Timestamp(TimeUnit::Nanos)), ("v".to_owned(), ColumnType::Int)];
    let known = Known { table: Some(table), timestamp: Some("Ts".to_owned()), ..Known::default() };
    let found = detect(b"V,ts\n1,1500000000\n3,1500000001\n", &known).unwrap();
    assert_eq!(types_of(&found), ["v INT", "Ts TIMESTAMP_NS"]);
    assert_eq!((found.header_lines, found.timestamp.as_deref()), (1, Some("Ts")));
    let found = detect(b"v,ts,w\n1,2024-01-01,x\n3,2024-01-02,x\n", &known).unwrap();
    assert_eq!((types_of(&found)[2].as_str(), found.sampled_rows), ("w SYMBOL", 2));
    assert!(
        detect(b"v,w\n1,2\n", &known).unwrap_err().to_string().contains("names columns")
            || detect(b"v,w\n1,2\n", &known)
                .unwrap_err()
                .to_string()
                .contains("timestamp column \"Ts\" is not in the file")
    );
}

#[test]
fn a_time_that_is_null_in_the_sample_is_not_designated_and_numbers_of_no_unit_are_refused() {
    let text = b"born,at\n2001-01-01,2026-01-01T00:00:00Z\n,2026-01-02T00:00:00Z\n";
    assert_eq!(detect(text, &Known::default()).unwrap().timestamp.as_deref(), Some("at"));
    assert_eq!(detect(b"born,v\n2001-01-01,1\n,2\n", &Known::default()).unwrap().timestamp, None);
    assert_eq!(detect(b"ts,v\n1500000000000,1\n,2\n", &Known::default()).unwrap().timestamp, None);
    let known = Known { timestamp: Some("ts".to_owned()), ..Known::default() };
    for mixed in [&b"ts,v\n1500000000,1\n1500000000000,2\n"[..], b"ts,v\n5,1\n6,2\n", b"ts,v\n1500000000,1\n6,2\n"] {
        let error = detect(mixed, &known).unwrap_err().to_string();
        assert!(error.contains("timestamp column \"ts\" has numbers that are not all seconds"), "{error}");
    }
    let said = vec![("ts".to_owned(), ColumnType::Timestamp(TimeUnit::Millis))];
    let found = detect(b"ts,v\n5,1\n6,2\n", &Known { columns: said.clone(), ..known.clone() }).unwrap();
    assert_eq!(types_of(&found)[0], "ts TIMESTAMP_MS");
    assert_eq!(found.columns[0].times, Some(TimeFormat::Epoch(EpochUnit::Millis)));
    let error = detect(b"ts,v\n5,1\n6,2\n", &Known { table: Some(said), ..known }).unwrap_err().to_string();
    assert!(error.contains("column \"ts\" has numbers whose unit is not clear"), "{error}");
}

#[test]
fn a_sample_is_cut_by_its_own_delimiter() {
    // With commas the quote opens nothing; with semicolons the sample ends within a field.
    let text = b"a;b\n1;\"x\ny\n";
    let found = super::detect(text, false, &Known::default()).unwrap();
    assert_eq!((found.format.delimiter, found.sampled_rows), (b';', 0));
    let error = super::detect(b"a;\"b\nc", false, &Known { delimiter: Some(b';'), ..Known::default() })
        .unwrap_err()
        .to_string();
    assert!(error.contains("is longer than 6 bytes"), "{error}");
}

#[test]
fn a_record_with_broken_quotes_is_bad_as_a_whole() {
    let types = [("a", ColumnType::Varchar), ("b", ColumnType::Varchar)];
    let text = "\"ab\ncd\"x,2\n\"e\"f,\"g\nh\"\n1,2\n\"open,3\n4,5\n";
    let parsed = parse(&types, None, text);
    assert_eq!(texts(&parsed.batch.columns[0]), [Some("1".to_owned()), Some("4".to_owned())]);
    let bad: Vec<_> = parsed.bad.iter().map(|b| (b.line, b.position, b.record.as_slice())).collect();
    let expected: [(u64, usize, &[u8]); 3] =
        [(0, 8, b"\"ab\ncd\"x,2\n"), (2, 4, b"\"e\"f,\"g\nh\"\n"), (5, 1, b"\"open,3\n")];
    assert_eq!(bad, expected);
}

#[test]
fn reading_stops_at_the_first_bad_record_or_after_many() {
    let format = CsvFormat::default();
    let types = columns(&[("v", ColumnType::Long)]);
    let mut parser = CsvParser::new(&format, "t", &types, None, 1);
    let parsed = parser.parse(b"1\n2\nx\n3\n", OnBad::Abort);
    assert_eq!((parsed.batch.rows, parsed.bytes, parsed.lines, parsed.bad.len()), (2, 6, 3, 1));
    let text = "x\n".repeat(BAD_MAX + 5);
    let parsed = parser.parse(text.as_bytes(), OnBad::Skip);
    assert_eq!((parsed.bytes, parsed.lines, parsed.bad.len()), (2 * BAD_MAX, BAD_MAX as u64, BAD_MAX));
    assert!(parsed.bad.iter().map(|b| b.line).eq(0..BAD_MAX as u64));
    let rest = parser.parse(&text.as_bytes()[parsed.bytes..], OnBad::Skip);
    assert_eq!((rest.bytes, rest.bad.len()), (10, 5));
}

#[test]
fn bad_values_become_null_when_asked() {
    let types = [("ts", ColumnType::Timestamp(TimeUnit::Micros)), ("s", ColumnType::Symbol), ("v", ColumnType::Double)];
    let text = "1,a,x\n2,b\n3,c,1,9\nx,d,1\n4\n\"5\"6,e,1\n5,f,2\n";
    let mut format = CsvFormat::default();
    let read = |format: &CsvFormat| {
        let mut parser = CsvParser::new(format, "t", &columns(&types), Some("ts"), 7);
        let parsed = parser.parse(text.as_bytes(), OnBad::Null);
        let bad: Vec<_> = parsed.bad.iter().map(|b| (b.line, b.is_row, b.reason.clone())).collect();
        (parsed.batch.timestamps.unwrap().values, texts(&parsed.batch.columns[0]), parsed.batch.columns[1].clone(), bad)
    };
    let (times, symbols, values, bad) = read(&format);
    assert_eq!(times, [1, 2, 4, 5]);
    let shown: Vec<Option<&str>> = symbols.iter().map(Option::as_deref).collect();
    assert_eq!(shown, [Some("a"), Some("b"), None, Some("f")]);
    assert_eq!((0..4).map(|row| values.column.is_valid(row)).collect::<Vec<_>>(), [false, false, false, true]);
    let bad: Vec<_> = bad.iter().map(|(line, is_row, reason)| (*line, *is_row, reason.as_str())).collect();
    assert_eq!(
        bad,
        [
            (0, true, "invalid input syntax for type DOUBLE: \"x\""),
            (1, true, "only 2 of 3 fields"),
            (2, false, "more than the 3 fields that there are columns"),
            (3, false, "invalid input syntax for type TIMESTAMP: \"x\""),
            (4, true, "only 1 of 3 fields"),
            (5, false, "a closing quote must be followed by the delimiter or the end of the line"),
        ]
    );
    format.ignores_extra = true;
    let (times, _, _, bad) = read(&format);
    assert_eq!((times, bad.len()), (vec![1, 2, 3, 4, 5], 5));
}

#[test]
fn a_delimiter_that_could_be_within_a_value_ends_it() {
    for (delimiter, text, expected) in [(b' ', "2026-01-01 00:00:00\n", 2), (b'1', "21304\n", 2), (b'.', "1.5.2\n", 3)]
    {
        let format = CsvFormat { delimiter, ..CsvFormat::default() };
        let types: Vec<_> = ["a", "b", "c"][..expected].iter().map(|n| (*n, ColumnType::Varchar)).collect();
        let mut short = types.clone();
        short[0].1 = if delimiter == b' ' { ColumnType::Timestamp(TimeUnit::Micros) } else { ColumnType::Double };
        for types in [types, short] {
            let mut parser = CsvParser::new(&format, "t", &columns(&types), None, 1);
            // With following bytes, which the fast paths require.
            let parsed = parser.parse((text.to_owned() + &"\n".repeat(64)).as_bytes(), OnBad::Skip);
            assert_eq!(parsed.batch.rows + parsed.bad.len(), 1);
            assert!(parsed.bad.iter().all(|b| b.column.is_some()), "{:?}", parsed.bad);
        }
    }
}

#[test]
fn symbols_are_forgotten_when_they_take_much() {
    let format = CsvFormat::default();
    let types = columns(&[("s", ColumnType::Symbol)]);
    let mut parser = CsvParser::new(&format, "t", &types, None, 1);
    for round in 0..4 {
        let rows: Vec<String> = (0..100_000).map(|i| format!("{round}-{i:0>90}")).collect();
        let parsed = parser.parse(rows.join("\n").as_bytes(), OnBad::Abort);
        assert_eq!(texts(&parsed.batch.columns[0]), rows.into_iter().map(Some).collect::<Vec<_>>());
        // 13 MB of strings per round: two rounds exceed the limit.
        assert_eq!(parser.kept_bytes() > 9_200_000, round % 2 == 0, "{round}");
        assert!(parser.kept_bytes() < 16 << 20);
    }
}

#[test]
fn json_is_checked_and_a_carriage_return_within_a_line_belongs_to_its_field() {
    let parsed = parse(&[("j", ColumnType::Json)], None, "{}\nx\n[1\n");
    assert_eq!(parsed.batch.rows, 1);
    assert_eq!(parsed.bad[0].reason, "invalid input syntax for type JSON: \"x\"");
    let types = [("v", ColumnType::Double), ("s", ColumnType::Varchar)];
    let parsed = parse(&types, None, &format!("1\r2,{0}\n3,a\rb{0}\r\n4,c\r", "x".repeat(40)));
    assert_eq!(parsed.bad[0].reason, "invalid input syntax for type DOUBLE: \"1\\r2\"");
    let expected = [format!("a\rb{}", "x".repeat(40)), "c".to_owned()].map(Some);
    assert_eq!(texts(&parsed.batch.columns[1]), expected);
}
