//! Partial writes of InfluxDB 3: commits the valid rows and returns a reason for every refused row.

use super::times::line_times;
use super::{Overlay, Plan, apply, plan};
use crate::catalog::Catalog;
use crate::convert::convert;
use crate::error::Error;
use crate::order::keep_rows;
use crate::wal::record::Op;
use tidalite_kernels::gather::gather_plain;
use tidalite_types::{
    Batch, BatchColumn, BatchTimestamps, ColumnSchema, ColumnType, TableSchema, TimeUnit, Txn, Values, Views,
};

/// Largest number of rejected rows with a reason; further rows are counted.
pub const REASONS_MAX: usize = 1_000;

/// The reasons for rejected rows.
#[derive(Debug, Default)]
pub struct Refused {
    /// Reasons with the line of the row; at most [`REASONS_MAX`].
    reasons: Vec<Error>,
    rows: usize,
}

impl Refused {
    pub fn push(&mut self, reason: Error) {
        self.rows += 1;
        if self.reasons.len() < REASONS_MAX {
            self.reasons.push(reason);
        }
    }

    /// Returns the reasons in order of lines. If there were too many, a last reason without a line counts the others.
    #[must_use]
    pub fn into_reasons(mut self) -> Vec<Error> {
        self.reasons.sort_by_key(|reason| reason.line);
        let more = self.rows - self.reasons.len();
        if more > 0 {
            self.reasons.push(Error::invalid(format!("{more} more lines were refused")));
        }
        self.reasons
    }
}

/// Returns the operations of one commit of the valid rows, and creates missing tables and columns for these rows only.
pub fn commit_valid(catalog: &mut Catalog, batches: Vec<Batch>, txn: Txn, refused: &mut Refused) -> Vec<Op> {
    let mut overlay = Overlay { catalog, changed: Vec::new(), next_table: catalog.next_table };
    let mut planned: Vec<(Batch, Plan)> = Vec::with_capacity(batches.len());
    for mut batch in batches {
        while batch.rows > 0 {
            let (changed, next_table) = (overlay.changed.clone(), overlay.next_table);
            match plan(&mut overlay, &batch, true) {
                Ok(plan) => {
                    planned.push((batch, plan));
                    break;
                }
                Err(error) => {
                    let kept = rows_to_keep(&overlay, &batch, &error, refused);
                    (overlay.changed, overlay.next_table) = (changed, next_table);
                    keep_rows(&mut batch, &kept);
                }
            }
        }
    }
    let changed = overlay.changed;
    apply(catalog, changed, planned, txn)
}

/// Returns the valid rows of a batch that could not be planned; none if no single row is invalid.
fn rows_to_keep(overlay: &Overlay<'_>, batch: &Batch, error: &Error, refused: &mut Refused) -> Vec<u32> {
    let line_of = |row: u32| batch.lines.get(row as usize).copied();
    let found = overlay.find(&batch.table);
    let suspects = found.as_ref().map_or_else(Suspects::default, |(_, schema)| Suspects::find(schema, batch));
    let mut kept = Vec::with_capacity(batch.rows);
    for row in 0..batch.rows as u32 {
        match suspects.problem(row) {
            Some(problem) => refused.push(Error::invalid(problem).at_line(line_of(row))),
            None => kept.push(row),
        }
    }
    if kept.len() == batch.rows {
        kept.clear();
        (0..batch.rows as u32).for_each(|row| refused.push(error.clone().at_line(line_of(row))));
    }
    kept
}

/// The parts of a batch that do not fit the table as a whole.
///
/// Only the rows of these parts are tried one by one.
#[derive(Default)]
struct Suspects<'a> {
    columns: Vec<(&'a BatchColumn, ColumnType, String)>,
    times: Option<SuspectTimes<'a>>,
}

struct SuspectTimes<'a> {
    timestamps: &'a BatchTimestamps,
    /// The column of the batch that gives the designated timestamp.
    field: Option<&'a BatchColumn>,
    unit: TimeUnit,
    name: String,
}

impl<'a> Suspects<'a> {
    fn find(schema: &TableSchema, batch: &'a Batch) -> Suspects<'a> {
        let mut suspects = Suspects::default();
        let (mut field, times) = (None, schema.timestamp().zip(batch.timestamps.as_ref()));
        let named = |column: &ColumnSchema| format!("column \"{}\" of table \"{}\"", column.name, schema.name);
        for column in &batch.columns {
            let Some(target) = schema.column(&column.name) else { continue };
            if times.is_some_and(|((designated, _), _)| designated.id == target.id) {
                field = Some(column);
            } else if convert(column, target.column_type).is_err() {
                suspects.columns.push((column, target.column_type, named(target)));
            }
        }
        suspects.times = times
            .filter(|((_, unit), timestamps)| line_times(field, timestamps, *unit).is_err())
            .map(|((target, unit), timestamps)| SuspectTimes { timestamps, field, unit, name: named(target) });
        suspects
    }

    /// Returns the reason why the table cannot take a row, or `None` if the table can.
    fn problem(&self, row: u32) -> Option<String> {
        for (column, column_type, name) in &self.columns {
            if let Err(error) = convert(&one_row(column, row), *column_type) {
                return Some(format!("{name}: {}", error.message));
            }
        }
        self.times.as_ref()?.problem(row)
    }
}

impl SuspectTimes<'_> {
    fn problem(&self, row: u32) -> Option<String> {
        let at_end = *self.timestamps.values.get(row as usize)?;
        let one = BatchTimestamps { unit: self.timestamps.unit, values: vec![at_end], line: self.timestamps.line };
        let field = self.field.map(|field| one_row(field, row));
        line_times(field.as_ref(), &one, self.unit).err().map(|(message, _)| format!("{}: {message}", self.name))
    }
}

/// Returns a column with only this row.
fn one_row(column: &BatchColumn, row: u32) -> BatchColumn {
    let mut one = gather_plain(&column.column, &[row]);
    let mut dictionary = Views::new();
    if let (ColumnType::Symbol, Values::U32(codes)) = (column.column_type, &mut one.values)
        && let Some(code) = codes.first_mut()
    {
        dictionary.push(column.dictionary.get(*code as usize));
        *code = 0;
    }
    BatchColumn { name: column.name.clone(), column_type: column.column_type, column: one, dictionary, narrower: None }
}
