//! Writes the rows of a frame as line protocol, for any server that supports it.
//!
//! Input: record batches, and the roles of their columns. Output: terminated lines; doubles in the fewest digits that
//! parse to the same double, or as eight bytes from version 2 of the protocol on. A NULL is omitted from its line; the
//! server interprets NaN. No memory is allocated for a row or a value except the text itself. The rows of a batch are
//! split into ranges, which the given number of threads write in parallel.

mod cells;
mod escape;

use crate::symbols::{Symbols, is_text};
use crate::unpack::{is_packed, unpacked, without_runs};
use crate::{Error, Result};
use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, Schema, TimeUnit as ArrowUnit};
use cells::{Field, Part, Symbol};
pub use escape::{name_problem, push_escaped, push_quoted};
use std::ops::Range;
use std::sync::Arc;
use std::thread;

/// The table of the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Table {
    Named(String),
    /// The text column with the name of the table.
    Column(String),
}

/// The time of the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// The server's time when it reads the line.
    Server,
    Column(String),
    /// Nanoseconds since 1970.
    Nanos(i64),
}

#[derive(Clone, Debug)]
pub struct LineOptions {
    /// Version of the protocol: 1, 2 or 3.
    pub version: u8,
    pub table: Table,
    pub at: At,
    pub symbols: Symbols,
}

/// Roles of the columns, for frames of one schema.
#[derive(Clone, Debug)]
pub struct LinePlan {
    version: u8,
    table: TablePart,
    symbols: Vec<Part>,
    fields: Vec<Part>,
    at: AtPart,
}

#[derive(Clone, Debug)]
enum TablePart {
    Named(Vec<u8>),
    Column(usize, String),
}

#[derive(Clone, Debug)]
enum AtPart {
    Server,
    Column(usize, String),
    Nanos(i64),
}

impl LinePlan {
    /// Creates a plan.
    ///
    /// # Errors
    /// Fails if a named column does not exist, has a type without a form in lines, or has a name that lines cannot
    /// contain.
    pub fn new(schema: &Schema, options: &LineOptions) -> Result<LinePlan> {
        let find =
            |name: &String| schema.index_of(name).map_err(|_| Error::of_column(name, "the frame does not have it"));
        let table = match &options.table {
            Table::Column(name) => {
                let index = find(name)?;
                if !is_text(schema.field(index).data_type()) {
                    let message = format!("names of tables are text, this is {}", schema.field(index).data_type());
                    return Err(Error::of_column(name, message));
                }
                TablePart::Column(index, name.clone())
            }
            Table::Named(name) => {
                if let Some(problem) = name_problem(name, "table") {
                    return Err(Error::new(problem));
                }
                let mut escaped = Vec::new();
                push_escaped(&mut escaped, name.as_bytes());
                TablePart::Named(escaped)
            }
        };
        let at = match &options.at {
            At::Server => AtPart::Server,
            At::Nanos(nanos) => AtPart::Nanos(*nanos),
            At::Column(name) => {
                let index = find(name)?;
                if !matches!(schema.field(index).data_type(), DataType::Timestamp(..)) {
                    let message = format!("the time of rows cannot be of type {}", schema.field(index).data_type());
                    return Err(
                        Error::of_column(name, message).with_hint("make it a timestamp, as pandas.to_datetime does")
                    );
                }
                AtPart::Column(index, name.clone())
            }
        };
        let is_symbol = options.symbols.choose(schema)?;
        let (mut symbols, mut fields) = (Vec::new(), Vec::new());
        for (index, field) in schema.fields().iter().enumerate() {
            let is_role = matches!(&table, TablePart::Column(i, _) if *i == index)
                || matches!(&at, AtPart::Column(i, _) if *i == index);
            if is_role || *field.data_type() == DataType::Null {
                continue;
            }
            let name = field.name().clone();
            if let Some(problem) = name_problem(&name, "column") {
                return Err(Error::of_column(&name, problem));
            }
            let mut prefix = b",".to_vec();
            push_escaped(&mut prefix, name.as_bytes());
            prefix.push(b'=');
            if !is_symbol[index] {
                cells::check(&name, field.data_type(), options.version)?;
            }
            let parts = if is_symbol[index] { &mut symbols } else { &mut fields };
            parts.push(Part { index, name, prefix });
        }
        Ok(LinePlan { version: options.version, table, symbols, fields, at })
    }

