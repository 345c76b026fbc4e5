//! Evaluates conditions on several columns as a flat program over vectors: numbers in, one bit per row out.
//!
//! Input: the columns of one vector, each requested when a step first reads it, and the wanted rows. Output: the wanted
//! rows for which the program's test is true. NULL is never a value of a calculation: a number is present if all
//! columns that it depends on are present, and a comparison is true only if both sides are present. A [`Test`] is
//! therefore true or not true; a caller that needs the false rows uses the opposite comparison.
//!
//! Integers of any width are computed in 64 bits and wrapped to their width. Floating point of 32 bits is computed as
//! doubles and rounded, with the same result. Equal steps are computed once. The program runs span by span, and the
//! remaining steps of a span are skipped when no wanted row is left.
//!
//! Reading order: [`span`], [`step`], [`arithmetic`], [`compare`], [`room`] (scratch memory); [`Program`],
//! [`Program::run`].

pub mod arithmetic;
pub mod compare;
mod room;
mod span;
mod step;

use crate::bitpack::VECTOR;
use crate::in_range::Mask;
use crate::select::picked;
pub use arithmetic::{
    Arithmetic, Change, calculate_floats, calculate_ints, change_floats, change_ints, floats_of_ints,
};
use arithmetic::{any_outside, any_over_end};
pub use compare::{Comparison, compare_floats, compare_ints};
pub use room::Room;
pub use span::{SPAN, Side, Span};
use std::ops::Range;
pub use step::{Failure, Guarded, Kind, Number, Step, Test};

/// Products of integers up to this magnitude fit 64 bits.
const HALF: i64 = 1 << 31;

/// Source of the columns of a vector.
pub trait Columns {
    /// Loads a column. Called before the values of the column are read.
    ///
    /// # Errors
    /// Fails if the column cannot be read. The implementation keeps the reason.
    fn load(&mut self, column: usize) -> Result<(), Unread>;

    fn ints(&self, column: usize) -> &[i64];

    fn floats(&self, column: usize) -> &[f64];

    /// Returns a bit per row that is set if the row has a value; `None` if all rows have values.
    fn valid(&self, column: usize) -> Option<&[u64]>;
}

/// Error of a column that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unread;

/// Reason why a program ended without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The failure of a wanted row.
    Failed(Failure),
    Unread,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    kinds: Vec<Kind>,
    steps: Vec<Step>,
    /// For each step: the columns on which its numbers depend.
    made_of: Vec<Vec<usize>>,
    /// For each step: the columns that this step reads first.
    loads: Vec<Vec<usize>>,
    /// For each step that computes numbers: its slot. A slot is reused after its last reader.
    places: Vec<usize>,
    /// Number of slots for integers and for floating point.
    room: (usize, usize),
    /// The test that [`Program::run`] returns; set by [`Program::asking`].
    asked: Option<Test>,
}

impl Program {
    /// Adds a column. Columns are numbered in the order of the calls.
    pub fn column(&mut self, kind: Kind) -> Number {
        self.kinds.push(kind);
        Number::Column(self.kinds.len() - 1, kind)
    }

    /// Returns the kinds of the columns.
    #[must_use]
    pub fn columns(&self) -> &[Kind] {
        &self.kinds
    }

    /// Adds a calculation with two numbers of one kind. For division of integers, see [`Program::guarded`].
    pub fn calculated(&mut self, with: Arithmetic, a: Number, b: Number) -> Number {
        self.number(Step::Calculate(with, a, b), a.kind())
    }

    pub fn guarded(&mut self, with: Guarded, a: Number, b: Number) -> Number {
        self.number(Step::Guarded(with, a, b), Kind::Int)
    }

    pub fn changed(&mut self, change: Change, of: Number) -> Number {
        self.number(Step::Change(change, of), of.kind())
    }

    /// Adds the magnitude of integers of `bits` bits. The magnitude of the smallest integer is a failure.
    pub fn magnitude(&mut self, bits: u32, of: Number) -> Number {
        self.number(Step::GuardedMagnitude(bits, of), Kind::Int)
    }

    /// Adds the conversion to the nearest double.
    pub fn float(&mut self, of: Number) -> Number {
        match of {
            Number::Int(value) => Number::Float(value as f64),
            of if of.kind() == Kind::Float => of,
            of => self.number(Step::Float(of), Kind::Float),
        }
    }

    /// Adds a comparison that is true if both numbers are present and compare accordingly.
    pub fn compared(&mut self, comparison: Comparison, a: Number, b: Number) -> Test {
        Test(self.step(Step::Compare(comparison, a, b)))
    }

    /// Adds a test that is true if a number is present.
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

    /// Adds a test that is true for every row or for no row.
    pub fn constant(&mut self, is: bool) -> Test {
        Test(self.step(Step::Constant(is)))
    }

    /// Restricts the following steps to rows for which `test` is true, and skips them if there are none.
    pub fn among(&mut self, test: Test) {
        self.step(Step::Among(test));
    }

    /// Returns the steps in execution order. Numbers and tests refer to steps by index.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Returns the columns on which the numbers of a step depend.
    #[must_use]
    pub fn columns_of(&self, step: usize) -> &[usize] {
        &self.made_of[step]
    }

    /// Returns the result test; `None` before [`Program::asking`].
    #[must_use]
    pub fn asked(&self) -> Option<Test> {
        self.asked
    }

    /// Returns true if a row may have a [`Failure`].
    #[must_use]
    pub fn may_fail(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Guarded(..) | Step::GuardedMagnitude(..)))
    }

    /// Returns the number of steps, for cost estimates.
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

    /// Returns the index of the step, or of an existing equal step.
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

    /// Sets the result test and assigns a slot to each step that computes numbers.
    #[must_use]
    pub fn asking(mut self, test: Test) -> Program {
        let last_use = |of: usize| {
            let reads = |step: &Step| step.numbers().iter().any(|n| matches!(n, Number::Step(s, _) if *s == of));
            self.steps.iter().rposition(reads).unwrap_or(of)
        };
        // The last step that uses each slot.
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

    /// Returns the wanted rows of a vector for which the test is true. `wanted` has no bit after the last row.
    ///
    /// # Errors
    /// Returns an error as described for [`Stopped`].
    ///
    /// # Panics
    /// Panics if no test is set, or columns are shorter than `rows`.
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

fn and(mask: &mut Span, other: &Span) {
    mask.iter_mut().zip(other).for_each(|(word, other)| *word &= other);
}

/// The execution of one step on one span.
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

    /// Clears the rows for which a column of the step has no value.
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

    /// Returns the failure of a wanted row whose operands are present, if there is one.
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

    /// Returns true if a row, wanted or not, may have failed.
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
            // Only the divisors zero and −1 can fail.
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
