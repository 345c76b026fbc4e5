//! Parses one line to one row.
//!
//! Invariant: the caller undoes a failed row through `undo`; no other state has its changes. Each item is first
//! compared with the step that followed last time (`TableBuilder::steps`), then parsed on the general path.

use super::column::{ColumnBuilder, Data, SetContext, Undo};
use super::options::LineOptions;
use super::outcome::{Parsed, Stop, bad, shown};
use super::shape::{Advice, Shape};
use super::step::{FINISH, START, StepId, UNKNOWN};
use super::table::{StepSort, TableBuilder};
use super::value::{End, Escapes, FieldRules, LineUnit, in_years, line_unit, skip_spaces, unescape};
use super::{scan, value};
use std::ops::Range;
use tidalite_types::{EpochUnit, TimeUnit};

pub(super) struct RowReader<'a> {
    pub table: &'a mut TableBuilder,
    pub input: &'a [u8],
    /// Start of the line.
    pub start: usize,
    pub options: &'a LineOptions,
    pub now_ns: i64,
    pub epoch: u32,
    pub line: u32,
    pub undo: &'a mut Vec<Undo>,
    pub scratch: &'a mut Vec<u8>,
    pub cache_bytes: &'a mut usize,
    pub tags: &'a mut Tags,
}

/// The tags of a line, recorded for learning.
#[derive(Debug, Default)]
pub(super) struct Tags {
    /// True if tags are recorded.
    pub wanted: bool,
    pub columns: Vec<u32>,
    pub last_step: StepId,
    /// Position of the space before the first field; 0 without fields.
    pub end: usize,
}

impl Tags {
    /// Records a tag; at the first field, whose separator is at `at`, records the end of the tags.
    fn see(&mut self, field: bool, last: StepId, column: u32, at: usize) {
        if field {
            (self.last_step, self.end) = (last, at);
        } else {
            self.columns.push(column);
        }
    }

    pub(super) fn begin(&mut self, wanted: bool) {
        self.wanted = wanted;
        self.columns.clear();
        self.end = 0;
    }
}

/// The fields of a line as far as parsed before its tags.
#[derive(Clone, Copy)]
pub(super) enum Fields {
    Unread,
    /// From `at` to `end` the fields have the table's shape, which has their values.
    Read {
        at: usize,
        end: usize,
    },
    /// The fields at `at` have another shape.
    Other {
        at: usize,
    },
}

impl Fields {
    /// Parses the fields at `at`.
    #[inline(always)]
    pub(super) fn read(shape: &mut Shape, input: &[u8], at: usize) -> Fields {
        match shape.read(input, at) {
            Some(end) => Fields::Read { at, end },
            None => Fields::Other { at },
        }
    }

    /// Returns the fields if they begin at `at`.
    #[inline(always)]
    pub(super) fn at(self, at: usize) -> Fields {
        match self {
            Fields::Read { at: read_at, .. } | Fields::Other { at: read_at } if read_at == at => self,
            _ => Fields::Unread,
        }
    }
}

/// Returns the timestamp of a line whose fields end at `at`, and the start of the next line.
#[inline(always)]
pub(super) fn line_end(input: &[u8], at: usize, options: &LineOptions) -> Option<(LineUnit, i64, usize)> {
    if input.get(at) != Some(&b' ') {
        return None;
    }
    let (value, suffix, next) = scan::line_timestamp(input, at + 1)?;
    let (unit, factor) = line_unit(suffix, options.timestamp_unit, value);
    Some((unit, in_years(unit.unit(), value.checked_mul(factor)?)?, next))
}

/// The element after a separator.
enum Place {
    /// A name and a value: `prefix` is the separator, the name and the equals sign.
    Item { prefix: Range<usize>, sort: StepSort },
    /// The timestamp, possibly empty, and the end of the line.
    Finish { timestamp_at: usize },
}