    /// Returns the text of the rows in pieces to be concatenated: one for each thread that took part.
    ///
    /// # Errors
    /// Names the first value without a form in lines.
    pub fn lines(&self, rows: &RecordBatch, rows_before: u64, threads: usize) -> Result<Vec<Vec<u8>>> {
        /// Smallest number of rows for which a thread pays.
        const ROWS_MIN: usize = 4096;
        let rows = &self.unpacked(rows)?;
        let count = rows.num_rows();
        let threads = threads.clamp(1, count.div_ceil(ROWS_MIN).max(1));
        let share = count.div_ceil(threads).max(1);
        let ranges: Vec<Range<usize>> =
            (0..threads).map(|i| (i * share).min(count)..((i + 1) * share).min(count)).collect();
        if let [range] = &ranges[..] {
            let mut out = Vec::new();
            self.write(rows, range.clone(), rows_before, &mut out)?;
            return Ok(vec![out]);
        }
        thread::scope(|scope| {
            let write = |range: Range<usize>| {
                let mut out = Vec::new();
                self.write(rows, range, rows_before, &mut out).map(|()| out)
            };
            let running: Vec<_> = ranges.iter().cloned().map(|range| scope.spawn(move || write(range))).collect();
            let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|_| Err(Error::new("a thread that wrote lines panicked")))
            };
            running.into_iter().map(join).collect()
        })
    }

    /// Appends the lines of `range`. After an error `out` has partial output.
    ///
    /// # Errors
    /// Fails like [`LinePlan::lines`].
    pub fn write(&self, rows: &RecordBatch, range: Range<usize>, rows_before: u64, out: &mut Vec<u8>) -> Result<()> {
        /// Number of rows after which the remaining size is estimated, to allocate the memory at once.
        const SAMPLE_ROWS: usize = 64;
        let rows = &self.unpacked(rows)?;
        let symbols = self.symbols.iter().map(|part| Symbol::new(part, rows)).collect::<Result<Vec<_>>>()?;
        let fields = self.fields.iter().map(|part| Field::new(part, rows, self.version)).collect::<Result<Vec<_>>>()?;
        let table = TableCells::new(&self.table, rows)?;
        let at = AtCells::new(&self.at, rows, self.version)?;
        let start = out.len();
        for (done, row) in range.clone().enumerate() {
            if done == SAMPLE_ROWS {
                let each = (out.len() - start) / SAMPLE_ROWS;
                out.reserve((each + each / 16 + 1) * (range.len() - done));
            }
            let number = rows_before + row as u64;
            table.push(row, number, out)?;
            let head = out.len();
            for symbol in &symbols {
                symbol.push(row, out);
            }
            let first_field = out.len();
            for field in &fields {
                field.push(row, number, out)?;
            }
            if out.len() > first_field {
                // The first field follows a space.
                out[first_field] = b' ';
            } else if out.len() == head {
                return Err(Error::new(format!("row {number} has no value that could be sent")));
            }
            at.push(row, number, out)?;
            out.push(b'\n');
        }
        Ok(())
    }
}

impl LinePlan {
    /// Returns the rows without runs, and without dictionaries except those of tags.
    fn unpacked(&self, rows: &RecordBatch) -> Result<RecordBatch> {
        if !rows.columns().iter().any(|column| is_packed(column.data_type())) {
            return Ok(rows.clone());
        }
        let mut columns = rows.columns().to_vec();
        let table = match &self.table {
            TablePart::Column(index, name) => Some((*index, name)),
            TablePart::Named(_) => None,
        };
        for (index, name) in self.fields.iter().map(|part| (part.index, &part.name)).chain(table) {
            columns[index] = unpacked(&columns[index]).map_err(|e| Error::of_column(name, e))?;
        }
        for Part { index, name, .. } in &self.symbols {
            columns[*index] = without_runs(&columns[*index]).map_err(|e| Error::of_column(name, e))?;
        }
        let schema = rows.schema();
        let fields = schema.fields().iter().zip(&columns);
        let fields: Vec<_> =
            fields.map(|(f, column)| f.as_ref().clone().with_data_type(column.data_type().clone())).collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(|e| Error::new(e.to_string()))
    }
}

