use super::command::commit_command;
use super::*;
use tidalite_types::{BatchTimestamps, Command, TimeUnit, command::CreateTable};

fn column(name: &str, column_type: ColumnType, values: Values) -> BatchColumn {
    BatchColumn {
        name: name.to_owned(),
        column_type,
        column: Column::new(values),
        dictionary: Views::new(),
        narrower: None,
    }
}

fn longs(name: &str, values: &[i64]) -> BatchColumn {
    column(name, ColumnType::Long, Values::I64(values.to_vec()))
}

fn symbols(name: &str, strings: &[&str], codes: &[u32]) -> BatchColumn {
    let mut dictionary = Views::new();
    strings.iter().for_each(|s| dictionary.push(s.as_bytes()));
    BatchColumn { dictionary, ..column(name, ColumnType::Symbol, Values::U32(codes.to_vec())) }
}

fn batch(table: &str, columns: Vec<BatchColumn>) -> Batch {
    let rows = columns[0].column.len();
    let timestamps = BatchTimestamps::new(TimeUnit::Nanos, (0..rows as i64).map(|i| i * 1000).collect());
    Batch { table: table.to_owned(), rows, columns, timestamps: Some(timestamps), lines: (1..=rows as u32).collect() }
}

fn commit(catalog: &mut Catalog, batches: Vec<Batch>) -> Result<Vec<Op>, Error> {
    commit_batches(catalog, batches, true, Txn(1)).map_err(|(error, _)| error)
}

fn create(catalog: &mut Catalog, columns: &[(&str, ColumnType)], designated: Option<&str>) {
    let create = CreateTable {
        name: "t".to_owned(),
        columns: columns.iter().map(|(n, t)| ((*n).to_owned(), *t)).collect(),
        designated: designated.map(str::to_owned),
        partition_by: if designated.is_some() { PartitionBy::Day } else { PartitionBy::None },
        ttl: None,
        lag_us: None,
        dedup: Vec::new(),
        if_not_exists: false,
    };
    commit_command(catalog, Command::CreateTable(create)).unwrap();
}

fn run(ops: &[Op]) -> &Run {
    ops.iter().find_map(|op| if let Op::Rows { run, .. } = op { Some(run) } else { None }).expect("there are rows")
}

#[test]
fn the_first_row_creates_the_table_as_line_protocol_says() {
    let mut catalog = Catalog::default();
    let ops =
        commit(&mut catalog, vec![batch("cpu", vec![symbols("host", &["a"], &[0]), longs("usage", &[1])])]).unwrap();
    let Op::CreateTable { table, schema } = &ops[0] else { panic!("{ops:?}") };
    assert_eq!(catalog.id_of("CPU"), Some(*table));
    let columns: Vec<_> = schema.columns.iter().map(|c| (c.name.as_str(), c.column_type)).collect();
    let timestamp = ("timestamp", ColumnType::Timestamp(TimeUnit::Nanos));
    assert_eq!(columns, [("host", ColumnType::Symbol), ("usage", ColumnType::Long), timestamp]);
    assert_eq!((schema.partition_by, schema.designated), (PartitionBy::Day, Some(ColumnId(2))));
}

#[test]
fn a_refused_request_leaves_no_trace_of_its_other_tables() {
    let mut catalog = Catalog::default();
    create(&mut catalog, &[("ts", ColumnType::Timestamp(TimeUnit::Micros)), ("v", ColumnType::Byte)], Some("ts"));
    let good = batch("new", vec![symbols("s", &["x"], &[0])]);
    let bad = batch("t", vec![longs("v", &[1, 300])]);
    let error = commit(&mut catalog, vec![good, bad]).unwrap_err();
    assert_eq!((error.kind, error.line), (ErrorKind::Invalid, Some(2)));
    assert!(
        error.message.contains("\"v\"") && error.message.contains("\"t\"") && error.message.contains("300"),
        "{error}"
    );
    assert_eq!(catalog.id_of("new"), None);
}

