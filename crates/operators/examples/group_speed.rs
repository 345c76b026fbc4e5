//! Measures the nanoseconds per row in which one thread groups, counts and sums rows in memory, and finds the ten
//! groups with the greatest keys.
//!
//!     cargo build --release --workspace --examples && target/release/examples/group_speed [PART OF A NAME]

use arrow::array::{Array, ArrayRef, Float64Array, Int64Array, StringViewArray};
use std::sync::Arc;
use std::time::Instant;
use tidalite_kernels::Fold;
use tidalite_operators::group::{Best, By, Grouping, KeyKind, Sought, Values};

/// The allocator of the server.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROWS: usize = 65_536;
const BATCHES: usize = 200;

fn main() {
    let mut random = fastrand::Rng::with_seed(1);
    let thousand: Vec<i64> = (0..ROWS).map(|_| random.i64(0..1_000)).collect();
    let ints = |values: Vec<i64>| -> ArrayRef { Arc::new(Int64Array::from(values)) };
    let texts: ArrayRef = Arc::new(thousand.iter().map(|v| Some(format!("host_{v}"))).collect::<StringViewArray>());
    let five = ints(thousand.iter().map(|v| v % 5).collect());
    let thousand = ints(thousand);
    let values: ArrayRef = Arc::new((0..ROWS).map(|_| Some(f64::from(random.u32(0..1_000)))).collect::<Float64Array>());
    for (name, keys) in [
        ("5 integers", vec![five.clone()]),
        ("1,000 integers", vec![thousand]),
        ("1,000 texts", vec![texts.clone()]),
        ("1,000 texts, 5 integers", vec![texts, five]),
    ] {
        let batches = vec![keys; BATCHES];
        report(name, &batches, &values);
    }
    let many: Vec<Vec<ArrayRef>> =
        (0..BATCHES).map(|_| vec![ints((0..ROWS).map(|_| random.i64(0..1_000_000)).collect())]).collect();
    report("1,000,000 integers", &many, &values);
    report_of("1,000,000 integers, nothing folded", &many, &values, Vec::new());
    let pair = |n: i64| (n % 9_040, n.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64.cast_signed()));
    let few: Vec<Vec<ArrayRef>> = (0..BATCHES)
        .map(|_| (0..ROWS).map(|_| pair(random.i64(0..1_700_000))).unzip::<_, _, Vec<_>, Vec<_>>())
        .map(|(regions, users)| vec![ints(regions), ints(users)])
        .collect();
    report_of("1,700,000 pairs of integers, nothing folded", &few, &values, Vec::new());
    drop(few);
    let many: Vec<Vec<ArrayRef>> = (0..BATCHES)
        .map(|_| {
            vec![ints((0..ROWS).map(|_| random.i64(..)).collect()), ints((0..ROWS).map(|_| random.i64(..)).collect())]
        })
        .collect();
    report("13,107,200 pairs of integers", &many, &values);
    for (name, length) in [("1,000,000 short texts", 8), ("1,000,000 long texts", 40)] {
        let mut text = || Some(format!("{:0length$}", random.u32(0..1_000_000)));
        let mut batch = || -> Vec<ArrayRef> { vec![Arc::new((0..ROWS).map(|_| text()).collect::<StringViewArray>())] };
        let many: Vec<_> = (0..BATCHES / 4).map(|_| batch()).collect();
        report(name, &many, &values);
    }
}

fn report(name: &str, batches: &[Vec<ArrayRef>], values: &ArrayRef) {
    report_of(name, batches, values, vec![Fold::Rows, Fold::SumFloat(0), Fold::Present(0)]);
}

fn report_of(name: &str, batches: &[Vec<ArrayRef>], values: &ArrayRef, folds: Vec<Fold>) {
    if !name.contains(&std::env::args().nth(1).unwrap_or_default()) {
        return;
    }
    let kinds = batches[0].iter().filter_map(|key| KeyKind::of(key.data_type(), false)).collect();
    let count = usize::from(!folds.is_empty());
    let grouping = Grouping::new(folds, kinds, vec![Some(true); count], Sought::All, random_seed(), 512 << 20);
    let mut worker = grouping.worker();
    let started = Instant::now();
    for keys in batches {
        let inputs = [Values { array: Some(values.clone()), present: None }];
        if worker.add(keys, &inputs[..count], ROWS).is_err() {
            println!("{name}: keys that cannot be packed");
            return;
        }
    }
    let parts = grouping.parts(worker.finish());
    let count = parts.len();
    let by = vec![By { column: 0, is_descending: true, nulls_first: false }];
    let first = grouping.best(&mut parts.into_iter(), &[], &Best { groups: 10, by });
    std::hint::black_box(first);
    let nanos = started.elapsed().as_nanos() as f64 / (batches.len() * ROWS) as f64;
    println!("{name}: {nanos:.1} ns a row, {count} parts");
}

fn random_seed() -> u64 {
    fastrand::u64(..)
}
