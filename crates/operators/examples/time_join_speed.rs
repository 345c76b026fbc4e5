//! Measures the nanoseconds per row of both sides in which one thread finds the matches of an ASOF JOIN and gathers a
//! column.
//!
//!     cargo build --release --workspace --examples && target/release/examples/time_join_speed

use arrow::array::{ArrayRef, Float64Array};
use arrow::datatypes::DataType;
use std::sync::Arc;
use std::time::Instant;
use tidalite_operators::time_join::{NONE, Rows, gathered, partners};

const STRETCH: usize = 65_536;
const STRETCHES: usize = 100;

fn main() {
    for (left, right, keys) in [
        (STRETCH, STRETCH, 1_000),
        (STRETCH / 10, STRETCH, 1_000),
        (STRETCH, STRETCH / 10, 1_000),
        (STRETCH, STRETCH, 100_000),
        (STRETCH / 100, STRETCH, 10),
        (STRETCH, STRETCH, 1),
    ] {
        report(left, right, keys, true);
    }
    report(STRETCH, STRETCH, 1, false);
    report(STRETCH / 10, STRETCH, 1, false);
}

fn report(left_rows: usize, right_rows: usize, keys: u32, has_keys: bool) {
    let mut random = fastrand::Rng::with_seed(1);
    let mut side = |rows: usize| {
        let mut times: Vec<i64> = (0..rows).map(|_| random.i64(0..1_000_000_000)).collect();
        times.sort_unstable();
        (times, (0..rows).map(|_| random.u32(0..keys)).collect::<Vec<_>>())
    };
    let sides: Vec<_> = (0..4).map(|_| (side(left_rows), side(right_rows))).collect();
    let values: ArrayRef = Arc::new((0..right_rows).map(|at| Some(at as f64)).collect::<Float64Array>());
    let (mut pass, mut gather, mut sum) = (0, 0, 0);
    let mut last = vec![NONE; keys as usize];
    for stretch in 0..STRETCHES {
        let (left, right) = &sides[stretch % sides.len()];
        let left = Rows { times: &left.0, keys: has_keys.then_some(left.1.as_slice()) };
        let right = Rows { times: &right.0, keys: has_keys.then_some(right.1.as_slice()) };
        let started = Instant::now();
        last.fill(NONE);
        let mut found = Vec::new();
        partners(left, right, false, &mut last, &mut found);
        pass += started.elapsed().as_nanos();
        let started = Instant::now();
        sum +=
            gathered(std::slice::from_ref(&values), &found, &DataType::Float64).map_or(0, |array| array.null_count());
        gather += started.elapsed().as_nanos();
    }
    let each = |nanos: u128, rows: usize| nanos as f64 / (rows * STRETCHES) as f64;
    println!(
        "{left_rows} × {right_rows}, {keys} keys ({has_keys}): {:.2} ns a row of both sides, {:.2} ns a left row to gather; {sum}",
        each(pass, left_rows + right_rows),
        each(gather, left_rows)
    );
}
