//! Conditions on several columns as a flat program over vectors: numbers in, a bit for each row out.
//!
//! In: the columns of one vector, each asked for when the first step that reads it is reached, and the rows that are
//! still wanted. Out: those of them for which the program's test is true. NULL is in no calculation: a number is there
//! where all columns it is made of are, and a comparison is true where both of its sides are there. So [`Test`]s are
//! true or not; whoever wants to know what is false asks for the opposite comparison.
//!
//! Integers of any width are calculated in 64 bits and wrapped to theirs, floating point of 32 bits as doubles that are
//! rounded, which gives the same. Steps that occur twice are done once. It is run span by span, and where no wanted row of
//! a span is left the rest is left out.
//!
//! Reading order: [`arithmetic`], [`compare`], [`room`] where the numbers are; [`Program`], [`Program::run`].

pub mod arithmetic;
pub mod compare;
mod room;

use crate::bitpack::VECTOR;
use crate::in_range::Mask;
use crate::select::picked;
pub use arithmetic::{
    Arithmetic, Change, calculate_floats, calculate_ints, change_floats, change_ints, floats_of_ints,
};
use arithmetic::{any_outside, any_over_end};
pub use compare::{Comparison, compare_floats, compare_ints};
pub use room::Room;
use std::ops::Range;

/// A program is run on so many rows at a time, whose numbers stay in the nearest cache from one step to the next.
pub const SPAN: usize = 512;

/// A bit for each row of a span.
pub type Span = [u64; SPAN / 64];

/// What a loop reads: a value for each row, or one for all.
#[derive(Clone, Copy, Debug)]
pub enum Side<'a, T> {
    Many(&'a [T]),
    One(T),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Int,
    Float,
}

/// A number for each row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Column(usize, Kind),
    Int(i64),
    Float(f64),
    /// What a step gives.
    Step(usize, Kind),
}

/// What is true or not of each row: the step that finds it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Test(usize);

impl Test {
    /// Its place among [`Program::steps`].
    #[must_use]
    pub fn step(self) -> usize {
        self.0
    }
}

/// A calculation of integers that not all values allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarded {
    Plus,
    Minus,
    Times,
    /// A sum, difference or product of integers of the given number of bits, at most 32.
    Narrow(Arithmetic, u32),
    /// As plus; what it is added to, and the sum, are between these.
    Moved(i64, i64),
    /// Of integers of so many bits.
    Over(u32),
    Modulo,
}

/// Products of integers up to this size fit 64 bits.
const HALF: i64 = 1 << 31;

/// Why a row has no number. What it is of, in the order of the calculation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    DivisionByZero,
    Overflow(Guarded, i64, i64),
    /// Outside of the bounds of [`Guarded::Moved`].
    OutOfRange,
    /// [`Change::Magnitude`] of the least integer of so many bits.
    Magnitude(u32, i64),
}

/// Where a vector's columns come from.
pub trait Columns {
    /// Makes a column ready. Asked before its values are.
    ///
    /// # Errors
    /// When it cannot be read, of which it keeps the reason.
    fn load(&mut self, column: usize) -> Result<(), Unread>;

    fn ints(&self, column: usize) -> &[i64];

    fn floats(&self, column: usize) -> &[f64];

    /// A bit for each row that has a value; `None` where all have.
    fn valid(&self, column: usize) -> Option<&[u64]>;
}

/// Of a column that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unread;

/// Why a program ended without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Of a wanted row.
    Failed(Failure),
    Unread,
}

/// What is done to the numbers of all rows at a time.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Calculate(Arithmetic, Number, Number),
    Guarded(Guarded, Number, Number),
    Change(Change, Number),
    /// As [`Change::Magnitude`], of integers of so many bits.
    GuardedMagnitude(u32, Number),
    Float(Number),
    Compare(Comparison, Number, Number),
    Present(Number),
    Both(Test, Test),
    Either(Test, Test),
    Not(Test),
    Constant(bool),
    /// Rows that are not in it are wanted no more.
    Among(Test),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    kinds: Vec<Kind>,
    steps: Vec<Step>,
    /// Of each step: the columns whose values its numbers are made of.
    made_of: Vec<Vec<usize>>,
    /// Of each step: the columns that are read first there.
    loads: Vec<Vec<usize>>,
    /// Of each step that gives numbers: where they are. Others begin to use a place after its last reader.
    places: Vec<usize>,
    /// How many places of integers and of floating point there are.
    room: (usize, usize),
    /// What is asked of each row, once it is said.
    asked: Option<Test>,
}

