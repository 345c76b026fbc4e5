//! A table with its growing batch, and the learned shape of its lines.
//!
//! A line that repeats the shape of an earlier line is parsed by comparing the texts of its steps ([`super::step`]),
//! without lookups. Steps and names persist across batches, values do not.

use super::column::{ColumnBuilder, Data, Undo};
use super::options::LineOptions;
use super::outcome::{Parsed, bad, shown};
use super::scan::{Prefix, hash};
use super::shape::Shape;
use super::step::{Step, StepId, UNKNOWN};
use super::value::{Escapes, LineUnit, unescape};
use super::waiting::WaitingRows;
use crate::commit::TIMESTAMP_NAME;
use crate::order::by_time;
use hashbrown::{HashMap, HashTable};
use tidalite_types::schema::{fold_name, name_problem};
use tidalite_types::{Batch, BatchTimestamps, COLUMNS_MAX, LineTimes, TimeUnit, Views};

/// Largest number of recorded steps; others are looked up by name each time.
const STEPS_MAX: usize = 4 * COLUMNS_MAX;

#[derive(Debug)]
pub(super) struct TableBuilder {
    pub name: String,
    /// The name as written, including escapes.
    pub raw_name: Box<[u8]>,
    /// The most recent tables of following lines.
    pub next: [u32; 2],
    pub steps: Vec<Step>,
    step_index: HashTable<StepId>,
    pub columns: Vec<ColumnBuilder>,
    pub shape: Shape,
    pub waiting: WaitingRows,
    /// Indexed by folded name.
    names: HashMap<String, u32>,
    /// Columns with values in this batch, in order of first appearance.
    pub live: Vec<u32>,
    /// Number of finished rows.
    pub rows: usize,
    /// Number of rows of the previous batch, the expected size of this batch.
    pub rows_hint: usize,
    pub timestamp_unit: Option<LineUnit>,
    pub timestamps: Vec<i64>,
    pub lines: Vec<u32>,
    /// True if the batch continues the dictionaries of a previous batch.
    pub is_kept: bool,
}

/// Approximate size of a table, column or step in bytes, excluding its texts.
const ENTRY_BYTES: usize = 256;

impl TableBuilder {
    pub(super) fn new(name: String, raw_name: &[u8]) -> TableBuilder {
        let start = Step { prefix: Prefix::new(b""), column: 0, field: false, after_field: false, next: [UNKNOWN; 2] };
        TableBuilder {
            name,
            raw_name: raw_name.into(),
            next: [UNKNOWN; 2],
            steps: vec![start],
            step_index: HashTable::new(),
            columns: Vec::new(),
            shape: Shape::default(),
            waiting: WaitingRows::default(),
            names: HashMap::new(),
            live: Vec::new(),
            rows: 0,
            rows_hint: 0,
            timestamp_unit: None,
            timestamps: Vec::new(),
            lines: Vec::new(),
            is_kept: false,
        }
    }

    /// Takes the name as written at the start of the batch: the spelling of earlier batches is ignored.
    pub(super) fn start_batch(&mut self, raw_name: &[u8], at: usize) -> Parsed<()> {
        if raw_name != self.name.as_bytes() {
            self.name = table_name(raw_name, true, at)?;
        }
        Ok(())
    }

    /// Returns the step for the text `prefix` (separator, name, equals sign), learned if it is new.
    /// Also returns the column of the step.
    pub(super) fn step(
        &mut self,
        input: &[u8],
        prefix: std::ops::Range<usize>,
        sort: StepSort,
        seed: u64,
        cache_bytes: &mut usize,
    ) -> Parsed<(StepId, u32)> {
        let text = &input[prefix.clone()];
        let hash_of = |text: &[u8], field: bool| hash(text, seed ^ u64::from(field));
        let found = self.step_index.find(hash_of(text, sort.after_field), |&id| {
            let step = &self.steps[id as usize];
            step.after_field == sort.after_field && step.prefix.bytes() == text
        });
        if let Some(&id) = found {
            return Ok((id, self.steps[id as usize].column));
        }
        let name = &input[prefix.start + 1..prefix.end - 1];
        let column = self.column(name, sort.escaped, prefix.start + 1, cache_bytes)?;
        if self.steps.len() >= STEPS_MAX {
            return Ok((UNKNOWN, column));
        }
        let id = self.steps.len() as StepId;
        *cache_bytes += ENTRY_BYTES + text.len();
        self.steps.push(Step {
            prefix: Prefix::new(text),
            column,
            field: sort.field,
            after_field: sort.after_field,
            next: [UNKNOWN; 2],
        });
        let steps = &self.steps;
        let rehash = |&id: &StepId| {
            let step = &steps[id as usize];
            hash_of(step.prefix.bytes(), step.after_field)
        };
        self.step_index.insert_unique(hash_of(text, sort.after_field), id, rehash);
        Ok((id, column))
    }

