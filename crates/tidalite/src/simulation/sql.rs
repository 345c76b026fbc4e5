//! Compares the content as returned by SQL: whole tables, and a time range, for which partitions and zones may be
//! skipped.

use super::model::{Cell, Model, Row, Table, time};
use crate::{Database, QueryOptions, Response};
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, UInt32Type,
};
use futures::TryStreamExt;
use futures::executor::block_on;
use std::sync::Arc;

pub fn check(db: &Database, model: &Model) -> Result<(), String> {
    for table in model.tables.iter().filter(|t| !t.schema.columns.is_empty()) {
        let name = &table.schema.name;
        let expected = table.ordered();
        same(&ask(db, &format!("SELECT * FROM \"{name}\""))?, &expected)?;
        if let Some((at, _)) = table.schema.designated().filter(|_| !expected.is_empty()) {
            part_by_time(db, table, at, &expected)?;
        }
    }
    Ok(())
}

fn part_by_time(db: &Database, table: &Table, at: usize, rows: &[Row]) -> Result<(), String> {
    let (lo, hi) = (time(&rows[rows.len() / 3][at]), time(&rows[rows.len() * 2 / 3][at]));
    let (name, column) = (&table.schema.name, &table.schema.columns[at].name);
    let (lo_text, hi_text) = (text(lo, table, at), text(hi, table, at));
    let sql = format!("SELECT * FROM \"{name}\" WHERE {column} >= '{lo_text}' AND {column} < '{hi_text}'");
    let within = |row: &&Row| (lo..hi).contains(&time(&row[at]));
    same(&ask(db, &sql)?, &rows.iter().filter(within).cloned().collect::<Vec<Row>>())
        .map_err(|problem| format!("{sql}: {problem}"))
}

fn text(ts: i64, table: &Table, at: usize) -> String {
    match table.schema.columns[at].column_type {
        tidalite_types::ColumnType::Timestamp(unit) => tidalite_types::time::format_timestamp(ts, unit),
        other => panic!("a designated {other}"),
    }
}

fn same(found: &[Row], expected: &[Row]) -> Result<(), String> {
    if found.len() != expected.len() {
        return Err(format!("SQL gives {} rows instead of {}", found.len(), expected.len()));
    }
    match found.iter().zip(expected).position(|(a, b)| a != b) {
        Some(row) => Err(format!("SQL gives {:?} in row {row} instead of {:?}", found[row], expected[row])),
        None => Ok(()),
    }
}

fn ask(db: &Database, sql: &str) -> Result<Vec<Row>, String> {
    let answer = block_on(async {
        match db.execute(sql, QueryOptions::default()).await? {
            Response::Rows(rows) => rows.stream.try_collect::<Vec<_>>().await,
            Response::Done { .. } => Ok(Vec::new()),
        }
    });
    let batches = answer.map_err(|error| format!("{sql}: {error}"))?;
    let mut rows = Vec::new();
    for batch in batches {
        let cells = |row: usize| Arc::new(batch.columns().iter().map(|column| cell(column, row)).collect());
        rows.extend((0..batch.num_rows()).map(cells));
    }
    Ok(rows)
}

fn cell(column: &ArrayRef, row: usize) -> Cell {
    if column.is_null(row) {
        return Cell::Null;
    }
    Cell::Int(match column.data_type() {
        DataType::Boolean => column.as_boolean().value(row).into(),
        DataType::Int8 => column.as_primitive::<Int8Type>().value(row).into(),
        DataType::Int16 => column.as_primitive::<Int16Type>().value(row).into(),
        DataType::Int32 => column.as_primitive::<Int32Type>().value(row).into(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).into(),
        DataType::UInt32 => column.as_primitive::<UInt32Type>().value(row).into(),
        DataType::Float32 => column.as_primitive::<Float32Type>().value(row).to_bits().into(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).to_bits().into(),
        DataType::Decimal128(..) => column.as_primitive::<Decimal128Type>().value(row),
        DataType::Date32 => column.as_primitive::<Date32Type>().value(row).into(),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            column.as_primitive::<TimestampMillisecondType>().value(row).into()
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            column.as_primitive::<TimestampMicrosecondType>().value(row).into()
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            column.as_primitive::<TimestampNanosecondType>().value(row).into()
        }
        DataType::FixedSizeBinary(16) => {
            let mut bytes = [0; 16];
            bytes.copy_from_slice(column.as_fixed_size_binary().value(row));
            i128::from_le_bytes(bytes)
        }
        DataType::Utf8View => return Cell::Bytes(column.as_string_view().value(row).as_bytes().into()),
        DataType::BinaryView => return Cell::Bytes(column.as_binary_view().value(row).into()),
        DataType::List(_) => {
            let values = column.as_list::<i32>().value(row);
            let mut bytes = (values.len() as u32).to_le_bytes().to_vec();
            values.as_primitive::<Float64Type>().values().iter().for_each(|v| bytes.extend(v.to_le_bytes()));
            return Cell::Bytes(bytes.into());
        }
        other => panic!("{other} is not what a column becomes"),
    })
}