impl Program {
    /// A column, numbered in the order of the first calls.
    pub fn column(&mut self, kind: Kind) -> Number {
        self.kinds.push(kind);
        Number::Column(self.kinds.len() - 1, kind)
    }

    /// How many columns it reads.
    #[must_use]
    pub fn columns(&self) -> &[Kind] {
        &self.kinds
    }

    /// Of two numbers of one kind. Integers are not divided so, see [`Program::guarded`].
    pub fn calculated(&mut self, with: Arithmetic, a: Number, b: Number) -> Number {
        self.number(Step::Calculate(with, a, b), a.kind())
    }

    pub fn guarded(&mut self, with: Guarded, a: Number, b: Number) -> Number {
        self.number(Step::Guarded(with, a, b), Kind::Int)
    }

    pub fn changed(&mut self, change: Change, of: Number) -> Number {
        self.number(Step::Change(change, of), of.kind())
    }

    /// The magnitude of integers of so many bits; that of the least is none of them.
    pub fn magnitude(&mut self, bits: u32, of: Number) -> Number {
        self.number(Step::GuardedMagnitude(bits, of), Kind::Int)
    }

    /// The nearest double.
    pub fn float(&mut self, of: Number) -> Number {
        match of {
            Number::Int(value) => Number::Float(value as f64),
            of if of.kind() == Kind::Float => of,
            of => self.number(Step::Float(of), Kind::Float),
        }
    }

    /// True where both are there and compare so.
    pub fn compared(&mut self, comparison: Comparison, a: Number, b: Number) -> Test {
        Test(self.step(Step::Compare(comparison, a, b)))
    }

    /// Where a number is there.
    pub fn present(&mut self, of: Number) -> Test {
        Test(self.step(Step::Present(of)))
    }

    pub fn both(&mut self, a: Test, b: Test) -> Test {
        Test(self.step(Step::Both(a, b)))
    }

    pub fn either(&mut self, a: Test, b: Test) -> Test {
        Test(self.step(Step::Either(a, b)))
    }

    pub fn not(&mut self, of: Test) -> Test {
        Test(self.step(Step::Not(of)))
    }

    /// True of every row, or of none.
    pub fn constant(&mut self, is: bool) -> Test {
        Test(self.step(Step::Constant(is)))
    }

    /// Has steps from here on only be done of rows of which a test is true, and none when there are none.
    pub fn among(&mut self, test: Test) {
        self.step(Step::Among(test));
    }

    /// In the order they are done; numbers and tests name them by their places.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The columns that a step's numbers are made of.
    #[must_use]
    pub fn columns_of(&self, step: usize) -> &[usize] {
        &self.made_of[step]
    }

    /// The test that is asked; `None` before it is said.
    #[must_use]
    pub fn asked(&self) -> Option<Test> {
        self.asked
    }

