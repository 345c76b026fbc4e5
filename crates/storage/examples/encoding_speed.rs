//! Measures every encoding over named shapes of columns on one core, as a table for `bench/results`:
//! `cargo run --release -p tidalite-storage --example encoding_speed [NAME]`.
//!
//! Each column has 16 blocks, encoded for both efforts. If NAME is given, only columns whose name contains NAME are
//! measured. Rates are the best of several runs: `encode` and `decode` in GB/s of logical bytes (rows times the width
//! of the type, or the bytes of strings), block by block, so that a decoded block is in the cache and is freed before
//! the next one; `compare` in billions of values per second, for a constant that is greater than about a third of the
//! values, in blocks whose bounds do not decide.

use std::hint::black_box;
use std::time::Instant;
use tidalite_storage::Bounds;
use tidalite_storage::segment::{Comparison, Constant, Effort, EncodedBlock, encode};
use tidalite_types::{BLOCK_ROWS, Column, ColumnType, TimeUnit, Values, Views};

const BLOCKS: usize = 16;
const ROWS: usize = BLOCKS * BLOCK_ROWS;
const RUNS: usize = 15;

/// The columns used to measure the formats of other systems.
fn columns() -> Vec<(&'static str, ColumnType, Values)> {
    let mut random = Random(99);
    let timestamp = ColumnType::Timestamp(TimeUnit::Micros);
    let start = 1_700_000_000_000_000i64;
    let mut walk = |series: usize, lo: f64, hi: f64, step: f64, digits: f64| {
        let mut at: Vec<f64> = (0..series).map(|_| lo + random.unit() * (hi - lo)).collect();
        let mut next = |i: usize| {
            let value = &mut at[i % series];
            *value = (*value + step * random.normal()).clamp(lo, hi);
            if digits == 0.0 { *value } else { (*value * digits).round() / digits }
        };
        Values::F64((0..ROWS).map(&mut next).collect())
    };
    let doubles = vec![
        ("f64 walk, full precision, 4,000 series", walk(4_000, 0.0, 100.0, 1.0, 0.0)),
        ("f64 walk, full precision, 1 series", walk(1, 0.0, 100.0, 1.0, 0.0)),
        ("f64 latitude, 5 decimals", walk(5_000, -90.0, 90.0, 0.003, 1e5)),
        ("f64 velocity, whole numbers", walk(5_000, 0.0, 100.0, 6.0, 1.0)),
        ("f64 price, 2 decimals, 30 symbols", walk(30, 20.0, 4_000.0, 0.05, 100.0)),
    ];
    let mut time = start;
    let mut jittered = |_| {
        time += 900 + (random.unit() * 200.0) as i64;
        time
    };
    let jittered = (0..ROWS).map(&mut jittered).collect();
    let regular = (0..ROWS as i64).map(|i| start + i / 4_000 * 10_000_000).collect();
    let each = (0..ROWS as i64).map(|i| start + i * 1_000).collect();
    let volume = (0..ROWS).map(|_| (random.normal() * 1.5 + 5.0).exp() as i64).collect();
    let skewed = (0..ROWS).map(|_| (1_000.0 * random.unit().powi(3)) as u32).collect();
    let small = (0..ROWS).map(|_| (random.unit() * 101.0) as i64).collect();
    let seventeen = (0..ROWS).map(|_| (random.unit() * 131_072.0) as i64).collect();
    let wide = (0..ROWS).map(|_| (random.unit() * 16_777_216.0) as i64).collect();
    let few = (0..ROWS).map(|_| ((random.unit() * 300.0) as i64) << 40).collect();
    let counter = (0..ROWS as i64).map(|i| i * 3 + (i % 7)).map(|v| v as i32).collect();
    let cyclic = (0..ROWS).map(|i| (i % 4_000) as u32).collect();
    let flags = (0..ROWS).map(|i| i / 5_000 % 2 == 0).collect();
    let mut pick = |count: usize| (random.unit() * count as f64) as usize;
    let text = |make: &mut dyn FnMut() -> String| {
        let mut views = Views::new();
        (0..ROWS).for_each(|_| views.push(make().as_bytes()));
        Values::Views(views)
    };
    let urls = text(&mut || {
        let (folder, language) = (["shop", "news"][pick(2)], ["en", "de"][pick(2)]);
        format!("https://www.example.com/{folder}/item?id={}&lang={language}", pick(100_000))
    });
    let lines = text(&mut || {
        let (user, ms, status) = (pick(10_000), pick(2_000), [200, 404, 500][pick(3)]);
        format!("GET /api/v2/users/{user}/orders took {ms} ms, status {status}")
    });
    let agents = text(&mut || {
        let version = pick(400);
        format!("Mozilla/5.0 (Windows NT 10.0; rv:{version}) Gecko/20100101 Firefox/{version}")
    });
    let hex = text(&mut || format!("request {:016x}", pick(1 << 52)));
    let mut columns: Vec<_> = doubles.into_iter().map(|(name, v)| (name, ColumnType::Double, v)).collect();
    columns.extend([
        ("i64 timestamp, 1 ms with jitter", timestamp, Values::I64(jittered)),
        ("i64 timestamp, 10 s of 4,000 hosts", timestamp, Values::I64(regular)),
        ("i64 timestamp, each 1 ms", timestamp, Values::I64(each)),
        ("i64 volume, lognormal", ColumnType::Long, Values::I64(volume)),
        ("i64 0 to 100 (7 bits)", ColumnType::Long, Values::I64(small)),
        ("i64 below 2^17", ColumnType::Long, Values::I64(seventeen)),
        ("i64 below 2^24", ColumnType::Long, Values::I64(wide)),
        ("i64 300 values far apart", ColumnType::Long, Values::I64(few)),
        ("i32 counter", ColumnType::Int, Values::I32(counter)),
        ("u32 symbols, skewed 1,000", ColumnType::Symbol, Values::U32(skewed)),
        ("u32 symbols, cyclic 4,000", ColumnType::Symbol, Values::U32(cyclic)),
        ("text, urls", ColumnType::Varchar, urls),
        ("text, lines of a log", ColumnType::Varchar, lines),
        ("text, 400 agents", ColumnType::Varchar, agents),
        ("text, request and 13 random digits", ColumnType::Varchar, hex),
        ("boolean, in stretches", ColumnType::Boolean, Values::Bit(flags)),
        ("i64 all the same", ColumnType::Long, Values::I64(vec![42; ROWS])),
    ]);
    columns
}

