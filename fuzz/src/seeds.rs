//! Valid files of each kind, small ones, written by the code that writes them for the database.

use crate::folder::{SYMBOL, TABLE, TYPES, empty, get, manifest, schema};
use std::path::Path;
use std::sync::Arc;
use tidalite_ingest::wal::checkpoint::{self, CheckpointWriter};
use tidalite_ingest::wal::inspect::log_path;
use tidalite_ingest::wal::log::{FOLDER, Group, LogWriter, replay};
use tidalite_ingest::wal::record::Op;
use tidalite_storage::manifest::{Change, Checkpoint, Manifest, Taken, find};
use tidalite_storage::segment::reader::SegmentMeta;
use tidalite_storage::segment::{BlockSource, Effort, SegmentStore, SegmentWriter};
use tidalite_storage::symbol_file::{self, Entries};
use tidalite_storage::{DeadRows, Run};
use tidalite_types::{
    BLOCK_ROWS, Bitmap, Column, ColumnId, ColumnType, Materialized, PartitionBy, Period, Refresh, SegmentId, TableId,
    TableSchema, TimeChange, TimeChangeKind, Ttl, Txn, Values, View, ViewState, Views,
};

/// The files of a target, by name.
pub fn of(target: &str) -> Vec<(String, Vec<u8>)> {
    let named = |files: Vec<Vec<u8>>| files.into_iter().enumerate().map(|(i, file)| (i.to_string(), file)).collect();
    match target {
        "manifest" => named(manifests()),
        "log" => named(logs()),
        "checkpoint" => named(checkpoints()),
        "symbols" => named(symbol_files()),
        "segment" => segments(),
        "pg" => named(clients()),
        "http" => named(requests()),
        _ => Vec::new(),
    }
}

/// Values that follow a rule by row, of any type. Styles differ in how well they can be packed.
fn column(column_type: ColumnType, rows: usize, style: u64) -> Column {
    let mut column = Column::with_capacity(column_type.physical(), rows);
    let mut state = style;
    let mut number = |row: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        match style {
            0 => 7,
            1 => 1000 * row,
            2 => row / 100,
            3 => state >> 57,
            4 => state >> 30,
            _ => state,
        }
    };
    for row in 0..rows as u64 {
        let n = number(row);
        match &mut column.values {
            Values::Bit(v) => v.push(n & 1 == 1),
            Values::I8(v) => v.push(n as i8),
            Values::I16(v) => v.push(n as i16),
            Values::I32(v) => v.push(n as i32),
            Values::I64(v) => v.push(n as i64),
            Values::I128(v) => v.push(i128::from(n as i64) << if style > 4 { 20 } else { 0 }),
            Values::F32(v) => v.push(n as f32 / 8.0),
            Values::F64(v) => v.push(if style > 4 { f64::from_bits(n >> 2) } else { n as f64 / 100.0 }),
            Values::U32(v) => v.push(n as u32),
            Values::B16(v) => v.push(u128::from(n).to_le_bytes()),
            Values::Views(v) => v.push(format!("text {n} of this style").repeat(n as usize % 3).as_bytes()),
        }
    }
    column
}

fn with_nulls(mut column: Column) -> Column {
    column.validity = Some((0..column.len()).map(|row| row % 5 > 0).collect::<Bitmap>());
    column
}

/// Rows of all columns; in order of time.
fn run(txn: u64, rows: usize, style: u64) -> Run {
    let of = |(id, column_type): (usize, &ColumnType)| {
        let column = match id {
            0 => column(*column_type, rows, 1),
            10 => Column::new(Values::U32((0..rows as u32).map(|row| row % 2).collect())),
            id if id % 3 == 1 => with_nulls(column(*column_type, rows, style)),
            _ => column(*column_type, rows, style),
        };
        (ColumnId(id as u32), Arc::new(column))
    };
    Run {
        rows,
        txns: (Txn(txn), Txn(txn)),
        time_range: (0, 1000 * (rows as i64 - 1)),
        is_sorted: true,
        columns: TYPES.iter().enumerate().map(of).collect(),
        dead: None,
    }
}

fn entries(first: u32, strings: &[&str]) -> Entries {
    let mut views = Views::new();
    strings.iter().for_each(|s| views.push(s.as_bytes()));
    Entries { column: SYMBOL, first, strings: views }
}