    /// Returns the column of a name, which is validated if it is new.
    fn column(&mut self, raw: &[u8], escaped: bool, at: usize, cache_bytes: &mut usize) -> Parsed<u32> {
        let mut scratch = Vec::new();
        let name = name_text(unescape(raw, escaped, Escapes::Plain, &mut scratch), at, "column")?;
        if let Some(problem) = name_problem(name, "column") {
            return bad(at, problem);
        }
        let folded = fold_name(name);
        if let Some(&column) = self.names.get(&folded) {
            return Ok(column);
        }
        let column = self.columns.len() as u32;
        *cache_bytes += 2 * ENTRY_BYTES + 2 * name.len();
        self.columns.push(ColumnBuilder::new(name.to_owned()));
        self.names.insert(folded, column);
        Ok(column)
    }

    /// Names a column without values in this batch as it is written now.
    pub(super) fn name_column(&mut self, column: u32, raw: &[u8], at: usize) -> Parsed<()> {
        let name = &mut self.columns[column as usize].name;
        if raw != name.as_bytes() {
            let mut scratch = Vec::new();
            *name = name_text(unescape(raw, true, Escapes::Plain, &mut scratch), at, "column")?.to_owned();
        }
        Ok(())
    }

    /// Records the first value of a column in the batch. `at` is used in errors.
    pub(super) fn start_column(&mut self, column: u32, at: usize) -> Parsed<()> {
        self.live.push(column);
        // One column is reserved for the designated timestamp.
        if self.live.len() >= COLUMNS_MAX {
            return bad(at, format!("table cannot have more than {COLUMNS_MAX} columns"));
        }
        Ok(())
    }

    /// Appends the timestamp of the current row. Fails without side effects.
    #[inline(always)]
    pub(super) fn push_timestamp(&mut self, unit: LineUnit, value: i64, at: usize) -> Parsed<()> {
        let own = *self.timestamp_unit.get_or_insert(unit);
        if own == unit {
            self.timestamps.push(value);
            return Ok(());
        }
        self.push_converted(own, unit, value, at)
    }

    #[inline(never)]
    fn push_converted(&mut self, own: LineUnit, unit: LineUnit, value: i64, at: usize) -> Parsed<()> {
        match (own, unit) {
            (LineUnit::Micros, _) => {
                let finer: Option<Vec<i64>> =
                    self.timestamps.iter().map(|&t| TimeUnit::Micros.convert(t, TimeUnit::Nanos)).collect();
                let Some(finer) = finer else {
                    return bad(at, "timestamp in nanoseconds, which timestamps of earlier lines do not fit");
                };
                self.timestamps = finer;
                self.timestamps.push(value);
                self.timestamp_unit = Some(unit);
            }
            (_, LineUnit::Micros) => {
                let Some(value) = TimeUnit::Micros.convert(value, TimeUnit::Nanos) else {
                    return bad(at, "timestamp is out of range for nanoseconds, the unit of earlier lines");
                };
                self.timestamps.push(value);
            }
            (LineUnit::Nanos | LineUnit::UnstatedNanos, LineUnit::Nanos | LineUnit::UnstatedNanos) => {
                self.timestamps.push(value);
                self.timestamp_unit = Some(LineUnit::Nanos);
            }
        }
        Ok(())
    }

    /// Returns true if rows with the tags of this kind of series and fields of the shape may be buffered.
    #[inline(always)]
    pub(super) fn lets_wait(&mut self, kind: u32, tag_columns: &[u32]) -> bool {
        self.waiting.are_of(kind) || self.begin_waiting(kind, tag_columns)
    }

    #[inline(never)]
    fn begin_waiting(&mut self, kind: u32, tag_columns: &[u32]) -> bool {
        self.settle();
        let (columns, rows) = (&self.columns, self.rows);
        let takes = |column: &u32| matches!(&columns[*column as usize].data, Data::Symbol(ids) if ids.len() == rows);
        let begins = self.waiting.may_begin() && tag_columns.iter().all(takes) && self.shape.check(columns, rows);
        if begins {
            self.waiting.begin(kind, tag_columns, self.shape.columns());
        }
        begins
    }

    /// Completes all columns. Required before all ways to parse a row except [`TableBuilder::lets_wait`].
    #[inline(always)]
    pub(super) fn settle(&mut self) {
        self.waiting.end(&mut self.columns);
    }

