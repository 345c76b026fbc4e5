//! The plan of an import, made before the import.

use super::{CsvColumn, Detected, Known, NumberFormat, OnBad, Text, TextForm};
use crate::{Error, ErrorKind, Result};
use tidalite_ingest::csv::detect;
use tidalite_types::command::CreateTable;
use tidalite_types::schema::{same_name, table_name_problem};
use tidalite_types::{ColumnType, PartitionBy, TableSchema};

#[derive(Clone, Debug, PartialEq)]
pub struct CsvPlan {
    pub table: String,
    pub detected: Detected,
    /// Definition of the table to create; `None` if it exists.
    pub create: Option<CreateTable>,
    /// Bytes before the first row: a byte order mark, lines before the header, and the header.
    pub skipped_bytes: usize,
    /// Number of these lines.
    pub lines_before: u64,
    pub on_bad: OnBad,
    /// The import fails if more records are skipped, or more values are replaced by NULL.
    pub rejects_max: Option<u64>,
    /// Encoding and compression of the file.
    pub form: TextForm,
}

/// Returns the format of a column's values in the notation of `columns`; `None` for the default format.
#[must_use]
pub fn format_of(column: &CsvColumn) -> Option<String> {
    match &column.times {
        Some(format) => Some(format.to_string()),
        None => (column.numbers != NumberFormat::PLAIN).then(|| column.numbers.to_string()),
    }
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl CsvPlan {
    /// Plans an import. `sample` is the beginning of the file, or all of it if `is_whole` is true.
    ///
    /// # Errors
    /// Fails if the file or its known properties are invalid, with the line.
    pub fn new(
        sample: &[u8],
        is_whole: bool,
        table: &str,
        schema: Option<&TableSchema>,
        mut known: Known,
        partition_by: Option<PartitionBy>,
    ) -> Result<CsvPlan> {
        if let Some(problem) = table_name_problem(table) {
            return Err(Error::new(ErrorKind::Invalid, problem));
        }
        let mark = if sample.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        if let Some(schema) = schema {
            known.table = Some(schema.columns.iter().map(|c| (c.name.clone(), c.column_type)).collect());
            let designated = schema.timestamp().map(|(column, _)| column.name.clone());
            if let (Some(given), Some(designated)) = (&known.timestamp, &designated)
                && !same_name(given, designated)
            {
                let message =
                    format!("the designated timestamp of table \"{table}\" is \"{designated}\", not \"{given}\"");
                return Err(Error::new(ErrorKind::Invalid, message));
            }
            known.timestamp = designated;
            typed_as_table(&known, schema)?;
            if let Some(given) = partition_by.filter(|given| *given != schema.partition_by) {
                let message =
                    format!("table \"{}\" is partitioned by {}, not {given}", schema.name, schema.partition_by);
                return Err(Error::new(ErrorKind::Invalid, message));
            }
        }
        let detected = detect(&sample[mark..], is_whole, &known)?;
        let create = schema.is_none().then(|| CreateTable {
            name: table.to_owned(),
            columns: columns_of(&detected),
            designated: detected.timestamp.clone(),
            partition_by: partition(&detected, partition_by),
            ttl: None,
            lag_us: None,
            dedup: Vec::new(),
            if_not_exists: false,
        });
        let (skipped_bytes, lines_before) = (mark + detected.header_bytes, detected.header_lines as u64);
        let table = schema.map_or(table, |s| &s.name).to_owned();
        let form = TextForm { mark_bytes: mark, ..TextForm::default() };
        Ok(CsvPlan {
            table,
            detected,
            create,
            skipped_bytes,
            lines_before,
            on_bad: OnBad::default(),
            rejects_max: None,
            form,
        })
    }

    /// Returns true if any text follows the names.
    #[must_use]
    pub fn has_rows(&self, text: &Text) -> bool {
        !text.is_whole || !text.head[self.skipped_bytes..].trim_ascii().is_empty()
    }

    /// Returns the columns that the table does not have.
    #[must_use]
    pub fn new_columns(&self, schema: Option<&TableSchema>) -> Vec<(String, ColumnType)> {
        let has = |name: &str| schema.is_some_and(|s| s.column(name).is_some());
        columns_of(&self.detected).into_iter().filter(|(name, _)| !has(name)).collect()
    }

    /// Returns the statement that creates the table, or the changes to an existing table.
    #[must_use]
    pub fn statement(&self, schema: Option<&TableSchema>) -> String {
        let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        let Some(create) = &self.create else {
            let new: Vec<String> = self.new_columns(schema).into_iter().map(|c| c.0).collect();
            let more = if new.is_empty() { String::new() } else { format!("; new columns: {}", new.join(", ")) };
            return format!("into table \"{}\", which is there{more}", self.table);
        };
        let columns: Vec<String> = create.columns.iter().map(|(n, t)| format!("  {} {t}", quoted(n))).collect();
        let timestamp = create.designated.as_ref();
        let timestamp = timestamp.map(|n| format!(" TIMESTAMP({}) PARTITION BY {}", quoted(n), create.partition_by));
        format!("CREATE TABLE {} (\n{}\n){};", quoted(&self.table), columns.join(",\n"), timestamp.unwrap_or_default())
    }

    /// Returns the record with the names in the sample.
    #[must_use]
    pub fn names<'a>(&self, sample: &'a [u8]) -> &'a [u8] {
        let mark = self.skipped_bytes - self.detected.header_bytes;
        let names = &self.detected.names;
        sample.get(mark + names.start..mark + names.end).unwrap_or_default()
    }
}

/// Returns the columns of the table; a time of day is part of another column.
fn columns_of(detected: &Detected) -> Vec<(String, ColumnType)> {
    let columns = detected.columns.iter().filter(|c| c.added_to.is_none());
    columns.filter_map(|c| Some((c.name.clone(), c.column_type?))).collect()
}

fn partition(detected: &Detected, given: Option<PartitionBy>) -> PartitionBy {
    match (&detected.timestamp, given) {
        (None, _) => PartitionBy::None,
        (Some(_), Some(given)) => given,
        (Some(_), None) => detected.partition_by,
    }
}

/// Rejects a given type of a column that differs from the table's.
fn typed_as_table(known: &Known, schema: &TableSchema) -> Result<()> {
    let other = |(name, given): &(String, ColumnType)| {
        schema.column(name).filter(|c| c.column_type != *given).map(|c| (c.name.clone(), *given, c.column_type))
    };
    match known.columns.iter().find_map(other) {
        None => Ok(()),
        Some((name, given, has)) => {
            let message = format!("column \"{name}\" of table \"{}\" is of type {has}, not {given}", schema.name);
            Err(Error::new(ErrorKind::Invalid, message))
        }
    }
}
