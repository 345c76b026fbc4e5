//! Compares random programs with a row-by-row evaluation.

use super::*;
use fastrand::Rng;

/// Source tree of a [`Program`].
#[derive(Debug)]
enum Tree {
    Column(usize),
    Int(i64),
    Float(f64),
    Calculated(Arithmetic, Box<Tree>, Box<Tree>),
    Changed(Change, Box<Tree>),
    AsFloat(Box<Tree>),
    Guarded(Guarded, Box<Tree>, Box<Tree>),
    Magnitude(u32, Box<Tree>),
}

#[derive(Debug)]
enum Condition {
    Compared(Comparison, Tree, Tree),
    Present(Tree),
    Both(Box<Condition>, Box<Condition>),
    Either(Box<Condition>, Box<Condition>),
    Not(Box<Condition>),
    Among(Box<Condition>, Box<Condition>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    Int(i64),
    Float(f64),
}

const KINDS: [Kind; 5] = [Kind::Int, Kind::Float, Kind::Int, Kind::Float, Kind::Int];

struct Table {
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
        &self.ints[column]
    }

    fn floats(&self, column: usize) -> &[f64] {
        assert!(self.loaded.contains(&column));
        &self.floats[column]
    }

    fn valid(&self, column: usize) -> Option<&[u64]> {
        self.valid[column].as_deref()
    }
}

