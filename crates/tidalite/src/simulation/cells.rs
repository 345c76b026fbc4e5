//! Converts cells to columns of a batch, and columns of the storage to cells.

use super::model::{Cell, ColumnModel, Rows, Schema, Table};
use std::collections::HashMap;
use std::sync::Arc;
use tidalite_storage::TableSnapshot;
use tidalite_storage::segment::to_column;
use tidalite_types::column_type::Physical;
use tidalite_types::{
    BLOCK_ROWS, Batch, BatchColumn, BatchTimestamps, Bitmap, Column, ColumnId, ColumnType, Values, Views,
};

pub fn to_batch(rows: &Rows) -> Batch {
    let columns = rows.columns.iter().enumerate().map(|(at, (name, column_type))| {
        let cells: Vec<&Cell> = rows.cells.iter().map(|row| &row[at]).collect();
        let (values, dictionary) = to_values(*column_type, &cells);
        let has_nulls = cells.iter().any(|c| **c == Cell::Null);
        let validity = has_nulls.then(|| {
            let mut bits = Bitmap::new();
            cells.iter().for_each(|c| bits.push(**c != Cell::Null));
            bits
        });
        let column = Column { values, validity };
        BatchColumn { name: name.clone(), column_type: *column_type, column, dictionary, narrower: None }
    });
    Batch {
        table: rows.table.clone(),
        rows: rows.cells.len(),
        columns: columns.collect(),
        timestamps: rows.timestamps.as_ref().map(|(unit, values)| BatchTimestamps::new(*unit, values.clone())),
        lines: Vec::new(),
    }
}

fn to_values(column_type: ColumnType, cells: &[&Cell]) -> (Values, Views) {
    let mut dictionary = Views::new();
    let int = |cell: &Cell| if let Cell::Int(v) = cell { *v } else { 0 };
    let ints = || cells.iter().map(|c| int(c));
    if column_type == ColumnType::Symbol {
        let mut known: HashMap<&[u8], u32> = HashMap::new();
        let codes = cells.iter().map(|cell| {
            let Cell::Bytes(text) = cell else { return 0 };
            *known.entry(text).or_insert_with(|| {
                dictionary.push(text);
                dictionary.len() as u32 - 1
            })
        });
        return (Values::U32(codes.collect()), dictionary);
    }
    let values = match column_type.physical() {
        Physical::Bit => {
            let mut bits = Bitmap::new();
            ints().for_each(|v| bits.push(v != 0));
            Values::Bit(bits)
        }
        Physical::I8 => Values::I8(ints().map(|v| v as i8).collect()),
        Physical::I16 => Values::I16(ints().map(|v| v as i16).collect()),
        Physical::I32 => Values::I32(ints().map(|v| v as i32).collect()),
        Physical::I64 => Values::I64(ints().map(|v| v as i64).collect()),
        Physical::I128 => Values::I128(ints().collect()),
        Physical::F32 => Values::F32(ints().map(|v| f32::from_bits(v as u32)).collect()),
        Physical::F64 => Values::F64(ints().map(|v| f64::from_bits(v as u64)).collect()),
        Physical::U32 => Values::U32(ints().map(|v| v as u32).collect()),
        Physical::B16 => Values::B16(ints().map(i128::to_le_bytes).collect()),
        Physical::Views => {
            let mut views = Views::new();
            cells.iter().for_each(|c| views.push(if let Cell::Bytes(v) = c { v } else { &[] }));
            Values::Views(views)
        }
    };
    (values, dictionary)
}

/// Returns the content of a version of a table, in the order of queries.
pub fn read(table: &TableSnapshot) -> Result<Table, String> {
    let columns = table.schema.columns.iter().map(|c| ColumnModel {
        name: c.name.clone(),
        column_type: c.column_type,
        is_designated: Some(c.id) == table.schema.designated,
        is_key: table.schema.dedup.contains(&c.id),
    });
    let schema = Schema {
        name: table.schema.name.clone(),
        columns: columns.collect(),
        partition_by: table.schema.partition_by,
        ttl: table.schema.ttl,
    };
    let alive = |piece: Piece| piece.rows.into_iter().zip(piece.is_dead).filter(|(_, is_dead)| !is_dead);
    let rows = pieces(table)?.into_iter().flat_map(alive).map(|(row, _)| Arc::new(row)).collect();
    let found = Table { schema, rows };
    let rows = found.ordered();
    Ok(Table { rows, ..found })
}

/// The rows of a segment or run, including deleted rows.
pub struct Piece {
    pub rows: Vec<Vec<Cell>>,
    pub is_dead: Vec<bool>,
}

/// Returns the pieces of every segment, then of every run.
pub fn pieces(table: &TableSnapshot) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    for segment in table.segments.iter() {
        let mut rows = Vec::new();
        for block in 0..segment.block_count() {
            let count = (segment.rows() as usize - block * BLOCK_ROWS).min(BLOCK_ROWS);
            let read = |id| segment.read(id, block).map(|b| b.map(|b| to_column(&b))).map_err(|e| e.to_string());
            push_rows(table, count, &mut rows, &read)?;
        }
        let mask = table.mask(segment);
        let is_dead = (0..rows.len()).map(|row| mask.is_some_and(|m| m.is_dead(row))).collect();
        pieces.push(Piece { rows, is_dead });
    }
    for run in table.runs.iter() {
        let mut rows = Vec::new();
        push_rows(table, run.rows, &mut rows, &|id| Ok(run.column(id).map(|c| Column::clone(c))))?;
        let is_dead = (0..rows.len()).map(|row| run.is_dead(row)).collect();
        pieces.push(Piece { rows, is_dead });
    }
    Ok(pieces)
}

fn push_rows(
    table: &TableSnapshot,
    count: usize,
    rows: &mut Vec<Vec<Cell>>,
    read: &dyn Fn(ColumnId) -> Result<Option<Column>, String>,
) -> Result<(), String> {
    let first = rows.len();
    rows.resize_with(first + count, || Vec::with_capacity(table.schema.columns.len()));
    for schema in &table.schema.columns {
        let symbols = table.symbols.get(&schema.id).map(|map| map.strings());
        let column = read(schema.id)?;
        if column.as_ref().is_some_and(|c| c.len() != count) {
            return Err(format!("column {} of {count} rows has another number of them", schema.name));
        }
        for row in 0..count {
            let cell = match &column {
                Some(column) if column.is_valid(row) => cell(&column.values, row, symbols.as_deref()),
                _ => Cell::Null,
            };
            rows[first + row].push(cell);
        }
    }
    Ok(())
}

fn cell(values: &Values, row: usize, symbols: Option<&Views>) -> Cell {
    Cell::Int(match values {
        Values::Bit(v) => i128::from(v.get(row)),
        Values::I8(v) => v[row].into(),
        Values::I16(v) => v[row].into(),
        Values::I32(v) => v[row].into(),
        Values::I64(v) => v[row].into(),
        Values::I128(v) => v[row],
        Values::F32(v) => v[row].to_bits().into(),
        Values::F64(v) => v[row].to_bits().into(),
        Values::U32(v) => match symbols {
            Some(symbols) => return Cell::Bytes(symbols.get(v[row] as usize).into()),
            None => v[row].into(),
        },
        Values::B16(v) => i128::from_le_bytes(v[row]),
        Values::Views(v) => return Cell::Bytes(v.get(row).into()),
    })
}
