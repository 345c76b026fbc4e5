//! Emits the instructions of a stage: a loop over rows, eight at a time, that computes one test.
//!
//! Numbers are vectors of two lanes of 64 bits, so eight rows are four parts. Tests are the lowest eight bits of an
//! integer, one bit per row. Equal steps are computed once. Integers are converted to doubles, and floating point is
//! compared, with the operations of [`tidalite_kernels::program`], so that results are bit-identical.
//!
//! Loads have no order, since the memory is not written during the call; each value is loaded next to its use. Values
//! need not be aligned.

use crate::stages::Stage;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F32X4, F64X2, I8, I32, I64, I64X2, Type};
use cranelift_codegen::ir::{BlockArg, InstBuilder, MemFlagsData, Value};
use cranelift_frontend::FunctionBuilder;
use std::collections::HashMap;
use tidalite_kernels::program::{Arithmetic, Change, Comparison, Kind, Number, Program, Step, Test};

/// Rows per iteration: one byte of a mask.
pub(crate) const ROWS: usize = 8;
const LANES: usize = 2;
const PARTS: usize = ROWS / LANES;
const ALL: i64 = 0xff;

/// Returns true if instructions exist for all steps of a program.
pub(crate) fn is_known(program: &Program) -> bool {
    // Constants fit every kind.
    let fits = |number: &Number, kind: Kind| match number {
        Number::Int(_) | Number::Float(_) => true,
        Number::Column(_, of) | Number::Step(_, of) => *of == kind,
    };
    program.steps().iter().all(|step| match step {
        Step::Guarded(..) | Step::GuardedMagnitude(..) | Step::Calculate(Arithmetic::Modulo, ..) => false,
        Step::Calculate(Arithmetic::Over, a, _) if a.kind() == Kind::Int => false,
        Step::Calculate(_, a, b) => fits(a, a.kind()) && fits(b, a.kind()),
        Step::Compare(_, a, b) => fits(a, compared(a, b)) && fits(b, compared(a, b)),
        Step::Float(a) => fits(a, Kind::Int),
        Step::Change(..) | Step::Present(_) | Step::Constant(_) => true,
        Step::Both(..) | Step::Either(..) | Step::Not(_) | Step::Among(_) => true,
    })
}

/// Returns the kind in which two numbers are compared.
fn compared(a: &Number, b: &Number) -> Kind {
    if a.kind() == Kind::Int && b.kind() == Kind::Int { Kind::Int } else { Kind::Float }
}

/// Emits the body of a function.
///
/// Parameters: the addresses of the columns' values, the addresses of their validity bits, the first row and the end of
/// the rows (both multiples of eight), and the address of the mask, which gets a bit per row.
pub(crate) fn emit(b: &mut FunctionBuilder<'_>, program: &Program, stage: &Stage) {
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let [values, valid, from, to, out] = *b.block_params(entry) else { return };
    let table = |b: &mut FunctionBuilder<'_>, of: Value, column: usize| {
        b.ins().load(I64, MemFlagsData::trusted(), of, (column * size_of::<*const u8>()) as i32)
    };
    let bases: Vec<(Value, Value)> =
        stage.columns.iter().map(|column| (table(b, values, *column), table(b, valid, *column))).collect();
    let (head, body, exit) = (b.create_block(), b.create_block(), b.create_block());
    b.append_block_param(head, I64);
    b.ins().jump(head, &[BlockArg::Value(from)]);
    b.switch_to_block(head);
    let row = b.block_params(head)[0];
    let is_inside = b.ins().icmp(IntCC::UnsignedLessThan, row, to);
    b.ins().brif(is_inside, body, &[], exit, &[]);
    b.switch_to_block(body);
    let (eight, three) = (b.ins().iconst(I64, ROWS as i64), b.ins().iconst(I32, 3));
    let (bytes, byte) = (b.ins().ishl(row, three), b.ins().ushr(row, three));
    let mut at = HashMap::new();
    for (column, (values, valid)) in stage.columns.iter().zip(bases) {
        at.insert(*column, (b.ins().iadd(values, bytes), b.ins().iadd(valid, byte)));
    }
    let mut rows = Rows { b, program, at, numbers: HashMap::new(), tests: HashMap::new() };
    let bits = rows.test(stage.test);
    let place = b.ins().iadd(out, byte);
    b.ins().istore8(MemFlagsData::new().with_notrap(), bits, place, 0);
    let next = b.ins().iadd(row, eight);
    b.ins().jump(head, &[BlockArg::Value(next)]);
    b.switch_to_block(exit);
    b.ins().return_(&[]);
    b.seal_all_blocks();
}