impl RowReader<'_> {
    /// Parses the row from the separator at `at`, after the table's name or the tag of step `last`.
    ///
    /// Returns the start of the next line.
    pub(super) fn read(&mut self, mut at: usize, mut last: StepId, fields: Fields) -> Parsed<usize> {
        let input = self.input;
        let (mut in_fields, mut is_shown) = (false, false);
        loop {
            if !in_fields && self.takes_shape() && input.get(at) == Some(&b' ') {
                match self.table.shape.advice(last) {
                    Advice::Try => {
                        if let Some(next) = self.shaped(at, fields) {
                            return Ok(next);
                        }
                    }
                    Advice::Show => is_shown = true,
                    Advice::Leave => {}
                }
            }
            if let Some(step) = self.table.steps.get(last as usize)
                && self.options.predict
            {
                let [first, second] = step.next;
                if let Some((id, value_at)) =
                    self.predicted(first, at, in_fields).or_else(|| self.predicted(second, at, in_fields))
                {
                    if id == FINISH {
                        self.shown(is_shown);
                        return Ok(value_at);
                    }
                    let step = &self.table.steps[id as usize];
                    if is_shown && step.field {
                        self.table.shape.see(id);
                    }
                    if self.tags.wanted && !in_fields {
                        self.tags.see(step.field, last, step.column, value_at - step.prefix.bytes().len());
                    }
                    (last, in_fields) = (id, step.field);
                    at = self.value(step.column, step.field, value_at, step.prefix.bytes().len())?;
                    continue;
                }
            }
            match place(input, at, in_fields, last != START)? {
                Place::Item { prefix, sort } => {
                    let (value_at, prefix_bytes) = (prefix.end, prefix.len());
                    let seed = self.options.seed;
                    let (id, column) = self.table.step(input, prefix, sort, seed, self.cache_bytes)?;
                    self.link(last, id);
                    if is_shown {
                        self.table.shape.see(id);
                    }
                    if self.tags.wanted && !in_fields {
                        self.tags.see(sort.field, last, column, value_at - prefix_bytes);
                    }
                    (last, in_fields) = (id, sort.field);
                    at = self.value(column, sort.field, value_at, prefix_bytes)?;
                }
                Place::Finish { timestamp_at } => {
                    if last == START {
                        return bad(at, "line without tags and fields");
                    }
                    self.link(last, FINISH);
                    let (timestamp, next) = value::line_timestamp(input, timestamp_at, self.options.timestamp_unit)?;
                    self.finish(timestamp, timestamp_at, next)?;
                    self.shown(is_shown);
                    return Ok(next);
                }
            }
        }
    }

    /// Returns true if the fields of the line may be parsed at once.
    #[inline(always)]
    fn takes_shape(&self) -> bool {
        self.options.predict && !self.tags.wanted && self.table.rows > 0
    }

    /// Parses fields, timestamp and end of the line after the tags, if they have the shape of an earlier line.
    #[inline(always)]
    fn shaped(&mut self, at: usize, fields: Fields) -> Option<usize> {
        let TableBuilder { shape, columns, rows, .. } = &mut *self.table;
        let end = match fields {
            Fields::Read { end, .. } => Some(end),
            Fields::Other { .. } => None,
            Fields::Unread => shape.read(self.input, at),
        };
        let end = end.filter(|_| shape.is_taken(columns, *rows));
        let Some(next) = end.and_then(|end| self.finish_quickly(end)) else {
            self.table.shape.miss();
            return None;
        };
        let TableBuilder { shape, columns, rows, .. } = &mut *self.table;
        shape.add(columns, *rows);
        Some(next)
    }

    /// Updates the shape with a row that was parsed on the general path.
    #[inline(always)]
    fn shown(&mut self, is_shown: bool) {
        if is_shown {
            let TableBuilder { shape, steps, columns, .. } = &mut *self.table;
            shape.learn(steps, columns);
        }
    }

    /// Returns the step and the position of its value if the step is at `at`.
    ///
    /// For [`FINISH`] the row is finished, and the position is the start of the next line.
    #[inline(always)]
    fn predicted(&mut self, id: StepId, at: usize, in_fields: bool) -> Option<(StepId, usize)> {
        if id == FINISH {
            return self.finish_quickly(at).map(|next| (id, next));
        }
        let step = self.table.steps.get(id as usize)?;
        if step.after_field != in_fields {
            return None;
        }
        step.prefix.behind(self.input, at).map(|value_at| (id, value_at))
    }

    fn link(&mut self, from: StepId, to: StepId) {
        if let Some(step) = self.table.steps.get_mut(from as usize)
            && to != UNKNOWN
            && step.next[0] != to
        {
            step.next = [to, step.next[0]];
        }
    }

    /// Parses the value at `at`, after a prefix of `prefix_bytes`, into its column; returns its end.
    #[inline(always)]
    fn value(&mut self, column: u32, field: bool, at: usize, prefix_bytes: usize) -> Parsed<usize> {
        let builder = &mut self.table.columns[column as usize];
        match quick(builder, self.table.rows, self.input, at, field, self.options, self.epoch) {
            Some(end) => Ok(end),
            None => self.any_value(column, field, at, prefix_bytes),
        }
    }

    #[inline(never)]
    fn any_value(&mut self, column: u32, field: bool, at: usize, prefix_bytes: usize) -> Parsed<usize> {
        let (builder, rows) = (&mut self.table.columns[column as usize], self.table.rows);
        if builder.lags(rows) {
            builder.fill(rows);
            if let Some(end) = quick(builder, rows, self.input, at, field, self.options, self.epoch) {
                return Ok(end);
            }
        }
        let name = &self.input[at - prefix_bytes + 1..at - 1];
        self.set_value(column, field, at, name).map_err(|stop| in_column(stop, name))
    }

    /// Parses the value at `at` on the general path into its column, whose name in the line is `name`.
    #[inline(always)]
    fn set_value(&mut self, column: u32, field: bool, at: usize, name: &[u8]) -> Parsed<usize> {
        let rules = FieldRules { nan_is_null: self.options.nan_is_null, bytes_max: self.options.line_bytes_max };
        let (value, end) = if field {
            value::field(self.input, at, &rules, self.scratch)?
        } else {
            value::tag(self.input, at, self.scratch)?
        };
        let is_first = !self.table.columns[column as usize].is_live();
        if is_first {
            self.table.name_column(column, name, at)?;
        }
        let builder = &mut self.table.columns[column as usize];
        let mut context = SetContext {
            column,
            rows: self.table.rows,
            rows_hint: self.table.rows_hint,
            widens: self.options.widens,
            epoch: self.epoch,
            seed: self.options.seed,
            undo: self.undo,
            cache_bytes: self.cache_bytes,
        };
        builder.set(value, at, &mut context)?;
        if is_first && builder.is_live() {
            self.table.start_column(column, at)?;
        }
        Ok(end)
    }

    #[inline(always)]
    fn finish_quickly(&mut self, at: usize) -> Option<usize> {
        let (unit, value, next) = line_end(self.input, at, self.options)?;
        self.finish(Some((unit, value)), at + 1, next).ok()?;
        Some(next)
    }

    /// Ends the row. Comes last and fails without side effects, so that the general path can retry.
    #[inline(always)]
    fn finish(&mut self, timestamp: Option<(LineUnit, i64)>, at: usize, next: usize) -> Parsed<()> {
        if next - self.start > self.options.line_bytes_max {
            let max = self.options.line_bytes_max;
            return bad(self.start + max, format!("line is longer than {max} bytes, the setting line.bytes_max"));
        }
        let (unit, value) = timestamp.unwrap_or_else(|| self.now());
        self.table.push_timestamp(unit, value, at)?;
        self.table.lines.push(self.line);
        self.table.rows += 1;
        Ok(())
    }

    /// Returns the current time in the unit of the batch, so that it never requires a finer unit.
    fn now(&self) -> (LineUnit, i64) {
        let unit = self.table.timestamp_unit.unwrap_or(match self.options.timestamp_unit {
            EpochUnit::Unstated | EpochUnit::Auto => LineUnit::UnstatedNanos,
            EpochUnit::Nanos => LineUnit::Nanos,
            _ => LineUnit::Micros,
        });
        (unit, self.now_ns.div_euclid(1_000_000_000 / unit.unit().per_second()))
    }
}

