//! Measures the kernels on one core: `cargo run --release -p tidalite-kernels --example kernel_speed`.

use std::hint::black_box;
use std::time::Instant;
use tidalite_kernels::{
    DECIMAL_BYTES, gather_slice, is_sorted, merge, merge_slices, min_max, min_max_f64, short_decimals, sort_permutation,
};

const ROWS: usize = 1 << 20;

fn measure<T>(name: &str, bytes: usize, mut run: impl FnMut() -> T) {
    let mut seconds: Vec<f64> = (0..9)
        .map(|_| {
            let start = Instant::now();
            black_box(run());
            start.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    let (best, median) = (seconds[0], seconds[4]);
    println!(
        "{name:44} {:8.2} ms (best {:.2}) {:7.2} GB/s {:6.2} ns/row",
        median * 1e3,
        best * 1e3,
        bytes as f64 / median / 1e9,
        median * 1e9 / ROWS as f64
    );
}

fn main() {
    let mut rng = fastrand::Rng::with_seed(1);
    let start = 1_451_606_400_000_000_000;
    let sorted: Vec<i64> = (0..ROWS as i64).map(|i| start + i * 600_000).collect();
    let mut shuffled = sorted.clone();
    rng.shuffle(&mut shuffled);
    let random: Vec<i64> = (0..ROWS).map(|_| rng.i64(..)).collect();
    let doubles: Vec<f64> = (0..ROWS).map(|_| rng.f64()).collect();
    measure("is_sorted", ROWS * 8, || is_sorted(&sorted));
    measure("min_max i64", ROWS * 8, || min_max(&random));
    measure("min_max f64", ROWS * 8, || min_max_f64(&doubles));
    let places: Vec<f64> = (0..ROWS).map(|_| f64::from(rng.i32(-18_000_000..18_000_000)) / 1e5).collect();
    let (mut texts, mut lens) = (vec![[0; DECIMAL_BYTES]; ROWS], vec![0; ROWS]);
    measure("short_decimals, five decimals", ROWS * 8, || short_decimals(&places, &mut texts, &mut lens));
    measure("short_decimals, none is one", ROWS * 8, || short_decimals(&doubles, &mut texts, &mut lens));
    measure("sort_permutation, in order", ROWS * 8, || sort_permutation(&sorted));
    measure("sort_permutation, shuffled within 10 minutes", ROWS * 8, || sort_permutation(&shuffled));
    let few: Vec<i64> = (0..ROWS).map(|_| start + rng.i64(0..60) * 10_000_000_000).collect();
    measure("sort_permutation, 60 times", ROWS * 8, || sort_permutation(&few));
    measure("sort_permutation, random i64", ROWS * 8, || sort_permutation(&random));
    measure("  std stable sort_by_key", ROWS * 8, || tidalite_kernels::sort::sort_permutation_plain(&shuffled));
    let permutation = sort_permutation(&shuffled);
    measure("gather i64 by that permutation", ROWS * 8, || gather_slice(&shuffled, &permutation));
    let (left, right): (Vec<i64>, Vec<i64>) = sorted.iter().partition(|_| rng.bool());
    measure("merge, halves at random: stretches", ROWS * 8, || merge(&left, &right));
    let stretches = merge(&left, &right);
    measure("merge, halves at random: one i64 column", ROWS * 8, || merge_slices(&left, &right, &stretches));
    let (left, right): (Vec<i64>, Vec<i64>) = sorted.iter().partition(|v| *v / 600_000 % 10_000 > 100);
    measure("merge, 100 rows late of 10,000: stretches", ROWS * 8, || merge(&left, &right));
    let stretches = merge(&left, &right);
    measure("merge, 100 rows late of 10,000: one column", ROWS * 8, || merge_slices(&left, &right, &stretches));
}