#[test]
fn of_two_clients_creating_a_column_the_second_must_fit_the_first() {
    let mut catalog = Catalog::default();
    commit(&mut catalog, vec![batch("t", vec![longs("a", &[1])])]).unwrap();
    commit(&mut catalog, vec![batch("t", vec![longs("b", &[1])])]).unwrap();
    let text = symbols("B", &["text"], &[0]);
    let error = commit(&mut catalog, vec![batch("t", vec![text])]).unwrap_err();
    assert!(error.message.contains("LONG") && error.message.contains("SYMBOL"), "{error}");
    let doubles = column("c", ColumnType::Double, Values::F64(vec![0.5]));
    commit(&mut catalog, vec![batch("t", vec![doubles])]).unwrap();
    let ops = commit(&mut catalog, vec![batch("t", vec![longs("c", &[2])])]).unwrap();
    assert_eq!(run(&ops).columns.iter().filter(|(_, c)| c.values == Values::F64(vec![2.0])).count(), 1);
}

#[test]
fn symbols_get_dense_ids_once_and_later_batches_find_them() {
    let mut catalog = Catalog::default();
    let codes = |ops: &[Op]| match &run(ops).columns[1].1.values {
        Values::U32(codes) => codes.clone(),
        other => panic!("{other:?}"),
    };
    let first = commit(&mut catalog, vec![batch("t", vec![symbols("s", &["b", "a"], &[1, 0, 1])])]).unwrap();
    assert_eq!(codes(&first), [1, 0, 1]);
    let second = commit(&mut catalog, vec![batch("t", vec![symbols("s", &["a", "c", "b"], &[0, 1, 2])])]).unwrap();
    assert_eq!(codes(&second), [1, 2, 0]);
    let new: Vec<_> = second
        .iter()
        .filter_map(|op| if let Op::Symbols { entries, .. } = op { Some(entries) } else { None })
        .collect();
    assert_eq!((new.len(), new[0].first, new[0].strings.get(0)), (1, 2, &b"c"[..]));
}

#[test]
fn what_comes_before_a_refused_line_can_be_committed() {
    let mut catalog = Catalog::default();
    create(&mut catalog, &[("ts", ColumnType::Timestamp(TimeUnit::Micros)), ("v", ColumnType::Byte)], Some("ts"));
    let (error, mut batches) =
        commit_batches(&mut catalog, vec![batch("t", vec![longs("v", &[1, 2, 300, 4])])], true, Txn(1)).unwrap_err();
    truncate_at_line(&mut batches, error.line.unwrap());
    let ops = commit(&mut catalog, batches).unwrap();
    assert_eq!(run(&ops).rows, 2);
}

#[test]
fn the_designated_timestamp_is_there_once_in_range_and_in_the_unit_of_the_table() {
    let mut catalog = Catalog::default();
    create(&mut catalog, &[("ts", ColumnType::Timestamp(TimeUnit::Micros)), ("v", ColumnType::Long)], Some("ts"));
    let mut given = batch("t", vec![longs("v", &[1, 2, 3])]);
    given.timestamps = Some(BatchTimestamps::new(TimeUnit::Nanos, vec![5_999, -1, 2_000]));
    let ops = commit(&mut catalog, vec![given.clone()]).unwrap();
    // Rounded down: -1 ns is in the microsecond before 1970.
    assert_eq!(run(&ops).timestamps(ColumnId(0)), [5, -1, 2]);
    assert_eq!((run(&ops).time_range, run(&ops).is_sorted), ((-1, 5), false));
    let mut missing = given.clone();
    missing.timestamps = None;
    assert!(commit(&mut catalog, vec![missing]).unwrap_err().message.contains("has no value"));
    let mut far = given.clone();
    far.timestamps = Some(BatchTimestamps::new(TimeUnit::Micros, vec![0, i64::MAX, 0]));
    let error = commit(&mut catalog, vec![far]).unwrap_err();
    assert_eq!(error.line, Some(2));
    let micros = ColumnType::Timestamp(TimeUnit::Micros);
    given.columns.push(column("ts", micros, Values::I64(vec![1, 2, 3])));
    assert!(commit(&mut catalog, vec![given]).unwrap_err().message.contains("second value"));
}

