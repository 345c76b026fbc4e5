//! A data folder in memory with one table, and its recovery as an open does it.

use std::path::Path;
use std::sync::Arc;
use tidalite_ingest::recover::{Recovered, recover};
use tidalite_ingest::wal::columns::encode_column;
use tidalite_storage::Result;
use tidalite_storage::fs::Fs;
use tidalite_storage::fs::faulty::SimFs;
use tidalite_storage::manifest::{Change, Manifest};
use tidalite_storage::segment::SegmentStore;
use tidalite_storage::segment::reader::SegmentMeta;
use tidalite_types::{
    Column, ColumnId, ColumnSchema, ColumnType, PartitionBy, SegmentId, TableId, TableSchema, TimeUnit, Txn,
};

pub const TABLE: TableId = TableId(1);
/// Bytes of new files of the log.
const LOG_FILE_BYTES: u64 = 4096;
const CACHE_BYTES: usize = 8 << 20;

/// One column of every type; the first one is the designated timestamp.
pub const TYPES: [ColumnType; 17] = [
    ColumnType::Timestamp(TimeUnit::Micros),
    ColumnType::Boolean,
    ColumnType::Byte,
    ColumnType::Short,
    ColumnType::Int,
    ColumnType::Long,
    ColumnType::Float,
    ColumnType::Double,
    ColumnType::Decimal { precision: 30, scale: 2 },
    ColumnType::Date,
    ColumnType::Symbol,
    ColumnType::Varchar,
    ColumnType::Binary,
    ColumnType::Uuid,
    ColumnType::Ipv4,
    ColumnType::DoubleArray { dims: 1 },
    ColumnType::Json,
];
/// The column of [`TYPES`] that is a symbol.
pub const SYMBOL: ColumnId = ColumnId(10);

pub fn schema(name: &str) -> TableSchema {
    let columns = TYPES.iter().enumerate();
    let columns = columns.map(|(i, t)| ColumnSchema { id: ColumnId(i as u32), name: format!("c{i}"), column_type: *t });
    TableSchema {
        name: name.to_owned(),
        columns: columns.collect(),
        designated: Some(ColumnId(0)),
        partition_by: PartitionBy::Day,
        next_column: ColumnId(TYPES.len() as u32),
        ttl: None,
        lag_us: None,
        dedup: Vec::new(),
        view: None,
    }
}

pub fn empty() -> Arc<dyn Fs> {
    Arc::new(SimFs::new(0))
}

/// Creates a file and the folder that it is in.
pub fn put(fs: &dyn Fs, path: &Path, bytes: &[u8]) {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs.create_dir_all(folder).expect("a folder is created");
    }
    fs.create(path).and_then(|file| file.write_all_at(bytes, 0)).expect("a file is written");
}

pub fn get(fs: &dyn Fs, path: &Path) -> Vec<u8> {
    let file = fs.open(path).expect("the file exists");
    let mut bytes = vec![0; file.len().expect("a length") as usize];
    file.read_exact_at(&mut bytes, 0).expect("the file is read");
    bytes
}

/// The manifest of a folder with table [`TABLE`], which has a segment, and further changes.
pub fn manifest(fs: &Arc<dyn Fs>, more: &[Change]) -> Manifest {
    let (mut manifest, _) = Manifest::open(fs.clone()).expect("a new manifest");
    let segment = SegmentMeta {
        id: SegmentId(1),
        rows: 100_000,
        bytes: 1 << 20,
        partition: 0,
        time_range: (0, 99_999),
        is_late: false,
    };
    let table = TABLE;
    let mut changes = vec![
        Change::NextIds { table: TableId(2), segment: SegmentId(2) },
        Change::Schema { table, schema: schema("t"), schema_txn: Txn(1) },
        Change::Content { table, add: vec![segment], remove: Vec::new(), merged: Txn(1), symbol_bytes: 0 },
    ];
    changes.extend_from_slice(more);
    manifest.edit(&changes).expect("the edit is written");
    manifest
}

pub fn recovered(fs: &Arc<dyn Fs>, manifest: &Manifest) -> Result<Recovered> {
    recover(fs, &SegmentStore::new(fs.clone(), CACHE_BYTES), manifest, LOG_FILE_BYTES)
}

/// Recovers the folder and reads what became of it; recovers it a second time, which gives the same.
pub fn recover_twice(fs: &Arc<dyn Fs>, manifest: &Manifest) {
    let Ok(first) = recovered(fs, manifest) else { return };
    let tables = described(&first);
    drop(first.log);
    let second = recovered(fs, manifest).expect("what was recovered once is recovered again");
    assert_eq!(first.txn, second.txn);
    assert_eq!(tables, described(&second), "the second recovery");
}

/// The values of a column as bytes: a NaN is not equal to itself. A NULL has none.
pub fn bytes_of(column: &Column) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_column(column, &mut bytes);
    bytes
}

/// Tables, rows and the contents of staged columns.
fn described(recovered: &Recovered) -> Vec<String> {
    let mut out = Vec::new();
    for table in recovered.versions.all() {
        out.push(format!("{} {:?} {} {:?}", table.id, table.schema, table.row_count(), table.time_range()));
        for run in table.runs.iter() {
            let dead = run.dead.as_ref().map(|mask| mask.ranges());
            out.push(format!("{} {:?} {:?} {} {dead:?}", run.rows, run.txns, run.time_range, run.is_sorted));
            for (id, column) in &run.columns {
                assert_eq!(column.len(), run.rows, "column {id}");
                out.push(format!("{id} {:?}", column.null_count()));
                out.push(format!("{:x}", crc32c::crc32c(&bytes_of(column))));
            }
        }
        for (column, map) in table.symbols.iter() {
            out.push(format!("{column} has {} symbols", map.len()));
        }
    }
    out.sort();
    out
}
