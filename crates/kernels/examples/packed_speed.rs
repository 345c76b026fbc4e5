//! Measures packing, unpacking and comparison of packed integers on one core with data in the first-level cache: `cargo
//! run --release -p tidalite-kernels --example packed_speed`.

use std::hint::black_box;
use std::time::Instant;
use tidalite_kernels::bitpack::VECTOR;
use tidalite_kernels::{
    Unpacker, deltas, min_max, pack, packed_in_range, sum_up, values_in_range, width_counts, width_of,
};

/// Returns the rows per second of the fastest of many runs.
fn rate(mut run: impl FnMut()) -> f64 {
    const TIMES: u32 = 200;
    let seconds = (0..50).map(|_| {
        let start = Instant::now();
        (0..TIMES).for_each(|_| run());
        start.elapsed().as_secs_f64() / f64::from(TIMES)
    });
    VECTOR as f64 / seconds.fold(f64::INFINITY, f64::min) / 1e9
}

fn main() {
    let mut rng = fastrand::Rng::with_seed(1);
    let mut unpacker = Unpacker::new();
    println!("billions of values a second; to i64 and i32 appended to a column of 64 vectors");
    println!("{:>5} {:>8} {:>8} {:>8} {:>8}", "bits", "pack", "to i64", "to i32", "compare");
    for width in [1, 4, 7, 8, 10, 13, 16, 17, 20, 24, 32, 40, 64] {
        let values: Vec<i64> = (0..VECTOR).map(|_| (rng.u64(..) >> (64 - width)) as i64).collect();
        let mut bytes = Vec::with_capacity(1 << 16);
        let packing = rate(|| {
            bytes.clear();
            pack(black_box(&values), 0, width, &mut bytes);
        });
        let lines = bytes.as_chunks().0;
        let mut wide = Vec::<i64>::with_capacity(64 * VECTOR);
        let to_i64 = rate(|| {
            if wide.len() == 64 * VECTOR {
                wide.clear();
            }
            unpacker.unpack(black_box(lines), width, 5, VECTOR, &mut wide);
        });
        let mut narrow = Vec::<i32>::with_capacity(64 * VECTOR);
        let to_i32 = rate(|| {
            if narrow.len() == 64 * VECTOR {
                narrow.clear();
            }
            unpacker.unpack(black_box(lines), width, 5, VECTOR, &mut narrow);
        });
        let bound = if width == 64 { u64::MAX / 3 } else { (1 << width) / 3 };
        let compare = rate(|| {
            black_box(packed_in_range(&mut unpacker, black_box(lines), width, VECTOR, 0, bound));
        });
        println!("{width:>5} {packing:>8.2} {to_i64:>8.2} {to_i32:>8.2} {compare:>8.2}");
    }
    let values: Vec<i64> = (0..VECTOR).map(|_| rng.i64(0..5_000)).collect();
    let small: Vec<i32> = values.iter().map(|v| *v as i32).collect();
    let mut out = values.clone();
    let mut out_small = small.clone();
    println!("differences      {:>8.2}", rate(|| deltas(black_box(&values), black_box(&mut out))));
    println!("sums of i64      {:>8.2}", rate(|| sum_up(black_box(&mut out), 1)));
    println!("sums of i32      {:>8.2}", rate(|| sum_up(black_box(&mut out_small), 1)));
    println!("compare i64      {:>8.2}", rate(|| _ = black_box(values_in_range(black_box(&values), 7, 900))));
    println!("compare i32      {:>8.2}", rate(|| _ = black_box(values_in_range(black_box(&small), 7, 900))));
    println!("count widths     {:>8.2}", rate(|| _ = black_box(width_counts(black_box(&values), 0))));
    println!("greatest width   {:>8.2}", rate(|| _ = black_box(width_of(black_box(&values), 0))));
    println!("bounds of i64    {:>8.2}", rate(|| _ = black_box(min_max(black_box(&values)))));
    println!("bounds of i32    {:>8.2}", rate(|| _ = black_box(min_max(black_box(&small)))));
}
