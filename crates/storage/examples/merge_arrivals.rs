//! Measures the cost of a merge by the order in which rows arrive: `cargo run --release -p tidalite-storage --example
//! merge_arrivals [ROWS]`.
//!
//! Rows have the shape of TSBS cpu-only: 4,000 hosts that report every ten seconds, ten symbols and ten integers, in
//! runs as staged by two connections. Runs are either sorted by time, like batches of line protocol, or in order of
//! arrival, like rows of statements. Each line shows, for one order, the median of seven merges on one thread in
//! nanoseconds per row. Files are written to the temporary folder and synced.

mod staged;

use std::sync::Arc;
use std::time::Instant;
use tidalite_storage::TableSnapshot;
use tidalite_storage::fs::{Fs, os::OsFs};
use tidalite_storage::merge::Threads;
use tidalite_storage::segment::SegmentStore;
use tidalite_types::{ColumnType, TimeUnit, Values};

const HOSTS: usize = 4_000;
const STEP: i64 = 10_000_000_000;
const SYMBOLS: u32 = 10;
const INTEGERS: u32 = 10;
const ROUNDS: usize = 7;
const RUN_ROWS: usize = 16_384;
/// Rows that a connection sends at a time.
const PART_ROWS: usize = 12_000;
/// Rows of ten minutes.
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
        let [in_order, as_it_came] = [true, false].map(|is_sorted| {
            let table = arrived(&order, is_sorted);
            let mut times: Vec<f64> = (0..ROUNDS).map(|_| seconds(&table)).collect();
            times.sort_by(f64::total_cmp);
            times[ROUNDS / 2] * 1e9 / rows as f64
        });
        println!("{name}: {in_order:.0} ns a row, {as_it_came:.0} with runs as they came");
    }
}

fn seconds(table: &TableSnapshot) -> f64 {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let fs: Arc<dyn Fs> = Arc::new(OsFs::new(dir.path()));
    let store = SegmentStore::new(fs, 64 << 20);
    let start = Instant::now();
    staged::merged(&store, table, Threads::ONE, &mut 0);
    start.elapsed().as_secs_f64()
}

/// Returns rows in runs of two connections that alternate in sending parts.
fn arrived(order: &[u32], is_sorted: bool) -> TableSnapshot {
    let symbols = (1..=SYMBOLS).map(|i| (format!("tag_{i}"), ColumnType::Symbol));
    let integers = (1..=INTEGERS).map(|i| (format!("usage_{i}"), ColumnType::Long));
    let mut table = staged::empty(TimeUnit::Nanos, symbols.chain(integers));
    let mut open = [Vec::new(), Vec::new()];
    for (at, part) in order.chunks(PART_ROWS).enumerate() {
        let rows = &mut open[at % 2];
        rows.extend_from_slice(part);
        while rows.len() >= RUN_ROWS {
            stage(&mut table, rows.drain(..RUN_ROWS).collect(), is_sorted);
        }
    }
    open.into_iter().filter(|rows| !rows.is_empty()).for_each(|rows| stage(&mut table, rows, is_sorted));
    table
}

fn stage(table: &mut TableSnapshot, mut rows: Vec<u32>, is_sorted: bool) {
    if is_sorted {
        rows.sort_by_key(|row| row / HOSTS as u32);
    }
    let times = rows.iter().map(|row| i64::from(*row) / HOSTS as i64 * STEP).collect();
    let symbols = (0..SYMBOLS).map(|i| {
        let of_host = |row: &u32| (row % HOSTS as u32) >> i;
        Values::U32(rows.iter().map(of_host).collect())
    });
    let integers = (0..INTEGERS).map(|i| {
        let value = |row: &u32| i64::from(row.wrapping_mul(2_654_435_761).rotate_left(i) % 101);
        Values::I64(rows.iter().map(value).collect())
    });
    staged::stage(table, times, symbols.chain(integers));
}