#[cold]
fn in_column(stop: Stop, name: &[u8]) -> Stop {
    let mut scratch = Vec::new();
    stop.in_column(&String::from_utf8_lossy(unescape(name, true, Escapes::Plain, &mut scratch)))
}

/// Parses the value if the column has the type of its text, which only appends a value.
#[inline(always)]
fn quick(
    column: &mut ColumnBuilder,
    rows: usize,
    input: &[u8],
    at: usize,
    field: bool,
    options: &LineOptions,
    epoch: u32,
) -> Option<usize> {
    if !options.predict {
        return None;
    }
    if !field {
        let Data::Symbol(ids) = &mut column.data else { return None };
        let tag = scan::tag(input, at, options.seed)?;
        let id = column.symbols.find(&tag, epoch)?;
        push(ids, id, rows)?;
        mark_valid(column);
        return Some(at + tag.text.len());
    }
    let end = match &mut column.data {
        Data::Long(v) => {
            let (value, end) = scan::long(input, at)?;
            push(v, value, rows)?;
            end
        }
        Data::Double(v) => {
            let (value, end) = scan::double(input, at).or_else(|| scan::binary_double(input, at))?;
            if value.is_nan() {
                return None;
            }
            push(v, value, rows)?;
            end
        }
        Data::Timestamp(unit, v) => {
            let (value, end) = scan::suffixed(input, at, if *unit == TimeUnit::Nanos { b'n' } else { b't' })?;
            push(v, in_years(*unit, value)?, rows)?;
            end
        }
        Data::Boolean(v) => {
            let (value, end) = scan::boolean(input, at)?;
            if v.len() != rows {
                return None;
            }
            v.push(value);
            end
        }
        Data::Varchar(v) => {
            let (text, end) = scan::quoted(input, at)?;
            if v.len() != rows || !v.has_room(text.len()) || std::str::from_utf8(text).is_err() {
                return None;
            }
            v.push(text);
            end
        }
        Data::None | Data::Symbol(_) | Data::Decimal(..) | Data::Array(..) => return None,
    };
    mark_valid(column);
    Some(end)
}

