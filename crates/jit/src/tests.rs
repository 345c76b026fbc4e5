//! Compares random compiled programs with the interpreter, the reference implementation.

use super::*;
use fastrand::Rng;
use tidalite_kernels::bitpack::VECTOR;
use tidalite_kernels::count_picked;
use tidalite_kernels::program::{Arithmetic, Change, Comparison, Guarded, Kind, Number, Test};

const KINDS: [Kind; 5] = [Kind::Int, Kind::Float, Kind::Int, Kind::Float, Kind::Float];
const COMPARISONS: [Comparison; 6] = [
    Comparison::Equal,
    Comparison::NotEqual,
    Comparison::Less,
    Comparison::AtMost,
    Comparison::Greater,
    Comparison::AtLeast,
];

struct Table {
    /// Rows before the first row, so that values have any alignment.
    skipped: usize,
    rows: usize,
    ints: Vec<Vec<i64>>,
    floats: Vec<Vec<f64>>,
    valid: Vec<Option<Vec<u64>>>,
    loaded: Vec<usize>,
}

impl Columns for Table {
    fn load(&mut self, column: usize) -> Result<(), Unread> {
        self.loaded.push(column);
        Ok(())
    }

    fn ints(&self, column: usize) -> &[i64] {
        assert!(self.loaded.contains(&column));
        &self.ints[column][self.skipped..]
    }

    fn floats(&self, column: usize) -> &[f64] {
        assert!(self.loaded.contains(&column));
        &self.floats[column][self.skipped..]
    }

    fn valid(&self, column: usize) -> Option<&[u64]> {
        self.valid[column].as_deref()
    }
}

fn table(rng: &mut Rng, rows: usize) -> Table {
    let skipped = rng.usize(..2);
    let all = skipped + rows;
    let ints = (0..KINDS.len()).map(|_| (0..all).map(|_| int(rng)).collect()).collect();
    let floats = (0..KINDS.len()).map(|_| (0..all).map(|_| float(rng)).collect()).collect();
    let words = |rng: &mut Rng| (0..rows.div_ceil(64)).map(|_| rng.u64(..) | rng.u64(..)).collect();
    let valid = (0..KINDS.len()).map(|_| rng.bool().then(|| words(rng))).collect();
    Table { skipped, rows, ints, floats, valid, loaded: Vec::new() }
}

fn int(rng: &mut Rng) -> i64 {
    match rng.u32(..8) {
        0 => *rng.choice(&[i64::MIN, i64::MAX, 0, -1, 1, i64::MIN + 1]).unwrap(),
        1 => rng.i64(..),
        2 => i64::from(rng.i32(..)),
        _ => rng.i64(-3..4),
    }
}

fn float(rng: &mut Rng) -> f64 {
    match rng.u32(..6) {
        0 => {
            *rng.choice(&[f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, f64::MAX, 5e-324]).unwrap()
        }
        1 => f64::from_bits(rng.u64(..)),
        _ => f64::from(rng.i32(-4..5)) / 2.0,
    }
}

/// Builds programs of supported steps, except for one in twenty.
struct Maker<'a> {
    rng: &'a mut Rng,
    program: Program,
    columns: [Number; 5],
}

impl Maker<'_> {
    fn number(&mut self, kind: Kind, depth: u32) -> Number {
        let arithmetic = [Arithmetic::Plus, Arithmetic::Minus, Arithmetic::Times];
        let choice = if depth == 0 { self.rng.u32(..4) } else { self.rng.u32(..12) };
        match (kind, choice) {
            (Kind::Int, 0) => Number::Int(int(self.rng)),
            (Kind::Float, 0) => Number::Float(float(self.rng)),
            (_, 1..4) => {
                let of_kind: Vec<Number> = self.columns.into_iter().filter(|column| column.kind() == kind).collect();
                *self.rng.choice(&of_kind).unwrap()
            }
            (_, 4 | 5) => {
                let wrapped = Change::Wrapped(*self.rng.choice(&[8, 16, 32]).unwrap());
                let all = [Change::Negated, Change::Magnitude, Change::Floor, Change::Ceiling, Change::Single, wrapped];
                let change = *self.rng.choice(&all).unwrap();
                let of = self.number(kind, depth - 1);
                self.program.changed(change, of)
            }
            (Kind::Float, 6 | 7) => {
                let of = self.number(Kind::Int, depth - 1);
                self.program.float(of)
            }
            (Kind::Float, 8) => {
                let (a, b) = (self.number(kind, depth - 1), self.number(kind, depth - 1));
                let with = if self.rng.u32(..5) == 0 { Arithmetic::Modulo } else { Arithmetic::Over };
                self.program.calculated(with, a, b)
            }
            (Kind::Int, 8) if self.rng.u32(..5) == 0 => {
                let (a, b) = (self.number(kind, depth - 1), self.number(kind, depth - 1));
                self.program.guarded(Guarded::Plus, a, b)
            }
            _ => {
                let (a, b) = (self.number(kind, depth - 1), self.number(kind, depth - 1));
                let with = *self.rng.choice(&arithmetic).unwrap();
                self.program.calculated(with, a, b)
            }
        }
    }

    fn test(&mut self, depth: u32) -> Test {
        match if depth == 0 { self.rng.u32(..6) } else { self.rng.u32(..12) } {
            0 => {
                let of = self.number(Kind::Float, 1);
                self.program.present(of)
            }
            1 if self.rng.u32(..4) == 0 => {
                let is = self.rng.bool();
                self.program.constant(is)
            }
            6 | 7 => {
                let (a, b) = (self.test(depth - 1), self.test(depth - 1));
                self.program.both(a, b)
            }
            8 => {
                let (a, b) = (self.test(depth - 1), self.test(depth - 1));
                self.program.either(a, b)
            }
            9 => {
                let of = self.test(depth - 1);
                self.program.not(of)
            }
            10 => {
                let first = self.test(depth - 1);
                self.program.among(first);
                self.test(depth - 1)
            }
            _ => {
                let kind = if self.rng.bool() { Kind::Int } else { Kind::Float };
                let comparison = *self.rng.choice(&COMPARISONS).unwrap();
                let (a, b) = (self.number(kind, 3), self.number(kind, 3));
                self.program.compared(comparison, a, b)
            }
        }
    }
}

