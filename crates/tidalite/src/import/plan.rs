//! What will be done with a file, before it is.

use super::{Detected, Known};
use crate::{Error, ErrorKind, Result};
use tidalite_ingest::csv::detect;
use tidalite_types::command::CreateTable;
use tidalite_types::schema::{same_name, table_name_problem};
use tidalite_types::{ColumnType, PartitionBy, TableSchema};

#[derive(Clone, Debug, PartialEq)]
pub struct CsvPlan {
    pub table: String,
    pub detected: Detected,
    /// The table has to be made; `None` when it is there.
    pub create: Option<CreateTable>,
    /// Bytes before the first record: a byte order mark and the names.
    pub skipped_bytes: usize,
    /// Lines of the file before it.
    pub lines_before: u64,
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl CsvPlan {
    /// `sample` is the beginning of the file, all of it when `is_whole`.
    ///
    /// # Errors
    /// The file or what is known of it makes no sense, with its line.
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
        }
        let detected = detect(&sample[mark..], is_whole, &known)?;
        let create = schema.is_none().then(|| CreateTable {
            name: table.to_owned(),
            columns: detected.columns.iter().filter_map(|c| Some((c.name.clone(), c.column_type?))).collect(),
            designated: detected.timestamp.clone(),
            partition_by: partition(&detected, partition_by),
            ttl: None,
            lag_us: None,
            dedup: Vec::new(),
            if_not_exists: false,
        });
        let (skipped_bytes, lines_before) = (mark + detected.header_bytes, detected.header_lines as u64);
        let table = schema.map_or(table, |s| &s.name).to_owned();
        Ok(CsvPlan { table, detected, create, skipped_bytes, lines_before })
    }
}

fn partition(detected: &Detected, given: Option<PartitionBy>) -> PartitionBy {
    match (&detected.timestamp, given) {
        (None, _) => PartitionBy::None,
        (Some(_), Some(given)) => given,
        (Some(_), None) => detected.partition_by,
    }
}

/// A type that was given for a column that the table has with another.
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
