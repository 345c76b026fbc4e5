//! Nanoseconds a row that one thread takes to count and sum rows of places, a vector at a time.
//!
//!     cargo build --release --workspace --examples && target/release/examples/planes_speed

use std::time::Instant;
use tidalite_kernels::{Fold, FoldInput, FoldValues, Folds, GroupPlanes};

const VECTOR: usize = 1024;
const VECTORS: usize = 64;
const ROUNDS: usize = 200;

fn main() {
    let mut random = fastrand::Rng::with_seed(1);
    let values: Vec<f64> = (0..VECTOR).map(|_| random.f64()).collect();
    for count in [1, 2, 4, 5, 7, 12, 16, 40, 250, 1_000, 5_000, 50_000] {
        let chosen: Vec<u32> = (0..VECTOR * VECTORS).map(|_| random.u32(..count)).collect();
        let in_order: Vec<u32> = (0..(VECTOR * VECTORS) as u32).map(|row| row % count).collect();
        for (name, all) in [("by chance", &chosen), ("in turns", &in_order)] {
            let mut planes = GroupPlanes::new(Folds::new(vec![Fold::Rows, Fold::SumFloat(0)]), count as usize + 1);
            let started = Instant::now();
            for _ in 0..ROUNDS {
                for rows in all.chunks(VECTOR) {
                    let input = FoldInput { values: FoldValues::Floats(&values), present: None };
                    planes.add(rows, &[input]);
                }
            }
            let nanos = started.elapsed().as_nanos() as f64 / (ROUNDS * VECTORS * VECTOR) as f64;
            println!("{count} places {name}: {nanos:.2} ns a row");
        }
    }
}