fn view_schema() -> TableSchema {
    let state = ViewState {
        base: TABLE,
        seen: Txn(1),
        pending: vec![(0, 5)],
        frozen: vec![(i64::MIN, -7)],
        refreshed: 3,
        invalid: Some("a column is gone".to_owned()),
    };
    let mut schedule: tidalite_types::Schedule = Refresh::Every { seconds: 60, start: 5 }.into();
    schedule.zone = Some("Europe/Rome".to_owned());
    schedule.period = Some(Period { length: Some("1h".to_owned()), zone: None, delay_s: 3 });
    let limit = Some(Ttl::Hours(7));
    let materialized = Materialized { base: "t".to_owned(), schedule, limit, lost_before: 0, state };
    let view = View { sql: "SELECT 1".to_owned(), materialized: Some(materialized) };
    TableSchema { view: Some(Arc::new(view)), ttl: Some(Ttl::Months(1)), lag_us: Some(9), ..schema("v") }
}

fn all_ops() -> Vec<Op> {
    let (table, other) = (TABLE, TableId(2));
    let dead = DeadRows { segments: vec![(SegmentId(1), vec![(3, 4), (70_000, 9)])], staged: vec![(1, 2)] };
    let change = |kind| TimeChange { txn: Txn(2), lo: 5, hi: 9, kind };
    let plain = TableSchema {
        columns: schema("u").columns.into_iter().skip(1).collect(),
        designated: None,
        partition_by: PartitionBy::None,
        ..schema("u")
    };
    vec![
        Op::CreateTable { table: other, schema: Arc::new(view_schema()) },
        Op::Symbols { table, entries: Arc::new(entries(0, &["a", "a longer string than fits inline"])) },
        Op::Rows { table, run: run(2, 7, 4) },
        Op::Delete { table, dead: Arc::new(dead) },
        Op::Times { table, since: Txn(1), changes: vec![change(TimeChangeKind::Changed), change(TimeChangeKind::Dropped)] },
        Op::DropPartitions { table, partitions: vec![(0, 86_400_000_000)] },
        Op::SetSchema { table, schema: Arc::new(TableSchema { dedup: vec![ColumnId(0)], ..schema("renamed") }) },
        Op::CreateTable { table: TableId(3), schema: Arc::new(plain) },
        Op::Truncate { table },
        Op::DropTable { table: other },
    ]
}

fn logs() -> Vec<Vec<u8>> {
    let all: Vec<Vec<Op>> = all_ops().into_iter().map(|op| vec![op]).collect();
    let rows = |rows, style| vec![Op::Rows { table: TABLE, run: run(2, rows, style) }];
    let mut commits = vec![all, vec![all_ops()], vec![rows(1, 3), rows(1, 4), rows(2, 4)]];
    commits.extend([0, 1, 2, 3].map(|style| vec![rows(20, style)]));
    commits.into_iter().map(|commits| log(&commits)).collect()
}

fn log(commits: &[Vec<Op>]) -> Vec<u8> {
    let fs = empty();
    fs.create_dir_all(Path::new(FOLDER)).expect("a folder");
    let found = replay(&*fs, Txn(1), |_, _| Ok(())).expect("an empty log");
    let mut log = LogWriter::begin(fs.clone(), found, 1 << 20).expect("a log");
    for (txn, ops) in (2..).zip(commits) {
        let mut group = Group::default();
        let mut ops = ops.clone();
        ops.iter_mut().for_each(|op| {
            if let Op::Rows { run, .. } = op {
                run.txns = (Txn(txn), Txn(txn));
            }
        });
        group.push(Txn(txn), &ops);
        log.append(&mut group).and_then(|()| log.sync()).expect("a commit");
    }
    let mut bytes = get(&*fs, &log_path(1));
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    bytes.truncate(end.next_multiple_of(8));
    bytes
}

fn checkpoints() -> Vec<Vec<u8>> {
    let table = TABLE;
    let ops = |ops: &[Op]| {
        let fs = empty();
        fs.create_dir_all(Path::new(checkpoint::FOLDER)).expect("a folder");
        let mut writer = CheckpointWriter::create(&*fs, 1).expect("a checkpoint");
        ops.iter().for_each(|op| writer.write(op).expect("an operation"));
        writer.finish(&*fs).expect("an end");
        get(&*fs, &checkpoint::path_of(1))
    };
    let symbols = || Op::Symbols { table, entries: Arc::new(entries(0, &["a", "b"])) };
    let dead = || DeadRows { segments: vec![(SegmentId(1), vec![(3, 4)])], staged: vec![(1, 2)] };
    let mut files = vec![ops(&[
        symbols(),
        Op::Delete { table, dead: Arc::new(DeadRows { staged: Vec::new(), ..dead() }) },
        Op::Rows { table, run: run(2, 5, 4) },
        Op::Delete { table, dead: Arc::new(DeadRows { segments: Vec::new(), ..dead() }) },
        Op::Rows { table, run: run(3, 3, 2) },
        Op::Times { table, since: Txn(1), changes: Vec::new() },
    ])];
    files.extend([0, 1, 2, 3, 4].map(|style| ops(&[symbols(), Op::Rows { table, run: run(4, 12, style) }])));
    files
}

