//! The shape of a line's fields: names and types in order.
//!
//! A source repeats the same fields in the same order. Such a line is parsed to a row of words that is appended to the
//! columns only at the end of the line: nothing must be undone, and common checks run once per row. A line with another
//! shape is left to the general path from its first field on.

use super::column::{ColumnBuilder, Data};
use super::scan::{self, Prefix};
use super::step::{Step, StepId, UNKNOWN};

#[derive(Debug)]
struct ShapeField {
    prefix: Prefix,
    column: u32,
    kind: ValueKind,
}

/// Types whose values fit a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueKind {
    Long,
    Double,
}

#[derive(Debug)]
pub(super) struct Shape {
    /// The step before the first field; [`UNKNOWN`] before a line was learned.
    after: StepId,
    fields: Vec<ShapeField>,
    /// The type of all fields, as long as [`read_digits`] or [`read_binary_doubles`] parse most lines.
    all: Option<ValueKind>,
    /// Excess of lines that these functions could not parse.
    others: u8,
    /// Values of the current line, by field.
    values: Vec<u64>,
    /// The steps of a line that is parsed on the general path, to be learned.
    seen: Vec<StepId>,
    /// Number of rows of the batch for which the columns were checked to accept a row of this shape.
    checked: Option<usize>,
    /// Decreases with lines of other shapes, increases with matching lines; below zero no line is tried for a while.
    credit: i32,
}

/// Rows with more fields use the general path.
const FIELDS_MAX: usize = 256;
const CREDIT_MAX: i32 = 64;
/// Credit after a pause.
const CREDIT: i32 = 16;
/// Cost of a line of another shape.
const MISS: i32 = 4;
/// Number of lines before the next try.
const PAUSE: i32 = 1024;

/// Limit of `others`, after which lines are no longer parsed as fields of one type.
const OTHERS_MAX: u8 = 16;

/// How to parse the fields of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Advice {
    Try,
    /// Parse them on the general path, and report them to [`Shape::see`].
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
    /// Returns true if its fields follow step `last`.
    #[inline(always)]
    pub(super) fn follows(&self, last: StepId) -> bool {
        self.after == last && last != UNKNOWN
    }

    /// Returns advice for a line whose last step before its fields is `last`.
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

    /// Learns the line whose steps were recorded, after it became a row.
    pub(super) fn learn(&mut self, steps: &[Step], columns: &[ColumnBuilder]) {
        self.fields.clear();
        self.checked = None;
        // Charged in advance, so that repeated attempts to learn end.
        self.miss();
        let Some((&after, seen)) = self.seen.split_first() else { return };
        for step in seen {
            let Some(step) = steps.get(*step as usize) else { return };
            let kind = match columns.get(step.column as usize).map(|c| &c.data) {
                Some(Data::Long(_)) => ValueKind::Long,
                Some(Data::Double(_)) => ValueKind::Double,
                _ => return,
            };
            let is_first = self.fields.is_empty();
            let is_twice = self.fields.iter().any(|f| f.column == step.column);
            if !step.field || step.after_field == is_first || is_twice || self.fields.len() == FIELDS_MAX {
                return;
            }
            self.fields.push(ShapeField { prefix: step.prefix.clone(), column: step.column, kind });
        }
        if !self.fields.is_empty() {
            self.values.resize(self.fields.len(), 0);
            let kind = self.fields[0].kind;
            self.all = self.fields.iter().all(|field| field.kind == kind).then_some(kind);
            self.others = 0;
            self.after = after;
        }
    }

    /// Parses the fields at `at`; `None` if the shape differs. [`Shape::add`] then appends the values.
    #[inline(always)]
    pub(super) fn read(&mut self, input: &[u8], at: usize) -> Option<usize> {
        // The next name or the timestamp confirms the end of a value.
        let end = match self.all {
            Some(ValueKind::Long) => read_digits(&self.fields, &mut self.values, input, at),
            Some(ValueKind::Double) => read_binary_doubles(&self.fields, &mut self.values, input, at),
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

    /// Forgets the checks of the columns.
    pub(super) fn begin_batch(&mut self) {
        self.checked = None;
    }

    /// Returns true if the columns accept a row of this shape as row `rows` of the batch.
    #[inline(always)]
    pub(super) fn is_taken(&mut self, columns: &[ColumnBuilder], rows: usize) -> bool {
        self.checked == Some(rows) || self.check(columns, rows)
    }

    #[inline(never)]
    pub(super) fn check(&self, columns: &[ColumnBuilder], rows: usize) -> bool {
        self.fields.iter().all(|field| match (&columns[field.column as usize].data, field.kind) {
            (Data::Long(v), ValueKind::Long) => v.len() == rows,
            (Data::Double(v), ValueKind::Double) => v.len() == rows,
            _ => false,
        })
    }

    /// Returns the columns of its fields.
    pub(super) fn columns(&self) -> impl Iterator<Item = u32> {
        self.fields.iter().map(|field| field.column)
    }

    /// Returns the parsed values by field: integers and doubles as words.
    #[inline(always)]
    pub(super) fn taken(&mut self) -> &[u64] {
        self.credit = (self.credit + 1).min(CREDIT_MAX);
        &self.values
    }

    /// Appends the parsed values as the last of `rows` rows; [`Shape::is_taken`] must be true.
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

    /// Records a line of another shape.
    #[cold]
    pub(super) fn miss(&mut self) {
        self.credit -= MISS;
        if self.credit < 0 {
            self.credit = -PAUSE;
            self.after = UNKNOWN;
        }
    }
}

/// Parses integers of up to seven digits, like [`read_any`].
///
/// A separate loop keeps all its values in registers; the latency of finding the end of a value dominates.
#[inline(never)]
fn read_digits(fields: &[ShapeField], values: &mut [u64], input: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    for (field, value) in fields.iter().zip(&mut *values) {
        let (word, value_at) = field.prefix.word_behind(input, at)?;
        let (read, bytes) = scan::short_long(word)?;
        (*value, at) = (read, value_at + bytes);
    }
    Some(at)
}

/// Parses binary doubles, like [`read_any`].
#[inline(never)]
fn read_binary_doubles(fields: &[ShapeField], values: &mut [u64], input: &[u8], start: usize) -> Option<usize> {
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
fn read_any(fields: &[ShapeField], values: &mut [u64], input: &[u8], mut at: usize) -> Option<usize> {
    for (field, value) in fields.iter().zip(&mut *values) {
        at = field.prefix.behind(input, at)?;
        (*value, at) = match field.kind {
            ValueKind::Long => scan::long_start(input, at).map(|(v, end)| (v.cast_unsigned(), end))?,
            ValueKind::Double => {
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