fn program(rng: &mut Rng) -> Program {
    let mut program = Program::default();
    let columns = KINDS.map(|kind| program.column(kind));
    let mut maker = Maker { rng, program, columns };
    let test = maker.test(3);
    maker.program.asking(test)
}

fn wanted(rng: &mut Rng, rows: usize) -> Mask {
    let thin = rng.u32(..4);
    let mut wanted: Mask = std::array::from_fn(|_| match thin {
        0 => u64::MAX,
        1 => rng.u64(..),
        2 => rng.u64(..) & rng.u64(..) & rng.u64(..) & rng.u64(..),
        _ => 0,
    });
    if rng.bool() {
        // A span without wanted rows.
        let from = if rng.bool() { 0 } else { VECTOR / 128 };
        wanted[from..from + VECTOR / 128].fill(0);
    }
    for (i, word) in wanted.iter_mut().enumerate() {
        match rows.saturating_sub(i * 64) {
            0 => *word = 0,
            left @ 1..64 => *word &= u64::MAX >> (64 - left),
            _ => {}
        }
    }
    wanted
}

#[test]
fn compiled_programs_say_what_the_interpreter_says() {
    let (compiled_count, hits) = compare(3000, Compiled::of);
    assert!(compiled_count > 2000 && hits > 500_000, "{compiled_count} compiled, {hits} hits");
}

/// Instructions without AVX require aligned operands in memory, but columns may be unaligned.
#[test]
#[cfg(target_arch = "x86_64")]
fn so_do_programs_compiled_for_older_processors() {
    use cranelift_codegen::settings::Configurable;
    let (compiled_count, hits) = compare(600, |program| {
        let mut machine = cranelift_native::builder().unwrap();
        for name in
            ["has_avx", "has_avx2", "has_fma", "has_avx512f", "has_avx512vl", "has_avx512dq", "has_bmi1", "has_bmi2"]
        {
            machine.set(name, "false").unwrap();
        }
        let stages = stages::of(program)?;
        let code = emit::is_known(program).then(|| Code::with(machine, program, &stages))??;
        Some(Compiled { program: program.clone(), stages, code })
    });
    assert!(compiled_count > 400 && hits > 100_000, "{compiled_count} compiled, {hits} hits");
}

/// Returns the number of compiled programs among random programs, and the number of rows they found.
fn compare(rounds: usize, compiled: impl Fn(&Program) -> Option<Compiled>) -> (usize, usize) {
    let mut rng = Rng::with_seed(1);
    let mut room = Room::new();
    let (mut compiled_count, mut hits) = (0, 0);
    for round in 0..rounds {
        let program = program(&mut rng);
        let Some(compiled) = compiled(&program) else {
            assert!(!emit::is_known(&program), "{program:?}");
            continue;
        };
        compiled_count += 1;
        for rows in [[8, 64, 72, 512, 520, 1016][round % 6], [1, 63, 65, 511, 700, 1023][round % 6], VECTOR] {
            let (mut table, wanted) = (table(&mut rng, rows), wanted(&mut rng, rows));
            let expected = program.run(&mut table, rows, &wanted, &mut room).unwrap();
            let read = std::mem::take(&mut table.loaded);
            let found = compiled.run(&mut table, rows, &wanted, &mut room).unwrap();
            assert_eq!(found, expected, "{} rows of {program:?}", table.rows);
            assert!(table.loaded.iter().all(|column| read.contains(column)), "no column that the interpreter spares");
            hits += count_picked(&found);
        }
    }
    (compiled_count, hits)
}