fn symbol_files() -> Vec<Vec<u8>> {
    let fs = empty();
    fs.create_dir_all(Path::new(symbol_file::FOLDER)).expect("a folder");
    let append = |offset, entries: &[Entries]| symbol_file::append(&*fs, TABLE, offset, entries).expect("a chunk");
    let end = append(0, &[entries(0, &["a", "", "a longer string than fits inline"])]);
    append(end, &[entries(3, &["b"]), Entries { column: ColumnId(99), ..entries(0, &["of a column that is gone"]) }]);
    // The first byte is not part of the file.
    vec![[vec![0], get(&*fs, &symbol_file::path_of(TABLE))].concat()]
}

fn manifests() -> Vec<Vec<u8>> {
    let fs = empty();
    let late = SegmentMeta {
        id: SegmentId(2),
        rows: 9,
        bytes: 999,
        partition: 0,
        time_range: (5, 9),
        is_late: true,
    };
    let (table, view) = (TABLE, TableId(2));
    manifest(
        &fs,
        &[
            Change::Schema { table: view, schema: view_schema(), schema_txn: Txn(2) },
            Change::Content { table, add: vec![late], remove: vec![SegmentId(7)], merged: Txn(3), symbol_bytes: 0 },
            Change::Dead { table, segment: SegmentId(2), rows: vec![(1, 2), (5, 1)] },
            Change::Taken { table, taken: Taken { upto: Txn(4), before: 77 } },
            Change::Checkpoint(Checkpoint { txn: Txn(3), file: 0 }),
        ],
    );
    let edits = get(&*fs, &find(&*fs).expect("a manifest").expect("a manifest").path);
    // As format 1: the open writes a new file with one snapshot.
    let mut older = edits.clone();
    older[7] = b'1';
    let other = empty();
    crate::folder::put(&*other, Path::new("manifest-000000000001"), &older);
    drop(Manifest::open(other.clone()).expect("the edits are valid"));
    let snapshot = get(&*other, &find(&*other).expect("a manifest").expect("a manifest").path);
    vec![edits, snapshot]
}

/// A segment of one column for each type and style, of few rows and of several vectors, and one of two blocks.
fn segments() -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for (effort, word) in [(Effort::Fresh, "fresh"), (Effort::Sealed, "sealed")] {
        for (i, column_type) in TYPES.iter().enumerate() {
            for (rows, styles) in [(20, 0..6), (1030, 0..5)] {
                for style in styles {
                    let column = column(*column_type, rows, style);
                    let column = if (i as u64 + style) % 3 == 0 { with_nulls(column) } else { column };
                    files.push((format!("{word}-{i}-{rows}-{style}"), segment(effort, &[(*column_type, column)])));
                }
            }
        }
        let rows = BLOCK_ROWS + 3;
        let columns = [5, 1].map(|i| (TYPES[i], column(TYPES[i], rows, 1 - (i as u64 & 1))));
        files.push((format!("{word}-blocks"), segment(effort, &columns)));
        let columns: Vec<_> = TYPES.iter().map(|t| (*t, column(*t, 3, 4))).collect();
        files.push((format!("{word}-all"), segment(effort, &columns)));
    }
    // Longer files are cut by the fuzzer.
    files.retain(|(_, file)| file.len() <= 4096);
    files
}

fn segment(effort: Effort, columns: &[(ColumnType, Column)]) -> Vec<u8> {
    let fs = empty();
    let (folder, path) = (SegmentStore::dir(TABLE), SegmentStore::path(TABLE, SegmentId(1)));
    fs.create_dir_all(&folder).expect("a folder");
    let types: Vec<_> = (0..).map(ColumnId).zip(columns).map(|(id, (t, _))| (id, *t)).collect();
    let mut writer = SegmentWriter::create(&*fs, &path, &types).expect("a segment").with_effort(effort);
    let rows = columns[0].1.len();
    for from in (0..rows).step_by(BLOCK_ROWS) {
        let blocks: Vec<_> = columns.iter().map(|(_, column)| BlockSource::Rows { column, from }).collect();
        writer.write_block((rows - from).min(BLOCK_ROWS), &blocks).expect("a block");
    }
    writer.finish().expect("an end");
    get(&*fs, &path)
}