fn table(rng: &mut Rng, rows: usize) -> Table {
    let ints = (0..KINDS.len()).map(|_| (0..rows).map(|_| int(rng)).collect()).collect();
    let floats = (0..KINDS.len()).map(|_| (0..rows).map(|_| float(rng)).collect()).collect();
    let words = |rng: &mut Rng| (0..rows.div_ceil(64)).map(|_| rng.u64(..) | rng.u64(..)).collect();
    let valid = (0..KINDS.len()).map(|_| rng.bool().then(|| words(rng))).collect();
    Table { rows, ints, floats, valid, loaded: Vec::new() }
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

fn tree(rng: &mut Rng, kind: Kind, depth: u32) -> Tree {
    let arithmetic = [Arithmetic::Plus, Arithmetic::Minus, Arithmetic::Times];
    let inner = |rng: &mut Rng, kind| Box::new(tree(rng, kind, depth - 1));
    match (kind, if depth == 0 { rng.u32(..4) } else { rng.u32(..12) }) {
        (Kind::Int, 0) => Tree::Int(int(rng)),
        (Kind::Float, 0) => Tree::Float(float(rng)),
        (_, 1..4) => {
            let of_kind: Vec<usize> = (0..KINDS.len()).filter(|at| KINDS[*at] == kind).collect();
            Tree::Column(*rng.choice(&of_kind).unwrap())
        }
        (Kind::Int, 4) => Tree::Changed(
            *rng.choice(&[
                Change::Negated,
                Change::Magnitude,
                Change::Wrapped(8),
                Change::Wrapped(16),
                Change::Wrapped(32),
            ])
            .unwrap(),
            inner(rng, kind),
        ),
        (Kind::Float, 4) => Tree::Changed(
            *rng.choice(&[Change::Negated, Change::Magnitude, Change::Single, Change::Floor, Change::Ceiling]).unwrap(),
            inner(rng, kind),
        ),
        (Kind::Float, 5) => Tree::AsFloat(inner(rng, Kind::Int)),
        (Kind::Float, 6) => Tree::Calculated(
            *rng.choice(&[Arithmetic::Over, Arithmetic::Modulo]).unwrap(),
            inner(rng, kind),
            inner(rng, kind),
        ),
        (Kind::Int, 5) if rng.u32(..4) == 0 => {
            let guarded = *rng
                .choice(&[
                    Guarded::Over(64),
                    Guarded::Modulo,
                    Guarded::Minus,
                    Guarded::Plus,
                    Guarded::Times,
                    Guarded::Moved(-1 << 60, 1 << 61),
                ])
                .unwrap();
            Tree::Guarded(guarded, inner(rng, kind), inner(rng, kind))
        }
        (Kind::Int, 6) if rng.u32(..4) == 0 => Tree::Magnitude(64, inner(rng, kind)),
        _ => Tree::Calculated(*rng.choice(&arithmetic).unwrap(), inner(rng, kind), inner(rng, kind)),
    }
}

fn condition(rng: &mut Rng, depth: u32) -> Condition {
    let comparisons = [
        Comparison::Equal,
        Comparison::NotEqual,
        Comparison::Less,
        Comparison::AtMost,
        Comparison::Greater,
        Comparison::AtLeast,
    ];
    let inner = |rng: &mut Rng| Box::new(condition(rng, depth - 1));
    match if depth == 0 { rng.u32(..4) } else { rng.u32(..9) } {
        0 => Condition::Present(tree(rng, Kind::Float, 1)),
        4 | 5 => Condition::Both(inner(rng), inner(rng)),
        6 => Condition::Either(inner(rng), inner(rng)),
        7 => Condition::Not(inner(rng)),
        8 => Condition::Among(inner(rng), inner(rng)),
        _ => {
            let kind = if rng.bool() { Kind::Int } else { Kind::Float };
            Condition::Compared(*rng.choice(&comparisons).unwrap(), tree(rng, kind, 2), tree(rng, kind, 2))
        }
    }
}

impl Tree {
    fn build(&self, program: &mut Program, columns: &[Number]) -> Number {
        match self {
            Tree::Column(at) => columns[*at],
            Tree::Int(value) => Number::Int(*value),
            Tree::Float(value) => Number::Float(*value),
            Tree::Calculated(with, a, b) => {
                let (a, b) = (a.build(program, columns), b.build(program, columns));
                program.calculated(*with, a, b)
            }
            Tree::Guarded(with, a, b) => {
                let (a, b) = (a.build(program, columns), b.build(program, columns));
                program.guarded(*with, a, b)
            }
            Tree::Changed(change, a) => {
                let a = a.build(program, columns);
                program.changed(*change, a)
            }
            Tree::Magnitude(bits, a) => {
                let a = a.build(program, columns);
                program.magnitude(*bits, a)
            }
            Tree::AsFloat(a) => {
                let a = a.build(program, columns);
                program.float(a)
            }
        }
    }

    /// Returns `Ok(None)` for NULL.
    fn of(&self, table: &Table, row: usize) -> Result<Option<Value>, Failure> {
        let both = |a: &Tree, b: &Tree| Ok(a.of(table, row)?.zip(b.of(table, row)?));
        Ok(match self {
            Tree::Column(at) => {
                let is_there = table.valid[*at].as_ref().is_none_or(|valid| valid[row / 64] >> (row % 64) & 1 == 1);
                is_there.then(|| match KINDS[*at] {
                    Kind::Int => Value::Int(table.ints[*at][row]),
                    Kind::Float => Value::Float(table.floats[*at][row]),
                })
            }
            Tree::Int(value) => Some(Value::Int(*value)),
            Tree::Float(value) => Some(Value::Float(*value)),
            Tree::Calculated(with, a, b) => both(a, b)?.map(|sides| match (sides, with) {
                ((Value::Int(a), Value::Int(b)), Arithmetic::Plus) => Value::Int(a.wrapping_add(b)),
                ((Value::Int(a), Value::Int(b)), Arithmetic::Minus) => Value::Int(a.wrapping_sub(b)),
                ((Value::Int(a), Value::Int(b)), _) => Value::Int(a.wrapping_mul(b)),
                ((Value::Float(a), Value::Float(b)), Arithmetic::Plus) => Value::Float(a + b),
                ((Value::Float(a), Value::Float(b)), Arithmetic::Minus) => Value::Float(a - b),
                ((Value::Float(a), Value::Float(b)), Arithmetic::Times) => Value::Float(a * b),
                ((Value::Float(a), Value::Float(b)), Arithmetic::Over) => Value::Float(a / b),
                ((Value::Float(a), Value::Float(b)), Arithmetic::Modulo) => Value::Float(a % b),
                (sides, _) => panic!("{sides:?}"),
            }),
            Tree::Guarded(with, a, b) => match both(a, b)? {
                Some((Value::Int(a), Value::Int(b))) => {
                    let value = match with {
                        Guarded::Moved(least, most) => {
                            let is_inside = |v: &i64| (*least..=*most).contains(v);
                            let sum = a.checked_add(b).filter(is_inside).filter(|_| is_inside(&a));
                            return sum.map(|sum| Some(Value::Int(sum))).ok_or(Failure::OutOfRange);
                        }
                        Guarded::Plus => a.checked_add(b),
                        Guarded::Minus => a.checked_sub(b),
                        Guarded::Times => a.checked_mul(b),
                        // Operands have at most 32 bits, so 64 bits hold the result.
                        Guarded::Narrow(with, bits) => {
                            let fits = |v: &i64| (i64::MIN >> (64 - bits)..=i64::MAX >> (64 - bits)).contains(v);
                            let value = match with {
                                Arithmetic::Plus => a.checked_add(b),
                                Arithmetic::Minus => a.checked_sub(b),
                                _ => a.checked_mul(b),
                            };
                            value.filter(fits)
                        }
                        _ if b == 0 => return Err(Failure::DivisionByZero),
                        Guarded::Over(_) => a.checked_div(b),
                        Guarded::Modulo => Some(a.wrapping_rem(b)),
                    };
                    Some(Value::Int(value.ok_or(Failure::Overflow(*with, a, b))?))
                }
                other => other.map(|sides| panic!("{sides:?}")),
            },
            Tree::Magnitude(bits, a) => match a.of(table, row)? {
                Some(Value::Int(a)) => Some(Value::Int(a.checked_abs().ok_or(Failure::Magnitude(*bits, a))?)),
                other => other,
            },
            Tree::Changed(change, a) => a.of(table, row)?.map(|a| match (a, change) {
                (Value::Int(a), Change::Negated) => Value::Int(a.wrapping_neg()),
                (Value::Int(a), Change::Magnitude) => Value::Int(a.wrapping_abs()),
                (Value::Int(a), Change::Wrapped(8)) => Value::Int(i64::from(a as i8)),
                (Value::Int(a), Change::Wrapped(16)) => Value::Int(i64::from(a as i16)),
                (Value::Int(a), _) => Value::Int(i64::from(a as i32)),
                (Value::Float(a), Change::Negated) => Value::Float(-a),
                (Value::Float(a), Change::Magnitude) => Value::Float(a.abs()),
                (Value::Float(a), Change::Floor) => Value::Float(a.floor()),
                (Value::Float(a), Change::Ceiling) => Value::Float(a.ceil()),
                (Value::Float(a), _) => Value::Float(f64::from(a as f32)),
            }),
            Tree::AsFloat(a) => a.of(table, row)?.map(|a| match a {
                Value::Int(a) => Value::Float(a as f64),
                same => same,
            }),
        })
    }
}

impl Condition {
    fn build(&self, program: &mut Program, columns: &[Number]) -> Test {
        match self {
            Condition::Compared(comparison, a, b) => {
                let (a, b) = (a.build(program, columns), b.build(program, columns));
                program.compared(*comparison, a, b)
            }
            Condition::Present(a) => {
                let a = a.build(program, columns);
                program.present(a)
            }
            Condition::Both(a, b) | Condition::Among(a, b) => {
                let (a, b) = (a.build(program, columns), b.build(program, columns));
                program.both(a, b)
            }
            Condition::Either(a, b) => {
                let (a, b) = (a.build(program, columns), b.build(program, columns));
                program.either(a, b)
            }
            Condition::Not(a) => {
                let a = a.build(program, columns);
                program.not(a)
            }
        }
    }

    /// Evaluates in the order of the steps: a failure counts even if it does not affect the result.
    fn of(&self, table: &Table, row: usize) -> Result<bool, Failure> {
        Ok(match self {
            Condition::Compared(comparison, a, b) => match (a.of(table, row), b.of(table, row)) {
                (Err(failure), _) | (_, Err(failure)) => return Err(failure),
                (Ok(Some(a)), Ok(Some(b))) => compare(*comparison, a, b),
                _ => false,
            },
            Condition::Present(a) => a.of(table, row)?.is_some(),
            Condition::Both(a, b) | Condition::Among(a, b) => {
                let (a, b) = (a.of(table, row)?, b.of(table, row)?);
                a && b
            }
            Condition::Either(a, b) => {
                let (a, b) = (a.of(table, row)?, b.of(table, row)?);
                a || b
            }
            Condition::Not(a) => !a.of(table, row)?,
        })
    }
}

fn compare(comparison: Comparison, a: Value, b: Value) -> bool {
    let order = match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(&b),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan())),
        sides => panic!("{sides:?}"),
    };
    match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::AtMost => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::AtLeast => order.is_ge(),
    }
}