/// Values of eight rows.
struct Rows<'a, 'f> {
    b: &'a mut FunctionBuilder<'f>,
    program: &'a Program,
    /// For each column: the address of its values, and the address of its validity byte.
    at: HashMap<usize, (Value, Value)>,
    /// Indexed by step and part.
    numbers: HashMap<(usize, usize), Value>,
    tests: HashMap<usize, Value>,
}

impl Rows<'_, '_> {
    /// Returns a bit per row.
    fn test(&mut self, test: Test) -> Value {
        let step = test.step();
        if let Some(known) = self.tests.get(&step) {
            return *known;
        }
        let program = self.program;
        let bits = match &program.steps()[step] {
            Step::Compare(comparison, a, b) => {
                let bits = self.compared(*comparison, *a, *b);
                self.there(step, bits)
            }
            Step::Both(a, b) => {
                let (a, b) = (self.test(*a), self.test(*b));
                self.b.ins().band(a, b)
            }
            Step::Either(a, b) => {
                let (a, b) = (self.test(*a), self.test(*b));
                self.b.ins().bor(a, b)
            }
            Step::Not(a) => {
                let (a, all) = (self.test(*a), self.all());
                self.b.ins().bxor(a, all)
            }
            Step::Constant(false) => self.b.ins().iconst(I32, 0),
            Step::Present(_) => {
                let all = self.all();
                self.there(step, all)
            }
            _ => self.all(),
        };
        self.tests.insert(step, bits);
        bits
    }

    fn all(&mut self) -> Value {
        self.b.ins().iconst(I32, ALL)
    }

    /// Clears the rows for which a column of the step has no value.
    fn there(&mut self, step: usize, mut bits: Value) -> Value {
        for column in self.program.columns_of(step) {
            let byte = self.b.ins().load(I8, values(), self.at[column].1, 0);
            let byte = self.b.ins().uextend(I32, byte);
            bits = self.b.ins().band(bits, byte);
        }
        bits
    }

    fn compared(&mut self, comparison: Comparison, a: Number, b: Number) -> Value {
        let mut all: Option<Value> = None;
        for part in 0..PARTS {
            let lanes = match compared(&a, &b) {
                Kind::Int => {
                    let (a, b) = (self.number(a, Kind::Int, part), self.number(b, Kind::Int, part));
                    self.b.ins().icmp(of_ints(comparison), a, b)
                }
                Kind::Float => self.compared_floats(comparison, a, b, part),
            };
            let bits = self.b.ins().vhigh_bits(I32, lanes);
            let by = self.b.ins().iconst(I32, (part * LANES) as i64);
            let moved = self.b.ins().ishl(bits, by);
            all = Some(all.map_or(moved, |all| self.b.ins().bor(all, moved)));
        }
        all.unwrap_or_else(|| self.all())
    }