#[test]
fn inserts_do_not_create() {
    let mut catalog = Catalog::default();
    let (error, _) = commit_batches(&mut catalog, vec![batch("t", vec![longs("v", &[1])])], false, Txn(1)).unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::NotFound, "table \"t\" does not exist"));
}

#[test]
fn more_columns_than_a_table_may_have_are_refused() {
    let mut catalog = Catalog::default();
    let columns = (0..5_000).map(|i| longs(&format!("c{i}"), &[i])).collect();
    let error = commit(&mut catalog, vec![batch("wide", columns)]).unwrap_err();
    assert!(error.message.contains("4096 columns"), "{error}");
    assert_eq!(catalog.id_of("wide"), None);
}

#[test]
fn a_column_widened_within_a_batch_is_refused_where_it_was_and_kept_before() {
    let mut catalog = Catalog::default();
    create(&mut catalog, &[("ts", ColumnType::Timestamp(TimeUnit::Micros)), ("v", ColumnType::Long)], Some("ts"));
    let mut lines = crate::line::LineParser::new(crate::line::LineOptions::default());
    let text = format!("t v={}i 1\nt w=1i 2\nt v=2i 3\nt v=1.5 4\nt v=3i 5\n", i64::MAX);
    lines.parse(text.as_bytes(), 0).unwrap();
    let (error, mut batches) = commit_batches(&mut catalog, lines.take(), true, Txn(1)).unwrap_err();
    assert_eq!(error.line, Some(4), "{error}");
    truncate_at_line(&mut batches, 4);
    let ops = commit(&mut catalog, batches).unwrap();
    let (_, v) = run(&ops).columns.iter().find(|(id, _)| *id == ColumnId(1)).unwrap();
    assert_eq!(v.values, Values::I64(vec![i64::MAX, 0, 2]), "not through a double");
    assert_eq!(v.null_count(), 1);
}

#[test]
fn a_field_that_is_the_designated_timestamp_is_refused_at_its_line() {
    let mut catalog = Catalog::default();
    let mut lines = crate::line::LineParser::new(crate::line::LineOptions::default());
    lines.parse(b"t v=1i 1\nt v=2i,timestamp=\"x\" 2\n", 0).unwrap();
    let (error, mut batches) = commit_batches(&mut catalog, lines.take(), true, Txn(1)).unwrap_err();
    assert_eq!(error.line, Some(2), "{error}");
    truncate_at_line(&mut batches, 2);
    assert_eq!(run(&commit(&mut catalog, batches).unwrap()).rows, 1);
}

#[test]
fn no_table_is_without_columns() {
    let mut catalog = Catalog::default();
    let nothing = Batch { columns: Vec::new(), timestamps: None, ..batch("t", vec![longs("v", &[1, 2])]) };
    let error = commit(&mut catalog, vec![nothing.clone()]).unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Invalid, "table \"t\" has no columns"));
    assert_eq!(catalog.id_of("t"), None);
    create(&mut catalog, &[("a", ColumnType::Long), ("b", ColumnType::Long)], None);
    let drop = |catalog: &mut Catalog, column: &str| {
        let command = Command::DropColumn { table: "t".to_owned(), column: column.to_owned(), if_exists: false };
        commit_command(catalog, command)
    };
    drop(&mut catalog, "a").unwrap();
    let error = drop(&mut catalog, "b").unwrap_err();
    let expected = "column \"b\" is the only one of table \"t\" and cannot be dropped";
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Invalid, expected));
    // In a table with columns the rows are NULL.
    assert_eq!(run(&commit(&mut catalog, vec![nothing]).unwrap()).rows, 2);
}

fn lines(text: &str) -> Vec<Batch> {
    lines_of(crate::line::LineOptions::default(), text)
}