/// Xorshift, the generator used to measure the other formats.
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

/// Returns the seconds for all blocks, with each block at its best of several runs: other processes share the machine.
fn measure(mut run: impl FnMut(usize)) -> f64 {
    let mut best = [f64::INFINITY; BLOCKS];
    for _ in 0..RUNS {
        for (block, best) in best.iter_mut().enumerate() {
            let start = Instant::now();
            run(block);
            *best = best.min(start.elapsed().as_secs_f64());
        }
    }
    best.iter().sum()
}

fn logical_bytes(values: &Values) -> f64 {
    match values {
        Values::Bit(_) => ROWS as f64 / 8.0,
        Values::Views(views) => views.iter().map(|text| text.len() as f64).sum(),
        values => ROWS as f64 * values.physical().width().unwrap_or(16) as f64,
    }
}

/// Returns a constant about a third of the way between the bounds of a block.
fn constant_of(block: &EncodedBlock) -> Constant {
    match block.zone().bounds {
        Bounds::Int(lo, hi) => Constant::Int(i128::from(lo) + (i128::from(hi) - i128::from(lo)) / 3),
        Bounds::Float(lo, hi) => Constant::Float(lo + (hi - lo) / 3.0),
        Bounds::None => Constant::Int(300),
    }
}

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    println!("| column | effort | encoding | ratio | bits/value | encode GB/s | decode GB/s | compare G/s |");
    println!("|---|---|---|--:|--:|--:|--:|--:|");
    for (name, column_type, values) in columns().into_iter().filter(|(name, ..)| name.contains(&wanted)) {
        let column = Column::new(values);
        let logical = logical_bytes(&column.values);
        for effort in [Effort::Fresh, Effort::Sealed] {
            let encoded = |block: usize| encode(column_type, &column, block * BLOCK_ROWS, BLOCK_ROWS, effort);
            let blocks: Vec<EncodedBlock> = (0..BLOCKS).map(encoded).collect();
            let encoding = measure(|block| drop(black_box(encoded(block))));
            let decoding = measure(|block| drop(black_box(blocks[block].decode())));
            let constants: Vec<Constant> = blocks.iter().map(constant_of).collect();
            let compare = |block: usize| drop(black_box(blocks[block].compare(Comparison::Less, constants[block])));
            let is_compared = blocks[0].compare(Comparison::Less, constants[0]).is_some();
            let comparing =
                if is_compared { format!("{:.2}", ROWS as f64 / measure(compare) / 1e9) } else { "-".into() };
            let bytes: usize = blocks.iter().map(|block| block.bytes.len()).sum();
            println!(
                "| {name} | {effort:?} | {:?} | {:.2} | {:.2} | {:.2} | {:.1} | {comparing} |",
                blocks[0].entry.encoding,
                logical / bytes.max(1) as f64,
                8.0 * bytes as f64 / ROWS as f64,
                logical / encoding / 1e9,
                logical / decoding / 1e9,
            );
        }
    }
}