    fn compared_floats(&mut self, comparison: Comparison, a: Number, b: Number, part: usize) -> Value {
        // If one side is a number, the result for a NaN on the other side is known.
        let is_number = |of: Number| constant(of).is_some_and(|value| !value.is_nan());
        let (comparison, a, b) =
            if is_number(a) && !is_number(b) { (comparison.swapped(), b, a) } else { (comparison, a, b) };
        let with_number = is_number(b);
        let (a, b) = (self.number(a, Kind::Float, part), self.number(b, Kind::Float, part));
        if with_number {
            let code = match comparison {
                Comparison::Equal => FloatCC::Equal,
                Comparison::NotEqual => FloatCC::NotEqual,
                Comparison::Less => FloatCC::LessThan,
                Comparison::AtMost => FloatCC::LessThanOrEqual,
                Comparison::Greater => FloatCC::UnorderedOrGreaterThan,
                Comparison::AtLeast => FloatCC::UnorderedOrGreaterThanOrEqual,
            };
            return self.b.ins().fcmp(code, a, b);
        }
        match comparison {
            Comparison::Equal => self.equal(a, b),
            Comparison::NotEqual => {
                let equal = self.equal(a, b);
                self.b.ins().bnot(equal)
            }
            Comparison::Less => self.less(a, b),
            Comparison::AtMost => self.at_most(a, b),
            Comparison::Greater => self.less(b, a),
            Comparison::AtLeast => self.at_most(b, a),
        }
    }

    /// Compares for equality; NaN equals NaN.
    fn equal(&mut self, a: Value, b: Value) -> Value {
        let ins = |rows: &mut Self, code, a, b| rows.b.ins().fcmp(code, a, b);
        let (a_nan, b_nan) = (ins(self, FloatCC::Unordered, a, a), ins(self, FloatCC::Unordered, b, b));
        let (same, nan) = (ins(self, FloatCC::Equal, a, b), self.b.ins().band(a_nan, b_nan));
        self.b.ins().bor(same, nan)
    }

    /// Compares for less; NaN is greater than every number.
    fn less(&mut self, a: Value, b: Value) -> Value {
        let less = self.b.ins().fcmp(FloatCC::UnorderedOrLessThan, a, b);
        let number = self.b.ins().fcmp(FloatCC::Ordered, a, a);
        self.b.ins().band(less, number)
    }

    fn at_most(&mut self, a: Value, b: Value) -> Value {
        let at_most = self.b.ins().fcmp(FloatCC::LessThanOrEqual, a, b);
        let nan = self.b.ins().fcmp(FloatCC::Unordered, b, b);
        self.b.ins().bor(at_most, nan)
    }

    /// Returns the numbers of two rows.
    fn number(&mut self, of: Number, kind: Kind, part: usize) -> Value {
        match (of, kind) {
            (Number::Column(column, _), _) => {
                let offset = (part * LANES * size_of::<u64>()) as i32;
                self.b.ins().load(lanes(kind), values(), self.at[&column].0, offset)
            }
            (Number::Step(step, _), _) => self.step(step, part),
            (Number::Int(value), Kind::Int) => self.int(value),
            (Number::Float(value), Kind::Int) => self.int(value as i64),
            (Number::Int(value), Kind::Float) => self.float(value as f64),
            (Number::Float(value), Kind::Float) => self.float(value),
        }
    }

    fn int(&mut self, value: i64) -> Value {
        let one = self.b.ins().iconst(I64, value);
        self.b.ins().splat(I64X2, one)
    }

    fn float(&mut self, value: f64) -> Value {
        let one = self.b.ins().f64const(value);
        self.b.ins().splat(F64X2, one)
    }

    fn step(&mut self, step: usize, part: usize) -> Value {
        if let Some(known) = self.numbers.get(&(step, part)) {
            return *known;
        }
        let program = self.program;
        let made = match &program.steps()[step] {
            Step::Calculate(with, a, b) => {
                let kind = a.kind();
                let (a, b) = (self.number(*a, kind, part), self.number(*b, kind, part));
                match (kind, with) {
                    (Kind::Int, Arithmetic::Plus) => self.b.ins().iadd(a, b),
                    (Kind::Int, Arithmetic::Minus) => self.b.ins().isub(a, b),
                    (Kind::Int, _) => self.b.ins().imul(a, b),
                    (Kind::Float, Arithmetic::Plus) => self.b.ins().fadd(a, b),
                    (Kind::Float, Arithmetic::Minus) => self.b.ins().fsub(a, b),
                    (Kind::Float, Arithmetic::Times) => self.b.ins().fmul(a, b),
                    (Kind::Float, _) => self.b.ins().fdiv(a, b),
                }
            }
            Step::Change(change, a) => {
                let kind = a.kind();
                let a = self.number(*a, kind, part);
                match kind {
                    Kind::Int => self.changed_ints(*change, a),
                    Kind::Float => self.changed_floats(*change, a),
                }
            }
            Step::Float(a) => {
                let a = self.number(*a, Kind::Int, part);
                self.nearest(a)
            }
            // No other supported step computes numbers.
            _ => self.int(0),
        };
        self.numbers.insert((step, part), made);
        made
    }

