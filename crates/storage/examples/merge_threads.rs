//! Measures the cost of a merge and the gain of more threads: `cargo run --release -p tidalite-storage --example
//! merge_threads [ROWS]`.
//!
//! A table has twelve columns (time, a symbol, ten doubles of two decimals) in one or eight partitions, and half of its
//! rows are in segments. The other half is staged: after these rows, a little late, or at random times among them. Each
//! line shows, for one shape and number of threads, the median of five merges in million staged rows per second, the
//! gain of more threads, and the rewritten rows. Files are written to the temporary folder and synced.

mod staged;

use std::sync::Arc;
use std::time::Instant;
use tidalite_storage::TableSnapshot;
use tidalite_storage::fs::{Fs, os::OsFs};
use tidalite_storage::merge::{Merged, Threads};
use tidalite_storage::segment::SegmentStore;
use tidalite_types::{ColumnType, TimeUnit, Values};

/// The allocator of the server.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const DOUBLES: u32 = 10;
const ROUNDS: usize = 5;
const DAY: i64 = 86_400_000_000;

fn main() {
    let rows: usize = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(2_000_000);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!(
        "| partitions | staged rows are | threads | M rows/s | gain | rows written again |\n|--:|---|--:|--:|--:|--:|"
    );
    for partitions in [1, 8] {
        for shape in [Shape::Behind, Shape::Late, Shape::Random] {
            let mut alone = 0.0;
            let counts: Vec<usize> =
                [1, 2, 4, 8, 16].into_iter().filter(|count| *count <= cores.next_power_of_two()).collect();
            for count in counts {
                let (seconds, rewritten) = median(rows, partitions, shape, count);
                let speed = rows as f64 / seconds / 1e6;
                if count == 1 {
                    alone = speed;
                }
                println!("| {partitions} | {shape:?} | {count} | {speed:.2} | {:.2}× | {rewritten} |", speed / alone);
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Shape {
    Behind,
    Late,
    Random,
}

fn median(rows: usize, partitions: usize, shape: Shape, threads: usize) -> (f64, u64) {
    let mut times = Vec::new();
    let mut rewritten = 0;
    for round in 0..ROUNDS {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let fs: Arc<dyn Fs> = Arc::new(OsFs::new(dir.path()));
        let store = SegmentStore::new(fs, 64 << 20);
        let mut random = fastrand::Rng::with_seed(round as u64);
        let doubles = (0..DOUBLES).map(|i| (format!("usage_{i}"), ColumnType::Double));
        let others = std::iter::once(("host".to_owned(), ColumnType::Symbol)).chain(doubles);
        let mut table = staged::empty(TimeUnit::Micros, others);
        let mut next = 0;
        let span = partitions as i64 * DAY;
        // The older half in time order, or every second row.
        let old = match shape {
            Shape::Behind | Shape::Late => (0..rows).map(|i| i as i64 * (span / 2) / rows as i64).collect(),
            Shape::Random => times_at_random(&mut random, rows, span),
        };
        stage(&mut table, &mut random, old);
        let first = merge_on(&store, &table, threads, &mut next);
        (table.runs, table.segments) = (Arc::default(), Arc::new(first.added));
        let new: Vec<i64> = match shape {
            Shape::Behind => (0..rows).map(|i| span / 2 + i as i64 * (span / 2) / rows as i64).collect(),
            Shape::Late => {
                (0..rows).map(|i| span / 2 + i as i64 * (span / 2) / rows as i64 - random.i64(0..span / 16)).collect()
            }
            Shape::Random => times_at_random(&mut random, rows, span),
        };
        for part in new.chunks(rows / 16) {
            stage(&mut table, &mut random, part.to_vec());
        }
        let start = Instant::now();
        let merged = merge_on(&store, &table, threads, &mut next);
        times.push(start.elapsed().as_secs_f64());
        rewritten = merged.rewritten_rows;
    }
    times.sort_by(f64::total_cmp);
    (times[ROUNDS / 2], rewritten)
}

fn times_at_random(random: &mut fastrand::Rng, rows: usize, span: i64) -> Vec<i64> {
    (0..rows).map(|_| random.i64(0..span)).collect()
}

fn stage(table: &mut TableSnapshot, random: &mut fastrand::Rng, times: Vec<i64>) {
    let rows = times.len();
    let hosts = Values::U32((0..rows as u32).map(|i| i % 4_000).collect());
    let doubles =
        (0..DOUBLES).map(|_| Values::F64((0..rows).map(|_| f64::from(random.u32(0..10_000)) / 100.0).collect()));
    staged::stage(table, times, std::iter::once(hosts).chain(doubles));
}

fn merge_on(store: &Arc<SegmentStore>, table: &TableSnapshot, threads: usize, last: &mut u64) -> Merged {
    let on: &(dyn Fn(usize, &(dyn Fn() + Sync)) + Sync) = &|count, work| {
        std::thread::scope(|scope| (0..count).for_each(|_| drop(scope.spawn(work))));
    };
    staged::merged(store, table, Threads { count: threads, on }, last)
}
