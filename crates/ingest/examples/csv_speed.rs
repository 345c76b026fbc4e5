//! Measures parsing of CSV to columns on one core: `cargo run --release -p tidalite-ingest --example csv_speed`.
//!
//! Minute bars (a timestamp, four prices, a volume) and lines of hosts with three symbols, in pieces of 1 MiB.

use std::fmt::Write;
use std::time::Instant;
use tidalite_ingest::csv::{CsvParser, Known, OnBad, Splitter, detect};

fn main() {
    let mut random = fastrand::Rng::with_seed(1);
    let mut bars = String::from("ts,open,high,low,close,volume\n");
    let mut hosts = String::from("ts,host,region,service,user,system,idle\n");
    for i in 0..500_000_u32 {
        let time =
            format!("2020-{:02}-{:02} {:02}:{:02}:00", i / 40_320 % 12 + 1, i / 1_440 % 28 + 1, i / 60 % 24, i % 60);
        let prices = [(); 4].map(|()| 100.0 + random.f64() * 50.0);
        let _ = writeln!(
            bars,
            "{time},{:.4},{:.4},{:.4},{:.4},{}",
            prices[0],
            prices[1],
            prices[2],
            prices[3],
            random.u32(..200_000)
        );
        let (host, n) = (random.u32(..4_000), random.u32(..20));
        let _ = writeln!(
            hosts,
            "{time},host_{host},eu-central-{n},service_{n},{},{},{}",
            random.u8(..100),
            random.u8(..100),
            random.u8(..100)
        );
    }
    for (name, text) in [("bars", bars), ("hosts", hosts)] {
        let text = text.into_bytes();
        let found = detect(&text[..1 << 20], false, &Known::default()).expect("a file");
        let body = &text[found.header_bytes..];
        let mut best = f64::MAX;
        for _ in 0..5 {
            let mut parser = CsvParser::new(&found.format, "t", &found.columns, found.timestamp.as_deref(), 1);
            let (mut at, mut rows) = (0, 0);
            let started = Instant::now();
            while at < body.len() {
                let end = body.len().min(at + (1 << 20));
                let whole = Splitter::new(&found.format).split(&body[at..end]);
                let parsed = parser.parse(&body[at..at + whole], OnBad::Abort);
                assert!(parsed.bad.is_empty());
                rows += parsed.batch.rows;
                at += whole;
            }
            best = best.min(started.elapsed().as_secs_f64());
            assert_eq!(rows, 500_000);
        }
        println!("{name:6} {:6.0} MB/s {:6.2} M rows/s", body.len() as f64 / best / 1e6, 0.5 / best);
    }
}