fn lines_of(options: crate::line::LineOptions, text: &str) -> Vec<Batch> {
    let mut parser = crate::line::LineParser::new(options);
    parser.finish(text.as_bytes(), 0).unwrap();
    parser.take()
}

/// Returns the designated timestamp of the only table, its type and the times of the rows.
fn times(ops: &[Op]) -> (String, ColumnType, Vec<i64>) {
    let found = ops.iter().find_map(|op| if let Op::CreateTable { schema, .. } = op { Some(schema) } else { None });
    let schema = found.expect("a new table");
    let (column, unit) = schema.timestamp().expect("a designated timestamp");
    (column.name.clone(), ColumnType::Timestamp(unit), run(ops).timestamps(column.id).to_vec())
}

#[test]
fn a_new_table_of_line_protocol_has_microseconds_unless_nanoseconds_are_stated() {
    let (micros, nanos) = (ColumnType::Timestamp(TimeUnit::Micros), ColumnType::Timestamp(TimeUnit::Nanos));
    for (text, expected) in [
        // Rounded down, also before 1970.
        ("t v=1i 1999\nt v=1i -1\n", (micros, vec![1, -1])),
        ("t v=1i 1999n\nt v=1i -1\n", (nanos, vec![1999, -1])),
        ("t v=1i 5t\n", (micros, vec![5])),
    ] {
        let ops = commit(&mut Catalog::default(), lines(text)).unwrap();
        let (name, column_type, mut values) = times(&ops);
        values.sort_unstable();
        let mut sorted = expected.1.clone();
        sorted.sort_unstable();
        assert_eq!((name.as_str(), column_type, values), ("timestamp", expected.0, sorted), "{text}");
    }
}

/// Like in QuestDB, whose new tables also take their designated timestamp from the field.
#[test]
fn a_field_named_as_the_designated_timestamp_gives_it() {
    let (micros, nanos) = (ColumnType::Timestamp(TimeUnit::Micros), ColumnType::Timestamp(TimeUnit::Nanos));
    let seconds = crate::line::LineOptions {
        timestamp_unit: tidalite_types::EpochUnit::Seconds,
        ..crate::line::LineOptions::default()
    };
    let ns = crate::line::LineOptions::default;
    for (options, text, expected) in [
        (ns(), "t timestamp=5t,v=1i\n", (micros, vec![5])),
        (ns(), "t timestamp=5000n,v=1i 7\n", (nanos, vec![5000])),
        (ns(), "t Timestamp=5000i,v=1i 7\n", (micros, vec![5])),
        (ns(), "t timestamp=5t,v=1i 7000\nt v=2i 7000\n", (micros, vec![5, 7])),
        (ns(), "t,timestamp=1970-01-01T00:00:01Z v=1i 7\n", (micros, vec![1_000_000])),
        (ns(), "t v=1i,timestamp=\"1970-01-01T00:00:00.000002\" 7\n", (micros, vec![2])),
        (seconds, "t timestamp=3i,v=1i 9\nt v=2i 9\n", (micros, vec![3_000_000, 9_000_000])),
    ] {
        let ops = commit(&mut Catalog::default(), lines_of(options, text)).unwrap();
        let (name, column_type, values) = times(&ops);
        assert!(same_name(&name, "timestamp"));
        assert_eq!((column_type, values), expected, "{text}");
        let columns = run(&ops).columns.len();
        assert_eq!(columns, 2, "{text}");
    }
    for bad in
        ["t v=1i 1\nt timestamp=1.5,v=1i 1\n", "t v=1i 1\nt timestamp=t 1\n", "t v=1i 1\nt timestamp=\"soon\" 1\n"]
    {
        let mut catalog = Catalog::default();
        let error = commit(&mut catalog, lines(bad)).unwrap_err();
        assert_eq!(error.line, Some(2), "{error}");
        assert!(error.message.starts_with("column \"timestamp\" of table \"t\": "), "{error}");
        assert_eq!(catalog.id_of("t"), None);
    }
}

