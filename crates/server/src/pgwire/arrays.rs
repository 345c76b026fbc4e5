//! Lists as PostgreSQL's arrays: `{1,NULL}` as text, dimensions and elements in the binary form.
//!
//! PostgreSQL's arrays of several dimensions are rectangular; a list of lists of different lengths has a text all the
//! same, and no binary form.

use super::values::Cells;
use arrow::array::ListArray;
use std::ops::Range;
use tidalite::types::pg_type::PgType;
use tidalite::types::text::quote_array_item;
use tidalite::{Error, ErrorKind, Result};

fn range(list: &ListArray, row: usize) -> Range<usize> {
    let offsets = list.value_offsets();
    offsets[row] as usize..offsets[row + 1] as usize
}

impl Cells<'_> {
    /// Writes a list of these values, `{1,NULL}`.
    pub(super) fn push_list_text(&self, list: &ListArray, row: usize, out: &mut Vec<u8>) {
        out.push(b'{');
        let range = range(list, row);
        for item in range.clone() {
            if item > range.start {
                out.push(b',');
            }
            if self.is_null(item) {
                out.extend_from_slice(b"NULL");
            } else if self.as_list().is_some() {
                self.push_text(item, out);
            } else {
                let start = out.len();
                self.push_text(item, out);
                quote_array_item(out, start);
            }
        }
        out.push(b'}');
    }

    /// `1 2`: the form of vectors of the catalog.
    pub(super) fn push_vector_text(&self, list: &ListArray, row: usize, out: &mut Vec<u8>) {
        for (at, item) in range(list, row).enumerate() {
            if at > 0 {
                out.push(b' ');
            }
            self.push_text(item, out);
        }
    }

    /// The binary form; `lower` is the number of the first item of each dimension.
    ///
    /// # Errors
    /// On a list that is not rectangular.
    pub(super) fn push_list_bytes(
        &self,
        list: &ListArray,
        row: usize,
        (element, lower): (PgType, i32),
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let mut lengths = Vec::new();
        measure(list, row, self, &mut lengths);
        let is_empty = lengths.contains(&0);
        let lengths = if is_empty { &[][..] } else { &lengths[..] };
        let start = out.len();
        out.extend_from_slice(&(lengths.len() as i32).to_be_bytes());
        out.extend_from_slice(&0i32.to_be_bytes());
        out.extend_from_slice(&element.oid.to_be_bytes());
        for length in lengths {
            out.extend_from_slice(&(*length as i32).to_be_bytes());
            out.extend_from_slice(&lower.to_be_bytes());
        }
        if is_empty {
            return Ok(());
        }
        let has_nulls = push_items(out, list, row, self, lengths)?;
        out[start + 4..start + 8].copy_from_slice(&i32::from(has_nulls).to_be_bytes());
        Ok(())
    }
}

/// The lengths of the dimensions, by the first item of each.
fn measure(list: &ListArray, row: usize, items: &Cells, lengths: &mut Vec<usize>) {
    let range = range(list, row);
    lengths.push(range.len());
    if let Some((inner, inner_items)) = items.as_list()
        && !range.is_empty()
    {
        measure(inner, range.start, inner_items, lengths);
    }
}

/// Whether any element is NULL.
fn push_items(out: &mut Vec<u8>, list: &ListArray, row: usize, items: &Cells, lengths: &[usize]) -> Result<bool> {
    let range = range(list, row);
    if lengths.first() != Some(&range.len()) {
        let message = "multidimensional arrays must have sub-arrays with matching dimensions";
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    let mut has_nulls = false;
    for item in range {
        if let Some((inner, inner_items)) = items.as_list() {
            has_nulls |= push_items(out, inner, item, inner_items, &lengths[1..])?;
        } else {
            has_nulls |= items.is_null(item);
            items.write(item, true, out)?;
        }
    }
    Ok(has_nulls)
}
