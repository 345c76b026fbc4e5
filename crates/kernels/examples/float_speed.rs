//! Measures floating point as decimals and as split values, and text as symbols, on one core with data in the
//! first-level cache: `cargo run --release -p tidalite-kernels --example float_speed`.

use std::hint::black_box;
use std::time::Instant;
use tidalite_kernels::bitpack::VECTOR;
use tidalite_kernels::fsst::{Compressor, Decompressor, SAMPLE_BYTES, decompress::SLACK_BYTES, train};
use tidalite_kernels::{Unpacker, alp, alp_rd::Split, pack, packed_in_range, width_of};

/// Returns the seconds of the fastest of many runs.
fn seconds(times: u32, mut run: impl FnMut()) -> f64 {
    let seconds = (0..30).map(|_| {
        let start = Instant::now();
        (0..times).for_each(|_| run());
        start.elapsed().as_secs_f64() / f64::from(times)
    });
    seconds.fold(f64::INFINITY, f64::min)
}

/// Returns the throughput in billions of values per second.
fn rate(run: impl FnMut()) -> f64 {
    VECTOR as f64 / seconds(200, run) / 1e9
}

fn main() {
    let mut rng = fastrand::Rng::with_seed(1);
    println!("doubles: billions of values a second; decoded values are 8 bytes, appended to a column of 64 vectors");
    println!("{:>22} {:>5} {:>8} {:>8} {:>8} {:>8}", "", "bits", "integers", "pack", "decode", "compare");
    decimals("velocity, whole", &(0..VECTOR).map(|_| f64::from(rng.u8(0..=100))).collect::<Vec<_>>(), 0);
    decimals(
        "latitude, 5 decimals",
        &(0..VECTOR).map(|_| f64::from(rng.i32(-9_000_000..9_000_000)) / 1e5).collect::<Vec<_>>(),
        5,
    );
    decimals(
        "price, 2 decimals",
        &(0..VECTOR).map(|_| f64::from(rng.i32(1_000..400_000)) / 1e2).collect::<Vec<_>>(),
        2,
    );
    let mut at = 1_000.0;
    let walk: Vec<u64> = (0..VECTOR)
        .map(|_| {
            at += rng.f64() - 0.5;
            f64::to_bits(at)
        })
        .collect();
    split(&walk);
    println!("text: GB/s of text");
    println!("{:>22} {:>8} {:>8} {:>8} {:>8} {:>8}", "", "ratio", "train", "encode", "decode", "check");
    let languages = ["en", "de"];
    text("url, 48 bytes", &mut || {
        format!("https://www.example.com/shop/item?id={}&lang={}", rng.u32(..100_000), languages[rng.usize(..2)])
    });
    text("request and 16 hex", &mut || format!("request {:016x}", rng.u64(..)));
    text("line of a log", &mut || {
        format!(
            "GET /api/v{}/users/{}/orders?page={} took {} ms, status {}",
            rng.u8(1..3),
            rng.u32(..10_000),
            rng.u8(..),
            rng.u16(..2_000),
            [200, 404, 500][rng.usize(..3)]
        )
    });
}

fn decimals(name: &str, values: &[f64], scale: i8) {
    let mut ints = vec![0; VECTOR];
    let to_ints = rate(|| _ = black_box(alp::integers(black_box(values), scale, &mut ints)));
    let (lo, hi, misses) = alp::integers(values, scale, &mut ints);
    assert_eq!(misses, 0);
    let width = width_of(&[hi], lo);
    let mut bytes = Vec::with_capacity(1 << 16);
    let packing = rate(|| {
        bytes.clear();
        pack(black_box(&ints), lo, width, &mut bytes);
    });
    let (mut unpacker, lines) = (Unpacker::new(), bytes.as_chunks().0);
    let mut out = Vec::<f64>::with_capacity(64 * VECTOR);
    let decode = rate(|| {
        if out.len() == 64 * VECTOR {
            out.clear();
        }
        alp::unpack(&mut unpacker, black_box(lines), width, (lo, scale), VECTOR, &mut out);
    });
    let bound = (hi - lo) as u64 / 3;
    let compare = rate(|| _ = black_box(packed_in_range(&mut unpacker, black_box(lines), width, VECTOR, 0, bound)));
    println!("{name:>22} {width:>5} {to_ints:>8.2} {packing:>8.2} {decode:>8.2} {compare:>8.2}");
}

fn split(walk: &[u64]) {
    let (split, _) = Split::choose(walk.to_vec(), 64).expect("a sample");
    let (mut words, mut misses) = (Vec::new(), Vec::new());
    let to_words = rate(|| {
        words.clear();
        misses.clear();
        split.split(black_box(walk).iter().copied(), &mut words, &mut misses);
    });
    let joining = rate(|| split.join(black_box(&mut words)));
    println!("{:>22} {:>5} {to_words:>8.2} {:>8} {joining:>8.2}", "walk, split", split.word_bits(), "");
}

fn text(name: &str, make: &mut dyn FnMut() -> String) {
    let strings: Vec<String> = (0..20_000).map(|_| make()).collect();
    let bytes: usize = strings.iter().map(String::len).sum();
    let sample: Vec<&[u8]> = strings.iter().step_by((bytes / SAMPLE_BYTES) | 1).map(String::as_bytes).collect();
    let training = seconds(1, || _ = black_box(train(&sample)));
    let table = train(&sample);
    let (compressor, decompressor) = (Compressor::new(&table), Decompressor::new(&table));
    let text = [strings.concat().into_bytes(), vec![0; 8]].concat();
    let mut codes = Vec::new();
    let compressing = seconds(1, || {
        codes.clear();
        let mut from = 0;
        for string in &strings {
            compressor.compress(&text, from, string.len(), &mut codes);
            from += string.len();
        }
    });
    let mut out = vec![0; bytes + SLACK_BYTES];
    let decompressing = seconds(1, || assert_eq!(decompressor.decompress(black_box(&codes), &mut out), bytes));
    let checking = seconds(1, || assert_eq!(decompressor.text_bytes(black_box(&codes)), Some(bytes)));
    let rate = |seconds: f64| bytes as f64 / seconds / 1e9;
    println!(
        "{name:>22} {:>8.2} {:>6.0}us {:>8.2} {:>8.2} {:>8.2}",
        bytes as f64 / codes.len() as f64,
        training * 1e6,
        rate(compressing),
        rate(decompressing),
        rate(checking)
    );
}