fn wanted(rng: &mut Rng, rows: usize) -> Mask {
    let thin = rng.u32(..3);
    let mut wanted: Mask = std::array::from_fn(|_| match thin {
        0 => u64::MAX,
        1 => rng.u64(..),
        _ => rng.u64(..) & rng.u64(..) & rng.u64(..) & rng.u64(..),
    });
    crate::in_range::clear_behind(&mut wanted, rows);
    wanted
}

#[test]
fn programs_say_what_each_row_says() {
    let mut rng = Rng::with_seed(1);
    let mut room = Room::new();
    let (mut failures, mut hits) = (0, 0);
    for round in 0..3000 {
        let rows = [1, 63, 64, 65, 700, 1024][round % 6];
        let mut table = table(&mut rng, rows);
        let condition = condition(&mut rng, 3);
        let mut program = Program::default();
        let columns = KINDS.map(|kind| program.column(kind));
        let test = condition.build(&mut program, &columns);
        let program = program.asking(test);
        let wanted = wanted(&mut rng, rows);
        let found = program.run(&mut table, rows, &wanted, &mut room);
        let asked: Vec<usize> = picked(&wanted).collect();
        let expected: Vec<Result<bool, Failure>> = asked.iter().map(|row| condition.of(&table, *row)).collect();
        match found {
            Err(Stopped::Failed(failure)) => {
                // The failure is a failure of the first step that fails, in any row.
                assert!(expected.iter().any(Result::is_err), "{failure:?} of {condition:?}");
                assert!(program.may_fail());
                failures += 1;
            }
            Err(other) => panic!("{other:?}"),
            Ok(mask) => {
                for (row, expected) in asked.iter().zip(&expected) {
                    let is_hit = mask[row / 64] >> (row % 64) & 1 == 1;
                    assert_eq!(Ok(is_hit), *expected, "row {row} of {} of {condition:?}", table.rows);
                }
                let count = crate::count_picked(&mask);
                assert_eq!(count, expected.iter().filter(|hit| **hit == Ok(true)).count(), "only wanted rows");
                hits += count;
            }
        }
    }
    assert!(failures > 20 && hits > 10_000, "{failures} failures, {hits} hits");
}

