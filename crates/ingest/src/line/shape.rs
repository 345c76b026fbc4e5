//! The fields of a line as a whole: names and types that came last time, in their order.
//!
//! A source sends the same fields in the same order again and again. Such a line is read into a row of words, and only
//! at its end are they added to the columns: nothing has to be undone, and what is the same for every value is looked at
//! once a row. Where a line differs it is left to the general way, from its first field on.

use super::column::{ColumnBuilder, Data};
use super::scan::{self, Prefix};
use super::table::{Step, StepId, UNKNOWN};

#[derive(Debug)]
struct Field {
    prefix: Prefix,
    column: u32,
    kind: Kind,
}

/// Types whose values fit a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Long,
    Double,
}

#[derive(Debug)]
pub(super) struct Shape {
    /// The step before the first field; [`UNKNOWN`] while no line was learnt.
    after: StepId,
    fields: Vec<Field>,
    /// The type of all of them, as long as [`read_digits`] or [`read_binary_doubles`] mostly can read them.
    all: Option<Kind>,
    /// How many lines more than others could not.
    others: u8,
    /// Of the line being read, by field.
    values: Vec<u64>,
    /// The steps of a line that is read the general way, to be learnt.
    seen: Vec<StepId>,
    /// The number of rows of the batch for which the columns are known to take a row of this shape.
    checked: Option<usize>,
    /// Falls with lines that differ, rises with those that do not; below zero no line is tried for a while.
    credit: i32,
}

/// Wider rows are left to the general way.
const FIELDS_MAX: usize = 256;
const CREDIT_MAX: i32 = 64;
/// What is there after a pause.
const CREDIT: i32 = 16;
/// What a line that differs takes.
const MISS: i32 = 4;
/// Lines that go by before the next try.
const PAUSE: i32 = 1024;

/// Then no line is tried as one of fields of one type.
const OTHERS_MAX: u8 = 16;

/// What to do with the fields of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Advice {
    Try,
    /// Read them the general way, and show what they were to [`Shape::see`].
    Show,
    Leave,
}

impl Default for Shape {
    fn default() -> Shape {
        let (fields, values, seen) = (Vec::new(), Vec::new(), Vec::new());
        Shape { after: UNKNOWN, fields, all: None, others: 0, values, seen, checked: None, credit: CREDIT }
    }
}

impl Shape {
    /// Whether its fields come behind step `last`.
    #[inline(always)]
    pub(super) fn follows(&self, last: StepId) -> bool {
        self.after == last && last != UNKNOWN
    }

    /// About a line whose last step before its fields is `last`.
    #[inline(always)]
    pub(super) fn advice(&mut self, last: StepId) -> Advice {
        if self.after == last {
            return Advice::Try;
        }
        self.other_advice(last)
    }

    fn other_advice(&mut self, last: StepId) -> Advice {
        if self.credit < 0 {
            self.credit += 1;
            if self.credit == 0 {
                self.credit = CREDIT;
            }
            return Advice::Leave;
        }
        if self.after == UNKNOWN {
            self.seen.clear();
            self.seen.push(last);
            return Advice::Show;
        }
        self.miss();
        Advice::Leave
    }

    pub(super) fn see(&mut self, step: StepId) {
        self.seen.push(step);
    }

    /// Learns the line whose steps were seen, which is a row now.
    pub(super) fn learn(&mut self, steps: &[Step], columns: &[ColumnBuilder]) {
        self.fields.clear();
        self.checked = None;
        // What can be learnt is learnt with the first line: trying again and again has to end.
        self.miss();
        let Some((&after, seen)) = self.seen.split_first() else { return };
        for step in seen {
            let Some(step) = steps.get(*step as usize) else { return };
            let kind = match columns.get(step.column as usize).map(|c| &c.data) {
                Some(Data::Long(_)) => Kind::Long,
                Some(Data::Double(_)) => Kind::Double,
                _ => return,
            };
            let is_first = self.fields.is_empty();
            let is_twice = self.fields.iter().any(|f| f.column == step.column);
            if !step.field || step.after_field == is_first || is_twice || self.fields.len() == FIELDS_MAX {
                return;
            }
            self.fields.push(Field { prefix: step.prefix.clone(), column: step.column, kind });
        }
        if !self.fields.is_empty() {
            self.values.resize(self.fields.len(), 0);
            let kind = self.fields[0].kind;
            self.all = self.fields.iter().all(|field| field.kind == kind).then_some(kind);
            self.others = 0;
            self.after = after;
        }
    }

