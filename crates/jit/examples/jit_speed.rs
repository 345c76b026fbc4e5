//! Compares compiled and interpreted programs on one core, with packed columns as in a scan or decoded columns in the
//! cache: `cargo run --release -p tidalite-jit --example jit_speed`.

use std::hint::black_box;
use std::time::Instant;
use tidalite_jit::Compiled;
use tidalite_kernels::bitpack::VECTOR;
use tidalite_kernels::program::{Arithmetic, Columns, Comparison, Kind, Number, Program, Room, Stopped, Test, Unread};
use tidalite_kernels::{Mask, Unpacker, alp, pack, width_of};

/// For each column: the magnitude of its values and the number of decimals.
const COLUMNS: [(f64, i8); 5] = [(100.0, 0), (50.0, 1), (90.0, 5), (180.0, 5), (1000.0, 2)];
/// The packed columns exceed the first- and second-level caches and fit the last-level cache.
const VECTORS: usize = 512;

struct Table {
    /// Width, base, lines; indexed by column, then by vector.
    packed: Vec<Vec<(u32, i64, Vec<u8>)>>,
    is_packed: bool,
    floats: Vec<Vec<f64>>,
    unpacker: Unpacker,
    at: usize,
}

impl Columns for Table {
    fn load(&mut self, column: usize) -> Result<(), Unread> {
        if self.is_packed {
            let (width, base, lines) = &self.packed[column][self.at % VECTORS];
            let (scale, out) = (COLUMNS[column].1, &mut self.floats[column]);
            out.clear();
            alp::unpack(&mut self.unpacker, lines.as_chunks().0, *width, (*base, scale), VECTOR, out);
        }
        Ok(())
    }

    fn ints(&self, _: usize) -> &[i64] {
        &[]
    }

    fn floats(&self, column: usize) -> &[f64] {
        &self.floats[column]
    }

    fn valid(&self, _: usize) -> Option<&[u64]> {
        None
    }
}

fn table(rng: &mut fastrand::Rng) -> Table {
    let mut floats = Vec::new();
    let mut packed = Vec::new();
    for (size, scale) in COLUMNS {
        let decimals = 10_f64.powi(i32::from(scale));
        let mut vectors = Vec::new();
        for _ in 0..VECTORS {
            let values: Vec<f64> = (0..VECTOR).map(|_| (rng.f64() * size * decimals).round() / decimals).collect();
            let mut ints = vec![0; VECTOR];
            let (lo, hi, _) = alp::integers(&values, scale, &mut ints);
            let (width, mut lines) = (width_of(&[hi], lo), Vec::new());
            pack(&ints, lo, width, &mut lines);
            vectors.push((width, lo, lines));
            floats.truncate(packed.len());
            floats.push(values);
        }
        packed.push(vectors);
    }
    Table { packed, is_packed: false, floats, unpacker: Unpacker::new(), at: 0 }
}

fn main() {
    let mut table = table(&mut fastrand::Rng::with_seed(1));
    let column = |at| Number::Column(at, Kind::Float);
    let short = |p: &mut Program, k: f64| {
        let twice = p.calculated(Arithmetic::Times, column(1), Number::Float(2.0));
        let more = p.calculated(Arithmetic::Plus, twice, Number::Float(k));
        p.compared(Comparison::Greater, column(0), more)
    };
    let middle = |p: &mut Program, k: f64| {
        let sum = p.calculated(Arithmetic::Plus, column(0), column(1));
        let half = p.calculated(Arithmetic::Times, sum, Number::Float(0.5));
        let tenth = p.calculated(Arithmetic::Times, column(4), Number::Float(0.1));
        let whole = p.calculated(Arithmetic::Minus, half, tenth);
        p.compared(Comparison::Greater, whole, Number::Float(k))
    };
    let long = |p: &mut Program, k: f64| {
        let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(column);
        let (ab, cd) = (p.calculated(Arithmetic::Times, a, b), p.calculated(Arithmetic::Times, c, d));
        let sum = p.calculated(Arithmetic::Plus, ab, cd);
        let sum = p.calculated(Arithmetic::Minus, sum, e);
        let half = p.calculated(Arithmetic::Times, sum, Number::Float(0.5));
        let ae = p.calculated(Arithmetic::Plus, a, e);
        let be = p.calculated(Arithmetic::Times, ae, b);
        let sum = p.calculated(Arithmetic::Plus, half, be);
        let thrice = p.calculated(Arithmetic::Times, c, Number::Float(3.0));
        let whole = p.calculated(Arithmetic::Minus, sum, thrice);
        p.compared(Comparison::Greater, whole, Number::Float(k))
    };
    println!("ns a row, least of 30, in turns");
    println!("| condition | columns | interpreted | compiled | ratio | compiled in, ms |");
    println!("|---|---|---|---|---|---|");
    measure(&mut table, "short: 2 operations, 2 columns", |p| short(p, 90.0));
    measure(&mut table, "middle: 4 operations, 3 columns", |p| middle(p, 60.0));
    measure(&mut table, "long: 10 operations, 5 columns", |p| long(p, 40_000.0));
}

fn measure(table: &mut Table, name: &str, build: impl Fn(&mut Program) -> Test) {
    let mut program = Program::default();
    for _ in COLUMNS {
        let _ = program.column(Kind::Float);
    }
    let test = build(&mut program);
    let program = program.asking(test);
    let mut compile_ms = f64::INFINITY;
    for _ in 0..20 {
        let start = Instant::now();
        let compiled = Compiled::of(black_box(&program));
        compile_ms = compile_ms.min(start.elapsed().as_secs_f64() * 1e3);
        drop(compiled);
    }
    let Some(compiled) = Compiled::of(&program) else { return println!("{name}: not compiled on this machine") };
    let mut room = Room::new();
    for is_packed in [false, true] {
        table.is_packed = is_packed;
        let mut best = [f64::INFINITY; 2];
        for _ in 0..30 {
            best[0] = best[0].min(seconds(table, |table, wanted| program.run(table, VECTOR, wanted, &mut room)));
            best[1] = best[1].min(seconds(table, |table, wanted| compiled.run(table, VECTOR, wanted, &mut room)));
        }
        let source = if is_packed { "packed" } else { "decoded" };
        let [interpreted, compiled] = best.map(|seconds| seconds * 1e9 / (VECTORS * VECTOR) as f64);
        let ratio = interpreted / compiled;
        println!("| {name} | {source} | {interpreted:.3} | {compiled:.3} | {ratio:.2} | {compile_ms:.2} |");
    }
}

fn seconds(table: &mut Table, mut run: impl FnMut(&mut Table, &Mask) -> Result<Mask, Stopped>) -> f64 {
    let wanted: Mask = [u64::MAX; VECTOR / 64];
    let start = Instant::now();
    for at in 0..VECTORS {
        table.at = at;
        let found = run(table, black_box(&wanted));
        let _ = black_box(found);
    }
    start.elapsed().as_secs_f64()
}
