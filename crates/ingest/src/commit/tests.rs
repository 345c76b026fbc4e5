use super::command::commit_command;
use super::*;
use tidalite_types::{Command, command::CreateTable};

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
    let timestamps = BatchTimestamps { unit: TimeUnit::Nanos, values: (0..rows as i64).map(|i| i * 1000).collect() };
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
    given.timestamps = Some(BatchTimestamps { unit: TimeUnit::Nanos, values: vec![5_999, -1, 2_000] });
    let ops = commit(&mut catalog, vec![given.clone()]).unwrap();
    // Rounded down: -1 ns lies in the microsecond before 1970.
    assert_eq!(run(&ops).timestamps(ColumnId(0)), [5, -1, 2]);
    assert_eq!((run(&ops).time_range, run(&ops).is_sorted), ((-1, 5), false));
    let mut missing = given.clone();
    missing.timestamps = None;
    assert!(commit(&mut catalog, vec![missing]).unwrap_err().message.contains("has no value"));
    let mut far = given.clone();
    far.timestamps = Some(BatchTimestamps { unit: TimeUnit::Micros, values: vec![0, i64::MAX, 0] });
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
        commit_command(catalog, Command::DropColumn { table: "t".to_owned(), column: column.to_owned() })
    };
    drop(&mut catalog, "a").unwrap();
    let error = drop(&mut catalog, "b").unwrap_err();
    let expected = "column \"b\" is the only one of table \"t\" and cannot be dropped";
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Invalid, expected));
    // In a table with columns it is rows of NULLs.
    assert_eq!(run(&commit(&mut catalog, vec![nothing]).unwrap()).rows, 2);
}