    /// Reads the fields at `at`; `None` where the line differs. Their values are then to be added by [`Shape::add`].
    #[inline(always)]
    pub(super) fn read(&mut self, input: &[u8], at: usize) -> Option<usize> {
        // That a value ends where it should shows in what follows: the next name, or the timestamp.
        let end = match self.all {
            Some(Kind::Long) => read_digits(&self.fields, &mut self.values, input, at),
            Some(Kind::Double) => read_binary_doubles(&self.fields, &mut self.values, input, at),
            None => return read_any(&self.fields, &mut self.values, input, at),
        };
        if end.is_none() {
            return self.read_others(input, at);
        }
        self.others = self.others.saturating_sub(1);
        end
    }

    #[inline(never)]
    fn read_others(&mut self, input: &[u8], at: usize) -> Option<usize> {
        let end = read_any(&self.fields, &mut self.values, input, at)?;
        self.others += 1;
        if self.others == OTHERS_MAX {
            self.all = None;
        }
        Some(end)
    }

    /// Nothing is known of the columns any more.
    pub(super) fn begin_batch(&mut self) {
        self.checked = None;
    }

    /// Whether the columns take a row of this shape as row `rows` of the batch.
    #[inline(always)]
    pub(super) fn is_taken(&mut self, columns: &[ColumnBuilder], rows: usize) -> bool {
        self.checked == Some(rows) || self.check(columns, rows)
    }

    #[inline(never)]
    pub(super) fn check(&self, columns: &[ColumnBuilder], rows: usize) -> bool {
        self.fields.iter().all(|field| match (&columns[field.column as usize].data, field.kind) {
            (Data::Long(v), Kind::Long) => v.len() == rows,
            (Data::Double(v), Kind::Double) => v.len() == rows,
            _ => false,
        })
    }

    /// The columns of its fields.
    pub(super) fn columns(&self) -> impl Iterator<Item = u32> {
        self.fields.iter().map(|field| field.column)
    }

    /// The values read last, by field: integers and doubles as words.
    #[inline(always)]
    pub(super) fn taken(&mut self) -> &[u64] {
        self.credit = (self.credit + 1).min(CREDIT_MAX);
        &self.values
    }

    /// Adds the values read last, for which [`Shape::is_taken`], as the last of what are now `rows` rows.
    #[inline(always)]
    pub(super) fn add(&mut self, columns: &mut [ColumnBuilder], rows: usize) {
        for (field, &value) in self.fields.iter().zip(&self.values) {
            let column = &mut columns[field.column as usize];
            match &mut column.data {
                Data::Long(v) => v.push(value as i64),
                Data::Double(v) => v.push(f64::from_bits(value)),
                _ => {}
            }
            if let Some(validity) = &mut column.validity {
                validity.push(true);
            }
        }
        self.checked = Some(rows);
        self.credit = (self.credit + 1).min(CREDIT_MAX);
    }

    /// The line was not of this shape.
    #[cold]
    pub(super) fn miss(&mut self) {
        self.credit -= MISS;
        if self.credit < 0 {
            self.credit = -PAUSE;
            self.after = UNKNOWN;
        }
    }
}

/// As [`read_any`], of integers of up to seven digits. A loop of its own, and so with all it needs in registers: what
/// everything waits for is where a value ends.
#[inline(never)]
fn read_digits(fields: &[Field], values: &mut [u64], input: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    for (field, value) in fields.iter().zip(&mut *values) {
        let (word, value_at) = field.prefix.word_behind(input, at)?;
        let (read, bytes) = scan::short_long(word)?;
        (*value, at) = (read, value_at + bytes);
    }
    Some(at)
}

/// As [`read_any`], of doubles in binary.
#[inline(never)]
fn read_binary_doubles(fields: &[Field], values: &mut [u64], input: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    for (field, value) in fields.iter().zip(&mut *values) {
        let (word, value_at) = field.prefix.word_behind(input, at)?;
        if word as u16 != u16::from_le_bytes([b'=', super::binary::TYPE_DOUBLE]) {
            return None;
        }
        *value = scan::load(input, value_at + 2)?;
        at = value_at + 10;
    }
    let is_nan = values.iter().fold(false, |any, value| any | f64::from_bits(*value).is_nan());
    (!is_nan).then_some(at)
}

#[inline(never)]
fn read_any(fields: &[Field], values: &mut [u64], input: &[u8], mut at: usize) -> Option<usize> {
    for (field, value) in fields.iter().zip(&mut *values) {
        at = field.prefix.behind(input, at)?;
        (*value, at) = match field.kind {
            Kind::Long => scan::long_start(input, at).map(|(v, end)| (v.cast_unsigned(), end))?,
            Kind::Double => {
                let (v, end) = match input.get(at) {
                    Some(b'=') => scan::binary_double(input, at)?,
                    _ => scan::double_start(input, at)?,
                };
                if v.is_nan() {
                    return None;
                }
                (v.to_bits(), end)
            }
        };
    }
    Some(at)
}