    /// Whether a row may have a [`Failure`].
    #[must_use]
    pub fn may_fail(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Guarded(..) | Step::GuardedMagnitude(..)))
    }

    /// Steps of calculation and comparison, for estimates of its cost.
    #[must_use]
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    fn number(&mut self, step: Step, kind: Kind) -> Number {
        Number::Step(self.step(step), kind)
    }

    /// The place of a step, of an equal one if there is one.
    fn step(&mut self, step: Step) -> usize {
        if let Some(known) = self.steps.iter().position(|known| *known == step) {
            return known;
        }
        let mut made_of: Vec<usize> = step.numbers().iter().flat_map(|number| self.made_of(*number)).collect();
        made_of.sort_unstable();
        made_of.dedup();
        let known = |column: &usize| self.loads.iter().any(|loads| loads.contains(column));
        self.loads.push(made_of.iter().copied().filter(|column| !known(column)).collect());
        self.made_of.push(made_of);
        self.steps.push(step);
        self.steps.len() - 1
    }

    fn made_of(&self, number: Number) -> Vec<usize> {
        match number {
            Number::Column(column, _) => vec![column],
            Number::Step(step, _) => self.made_of[step].clone(),
            Number::Int(_) | Number::Float(_) => Vec::new(),
        }
    }

    /// Asks a test. Gives each step that makes numbers its place.
    #[must_use]
    pub fn asking(mut self, test: Test) -> Program {
        let last_use = |of: usize| {
            let reads = |step: &Step| step.numbers().iter().any(|n| matches!(n, Number::Step(s, _) if *s == of));
            self.steps.iter().rposition(reads).unwrap_or(of)
        };
        // Until which step each place is taken.
        let (mut ints, mut floats): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        let mut places = Vec::with_capacity(self.steps.len());
        for (at, step) in self.steps.iter().enumerate() {
            let taken = match step.kind() {
                Some(Kind::Int) => &mut ints,
                Some(Kind::Float) => &mut floats,
                None => {
                    places.push(0);
                    continue;
                }
            };
            let place = taken.iter().position(|until| *until < at).unwrap_or_else(|| {
                taken.push(0);
                taken.len() - 1
            });
            taken[place] = last_use(at);
            places.push(place);
        }
        (self.places, self.room, self.asked) = (places, (ints.len(), floats.len()), Some(test));
        self
    }

    /// The rows of a vector among those wanted for which the test is true. `wanted` has no bit behind the last row.
    ///
    /// # Errors
    /// See [`Stopped`].
    ///
    /// # Panics
    /// When nothing is asked, or columns are shorter than `rows`.
    pub fn run(&self, columns: &mut dyn Columns, rows: usize, wanted: &Mask, room: &mut Room) -> Result<Mask, Stopped> {
        let asked = self.asked.expect("a program asks something");
        assert!(rows <= VECTOR, "{rows} rows");
        room.grow(self.room, self.steps.len(), self.kinds.len());
        let mut found = [0; VECTOR / 64];
        let spans = wanted.as_chunks().0.iter().zip(found.as_chunks_mut().0).enumerate();
        for (i, (wanted, found)) in spans {
            if wanted.iter().any(|word| *word != 0) {
                let from = i * SPAN;
                *found = self.run_span(columns, from..rows.min(from + SPAN), wanted, asked, room)?;
            }
        }
        Ok(found)
    }

    fn run_span(
        &self,
        columns: &mut dyn Columns,
        rows: Range<usize>,
        wanted: &Span,
        asked: Test,
        room: &mut Room,
    ) -> Result<Span, Stopped> {
        let mut wanted = *wanted;
        for (at, step) in self.steps.iter().enumerate() {
            for column in &self.loads[at] {
                if !std::mem::replace(&mut room.loaded[*column], true) {
                    columns.load(*column).map_err(|Unread| Stopped::Unread)?;
                }
            }
            let run = Run { program: self, columns, rows: &rows, wanted: &wanted, at };
            match step {
                Step::Among(test) => {
                    and(&mut wanted, room.mask(*test));
                    if wanted.iter().all(|word| *word == 0) {
                        return Ok(wanted);
                    }
                }
                step if step.kind().is_some() => run.number(step, room).map_err(Stopped::Failed)?,
                step => {
                    let mask = run.test(step, room);
                    room.masks[at] = mask;
                }
            }
        }
        and(&mut wanted, room.mask(asked));
        Ok(wanted)
    }
}

impl Number {
    #[must_use]
    pub fn kind(self) -> Kind {
        match self {
            Number::Column(_, kind) | Number::Step(_, kind) => kind,
            Number::Int(_) => Kind::Int,
            Number::Float(_) => Kind::Float,
        }
    }
}

impl Step {
    /// What it reads, in order.
    #[must_use]
    pub fn numbers(&self) -> Vec<Number> {
        match self {
            Step::Calculate(_, a, b) | Step::Guarded(_, a, b) | Step::Compare(_, a, b) => vec![*a, *b],
            Step::Change(_, a) | Step::GuardedMagnitude(_, a) | Step::Float(a) | Step::Present(a) => vec![*a],
            Step::Both(..) | Step::Either(..) | Step::Not(_) | Step::Among(_) | Step::Constant(_) => Vec::new(),
        }
    }