enum TableCells<'a> {
    Named(&'a [u8]),
    Column(crate::texts::Texts<'a>, &'a dyn Array, &'a str),
}

impl<'a> TableCells<'a> {
    fn new(part: &'a TablePart, rows: &'a RecordBatch) -> Result<TableCells<'a>> {
        match part {
            TablePart::Named(name) => Ok(TableCells::Named(name)),
            TablePart::Column(index, name) => {
                let array = rows.column(*index);
                let texts = crate::texts::Texts::of(array);
                let texts = texts.ok_or_else(|| Error::of_column(name, "names of tables have to be plain text"))?;
                Ok(TableCells::Column(texts, array.as_ref(), name))
            }
        }
    }

    fn push(&self, row: usize, number: u64, out: &mut Vec<u8>) -> Result<()> {
        match self {
            TableCells::Named(name) => out.extend_from_slice(name),
            TableCells::Column(texts, array, name) => {
                if array.is_null(row) {
                    return Err(Error::of_value(name, number, "the name of a table cannot be NULL"));
                }
                let table = String::from_utf8_lossy(texts.get(row));
                if let Some(problem) = name_problem(&table, "table") {
                    return Err(Error::of_value(name, number, problem));
                }
                push_escaped(out, table.as_bytes());
            }
        }
        Ok(())
    }
}

enum AtCells<'a> {
    Server,
    Nanos(Vec<u8>),
    Column { values: &'a [i64], array: &'a dyn Array, factor: i64, suffix: &'static [u8], name: &'a str },
}

impl<'a> AtCells<'a> {
    fn new(part: &'a AtPart, rows: &'a RecordBatch, version: u8) -> Result<AtCells<'a>> {
        match part {
            AtPart::Server => Ok(AtCells::Server),
            AtPart::Nanos(nanos) => {
                let suffix = if version == 1 { "" } else { "n" };
                Ok(AtCells::Nanos(format!(" {nanos}{suffix}").into_bytes()))
            }
            AtPart::Column(index, name) => {
                let array = rows.column(*index);
                let (values, unit) = cells::times(array).ok_or_else(|| Error::of_column(name, "it is no timestamp"))?;
                // Version 1 supports only nanoseconds.
                let (factor, suffix): (i64, &[u8]) = match (version, unit) {
                    (1, ArrowUnit::Second) => (1_000_000_000, b""),
                    (1, ArrowUnit::Millisecond) => (1_000_000, b""),
                    (1, ArrowUnit::Microsecond) => (1_000, b""),
                    (1, ArrowUnit::Nanosecond) => (1, b""),
                    (_, ArrowUnit::Second) => (1_000_000, b"t"),
                    (_, ArrowUnit::Millisecond) => (1_000, b"t"),
                    (_, ArrowUnit::Microsecond) => (1, b"t"),
                    (_, ArrowUnit::Nanosecond) => (1, b"n"),
                };
                Ok(AtCells::Column { values, array: array.as_ref(), factor, suffix, name })
            }
        }
    }

    #[inline]
    fn push(&self, row: usize, number: u64, out: &mut Vec<u8>) -> Result<()> {
        match self {
            AtCells::Server => {}
            AtCells::Nanos(text) => out.extend_from_slice(text),
            AtCells::Column { array, .. } if array.is_null(row) => {}
            AtCells::Column { values, factor, suffix, name, .. } => {
                let Some(time) = values[row].checked_mul(*factor) else {
                    return Err(Error::of_value(name, number, "the time is out of range of nanoseconds"));
                };
                out.push(b' ');
                out.extend_from_slice(itoa::Buffer::new().format(time).as_bytes());
                out.extend_from_slice(suffix);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
