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
    commit_batches(catalog, batches, Vec::new(), true, Txn(1)).map_err(|(error, _)| error)
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
        commit_batches(&mut catalog, vec![batch("t", vec![longs("v", &[1, 2, 300, 4])])], Vec::new(), true, Txn(1))
            .unwrap_err();
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
    let (error, _) =
        commit_batches(&mut catalog, vec![batch("t", vec![longs("v", &[1])])], Vec::new(), false, Txn(1)).unwrap_err();
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
    let (error, mut batches) = commit_batches(&mut catalog, lines.take(), Vec::new(), true, Txn(1)).unwrap_err();
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
    let (error, mut batches) = commit_batches(&mut catalog, lines.take(), Vec::new(), true, Txn(1)).unwrap_err();
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

/// The rows of a commit, decoded from its record, with texts for symbols.
fn logged(catalog: &Catalog, ops: &[Op]) -> Vec<Vec<String>> {
    use crate::wal::record::{decode_op, encode_op};
    use tidalite_storage::codec::{Decoder, Encoder};

    let mut rows = Vec::new();
    for op in ops.iter().filter(|op| matches!(op, Op::Rows { .. })) {
        let mut e = Encoder::new();
        encode_op(op, &mut e);
        let Op::Rows { table, run, .. } = decode_op(&mut Decoder::new(&e.bytes)).unwrap() else {
            panic!("they are rows")
        };
        let symbols = catalog.symbols(table);
        for row in 0..run.rows {
            let value = |(id, column): &(ColumnId, Arc<Column>)| match (&column.values, symbols.get(id)) {
                _ if !column.is_valid(row) => format!("{id} NULL"),
                (Values::U32(ids), Some(map)) => {
                    format!("{id} {}", String::from_utf8_lossy(map.strings().get(ids[row] as usize)))
                }
                (Values::I64(values), _) => format!("{id} {}", values[row]),
                (other, _) => panic!("{:?}", other.physical()),
            };
            rows.push(run.columns.iter().map(value).collect());
        }
    }
    rows
}

#[test]
fn what_was_prepared_is_committed_as_if_it_was_not() {
    use crate::apply::publish;
    use tidalite_storage::tables::Tables;

    let hosts = |from: usize| -> Vec<String> { (from..from + 50).map(|i| format!("host_{i}")).collect() };
    let rows = 20_000;
    let of = |hosts: &[String], table: &str| {
        let names: Vec<&str> = hosts.iter().map(String::as_str).collect();
        let codes: Vec<u32> = (0..rows).map(|i| i % 50).collect();
        let usage: Vec<i64> = (0..i64::from(rows)).map(|i| i * 7919 % 100).collect();
        let mut nulls = longs("sometimes", &usage);
        nulls.column.validity = Some((0..rows).map(|i| i % 3 > 0).collect());
        batch(table, vec![symbols("host", &names, &codes), longs("usage", &usage), nulls])
    };
    let mut catalog = Catalog::default();
    let tables = Tables::default();
    let first = commit(&mut catalog, vec![of(&hosts(0), "t")]).unwrap();
    publish(&mut tables.write(), &catalog, Txn(1), first);

    // Codes that are ids; others; strings that are not known; and a table that is not there.
    let mut known = hosts(0);
    known.reverse();
    for (hosts, table, is_ready) in
        [(hosts(0), "t", true), (known, "T", true), (hosts(20), "t", false), (hosts(0), "u", false)]
    {
        let given = of(&hosts, table);
        let prepared = prepare(std::slice::from_ref(&given), &tables);
        assert_eq!(prepared[0].is_some(), table != "u");
        let ops = commit_batches(&mut catalog, vec![given.clone()], prepared, true, Txn(2)).unwrap();
        let encoded = ops.iter().find_map(|op| if let Op::Rows { encoded, .. } = op { Some(encoded) } else { None });
        let ready: Vec<bool> = encoded.unwrap().columns.iter().map(Option::is_some).collect();
        // Time, host, and the two others.
        let expected: &[bool] = if table == "u" { &[] } else { &[true, is_ready, true, true] };
        assert_eq!(ready, expected, "{hosts:?}");
        let without = commit(&mut catalog, vec![given.clone()]).unwrap();
        assert_eq!(logged(&catalog, &ops), logged(&catalog, &without));
        assert_eq!(logged(&catalog, &ops)[7][1], format!("{} {}", run(&ops).columns[1].0, hosts[7]));
    }

    // The table is another one by now: nothing of it holds.
    let given = of(&hosts(0), "t");
    let prepared = prepare(std::slice::from_ref(&given), &tables);
    commit_command(&mut catalog, Command::DropTable { table: "t".to_owned(), if_exists: false }).unwrap();
    let mut renamed = hosts(100);
    renamed.extend(hosts(0));
    let codes: Vec<u32> = (0..100).collect();
    let names: Vec<&str> = renamed.iter().map(String::as_str).collect();
    let mut other =
        batch("t", vec![symbols("host", &names, &codes), longs("usage", &[0; 100]), longs("sometimes", &[0; 100])]);
    other.lines.clear();
    commit(&mut catalog, vec![other]).unwrap();
    let ops = commit_batches(&mut catalog, vec![given], prepared, true, Txn(4)).unwrap();
    assert_eq!(logged(&catalog, &ops)[7][1], format!("{} host_7", run(&ops).columns[1].0));
}