    fn changed_ints(&mut self, change: Change, a: Value) -> Value {
        match change {
            Change::Negated => self.b.ins().ineg(a),
            Change::Magnitude => self.b.ins().iabs(a),
            Change::Wrapped(bits @ (8 | 16 | 32)) => {
                let by = self.b.ins().iconst(I32, i64::from(64 - bits));
                let high = self.b.ins().ishl(a, by);
                self.b.ins().sshr(high, by)
            }
            Change::Wrapped(_) | Change::Single | Change::Floor | Change::Ceiling => a,
        }
    }

    fn changed_floats(&mut self, change: Change, a: Value) -> Value {
        match change {
            Change::Negated => self.b.ins().fneg(a),
            Change::Magnitude => self.b.ins().fabs(a),
            Change::Single => {
                let single = self.b.ins().fvdemote(a);
                debug_assert_eq!(self.b.func.dfg.value_type(single), F32X4);
                self.b.ins().fvpromote_low(single)
            }
            Change::Floor => self.b.ins().floor(a),
            Change::Ceiling => self.b.ins().ceil(a),
            Change::Wrapped(_) => a,
        }
    }

    /// Returns the nearest double of integers, like `kernels::program::arithmetic::nearest`: before AVX-512 there is no
    /// vector instruction for this conversion.
    fn nearest(&mut self, value: Value) -> Value {
        const LOW: i64 = 0x4330_0000_0000_0000;
        const HIGH: i64 = 0x4530_0000_8000_0000;
        const TOO_MUCH: f64 = f64::from_bits(0x4530_0000_8010_0000);
        let double = |rows: &mut Self, bits: Value| rows.b.ins().bitcast(F64X2, MemFlagsData::new(), bits);
        let by = self.b.ins().iconst(I32, 32);
        let high = self.b.ins().ushr(value, by);
        let (add, half) = (self.int(HIGH), self.int(i64::from(u32::MAX)));
        let high = self.b.ins().bxor(high, add);
        let (high, too_much) = (double(self, high), self.float(TOO_MUCH));
        let high = self.b.ins().fsub(high, too_much);
        let (low, add) = (self.b.ins().band(value, half), self.int(LOW));
        let low = self.b.ins().bor(low, add);
        let low = double(self, low);
        self.b.ins().fadd(high, low)
    }
}

fn lanes(kind: Kind) -> Type {
    match kind {
        Kind::Int => I64X2,
        Kind::Float => F64X2,
    }
}

/// Flags of column loads: the memory does not change during the call.
fn values() -> MemFlagsData {
    MemFlagsData::new().with_notrap().with_readonly().with_can_move()
}

fn constant(of: Number) -> Option<f64> {
    match of {
        Number::Int(value) => Some(value as f64),
        Number::Float(value) => Some(value),
        Number::Column(..) | Number::Step(..) => None,
    }
}

fn of_ints(comparison: Comparison) -> IntCC {
    match comparison {
        Comparison::Equal => IntCC::Equal,
        Comparison::NotEqual => IntCC::NotEqual,
        Comparison::Less => IntCC::SignedLessThan,
        Comparison::AtMost => IntCC::SignedLessThanOrEqual,
        Comparison::Greater => IntCC::SignedGreaterThan,
        Comparison::AtLeast => IntCC::SignedGreaterThanOrEqual,
    }
}
