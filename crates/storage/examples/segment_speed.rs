//! Measures writing and reading of segment blocks on one core:
//! `cargo run --release -p tidalite-storage --example segment_speed [DIR]`.
//!
//! Each kind of column has a segment of 16 blocks. Rates count logical bytes: rows times the width of the type; for
//! strings 16 bytes per row plus the bytes that do not fit the view. `encode` excludes the file, `write` includes the
//! file and its sync, `cold` reads from the file (in the page cache) into an empty block cache and decodes, `hot`
//! decodes from the block cache.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;
use tidalite_storage::Segment;
use tidalite_storage::fs::{Fs, os::OsFs};
use tidalite_storage::segment::Effort;
use tidalite_storage::segment::{BlockSource, SegmentMeta, SegmentStore, SegmentWriter, encode};
use tidalite_types::{BLOCK_ROWS, Column, ColumnId, ColumnType, SegmentId, TableId, TimeUnit, Values, Views};

const BLOCKS: usize = 16;
const ROWS: usize = BLOCKS * BLOCK_ROWS;
const TABLE: TableId = TableId(0);
const COLUMN: ColumnId = ColumnId(0);

fn columns() -> Vec<(&'static str, ColumnType, Values)> {
    let mut rng = fastrand::Rng::with_seed(1);
    let mut text = |make: &mut dyn FnMut(&mut fastrand::Rng) -> String| {
        let mut views = Views::new();
        (0..ROWS).for_each(|_| views.push(make(&mut rng).as_bytes()));
        Values::Views(views)
    };
    let short_text = text(&mut |rng| format!("host_{}", rng.u32(..4_000)));
    let unique_text = text(&mut |rng| format!("request {:016x}", rng.u64(..)));
    let start = 1_451_606_400_000_000_000;
    let timestamp = ColumnType::Timestamp(TimeUnit::Nanos);
    vec![
        ("i64, 0 to 100", ColumnType::Long, Values::I64((0..ROWS).map(|_| rng.i64(0..=100)).collect())),
        (
            "i64, 300 values far apart",
            ColumnType::Long,
            Values::I64((0..ROWS).map(|_| rng.i64(0..300) << 40).collect()),
        ),
        ("i64, random", ColumnType::Long, Values::I64((0..ROWS).map(|_| rng.i64(..)).collect())),
        (
            "timestamp, 4,000 rows each",
            timestamp,
            Values::I64((0..ROWS as i64).map(|i| start + i / 4_000 * 10_000_000_000).collect()),
        ),
        ("timestamp, each 1 ms", timestamp, Values::I64((0..ROWS as i64).map(|i| start + i * 1_000_000).collect())),
        (
            "f64, 0 to 100 whole",
            ColumnType::Double,
            Values::F64((0..ROWS).map(|_| f64::from(rng.u8(0..=100))).collect()),
        ),
        (
            "f64, 3,000 values",
            ColumnType::Double,
            Values::F64((0..ROWS).map(|_| f64::from(rng.u32(..3_000)) / 100.0).collect()),
        ),
        ("f64, random", ColumnType::Double, Values::F64((0..ROWS).map(|_| rng.f64()).collect())),
        ("symbol, 200", ColumnType::Symbol, Values::U32((0..ROWS).map(|_| rng.u32(..200)).collect())),
        ("symbol, 4,000", ColumnType::Symbol, Values::U32((0..ROWS).map(|_| rng.u32(..4_000)).collect())),
        ("text, 4,000 short", ColumnType::Varchar, short_text),
        ("text, all distinct, 24 bytes", ColumnType::Varchar, unique_text),
        ("boolean", ColumnType::Boolean, Values::Bit((0..ROWS).map(|_| rng.bool()).collect())),
    ]
}

/// Returns the best of nine runs in seconds: other processes share the machine.
fn measure(mut run: impl FnMut()) -> f64 {
    let seconds = (0..9).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    });
    seconds.fold(f64::INFINITY, f64::min)
}

fn main() {
    let dir = std::env::args().nth(1).map_or_else(std::env::temp_dir, Into::into);
    let dir = tempfile::tempdir_in(dir).expect("a folder to write to");
    let fs: Arc<dyn Fs> = Arc::new(OsFs::new(dir.path()));
    fs.create_dir_all(&SegmentStore::dir(TABLE)).expect("a folder for segments");
    println!(
        "{:30} {:>9} {:>12} | GB/s: {:>6} {:>6} {:>6} {:>6}",
        "column", "encoding", "bytes/row", "encode", "write", "cold", "hot"
    );
    for (at, (name, column_type, values)) in columns().into_iter().enumerate() {
        let logical = match &values {
            Values::Bit(_) => ROWS / 8,
            values => values.byte_count(),
        };
        report(&fs, SegmentId(at as u64 * 100), name, column_type, &Column::new(values), logical);
    }
}

fn report(fs: &Arc<dyn Fs>, first: SegmentId, name: &str, column_type: ColumnType, column: &Column, logical: usize) {
    let encoded = measure(|| {
        for block in 0..BLOCKS {
            black_box(encode(column_type, column, block * BLOCK_ROWS, BLOCK_ROWS, Effort::Fresh));
        }
    });
    let mut id = first;
    let mut summary = None;
    let written = measure(|| {
        id = SegmentId(id.0 + 1);
        let path = SegmentStore::path(TABLE, id);
        let mut writer = SegmentWriter::create(&**fs, &path, &[(COLUMN, column_type)]).expect("a file");
        for block in 0..BLOCKS {
            writer.write_block(BLOCK_ROWS, &[BlockSource::Rows { column, from: block * BLOCK_ROWS }]).expect("room");
        }
        summary = Some(writer.finish().expect("a synced file"));
    });
    let summary = summary.expect("it was measured");
    let meta =
        SegmentMeta { id, rows: summary.rows, bytes: summary.bytes, partition: 0, time_range: (0, 0), is_late: false };
    let read = |segment: &Segment| {
        for block in 0..BLOCKS {
            black_box(segment.read(COLUMN, block).expect("what was written"));
        }
    };
    let cold = measure(|| read(&Segment::open(SegmentStore::new(fs.clone(), 1 << 30), TABLE, meta.clone())));
    let segment = Segment::open(SegmentStore::new(fs.clone(), 1 << 30), TABLE, meta);
    read(&segment);
    let hot = measure(|| read(&segment));
    let encoding = segment.read_encoded(COLUMN, 0).expect("it was read").expect("a column").entry.encoding;
    let rate = |seconds: f64| logical as f64 / seconds / 1e9;
    println!(
        "{name:30} {:>9} {:12.2} |       {:6.2} {:6.2} {:6.2} {:6.2}",
        format!("{encoding:?}"),
        summary.bytes as f64 / ROWS as f64,
        rate(encoded),
        rate(written),
        rate(cold),
        rate(hot)
    );
}
