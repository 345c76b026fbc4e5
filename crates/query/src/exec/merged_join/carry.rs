//! What a slice leaves to the next: of each key the latest right row so far.

use super::rows::SideRows;
use super::side::Part;
use crate::Result;
use datafusion::arrow::array::{ArrayRef, new_empty_array};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::DataFusionError;
use datafusion::execution::memory_pool::MemoryReservation;
use tidalite_operators::time_join::{NONE, gathered};

#[derive(Debug)]
pub(super) struct Carry {
    /// For each key its row here.
    place_of: Vec<u32>,
    /// Times and columns of the rows.
    raw: Vec<i64>,
    columns: Vec<ArrayRef>,
    _memory: MemoryReservation,
}

impl Carry {
    pub fn empty(types: &[DataType], memory: MemoryReservation) -> Carry {
        let columns = types.iter().map(new_empty_array).collect();
        Carry { place_of: Vec::new(), raw: Vec::new(), columns, _memory: memory }
    }

    /// Of rows that are each the latest of their key.
    pub fn of(part: &Part, memory: MemoryReservation) -> Result<Carry> {
        memory.try_grow(part.rows * 12)?;
        let mut place_of = Vec::new();
        for (row, key) in part.keys.iter().flat_map(|keys| keys.iter().enumerate()) {
            if *key != NONE {
                place_of.resize(place_of.len().max(*key as usize + 1), NONE);
                place_of[*key as usize] = row as u32;
            }
        }
        Ok(Carry { place_of, raw: part.raw.to_vec(), columns: part.columns.clone(), _memory: memory })
    }

    /// Behind a slice, when `last` says for each key the latest of the slice's rows, if there is one.
    pub fn with(&self, last: &[u32], rows: &SideRows, types: &[DataType], memory: MemoryReservation) -> Result<Carry> {
        let keys = last.len().max(self.place_of.len());
        memory.try_grow(keys * 16)?;
        let (mut place_of, mut kept) = (vec![NONE; keys], Vec::new());
        for (key, place) in place_of.iter_mut().enumerate() {
            let row = match last.get(key) {
                Some(row) if *row != NONE => *row,
                _ => self.place(key as u32).map_or(NONE, |place| rows.rows as u32 + place),
            };
            if row != NONE {
                *place = kept.len() as u32;
                kept.push(row);
            }
        }
        let raw = kept.iter().map(|row| self.time(*row, rows)).collect();
        rows.lie(&mut kept);
        let columns = types.iter().enumerate().map(|(column, own)| self.gathered(column, &kept, rows, own));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        memory.try_grow(columns.iter().map(|column| column.get_array_memory_size()).sum())?;
        Ok(Carry { place_of, raw, columns, _memory: memory })
    }

    fn place(&self, key: u32) -> Option<u32> {
        self.place_of.get(key as usize).copied().filter(|place| *place != NONE)
    }

    /// For each key its row.
    pub fn places(&self) -> &[u32] {
        &self.place_of
    }

    pub fn column(&self, column: usize) -> &ArrayRef {
        &self.columns[column]
    }

    pub fn times(&self) -> &[i64] {
        &self.raw
    }

    /// The time of a row in order of a slice or, counted behind all of them, of this.
    pub fn time(&self, row: u32, rows: &SideRows) -> i64 {
        match rows.raw.get(row as usize) {
            Some(time) => *time,
            None => self.raw.get(row as usize - rows.raw.len()).copied().unwrap_or_default(),
        }
    }

    /// A column of rows as they lie in a slice or, counted behind all of them, in this.
    pub fn gathered(&self, column: usize, places: &[u32], rows: &SideRows, data_type: &DataType) -> Result<ArrayRef> {
        let mut arrays = rows.arrays(column);
        arrays.push(self.columns[column].clone());
        gathered(&arrays, places, data_type).map_err(|e| DataFusionError::from(e).into())
    }
}
