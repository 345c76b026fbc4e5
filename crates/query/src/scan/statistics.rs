//! What a scan's rows hold, from zone maps: DataFusion answers `count`, `min` and `max` over a whole table from it and
//! orders joins by it.

use super::prune::{Piece, Pruned};
use super::read::{ADDRESS_COLUMN, Reader};
use super::spec::{Order, ScanSpec};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};
use tidalite_kernels::{min_max, min_max_f64};
use tidalite_storage::{Bounds, TableSnapshot, Zone};
use tidalite_types::{Bitmap, Column, ColumnId, Values};

/// Values in staging above which they are not looked at before a query runs.
const STAGED_VALUES_MAX: usize = 1 << 20;

/// Row count and the range of the designated timestamp are known without reading, the rest from footers; exactly,
/// unless rows are pruned or dead.
pub(super) fn statistics(spec: &ScanSpec, reader: &Reader, pruned: &Pruned) -> Statistics {
    let mut statistics = Statistics::new_unknown(&reader.schema);
    let is_exact = !spec.is_filtered();
    let rows: usize = pruned.sources.iter().map(|s| s.rows).sum();
    if !is_exact {
        // What DataFusion's own filters expect when they know nothing.
        statistics.num_rows = Precision::Inexact(rows.div_ceil(5));
        return statistics;
    }
    statistics.num_rows = Precision::Exact(rows);
    if pruned.sources.is_empty() || pruned.sources.iter().any(|s| s.has_dead) {
        return statistics;
    }
    let range = pruned.sources.iter().map(|s| s.time_range).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    // A scan in order, or with a limit, may stop long before it would read as many footers.
    let reads_all = spec.order == Order::Free && spec.limit.is_none();
    let staged = reader.snapshot.runs.iter().map(|run| run.rows).sum::<usize>() * spec.projection.len();
    let columns = reader.schema.fields().iter().zip(&spec.projection);
    for ((field, id), column) in columns.zip(&mut statistics.column_statistics) {
        let known = if crate::door::is_designated(field) {
            range.map(|(min, max)| Known { nulls: 0, bounds: Some(Bounds::Int(min, max)) })
        } else if reads_all && *id != ADDRESS_COLUMN && staged <= STAGED_VALUES_MAX {
            known(&reader.snapshot, *id, pruned)
        } else {
            None
        };
        if let Some(known) = known {
            *column = known.statistics(field);
        }
    }
    statistics
}

/// Of some rows of one column.
struct Known {
    nulls: usize,
    /// [`Bounds::None`] while there was no value; `None` where they are not known.
    bounds: Option<Bounds>,
}

/// Of all rows of a column, when no block is missing and no row is dead. `None` where a footer cannot be read, which
/// is for the scan to say.
fn known(snapshot: &TableSnapshot, column: ColumnId, pruned: &Pruned) -> Option<Known> {
    let mut known = Known { nulls: 0, bounds: Some(Bounds::None) };
    for piece in pruned.sources.iter().flat_map(|source| &source.pieces) {
        match *piece {
            Piece::Block { segment, block } => {
                let segment = &snapshot.segments[segment];
                known.add(segment.zone(column, block).ok()?, segment.block_rows(block));
            }
            // The first piece stands for the whole run.
            Piece::Run { run, from: 0, .. } => {
                let run = &snapshot.runs[run];
                known.add(run.column(column).map(|column| zone(column, run.rows)), run.rows);
            }
            Piece::Run { .. } => {}
        }
    }
    Some(known)
}

impl Known {
    /// Adds `rows` rows; without a zone all of them are NULL.
    fn add(&mut self, zone: Option<Zone>, rows: usize) {
        let Some(zone) = zone else {
            self.nulls += rows;
            return;
        };
        self.nulls += zone.null_count as usize;
        if zone.null_count as usize == rows {
            return;
        }
        self.bounds = match (self.bounds, zone.bounds) {
            (Some(Bounds::None), bounds) if bounds != Bounds::None => Some(bounds),
            (Some(Bounds::Int(a, b)), Bounds::Int(min, max)) => Some(Bounds::Int(a.min(min), b.max(max))),
            (Some(Bounds::Float(a, b)), Bounds::Float(min, max)) if !b.is_nan() && !max.is_nan() => {
                Some(Bounds::Float(a.min(min), b.max(max)))
            }
            _ => None,
        };
    }

    fn statistics(&self, field: &Field) -> ColumnStatistics {
        let (min_value, max_value) = self.bounds.map_or((Precision::Absent, Precision::Absent), |bounds| {
            let (min, max) = match bounds {
                Bounds::Int(min, max) => (ScalarValue::Int64(Some(min)), ScalarValue::Int64(Some(max))),
                // A NaN is only known to be somewhere.
                Bounds::Float(min, max) if !max.is_nan() => (min.into(), max.into()),
                _ => return (Precision::Absent, Precision::Absent),
            };
            (exact(&min, field), exact(&max, field))
        });
        let null_count = Precision::Exact(self.nulls);
        ColumnStatistics { null_count, min_value, max_value, ..ColumnStatistics::new_unknown() }
    }
}

fn exact(value: &ScalarValue, field: &Field) -> Precision<ScalarValue> {
    let is_plain = matches!(
        field.data_type(),
        DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::UInt32
            | DataType::Float32
            | DataType::Float64
            | DataType::Date32
            | DataType::Timestamp(..)
    );
    match value.cast_to(field.data_type()) {
        Ok(value) if is_plain => Precision::Exact(value),
        _ => Precision::Absent,
    }
}

/// Null count and bounds of a staged column.
fn zone(column: &Column, rows: usize) -> Zone {
    let validity = column.validity.as_ref();
    let null_count = validity.map_or(0, |validity| rows - validity.count_ones()) as u32;
    let bounds = match &column.values {
        Values::I64(values) if null_count == 0 => min_max(values).map(|(min, max)| Bounds::Int(min, max)),
        Values::F64(values) if null_count == 0 => min_max_f64(values).map(|(min, max)| Bounds::Float(min, max)),
        Values::I8(values) => int_bounds(values, validity),
        Values::I16(values) => int_bounds(values, validity),
        Values::I32(values) => int_bounds(values, validity),
        Values::I64(values) => int_bounds(values, validity),
        Values::F32(values) => float_bounds(values, validity),
        Values::F64(values) => float_bounds(values, validity),
        _ => None,
    };
    Zone { null_count, bounds: bounds.unwrap_or(Bounds::None) }
}

fn int_bounds<T: Copy + Into<i64>>(values: &[T], validity: Option<&Bitmap>) -> Option<Bounds> {
    let values: Vec<i64> = present(values, validity).map(Into::into).collect();
    min_max(&values).map(|(min, max)| Bounds::Int(min, max))
}

fn float_bounds<T: Copy + Into<f64>>(values: &[T], validity: Option<&Bitmap>) -> Option<Bounds> {
    let values: Vec<f64> = present(values, validity).map(Into::into).collect();
    min_max_f64(&values).map(|(min, max)| Bounds::Float(min, max))
}

fn present<'a, T: Copy>(values: &'a [T], validity: Option<&'a Bitmap>) -> impl Iterator<Item = T> + 'a {
    let is_present = move |row: &usize| validity.is_none_or(|validity| validity.get(*row));
    (0..values.len()).filter(is_present).map(|row| values[row])
}
