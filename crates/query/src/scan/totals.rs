//! What the wanted rows of a piece come to, a row a piece: how many they are and, of each [`Total`], how many have a value
//! and their sum.

use super::filters::Wanted;
use super::prune::Piece;
use super::read::Reader;
use super::spec::Total;
use crate::{Error, Result};
use datafusion::arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, Float64Array, Int64Array, PrimitiveArray, RecordBatch,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema, SchemaRef};
use std::borrow::Cow;
use std::sync::Arc;
use tidalite_kernels::{sum_floats, sum_ints};
use tidalite_storage::Sum;
use tidalite_storage::segment::{Selection, Totals};

/// The columns that come out: that of the rows, then two for each total.
pub(super) fn schema(scan: &Schema, totals: &[Total]) -> SchemaRef {
    let mut fields = vec![Field::new("rows", DataType::Int64, false)];
    for total in totals {
        let name = scan.field(total.column).name();
        let sum = if total.is_float { DataType::Float64 } else { DataType::Int64 };
        fields.push(Field::new(format!("count({name})"), DataType::Int64, false));
        fields.push(Field::new(format!("sum({name})"), sum, false));
    }
    Arc::new(Schema::new(fields))
}

impl Reader {
    /// A row, or none where no row is wanted.
    pub(super) fn totals(&self, piece: Piece, totals: &[Total]) -> Result<RecordBatch> {
        let (rows, of_columns) = match piece {
            Piece::Block { segment, block } => {
                let (selection, rows) = match self.wanted(piece)? {
                    Wanted::All => (None, self.rows_of(piece)),
                    Wanted::Some { rows: 0, .. } => return Ok(RecordBatch::new_empty(self.schema.clone())),
                    Wanted::Some { mask, rows } => (Some(Selection::new(mask)), rows),
                };
                let segment = &self.snapshot.segments[segment];
                let of = |column: usize| {
                    let found = segment.totals(self.column(column).id, block, selection.as_ref());
                    let none = Totals { present: 0, sum: Sum::Ints(0) };
                    Ok(found.map_err(|e| self.snapshot.named(e))?.unwrap_or(none))
                };
                (rows, each(totals, of)?)
            }
            Piece::Run { run, from, rows } => {
                let (arrays, rows) = self.run(run, from, rows)?;
                if rows == 0 {
                    return Ok(RecordBatch::new_empty(self.schema.clone()));
                }
                (rows, each(totals, |column| of_array(&arrays[column]))?)
            }
        };
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(vec![rows as i64]))];
        for (total, found) in totals.iter().zip(of_columns) {
            arrays.push(Arc::new(Int64Array::from(vec![found.present as i64])));
            arrays.push(match (found.sum, total.is_float) {
                // Sums of integers are modulo 2⁶⁴.
                (Sum::Ints(sum), false) => Arc::new(Int64Array::from(vec![sum as i64])),
                (Sum::Ints(sum), true) => Arc::new(Float64Array::from(vec![sum as f64])),
                (Sum::Floats(sum), true) => Arc::new(Float64Array::from(vec![sum])),
                (Sum::Floats(_), false) => return Err(Error::internal("a sum of floating point as an integer")),
            });
        }
        RecordBatch::try_new(self.schema.clone(), arrays).map_err(|e| Error::internal(e.to_string()))
    }
}

/// Of each total; a column that is in several is summed up once.
fn each(totals: &[Total], of: impl Fn(usize) -> Result<Totals>) -> Result<Vec<Totals>> {
    let mut found: Vec<Totals> = Vec::with_capacity(totals.len());
    for (at, total) in totals.iter().enumerate() {
        let known = totals[..at].iter().position(|other| other.column == total.column);
        found.push(known.map_or_else(|| of(total.column), |known| Ok(found[known]))?);
    }
    Ok(found)
}

fn of_array(array: &ArrayRef) -> Result<Totals> {
    let is_float = matches!(array.data_type(), DataType::Float32 | DataType::Float64);
    let wide = cast(array, if is_float { &DataType::Float64 } else { &DataType::Int64 });
    let wide = wide.map_err(|e| Error::internal(e.to_string()))?;
    let sum = if is_float {
        Sum::Floats(sum_floats(&there(wide.as_primitive::<Float64Type>())))
    } else {
        Sum::Ints(sum_ints(&there(wide.as_primitive::<Int64Type>())))
    };
    Ok(Totals { present: array.len() - array.null_count(), sum })
}

/// The values that are not NULL.
fn there<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>) -> Cow<'_, [T::Native]> {
    match array.null_count() {
        0 => Cow::Borrowed(array.values()),
        _ => Cow::Owned(array.iter().flatten().collect()),
    }
}
