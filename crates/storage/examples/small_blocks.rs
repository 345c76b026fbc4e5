//! Measures the fixed cost of a block: many segments of one small block each, of which few rows are read. `cargo run
//! --release -p tidalite-storage --example small_blocks [DIR]`.
//!
//! For each effort, in microseconds per block: `zone` reads a column's bounds from the footer, `retain` compares a
//! column of integers with a constant that one row in 1,000 has, `take` reads these rows from a column of floating
//! point. All data come from the block cache. Results are the best of several rounds over all segments.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;
use tidalite_storage::fs::{Fs, os::OsFs};
use tidalite_storage::segment::{BlockSource, Effort, SegmentMeta, SegmentStore, SegmentWriter, Selection, encode};
use tidalite_storage::{Segment, ValueSet};
use tidalite_types::{Bitmap, Column, ColumnId, ColumnType, SegmentId, TableId, Values};

const SEGMENTS: u64 = 1_158;
const ROWS: usize = 8_640;
const TABLE: TableId = TableId(0);
const INTS: ColumnId = ColumnId(0);
const FLOATS: ColumnId = ColumnId(1);

fn main() {
    let dir = std::env::args().nth(1).map_or_else(std::env::temp_dir, Into::into);
    let dir = tempfile::tempdir_in(dir).expect("a folder to write to");
    let fs: Arc<dyn Fs> = Arc::new(OsFs::new(dir.path()));
    fs.create_dir_all(&SegmentStore::dir(TABLE)).expect("a folder for segments");
    let ints: Vec<i64> = (0..ROWS as i64).map(|i| i * 7_919 % 1_000).collect();
    let floats: Vec<f64> = (0..ROWS as i64).map(|i| (i * 104_729 % 100_000) as f64 / 100.0).collect();
    let (ints, floats) = (Column::new(Values::I64(ints)), Column::new(Values::F64(floats)));
    println!("{:8} {:>8} {:>8} {:>8}", "µs", "zone", "retain", "take");
    for (round, effort) in [Effort::Fresh, Effort::Sealed].into_iter().enumerate() {
        let blocks =
            [encode(ColumnType::Long, &ints, 0, ROWS, effort), encode(ColumnType::Double, &floats, 0, ROWS, effort)];
        let store = SegmentStore::new(fs.clone(), 1 << 30);
        let segments: Vec<Segment> = (0..SEGMENTS)
            .map(|at| {
                let id = SegmentId(round as u64 * SEGMENTS + at);
                let columns = [(INTS, ColumnType::Long), (FLOATS, ColumnType::Double)];
                let mut writer = SegmentWriter::create(&*fs, &SegmentStore::path(TABLE, id), &columns).expect("a file");
                writer.write_block(ROWS, &blocks.each_ref().map(BlockSource::Encoded)).expect("room");
                let (rows, bytes) = writer.finish().map(|of| (of.rows, of.bytes)).expect("a synced file");
                Segment::open(
                    store.clone(),
                    TABLE,
                    SegmentMeta { id, rows, bytes, partition: 0, time_range: (0, 0), is_late: false },
                )
            })
            .collect();
        report(effort, &segments);
    }
}

fn report(effort: Effort, segments: &[Segment]) {
    let wanted = ValueSet::ints(vec![(500, 500)]);
    let all = Bitmap::filled(ROWS, true).into_words();
    let retained = |segment: &Segment| {
        let mut mask = all.clone();
        segment.retain(INTS, 0, &wanted, false, &mut mask).expect("what was written");
        mask
    };
    let selections: Vec<Selection> = segments.iter().map(|segment| Selection::new(retained(segment))).collect();
    let zone = measure(|| segments.iter().for_each(|segment| _ = black_box(segment.zone(INTS, 0))));
    let retain = measure(|| segments.iter().for_each(|segment| _ = black_box(retained(segment))));
    let take = measure(|| {
        segments.iter().zip(&selections).for_each(|(segment, some)| _ = black_box(segment.take(FLOATS, 0, some)));
    });
    println!("{:8} {zone:8.3} {retain:8.3} {take:8.3}", format!("{effort:?}"));
}

/// Returns the microseconds per segment, the best of fifty rounds.
fn measure(mut run: impl FnMut()) -> f64 {
    let seconds = (0..50).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    });
    seconds.fold(f64::INFINITY, f64::min) * 1e6 / SEGMENTS as f64
}