    /// Buffers a row for which [`TableBuilder::lets_wait`] is true; its fields are those that the shape parsed.
    #[inline(always)]
    pub(super) fn push_waiting(&mut self, tags: &[u32], timestamp: i64, line: u32) {
        self.timestamps.push(timestamp);
        self.lines.push(line);
        self.rows += 1;
        self.waiting.push(tags, self.shape.taken(), &mut self.columns);
    }

    /// Undoes all changes of the current row.
    pub(super) fn undo_row(&mut self, undo: &mut Vec<Undo>) {
        while let Some(change) = undo.pop() {
            let (Undo::Started { column }
            | Undo::Missing { column }
            | Undo::Widened { column, .. }
            | Undo::Symbol { column, .. }) = change;
            self.columns[column as usize].undo(change);
        }
        let columns = &mut self.columns;
        self.live.retain(|&column| {
            let column = &mut columns[column as usize];
            column.truncate(self.rows);
            column.is_live()
        });
        if self.rows == 0 {
            self.timestamp_unit = None;
        }
    }

    pub(super) fn byte_count(&self) -> usize {
        let columns: usize = self.live.iter().map(|&c| self.columns[c as usize].byte_count(self.rows)).sum();
        columns + self.rows * 12
    }

    /// Returns true if the next batch may continue the dictionaries of this one.
    ///
    /// Rows with the same symbols then keep their ids.
    ///
    /// A batch contains complete dictionaries, so this is false if they have more strings than half of its rows.
    pub(super) fn may_keep_dictionaries(&self) -> bool {
        self.live.iter().all(|&column| 2 * self.columns[column as usize].dictionary.len() <= self.rows)
    }

    pub(super) fn clear_dictionaries(&mut self) {
        self.columns.iter_mut().for_each(|column| column.dictionary = Views::new());
        self.is_kept = false;
    }

    /// Returns true if fields give the designated timestamp of a new table in nanoseconds.
    fn gives_nanos(&self) -> bool {
        let column = self.names.get(TIMESTAMP_NAME).and_then(|column| self.columns.get(*column as usize));
        column.is_some_and(|column| matches!(column.data, Data::Timestamp(TimeUnit::Nanos, _)))
    }

    /// Returns the batch, sorted by time if that pays.
    ///
    /// Clears the rows, and the dictionaries unless `keeps_dictionaries` is true.
    pub(super) fn take(&mut self, keeps_dictionaries: bool, options: &LineOptions) -> Batch {
        self.settle();
        self.shape.begin_batch();
        let rows = std::mem::take(&mut self.rows);
        let live = std::mem::take(&mut self.live);
        self.rows_hint = rows;
        let unit = self.timestamp_unit.take().unwrap_or(LineUnit::UnstatedNanos);
        let has_nanos = unit == LineUnit::Nanos || self.gives_nanos();
        let stated = if has_nanos { TimeUnit::Nanos } else { TimeUnit::Micros };
        let new_unit = options.new_table_unit.unwrap_or(stated);
        let mut batch = Batch {
            table: self.name.clone(),
            rows,
            columns: live.into_iter().map(|c| self.columns[c as usize].take(rows, keeps_dictionaries)).collect(),
            timestamps: Some(BatchTimestamps {
                unit: unit.unit(),
                values: std::mem::take(&mut self.timestamps),
                line: Some(LineTimes { new_unit, integers: options.timestamp_unit }),
            }),
            lines: std::mem::take(&mut self.lines),
        };
        by_time(&mut batch);
        batch
    }
}

/// Properties of a step that follow from its position.
#[derive(Clone, Copy)]
pub(super) struct StepSort {
    pub field: bool,
    pub after_field: bool,
    /// True if the name has backslashes.
    pub escaped: bool,
}

/// Validates the name of a table and unescapes it.
pub(super) fn table_name(raw: &[u8], escaped: bool, at: usize) -> Parsed<String> {
    let mut scratch = Vec::new();
    let name = name_text(unescape(raw, escaped, Escapes::Plain, &mut scratch), at, "table")?;
    match name_problem(name, "table") {
        Some(problem) => bad(at, problem),
        None => Ok(name.to_owned()),
    }
}

fn name_text<'a>(bytes: &'a [u8], at: usize, what: &str) -> Parsed<&'a str> {
    match std::str::from_utf8(bytes) {
        Ok(name) => Ok(name),
        Err(e) => {
            bad(at, format!("{what} name {} is not UTF-8 from its byte {} on", shown(bytes), e.valid_up_to() + 1))
        }
    }
}