#[test]
fn a_field_gives_the_designated_timestamp_of_a_table_that_is_there() {
    let mut catalog = Catalog::default();
    create(&mut catalog, &[("ts", ColumnType::Timestamp(TimeUnit::Nanos)), ("v", ColumnType::Long)], Some("ts"));
    let ops = commit(&mut catalog, lines("t ts=5t,v=1i 7\nt v=2i 8\nt timestamp=9i,v=3i 9\n")).unwrap();
    assert_eq!(run(&ops).timestamps(ColumnId(0)), [5_000, 8, 9]);
}

fn valid(catalog: &mut Catalog, batches: Vec<Batch>) -> (Vec<Op>, Vec<(Option<u32>, String)>) {
    let mut refused = partial::Refused::default();
    let ops = partial::commit_valid(catalog, batches, Txn(1), &mut refused);
    (ops, refused.into_reasons().into_iter().map(|reason| (reason.line, reason.message)).collect())
}

#[test]
fn rows_that_do_not_fit_are_left_out_and_named() {
    let mut catalog = Catalog::default();
    create(&mut catalog, &[("ts", ColumnType::Timestamp(TimeUnit::Micros)), ("v", ColumnType::Byte)], Some("ts"));
    let text =
        "t v=1i 1000\nt v=300i,new=1i 2000\nt v=3i 3000\nt,v=x w=1i 4000\nnew v=1i 1\nt ts=\"x\" 1\nt v=4i 5000\n";
    let options = crate::line::LineOptions { widens: false, ..crate::line::LineOptions::default() };
    let found = crate::line::LineParser::new(options).parse_valid(text.as_bytes(), 0);
    let (ops, refused) = valid(&mut catalog, found.batches);
    let lines: Vec<_> = refused.iter().map(|(line, _)| line.unwrap()).collect();
    assert_eq!(lines, [2, 4, 6]);
    assert!(refused[0].1.contains("column \"v\" of table \"t\": value 300 is out of range"), "{refused:?}");
    let kept: usize = ops.iter().map(|op| if let Op::Rows { run, .. } = op { run.rows } else { 0 }).sum();
    assert_eq!(kept, 4);
    let schema = &catalog.get(catalog.id_of("t").unwrap()).unwrap().schema;
    assert!(schema.column("new").is_none() && schema.column("w").is_none(), "columns of refused rows");
    assert!(catalog.id_of("new").is_some());
}

#[test]
fn a_batch_that_no_table_takes_is_refused_row_by_row() {
    let mut catalog = Catalog::default();
    create(&mut catalog, &[("v", ColumnType::Long)], None);
    let (ops, refused) = valid(&mut catalog, lines("t v=1i 1\nt v=2i 2\nu v=1i 1\n"));
    assert_eq!(refused.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [Some(1), Some(2)]);
    assert!(refused[0].1.contains("no designated timestamp"), "{refused:?}");
    assert_eq!(run(&ops).rows, 1);
    let many = "t v=1i 1\n".repeat(partial::REASONS_MAX + 5);
    let (_, refused) = valid(&mut catalog, lines(&many));
    assert_eq!(refused.len(), partial::REASONS_MAX + 1);
    assert_eq!(refused.last().unwrap(), &(None, "5 more lines were refused".to_owned()));
}

#[test]
fn a_column_of_nothing_but_nan_is_created_and_fits_any_type() {
    let mut catalog = Catalog::default();
    create(&mut catalog, &[("ts", ColumnType::Timestamp(TimeUnit::Micros)), ("s", ColumnType::Symbol)], Some("ts"));
    let ops = commit(&mut catalog, lines("t s=NaN,a=NaN,b=NaNd 1\n")).unwrap();
    assert_eq!(run(&ops).columns.iter().filter(|(_, column)| column.null_count() == 1).count(), 3);
    let schema = &catalog.get(catalog.id_of("t").unwrap()).unwrap().schema;
    assert_eq!(schema.column("a").unwrap().column_type, ColumnType::Double);
    assert_eq!(schema.column("b").unwrap().column_type, ColumnType::Decimal { precision: 38, scale: 18 });
}
