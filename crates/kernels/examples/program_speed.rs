//! Measures programs over several columns, on one core, data in the nearest caches:
//! `cargo run --release -p tidalite-kernels --example program_speed`.

use std::hint::black_box;
use std::time::Instant;
use tidalite_kernels::Mask;
use tidalite_kernels::bitpack::VECTOR;
use tidalite_kernels::program::{Arithmetic, Columns, Comparison, Guarded, Kind, Number, Program, Room, Unread};

struct Table {
    ints: Vec<Vec<i64>>,
    floats: Vec<Vec<f64>>,
}

impl Columns for Table {
    fn load(&mut self, _: usize) -> Result<(), Unread> {
        Ok(())
    }

    fn ints(&self, column: usize) -> &[i64] {
        &self.ints[column]
    }

    fn floats(&self, column: usize) -> &[f64] {
        &self.floats[column]
    }

    fn valid(&self, _: usize) -> Option<&[u64]> {
        None
    }
}

fn main() {
    let mut rng = fastrand::Rng::with_seed(1);
    let mut table = Table {
        ints: (0..5).map(|_| (0..VECTOR).map(|_| rng.i64(-1000..1000)).collect()).collect(),
        floats: (0..5).map(|_| (0..VECTOR).map(|_| rng.f64()).collect()).collect(),
    };
    println!("{:>40} {:>8} {:>10}", "", "ns a row", "rows, M/s");
    let float = |at| Number::Column(at, Kind::Float);
    let int = |at| Number::Column(at, Kind::Int);
    for comparison in [Comparison::Less, Comparison::Equal] {
        measure(&mut table, &format!("doubles a {comparison:?} b"), |p| p.compared(comparison, float(0), float(1)));
        measure(&mut table, &format!("doubles a {comparison:?} 0.5"), |p| {
            p.compared(comparison, float(0), Number::Float(0.5))
        });
        measure(&mut table, &format!("integers a {comparison:?} b"), |p| p.compared(comparison, int(0), int(1)));
    }
    for with in [Arithmetic::Plus, Arithmetic::Times, Arithmetic::Over, Arithmetic::Modulo] {
        measure(&mut table, &format!("doubles a {with:?} b < 0.5"), |p| {
            let made = p.calculated(with, float(0), float(1));
            p.compared(Comparison::Less, made, Number::Float(0.5))
        });
    }
    for with in [Arithmetic::Plus, Arithmetic::Times] {
        measure(&mut table, &format!("integers a {with:?} b < 5"), |p| {
            let made = p.calculated(with, int(0), int(1));
            p.compared(Comparison::Less, made, Number::Int(5))
        });
    }
    for with in [Arithmetic::Over, Arithmetic::Modulo] {
        measure(&mut table, &format!("integers a {with:?} 7 < 5"), |p| {
            let made = p.calculated(with, int(0), Number::Int(7));
            p.compared(Comparison::Less, made, Number::Int(5))
        });
    }
    measure(&mut table, "integers a - b < 5, guarded", |p| {
        let made = p.guarded(Guarded::Minus, int(0), int(1));
        p.compared(Comparison::Less, made, Number::Int(5))
    });
    measure(&mut table, "integer as double < double", |p| {
        let made = p.float(int(0));
        p.compared(Comparison::Less, made, float(1))
    });
    measure(&mut table, "ten operations over five doubles", |p| {
        let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(float);
        let ab = p.calculated(Arithmetic::Times, a, b);
        let cd = p.calculated(Arithmetic::Times, c, d);
        let sum = p.calculated(Arithmetic::Plus, ab, cd);
        let sum = p.calculated(Arithmetic::Minus, sum, e);
        let half = p.calculated(Arithmetic::Times, sum, Number::Float(0.5));
        let ae = p.calculated(Arithmetic::Plus, a, e);
        let be = p.calculated(Arithmetic::Times, ae, b);
        let whole = p.calculated(Arithmetic::Plus, half, be);
        let whole = p.calculated(Arithmetic::Minus, whole, c);
        p.compared(Comparison::Greater, whole, d)
    });
}

fn measure(table: &mut Table, name: &str, build: impl Fn(&mut Program) -> tidalite_kernels::program::Test) {
    let mut program = Program::default();
    for _ in 0..5 {
        let _ = program.column(Kind::Int);
    }
    let test = build(&mut program);
    let program = program.asking(test);
    let (mut room, wanted): (Room, Mask) = (Room::new(), [u64::MAX; VECTOR / 64]);
    let runs = 300;
    let seconds = (0..30).map(|_| {
        let start = Instant::now();
        for _ in 0..runs {
            let found = program.run(table, VECTOR, &wanted, &mut room);
            let _ = black_box(found);
        }
        start.elapsed().as_secs_f64() / f64::from(runs)
    });
    let best = seconds.fold(f64::INFINITY, f64::min) / VECTOR as f64;
    println!("{name:>40} {:>8.3} {:>10.0}", best * 1e9, 1e-6 / best);
}