/// Appends the value of the current row; `None` if previous rows are missing, or the row has a value.
#[inline(always)]
fn push<T>(values: &mut Vec<T>, value: T, rows: usize) -> Option<()> {
    (values.len() == rows).then(|| values.push(value))
}

#[inline(always)]
fn mark_valid(column: &mut ColumnBuilder) {
    if let Some(validity) = &mut column.validity {
        validity.push(true);
    }
}

/// Examines the separator at `at`. Extra commas before a space and the line end are allowed, as in QuestDB.
fn place(input: &[u8], at: usize, in_fields: bool, has_items: bool) -> Parsed<Place> {
    let mut at = at;
    if input.get(at) == Some(&b',') {
        if value::line_end(input, at + 1)?.is_some() {
            return Ok(Place::Finish { timestamp_at: at + 1 });
        }
        if input[at + 1] == b' ' {
            at += 1;
        }
    }
    if value::line_end(input, at)?.is_some() {
        return Ok(Place::Finish { timestamp_at: at });
    }
    let space = input[at] == b' ';
    if space {
        // Several spaces equal one, as in InfluxDB.
        at = skip_spaces(input, at) - 1;
        if in_fields || value::line_end(input, at + 1)?.is_some() {
            return Ok(Place::Finish { timestamp_at: at + 1 });
        }
    }
    let name_at = at + 1;
    let token = value::token(input, name_at)?;
    let what = if space || in_fields { "field" } else { "tag" };
    if token.end == End::Equals {
        if token.end_at == name_at {
            return bad(name_at, format!("{what} without a name"));
        }
        let sort = StepSort { field: space || in_fields, after_field: in_fields, escaped: token.escaped };
        return Ok(Place::Item { prefix: at..token.end_at + 1, sort });
    }
    let ends_line = match token.end {
        End::Line => true,
        End::Space => value::line_end(input, skip_spaces(input, token.end_at))?.is_some(),
        End::Comma | End::Equals => false,
    };
    if ends_line && space && has_items {
        // Only tags, followed by the timestamp.
        return Ok(Place::Finish { timestamp_at: name_at });
    }
    bad(name_at, format!("{what} {} has no value", shown(&input[name_at..token.end_at])))
}