/// A message of a PostgreSQL client.
fn message(tag: &[u8], body: &[&[u8]]) -> Vec<u8> {
    let body = body.concat();
    [tag, &(body.len() as u32 + 4).to_be_bytes(), &body].concat()
}

/// Two bytes that are parameters of the target, then what a client sends.
fn clients() -> Vec<Vec<u8>> {
    let startup = message(b"", &[&(3_u32 << 16).to_be_bytes(), b"user\0u\0database\0d\0\0"]);
    let login = message(b"p", &[b"secret\0"]);
    let types = [20_u32, 701, 1700, 1114, 25, 2950, 1022, 1186].map(u32::to_be_bytes).concat();
    let parse = message(b"P", &[b"s\0SELECT $1\0\0\x08", &types]);
    let array = [1_i32, 0, 701, 2, 1, 8].map(i32::to_be_bytes).concat();
    let array = [&array[..], &1.5_f64.to_be_bytes(), &8_i32.to_be_bytes(), &(-2.0_f64).to_be_bytes()].concat();
    let numeric = [3_u16, 1, 0x4000, 2, 12, 3400, 5600].map(u16::to_be_bytes).concat();
    let values: [&[u8]; 8] =
        [&[0; 8], &1.5_f64.to_be_bytes(), &numeric, &[1; 8], b"text", &[7; 16], &array, &[0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 2]];
    let fields = |values: &[&[u8]]| {
        values.iter().flat_map(|v| [&(v.len() as u32).to_be_bytes()[..], v].concat()).collect::<Vec<u8>>()
    };
    let bind = message(b"B", &[b"\0s\0\0\x01\0\x01\0\x08", &fields(&values), b"\0\x01\0\x01"]);
    let text: [&[u8]; 8] = [b"7", b"1e5", b"12.3400", b"2024-01-02 03:04:05", b"a", b"x", b"{1,2}", b"1 day"];
    let bind_text = message(b"B", &[b"p\0s\0\0\0\0\x08", &fields(&text), b"\0\0"]);
    let rest = [
        message(b"D", &[b"Ss\0"]),
        message(b"E", &[b"\0\0\0\0\0"]),
        message(b"C", &[b"Pp\0"]),
        message(b"H", &[]),
        message(b"S", &[]),
        message(b"Q", &[b"SELECT 1\0"]),
        message(b"d", &[b"1,2\n"]),
        message(b"c", &[]),
        message(b"f", &[b"no\0"]),
        message(b"X", &[]),
    ];
    let session = [&startup[..], &login, &parse, &bind, &bind_text, &rest.concat()].concat();
    let mut seeds = vec![[&[6, 0], &session[..]].concat()];
    let copy = |what: u8, values: &[&[u8]]| {
        let count = (values.len() as u16).to_be_bytes();
        let header = [b"PGCOPY\n\xff\r\n\0", &[0; 8][..]].concat();
        [&[5, what][..], &header, &count, &fields(values), &count, &fields(values), b"\xff\xff"].concat()
    };
    seeds.push(copy(1, &[&[0; 8], b"a\"b", &array]));
    seeds.push(copy(3, &[&numeric, &[0; 8], &[1], &[0; 4]]));
    seeds.push(copy(5, &[values[7], &[0, 0, 0, 1, 0, 0, 0, 0], &[7; 16], b"bytes", b"\x01{}"]));
    seeds.push(copy(7, &[&[0, 1], &[0; 4], &1.5_f32.to_be_bytes(), &1.5_f64.to_be_bytes()]));
    seeds
}

/// A byte that is a parameter of the target, then an upload or parameters.
fn requests() -> Vec<Vec<u8>> {
    let upload = "0multipart/form-data; boundary=\"x\"\n--x\r\nContent-Disposition: form-data; name=\"schema\"\r\n\r\n\
        [{\"name\":\"a\",\"type\":\"SYMBOL\"},{\"name\":\"t\",\"type\":\"DATE\",\"pattern\":\"dd/MM/yyyy\"}]\r\n--x\r\n\
        Content-Disposition: form-data; name=\"data\"; filename=\"a\\\"b;c.csv\"\r\nContent-Type: text/csv; charset=utf-16\r\n\r\n\
        a,t\r\n1,2\r\n\r\n--x--\r\n";
    let parameters = "1query=select%201+%2B&limit=1,2&limit=%F0%9F%98%80&nm";
    let json = "3{\"query\": \"x\", \"params\": [1, null], \"n\": null, \"on\": true}";
    [upload, parameters, json].map(|text| text.as_bytes().to_vec()).to_vec()
}