#[test]
fn rows_that_are_wanted_no_more_do_not_fail_and_read_nothing() {
    let mut table = Table {
        rows: 3,
        ints: vec![vec![0, 2, 5], vec![10, 10, 10]],
        floats: Vec::new(),
        valid: vec![None, None],
        loaded: Vec::new(),
    };
    let mut program = Program::default();
    let (divisor, dividend) = (program.column(Kind::Int), program.column(Kind::Int));
    let is_positive = program.compared(Comparison::Greater, divisor, Number::Int(0));
    program.among(is_positive);
    let quotient = program.guarded(Guarded::Over(64), dividend, divisor);
    let is_large = program.compared(Comparison::Greater, quotient, Number::Int(3));
    let program = program.asking(is_large);
    let mut wanted = [0; VECTOR / 64];
    wanted[0] = 0b111;
    let mut room = Room::new();
    assert_eq!(program.run(&mut table, 3, &wanted, &mut room).unwrap()[0], 0b010);
    table.loaded.clear();
    wanted[0] = 0b001;
    assert_eq!(program.run(&mut table, 3, &wanted, &mut room).unwrap()[0], 0);
    assert_eq!(table.loaded, [0], "the dividend is not read");
}

#[test]
fn equal_steps_are_done_once_and_places_are_used_again() {
    let mut program = Program::default();
    let (a, b) = (program.column(Kind::Float), program.column(Kind::Float));
    let sum = program.calculated(Arithmetic::Plus, a, b);
    assert_eq!(program.calculated(Arithmetic::Plus, a, b), sum);
    let mut last = sum;
    for _ in 0..10 {
        last = program.calculated(Arithmetic::Times, last, a);
    }
    let test = program.compared(Comparison::Less, last, b);
    let program = program.asking(test);
    assert_eq!((program.len(), program.room), (12, (0, 2)));
}

#[test]
fn integers_are_divided_exactly_by_whatever_way() {
    let mut rng = Rng::with_seed(3);
    let (mut over, mut modulo) = (vec![0; VECTOR], vec![0; VECTOR]);
    for round in 0..400 {
        // Shorter than 50 bits, close to 50 bits, and any length.
        let bits = [8, 20, 40, 49, 50, 51, 64][round % 7];
        let value = |rng: &mut Rng| match rng.u32(..10) {
            0 => *rng.choice(&[0, 1, -1, (1 << (bits - 1)) - 1, -1 << (bits - 1)]).unwrap(),
            1 => rng.i64(-9..10),
            _ => rng.i64(..) >> (64 - bits),
        };
        let a: Vec<i64> = (0..VECTOR).map(|_| value(&mut rng)).collect();
        // Values close to multiples, which would reveal rounding.
        let b: Vec<i64> =
            a.iter().map(|a| if rng.bool() { value(&mut rng) } else { a.wrapping_add(1) / rng.i64(1..1000) }).collect();
        let divisor = value(&mut rng);
        let one = vec![divisor; VECTOR];
        for (b, side) in [(&b, Side::Many(b.as_slice())), (&one, Side::One(divisor))] {
            calculate_ints(Arithmetic::Over, Side::Many(&a), side, &mut over);
            calculate_ints(Arithmetic::Modulo, Side::Many(&a), side, &mut modulo);
            for row in 0..VECTOR {
                let (a, b) = (a[row], b[row]);
                let expected = if b == 0 { (0, 0) } else { (a.wrapping_div(b), a.wrapping_rem(b)) };
                assert_eq!((over[row], modulo[row]), expected, "{a} by {b}");
            }
        }
    }
}

#[test]
fn doubles_of_integers_are_the_nearest() {
    let mut rng = Rng::with_seed(2);
    let mut out = vec![0.0; VECTOR];
    for _ in 0..200 {
        let values: Vec<i64> = (0..VECTOR).map(|_| rng.i64(..) >> rng.u32(..64) ^ int(&mut rng)).collect();
        floats_of_ints(Side::Many(&values), &mut out);
        for (value, float) in values.iter().zip(&out) {
            assert_eq!(float.to_bits(), (*value as f64).to_bits(), "{value}");
        }
    }
}
