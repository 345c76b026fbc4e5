//! Measures encoding and decoding of log columns on one core: `cargo run --release -p tidalite-ingest --example
//! columns_speed`.
//!
//! Batches have 10,000 rows like batches of a line protocol client; results are GB/s of values in memory.

use std::hint::black_box;
use std::time::Instant;
use tidalite_ingest::wal::columns::{decode_column, encode_column};
use tidalite_types::{Bitmap, Column, Values, Views};

const ROWS: usize = 10_000;

fn main() {
    let mut rng = fastrand::Rng::with_seed(1);
    let mut longs =
        |f: &dyn Fn(i64, &mut fastrand::Rng) -> i64| Values::I64((0..ROWS as i64).map(|i| f(i, &mut rng)).collect());
    let start = 1_451_606_400_000_000_000;
    let columns = [
        ("long 0..100", longs(&|_, r| r.i64(0..100))),
        ("long 0..50,000", longs(&|_, r| r.i64(0..50_000))),
        ("long, any", longs(&|_, r| r.i64(..))),
        ("timestamp, 10 s apart", longs(&|i, _| start + i * 10_000_000_000)),
        ("timestamp, 100 hosts", longs(&|i, _| start + i / 100 * 10_000_000_000)),
        ("timestamp, shuffled", longs(&|_, r| start + r.i64(0..100_000) * 10_000_000_000)),
        ("timestamp, µs jitter", longs(&|i, r| start + (i * 1_000 + r.i64(0..1_000)) * 1_000)),
        ("timestamp, ns jitter", longs(&|i, r| start + i * 1_000_000 + r.i64(0..60_000))),
        ("int 0..100", Values::I32((0..ROWS).map(|_| rng.i32(0..100)).collect())),
        ("short, any", Values::I16((0..ROWS).map(|_| rng.i16(..)).collect())),
        ("symbol, 1,000", Values::U32((0..ROWS).map(|_| rng.u32(0..1_000)).collect())),
        ("double 0..100 whole", Values::F64((0..ROWS).map(|_| f64::from(rng.u8(0..100))).collect())),
        ("double, any", Values::F64((0..ROWS).map(|_| rng.f64()).collect())),
        ("text of 5", text(|i| format!("t{i:04}"))),
        ("text of 24", text(|i| format!("a longer text, no {i:06}"))),
        ("boolean", Values::Bit((0..ROWS).map(|_| rng.bool()).collect())),
    ];
    println!("{:24} {:>12} {:>12} {:>10}", "column", "encode GB/s", "decode GB/s", "of memory");
    for (name, values) in columns {
        measure(name, &Column::new(values));
    }
    let sparse = (0..ROWS).map(|_| rng.u8(0..10) == 0).collect::<Bitmap>();
    let values = Values::I64((0..ROWS).map(|_| rng.i64(0..100)).collect());
    measure("long 0..100, 90 % NULL", &Column { values, validity: Some(sparse) });
}

fn text(f: impl Fn(usize) -> String) -> Values {
    let mut views = Views::new();
    (0..ROWS).for_each(|i| views.push(f(i).as_bytes()));
    Values::Views(views)
}

fn measure(name: &str, column: &Column) {
    let mut out = Vec::new();
    let encode = best(|| {
        out.clear();
        encode_column(black_box(column), &mut out);
    });
    let decode = best(|| {
        let back = decode_column(&mut black_box(out.as_slice()), column.values.physical(), ROWS);
        assert!(black_box(back).is_ok());
    });
    let bytes = column.byte_count() as f64;
    println!("{name:24} {:12.1} {:12.1} {:9.1}%", bytes / encode, bytes / decode, out.len() as f64 / bytes * 100.0);
}

/// Returns the nanoseconds of a call, the best of many short runs, since other work may share the machine.
fn best(mut call: impl FnMut()) -> f64 {
    const CALLS: usize = 10;
    let mut run = || {
        let start = Instant::now();
        (0..CALLS).for_each(|_| call());
        start.elapsed().as_nanos() as f64 / CALLS as f64
    };
    (0..200).map(|_| run()).fold(f64::INFINITY, f64::min)
}
