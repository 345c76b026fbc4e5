//! What a merge of new rows costs by the order in which they came: `cargo run --release -p tidalite-storage --example
//! merge_arrivals [ROWS]`.
//!
//! Rows as of TSBS cpu-only: 4,000 hosts that report every ten seconds, ten symbols and ten integers, in runs as two connections
//! stage them. Each line says, for one order, the median of seven merges on one thread in nanoseconds a row. Files go to the
//! temporary folder and are synced.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use tidalite_storage::fs::{Fs, os::OsFs};
use tidalite_storage::merge::{MergeOptions, Threads, merge};
use tidalite_storage::segment::SegmentStore;
use tidalite_storage::{Run, TableSnapshot};
use tidalite_types::{
    Column, ColumnId, ColumnSchema, ColumnType, PartitionBy, SegmentId, TableId, TableSchema, TimeUnit, Txn, Values,
};

const HOSTS: usize = 4_000;
const STEP: i64 = 10_000_000_000;
const SYMBOLS: u32 = 10;
const INTEGERS: u32 = 10;
const ROUNDS: usize = 7;
const RUN_ROWS: usize = 16_384;
/// What a connection sends at a time.
const PART_ROWS: usize = 12_000;
/// Ten minutes.
const WINDOW_ROWS: usize = 60 * HOSTS;

fn main() {
    let rows: usize = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1_600_000);
    let mut random = fastrand::Rng::with_seed(7);
    let in_order: Vec<u32> = (0..rows as u32).collect();
    let mut within: Vec<u32> = in_order.clone();
    within.chunks_mut(WINDOW_ROWS).for_each(|window| random.shuffle(window));
    let mut any = in_order.clone();
    random.shuffle(&mut any);
    for (name, order) in [("in order", in_order), ("shuffled within ten minutes", within), ("at random", any)] {
        let table = staged(&order);
        let mut times: Vec<f64> = (0..ROUNDS).map(|_| seconds(&table)).collect();
        times.sort_by(f64::total_cmp);
        println!("{name}: {:.0} ns a row", times[ROUNDS / 2] * 1e9 / rows as f64);
    }
}

fn seconds(table: &TableSnapshot) -> f64 {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let fs: Arc<dyn Fs> = Arc::new(OsFs::new(dir.path()));
    let store = SegmentStore::new(fs, 64 << 20);
    let mut next = 0;
    let start = Instant::now();
    let options = MergeOptions { threads: Threads::ONE, tail_from: None, kept_from: None, late_rows_min: usize::MAX };
    let merged = merge(&store, table, &[], &options, &mut || {
        next += 1;
        SegmentId(next)
    });
    merged.expect("a merge");
    start.elapsed().as_secs_f64()
}

/// Rows in runs of two connections, which send parts in turns.
fn staged(order: &[u32]) -> TableSnapshot {
    let mut table = empty();
    let mut open = [Vec::new(), Vec::new()];
    for (at, part) in order.chunks(PART_ROWS).enumerate() {
        let rows = &mut open[at % 2];
        rows.extend_from_slice(part);
        while rows.len() >= RUN_ROWS {
            let run: Vec<u32> = rows.drain(..RUN_ROWS).collect();
            stage(&mut table, &run);
        }
    }
    open.iter().filter(|rows| !rows.is_empty()).for_each(|rows| stage(&mut table, rows));
    table
}

fn stage(table: &mut TableSnapshot, rows: &[u32]) {
    let times: Vec<i64> = rows.iter().map(|row| i64::from(*row) / HOSTS as i64 * STEP).collect();
    let time_range = (times.iter().copied().min().unwrap_or(0), times.iter().copied().max().unwrap_or(0));
    let is_sorted = times.is_sorted();
    let mut columns = vec![(ColumnId(0), Arc::new(Column::new(Values::I64(times))))];
    for id in 1..=SYMBOLS {
        let of_host = |row: &u32| (row % HOSTS as u32) / (1 << (id - 1));
        columns.push((ColumnId(id), Arc::new(Column::new(Values::U32(rows.iter().map(of_host).collect())))));
    }
    for id in SYMBOLS + 1..=SYMBOLS + INTEGERS {
        let value = |row: &u32| i64::from(row.wrapping_mul(2_654_435_761).rotate_left(id) % 101);
        columns.push((ColumnId(id), Arc::new(Column::new(Values::I64(rows.iter().map(value).collect())))));
    }
    let txn = table.txn.next();
    table.txn = txn;
    table.arrived += rows.len() as u64;
    let run = Run { rows: rows.len(), txns: (txn, txn), time_range, is_sorted, columns, dead: None };
    Arc::make_mut(&mut table.runs).push(Arc::new(run));
}

fn empty() -> TableSnapshot {
    let column = |id: u32, name: String, column_type| ColumnSchema { id: ColumnId(id), name, column_type };
    let mut columns = vec![column(0, "ts".to_owned(), ColumnType::Timestamp(TimeUnit::Nanos))];
    columns.extend((1..=SYMBOLS).map(|id| column(id, format!("tag_{id}"), ColumnType::Symbol)));
    columns.extend((SYMBOLS + 1..=SYMBOLS + INTEGERS).map(|id| column(id, format!("usage_{id}"), ColumnType::Long)));
    let schema = TableSchema {
        name: "cpu".to_owned(),
        columns,
        designated: Some(ColumnId(0)),
        partition_by: PartitionBy::Day,
        next_column: ColumnId(SYMBOLS + INTEGERS + 1),
        ttl: None,
        lag_us: None,
        dedup: Vec::new(),
        view: None,
    };
    TableSnapshot {
        id: TableId(1),
        schema: Arc::new(schema),
        txn: Txn(0),
        segments: Arc::default(),
        runs: Arc::default(),
        symbols: Arc::new(HashMap::new()),
        dead: Arc::default(),
        arrived: 0,
        removals: 0,
    }
}