    /// Of the numbers it gives; `None` of a step that gives none.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Step::Calculate(_, a, _) | Step::Change(_, a) => Some(a.kind()),
            Step::Guarded(..) | Step::GuardedMagnitude(..) => Some(Kind::Int),
            Step::Float(_) => Some(Kind::Float),
            _ => None,
        }
    }
}

fn and(mask: &mut Span, other: &Span) {
    mask.iter_mut().zip(other).for_each(|(word, other)| *word &= other);
}

/// One step of one span.
struct Run<'a> {
    program: &'a Program,
    columns: &'a dyn Columns,
    rows: &'a Range<usize>,
    wanted: &'a Span,
    at: usize,
}

impl Run<'_> {
    fn ints<'r>(&'r self, number: Number, room: &'r Room) -> Side<'r, i64> {
        match number {
            Number::Column(column, _) => Side::Many(&self.columns.ints(column)[self.rows.clone()]),
            Number::Step(step, _) => Side::Many(&room.ints[self.program.places[step]][..self.rows.len()]),
            Number::Int(value) => Side::One(value),
            Number::Float(value) => Side::One(value as i64),
        }
    }

    fn floats<'r>(&'r self, number: Number, room: &'r Room) -> Side<'r, f64> {
        match number {
            Number::Column(column, _) => Side::Many(&self.columns.floats(column)[self.rows.clone()]),
            Number::Step(step, _) => Side::Many(&room.floats[self.program.places[step]][..self.rows.len()]),
            Number::Int(value) => Side::One(value as f64),
            Number::Float(value) => Side::One(value),
        }
    }

    /// Clears the rows of which a column of the step has no value.
    fn there(&self, mask: &mut Span) {
        for column in &self.program.made_of[self.at] {
            if let Some(valid) = self.columns.valid(*column) {
                mask.iter_mut().zip(&valid[self.rows.start / 64..]).for_each(|(word, valid)| *word &= valid);
            }
        }
    }

    fn number(&self, step: &Step, room: &mut Room) -> Result<(), Failure> {
        let (place, rows) = (self.program.places[self.at], self.rows.len());
        if step.kind() == Some(Kind::Int) {
            let mut out = std::mem::take(&mut room.ints[place]);
            let done = self.ints_of(step, room, &mut out[..rows]);
            room.ints[place] = out;
            return done;
        }
        let mut out = std::mem::take(&mut room.floats[place]);
        match *step {
            Step::Calculate(with, a, b) => {
                calculate_floats(with, self.floats(a, room), self.floats(b, room), &mut out[..rows]);
            }
            Step::Change(change, a) => change_floats(change, self.floats(a, room), &mut out[..rows]),
            Step::Float(a) => floats_of_ints(self.ints(a, room), &mut out[..rows]),
            _ => {}
        }
        room.floats[place] = out;
        Ok(())
    }

    fn ints_of(&self, step: &Step, room: &Room, out: &mut [i64]) -> Result<(), Failure> {
        match *step {
            Step::Calculate(with, a, b) => calculate_ints(with, self.ints(a, room), self.ints(b, room), out),
            Step::Change(change, a) => change_ints(change, self.ints(a, room), out),
            Step::Guarded(guarded, a, b) => {
                let (a, b) = (self.ints(a, room), self.ints(b, room));
                calculate_ints(guarded.calculates(), a, b, out);
                if guarded.may_have_failed(a, b, out) {
                    self.check(a, b, |a, b| guarded.failure(a, b))?;
                }
            }
            Step::GuardedMagnitude(bits, a) => {
                let a = self.ints(a, room);
                change_ints(Change::Magnitude, a, out);
                let least = i64::MIN >> (64 - bits);
                if any_outside(a, least + 1, i64::MAX) {
                    self.check(a, Side::One(0), |a, _| (a == least).then_some(Failure::Magnitude(bits, a)))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether a wanted row that is there has none.
    fn check(
        &self,
        a: Side<'_, i64>,
        b: Side<'_, i64>,
        failure: impl Fn(i64, i64) -> Option<Failure>,
    ) -> Result<(), Failure> {
        let of = |row: usize| failure(a.get(row), b.get(row));
        let mut asked = *self.wanted;
        self.there(&mut asked);
        match picked(&asked).find_map(of) {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    fn test(&self, step: &Step, room: &Room) -> Span {
        let mut mask = match *step {
            Step::Compare(comparison, a, b) if a.kind() == Kind::Int && b.kind() == Kind::Int => {
                compare_ints(comparison, self.ints(a, room), self.ints(b, room), self.rows.len())
            }
            Step::Compare(comparison, a, b) => {
                compare_floats(comparison, self.floats(a, room), self.floats(b, room), self.rows.len())
            }
            Step::Both(a, b) => return std::array::from_fn(|i| room.mask(a)[i] & room.mask(b)[i]),
            Step::Either(a, b) => return std::array::from_fn(|i| room.mask(a)[i] | room.mask(b)[i]),
            Step::Not(a) => return std::array::from_fn(|i| !room.mask(a)[i]),
            Step::Constant(false) => [0; SPAN / 64],
            _ => [u64::MAX; SPAN / 64],
        };
        self.there(&mut mask);
        mask
    }
}

impl<T: Copy> Side<'_, T> {
    #[inline(always)]
    fn get(&self, row: usize) -> T {
        match self {
            Side::Many(values) => values[row],
            Side::One(value) => *value,
        }
    }
}

impl Guarded {
    fn calculates(self) -> Arithmetic {
        match self {
            Guarded::Plus | Guarded::Moved(..) => Arithmetic::Plus,
            Guarded::Minus => Arithmetic::Minus,
            Guarded::Times => Arithmetic::Times,
            Guarded::Narrow(with, _) => with,
            Guarded::Over(_) => Arithmetic::Over,
            Guarded::Modulo => Arithmetic::Modulo,
        }
    }

    /// Whether a row has one, wanted or not.
    fn may_have_failed(self, a: Side<'_, i64>, b: Side<'_, i64>, out: &[i64]) -> bool {
        match self {
            Guarded::Plus => any_over_end(true, a, b, out),
            Guarded::Minus => any_over_end(false, a, b, out),
            // Products of operands below `HALF` always fit.
            Guarded::Times => any_outside(a, -HALF, HALF) || any_outside(b, -HALF, HALF),
            Guarded::Narrow(_, bits) => any_outside(Side::Many(out), i64::MIN >> (64 - bits), i64::MAX >> (64 - bits)),
            Guarded::Moved(least, most) => {
                any_over_end(true, a, b, out)
                    || any_outside(a, least, most)
                    || any_outside(Side::Many(out), least, most)
            }
            // Zero and −1 are.
            Guarded::Over(_) | Guarded::Modulo => any_outside(b, 1, i64::MAX),
        }
    }

    fn failure(self, a: i64, b: i64) -> Option<Failure> {
        match self {
            Guarded::Plus => a.checked_add(b).is_none().then_some(Failure::Overflow(self, a, b)),
            Guarded::Minus => a.checked_sub(b).is_none().then_some(Failure::Overflow(self, a, b)),
            Guarded::Times => a.checked_mul(b).is_none().then_some(Failure::Overflow(self, a, b)),
            Guarded::Narrow(with, bits) => {
                let value = match with {
                    Arithmetic::Plus => a.checked_add(b),
                    Arithmetic::Minus => a.checked_sub(b),
                    _ => a.checked_mul(b),
                };
                let is_inside = value.is_some_and(|v| v >= i64::MIN >> (64 - bits) && v <= i64::MAX >> (64 - bits));
                (!is_inside).then_some(Failure::Overflow(self, a, b))
            }
            Guarded::Moved(least, most) => {
                let is_inside = |value: i64| least <= value && value <= most;
                let is_there = is_inside(a) && a.checked_add(b).is_some_and(is_inside);
                (!is_there).then_some(Failure::OutOfRange)
            }
            Guarded::Over(_) | Guarded::Modulo if b == 0 => Some(Failure::DivisionByZero),
            Guarded::Over(bits) => (b == -1 && a == i64::MIN >> (64 - bits)).then_some(Failure::Overflow(self, a, b)),
            Guarded::Modulo => None,
        }
    }
}

#[cfg(test)]
mod tests;
