//! Measures the nanoseconds per row that one thread takes to count and sum rows by place, a vector at a time.
//!
//!     cargo build --release --workspace --examples && target/release/examples/planes_speed

use std::time::Instant;
use tidalite_kernels::{DigitWords, Digits, Fold, FoldInput, FoldValues, Folds, GroupPlanes};

const VECTOR: usize = 1024;
const VECTORS: usize = 64;
const ROUNDS: usize = 200;

fn main() {
    let mut random = fastrand::Rng::with_seed(1);
    let values: Vec<f64> = (0..VECTOR).map(|_| random.f64()).collect();
    let words: Vec<u32> = (0..VECTOR).map(|_| random.u32(..1 << 24)).collect();
    let narrow: Vec<u16> = (0..VECTOR).map(|_| random.u16(..1 << 15)).collect();
    for count in [1, 2, 4, 5, 7, 12, 16, 40, 250, 1_000, 5_000, 50_000] {
        let chosen: Vec<u32> = (0..VECTOR * VECTORS).map(|_| random.u32(..count)).collect();
        let in_order: Vec<u32> = (0..(VECTOR * VECTORS) as u32).map(|row| row % count).collect();
        for (name, all) in [("by chance", &chosen), ("in turns", &in_order)] {
            let mut planes = GroupPlanes::new(Folds::new(vec![Fold::Rows, Fold::SumFloat(0)]), count as usize + 1);
            let input = FoldInput { values: FoldValues::Floats(&values), present: None };
            let of_numbers = nanos(all, |rows| planes.add(rows, &[input]));
            let nothing = FoldValues::Floats(&[]);
            let of_digits =
                [(DigitWords::Wide(&words), 24), (DigitWords::Narrow(&narrow), 15)].map(|(words, width)| {
                    let digits = Digits { words, width, base: 7, scale: 5, others: &[], numbers: nothing };
                    nanos(all, |rows| planes.add_digits(rows, &[Some(digits)]))
                });
            let [wide, short] = of_digits;
            println!("{count} places {name}: {of_numbers:.2} ns a row, of digits {wide:.2}, of short ones {short:.2}");
        }
    }
}

/// Returns the time per row when all places are processed a vector at a time.
fn nanos(places: &[u32], mut add: impl FnMut(&[u32])) -> f64 {
    let started = Instant::now();
    for _ in 0..ROUNDS {
        places.chunks(VECTOR).for_each(&mut add);
    }
    started.elapsed().as_nanos() as f64 / (ROUNDS * VECTORS * VECTOR) as f64
}
