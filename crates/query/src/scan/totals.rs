//! What the wanted rows of pieces come to, a row for each thread: how many they are and, of each [`Total`], how many have
//! a value and their sum.

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
use tidalite_storage::segment::Totals;

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

/// What the pieces of one thread come to.
pub(super) struct Sums {
    /// Wanted ones.
    rows: usize,
    of_totals: Vec<Totals>,
}

impl Sums {
    pub fn new(totals: &[Total]) -> Sums {
        let nothing = |total: &Total| Totals { present: 0, sum: zero(total.is_float) };
        Sums { rows: 0, of_totals: totals.iter().map(nothing).collect() }
    }

    /// Adds a piece, and gives how many of its rows are wanted.
    pub fn add(&mut self, reader: &Reader, piece: Piece, totals: &[Total]) -> Result<usize> {
        let (rows, of_piece) = match piece {
            Piece::Block { segment, block } => {
                let (selection, rows) = match reader.wanted(piece)? {
                    Wanted::All => (None, reader.rows_of(piece)),
                    Wanted::Some(some) if some.rows() == 0 => return Ok(0),
                    Wanted::Some(some) => {
                        let rows = some.rows();
                        (Some(some), rows)
                    }
                };
                let segment = &reader.snapshot.segments[segment];
                let of = |column: usize| {
                    let found = segment.totals(reader.column(column).id, block, selection.as_ref());
                    let none = Totals { present: 0, sum: Sum::Ints(0) };
                    Ok(found.map_err(|e| reader.snapshot.named(e))?.unwrap_or(none))
                };
                (rows, each(totals, of)?)
            }
            Piece::Run { run, from, rows } => {
                let (arrays, rows) = reader.run(run, from, rows, None)?;
                if rows == 0 {
                    return Ok(0);
                }
                (rows, each(totals, |column| of_array(&arrays[column]))?)
            }
        };
        self.rows += rows;
        for (all, own) in self.of_totals.iter_mut().zip(of_piece) {
            all.present += own.present;
            all.sum = joined(all.sum, own.sum)?;
        }
        Ok(rows)
    }

    /// A row, or none where no row is wanted.
    pub fn finish(self, schema: &SchemaRef) -> Result<RecordBatch> {
        if self.rows == 0 {
            return Ok(RecordBatch::new_empty(schema.clone()));
        }
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(vec![self.rows as i64]))];
        for found in self.of_totals {
            arrays.push(Arc::new(Int64Array::from(vec![found.present as i64])));
            arrays.push(match found.sum {
                Sum::Ints(sum) => {
                    let sum = i64::try_from(sum).map_err(|_| Error::sum_past_end())?;
                    Arc::new(Int64Array::from(vec![sum]))
                }
                Sum::Floats(sum) => Arc::new(Float64Array::from(vec![sum])),
            });
        }
        RecordBatch::try_new(schema.clone(), arrays).map_err(|e| Error::internal(e.to_string()))
    }
}

/// The one that changes no sum, not even that of −0 alone.
fn zero(is_float: bool) -> Sum {
    if is_float { Sum::Floats(-0.0) } else { Sum::Ints(0) }
}

/// Of the kind of `all`.
fn joined(all: Sum, own: Sum) -> Result<Sum> {
    Ok(match (all, own) {
        (Sum::Ints(all), Sum::Ints(own)) => Sum::Ints(all.saturating_add(own)),
        // Of integers that are summed up as such.
        (Sum::Floats(all), Sum::Ints(own)) => Sum::Floats(all + own as f64),
        (Sum::Floats(all), Sum::Floats(own)) => Sum::Floats(all + own),
        (Sum::Ints(_), Sum::Floats(_)) => return Err(Error::internal("a sum of floating point as an integer")),
    })
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