#[test]
fn comparisons_of_all_special_values_are_postgresqls() {
    let special = [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1.0, -1.0];
    let mut table = Table {
        skipped: 0,
        rows: 64,
        ints: Vec::new(),
        floats: vec![
            (0..64).map(|row| special[row / 8]).collect::<Vec<_>>(),
            (0..64).map(|row| special[row % 8]).collect(),
        ],
        valid: vec![None, None],
        loaded: Vec::new(),
    };
    let (mut room, mut wanted) = (Room::new(), [0; VECTOR / 64]);
    wanted[0] = u64::MAX;
    let mut compiled_count = 0;
    for comparison in COMPARISONS {
        for constant in [None].into_iter().chain(special.map(Some)) {
            for is_swapped in [false, true] {
                let mut program = Program::default();
                let (a, b) = (program.column(Kind::Float), program.column(Kind::Float));
                let b = constant.map_or(b, Number::Float);
                let test =
                    if is_swapped { program.compared(comparison, b, a) } else { program.compared(comparison, a, b) };
                let program = program.asking(test);
                let compiled = Compiled::of(&program).unwrap();
                let found = compiled.run(&mut table, 64, &wanted, &mut room).unwrap();
                assert_eq!(found, program.run(&mut table, 64, &wanted, &mut room).unwrap(), "{program:?}");
                compiled_count += 1;
            }
        }
    }
    assert_eq!(compiled_count, 6 * 9 * 2);
}

#[test]
fn columns_of_later_tests_are_not_read_where_no_row_is_left() {
    let mut program = Program::default();
    let (a, b) = (program.column(Kind::Int), program.column(Kind::Int));
    let first = program.compared(Comparison::Greater, a, Number::Int(5));
    program.among(first);
    let sum = program.calculated(Arithmetic::Plus, a, b);
    let second = program.compared(Comparison::Less, sum, Number::Int(10));
    let compiled = Compiled::of(&program.asking(second)).unwrap();
    let mut table = Table {
        skipped: 0,
        rows: 8,
        ints: vec![(0..8).collect(), vec![3; 8]],
        floats: Vec::new(),
        valid: vec![None, None],
        loaded: Vec::new(),
    };
    let (mut room, mut wanted) = (Room::new(), [0; VECTOR / 64]);
    wanted[0] = 0xff;
    assert_eq!(compiled.run(&mut table, 8, &wanted, &mut room).unwrap()[0], 0b0100_0000);
    assert_eq!(table.loaded, [0, 1]);
    table.loaded.clear();
    wanted[0] = 0b0011_1111;
    assert_eq!(compiled.run(&mut table, 8, &wanted, &mut room).unwrap()[0], 0);
    assert_eq!(table.loaded, [0]);
}

#[test]
fn threads_share_what_is_compiled() {
    let mut program = Program::default();
    let (a, b) = (program.column(Kind::Float), program.column(Kind::Float));
    let product = program.calculated(Arithmetic::Times, a, b);
    let test = program.compared(Comparison::Greater, product, b);
    assert!(!is_worth_compiling(&program.clone().asking(test)), "two steps");
    let sum = program.calculated(Arithmetic::Plus, product, a);
    let test = program.compared(Comparison::Greater, sum, b);
    let program = program.asking(test);
    assert!(is_worth_compiling(&program));
    let compiled = Compiled::of(&program).unwrap();
    let mut rng = Rng::with_seed(7);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (seed, compiled, program) = (rng.u64(..), &compiled, &program);
            scope.spawn(move || {
                let (mut rng, mut room) = (Rng::with_seed(seed), Room::new());
                for _ in 0..50 {
                    let mut table = table(&mut rng, VECTOR);
                    table.floats.rotate_left(1);
                    let wanted = [u64::MAX; VECTOR / 64];
                    let found = compiled.run(&mut table, VECTOR, &wanted, &mut room).unwrap();
                    assert_eq!(found, program.run(&mut table, VECTOR, &wanted, &mut room).unwrap());
                }
            });
        }
    });
}

#[test]
fn what_may_fail_is_not_compiled() {
    let mut program = Program::default();
    let a = program.column(Kind::Int);
    let mut sum = program.guarded(Guarded::Plus, a, Number::Int(1));
    for _ in 0..5 {
        sum = program.calculated(Arithmetic::Times, sum, a);
    }
    let test = program.compared(Comparison::Greater, sum, Number::Int(5));
    let program = program.asking(test);
    assert!(!is_worth_compiling(&program) && Compiled::of(&program).is_none());
}
