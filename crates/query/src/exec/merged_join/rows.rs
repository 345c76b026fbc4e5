//! One side's rows of a slice, of all pieces that have some, in order of time.

use super::side::{Cell, Part, Side, Span};
use crate::{CancelToken, Error, Result};
use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::buffer::ScalarBuffer;
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::{ArrowNativeType, DataType};
use datafusion::common::DataFusionError;
use std::ops::Range;
use std::sync::Arc;
use tidalite_operators::time_join::{NONE, as_rows, gathered, keys_in_order, times_in_order, woven};

#[derive(Debug)]
pub(super) struct SideRows {
    parts: Vec<(Arc<Part>, Range<usize>)>,
    /// Those without a time, too, which are behind the others.
    pub rows: usize,
    pub times: ScalarBuffer<i64>,
    pub raw: ScalarBuffer<i64>,
    pub keys: Option<ScalarBuffer<u32>>,
    /// For each place in order the row there, where rows of several sources were woven.
    order: Option<Vec<u32>>,
}

impl SideRows {
    pub fn of(side: &Side, sources: &[Vec<(Arc<Cell>, Span)>], cancel: &CancelToken) -> Result<SideRows> {
        let (mut parts, mut ends) = (Vec::new(), Vec::new());
        for source in sources {
            for (cell, span) in source {
                cancel.check()?;
                let Some(part) = side.part(cell)? else { continue };
                let range = part.range(span);
                if !range.is_empty() {
                    parts.push((part, range));
                }
            }
            if ends.last().copied().unwrap_or(0) < parts.len() {
                ends.push(parts.len());
            }
        }
        let rows = parts.iter().map(|(_, range)| range.len()).sum();
        if rows >= (NONE / 2) as usize {
            return Err(Error::invalid("too many rows of one time to join"));
        }
        let timed = |part: &Part, range: &Range<usize>| range.start..range.end.min(part.times.len());
        let all = |of: fn(&Part) -> &ScalarBuffer<i64>| {
            joined(parts.iter().map(|(part, range)| (of(part), timed(part, range))))
        };
        let (times, raw) = (all(|part| &part.times), all(|part| &part.raw));
        let of_keys = parts.iter().filter_map(|(part, range)| Some((part.keys.as_ref()?, timed(part, range))));
        let keys = side.keys.are_there().then(|| joined(of_keys));
        let mut whole = SideRows { parts, rows, times, raw, keys, order: None };
        if ends.len() > 1 {
            whole.weave(&ends);
        }
        Ok(whole)
    }

    fn weave(&mut self, ends: &[usize]) {
        let rows_to = |parts: usize| self.parts[..parts].iter().map(|(_, range)| range.len()).sum::<usize>();
        let mut from = 0;
        let sources = ends.iter().map(|end| {
            let to = rows_to(*end);
            // The merge compares raw times: two times may be equal in the coarser common unit of both sides.
            &self.raw[std::mem::replace(&mut from, to)..to]
        });
        let order = woven(&sources.collect::<Vec<_>>());
        self.times = times_in_order(&self.times, &order).into();
        self.raw = times_in_order(&self.raw, &order).into();
        self.keys = self.keys.as_ref().map(|keys| keys_in_order(keys, &order).into());
        self.order = Some(order);
    }

    /// Rows in order as they lie; others stay.
    pub fn lie(&self, rows: &mut [u32]) {
        if let Some(order) = &self.order {
            as_rows(rows, order);
        }
    }

    /// A column as it lies.
    pub fn arrays(&self, column: usize) -> Vec<ArrayRef> {
        self.parts.iter().map(|(part, range)| part.columns[column].slice(range.start, range.len())).collect()
    }

    /// A column in order.
    pub fn column(&self, column: usize, data_type: &DataType) -> Result<ArrayRef> {
        let arrays = self.arrays(column);
        let made = match (&self.order, arrays.as_slice()) {
            (Some(order), _) => gathered(&arrays, order, data_type),
            (None, [one]) => return Ok(one.clone()),
            (None, []) => gathered(&[], &[], data_type),
            (None, many) => concat(&many.iter().map(AsRef::as_ref).collect::<Vec<&dyn Array>>()),
        };
        made.map_err(|e| DataFusionError::from(e).into())
    }
}

/// Stretches of buffers as one; a copy only where there are several.
fn joined<'a, T: ArrowNativeType>(
    mut parts: impl Iterator<Item = (&'a ScalarBuffer<T>, Range<usize>)> + Clone,
) -> ScalarBuffer<T> {
    let rest = parts.clone();
    match (parts.next(), parts.next()) {
        (None, _) => ScalarBuffer::from(Vec::new()),
        (Some((one, range)), None) => one.slice(range.start, range.len()),
        _ => {
            let mut all = Vec::with_capacity(rest.clone().map(|(_, range)| range.len()).sum());
            rest.for_each(|(part, range)| all.extend_from_slice(&part[range]));
            all.into()
        }
    }
}
