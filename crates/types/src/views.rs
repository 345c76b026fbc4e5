//! Variable-length values: one 16-byte view per row plus a buffer of data, like Arrow's `Utf8View`.
//!
//! A view has the little-endian fields: length (u32), then the value padded with zeros if it has at most 12 bytes;
//! otherwise its first 4 bytes, buffer number (u32, always 0 here) and offset into the data (u32).
//!
//! A `DOUBLE[]…` value consists of the extents of its dimensions (u32 each, outermost first) and the doubles in
//! row-major order (8 bytes each), all little-endian. A NULL element is the NaN [`NULL_ELEMENT_BITS`].

/// The bits of a NULL array element: a NaN, which R uses for NA.
pub const NULL_ELEMENT_BITS: u64 = 0x7FF0_0000_0000_07A2;

/// A view of at most this many bytes contains the value itself.
pub const INLINE_BYTES: usize = 12;

/// Views and their data.
///
/// Invariant: `data` is shorter than 2 GiB, so that offsets fit Arrow's views.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Views {
    views: Vec<u128>,
    data: Vec<u8>,
}

/// Size of the data of [`Views`] above which [`Views::has_room`] returns false.
pub const DATA_BYTES_MAX: usize = i32::MAX as usize;

impl Views {
    #[must_use]
    pub fn new() -> Views {
        Views::default()
    }

    #[must_use]
    pub fn with_capacity(rows: usize) -> Views {
        Views { views: Vec::with_capacity(rows), data: Vec::new() }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.views.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.views.is_empty()
    }

    #[must_use]
    pub fn views(&self) -> &[u128] {
        &self.views
    }

    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// Returns views and data.
    #[must_use]
    pub fn into_parts(self) -> (Vec<u128>, Vec<u8>) {
        (self.views, self.data)
    }

    /// Returns true if `bytes` more can be pushed.
    #[must_use]
    pub fn has_room(&self, bytes: usize) -> bool {
        self.data.len() + bytes <= DATA_BYTES_MAX
    }

    /// Appends a value.
    ///
    /// # Panics
    /// Panics if the data would exceed 2 GiB; callers with input of any size check [`Views::has_room`] first.
    #[inline]
    pub fn push(&mut self, value: &[u8]) {
        let view = if value.len() <= INLINE_BYTES {
            inline_view(value)
        } else {
            assert!(self.has_room(value.len()), "more than 2 GiB of text in one column of a batch");
            let view = outline_view(value, self.data.len());
            self.data.extend_from_slice(value);
            view
        };
        self.views.push(view);
    }

    /// Appends rows without a value: empty ones, to be marked NULL by the validity.
    pub fn push_empty(&mut self, count: usize) {
        self.views.resize(self.views.len() + count, 0);
    }

    #[must_use]
    pub fn get(&self, row: usize) -> &[u8] {
        self.as_ref().get(row)
    }

    #[must_use]
    pub fn as_ref(&self) -> ViewsRef<'_> {
        ViewsRef { views: &self.views, data: &self.data }
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|row| self.get(row))
    }

    pub fn extend_from_range(&mut self, other: ViewsRef<'_>, from: usize, count: usize) {
        for row in from..from + count {
            self.push(other.get(row));
        }
    }

    /// Returns row `rows[i]` as row `i`; the data stays unchanged, including data that no row needs any more.
    ///
    /// # Panics
    /// Panics if a row is past the end.
    #[must_use]
    pub fn reordered(self, rows: &[u32]) -> Views {
        Views { views: rows.iter().map(|row| self.views[*row as usize]).collect(), data: self.data }
    }

    /// Drops the rows from `rows` on, and their data, which follows that of the previous rows.
    pub fn truncate(&mut self, rows: usize) {
        let dropped = self.views.get(rows..).unwrap_or_default();
        if let Some(first) = dropped.iter().find(|view| **view as u32 as usize > INLINE_BYTES) {
            self.data.truncate((*first >> 96) as usize);
        }
        self.views.truncate(rows);
    }
}

/// Borrowed views with any owner.
#[derive(Clone, Copy, Debug)]
pub struct ViewsRef<'a> {
    pub views: &'a [u128],
    pub data: &'a [u8],
}

impl<'a> ViewsRef<'a> {
    #[inline]
    #[must_use]
    pub fn get(&self, row: usize) -> &'a [u8] {
        view_bytes(&self.views[row], self.data)
    }
}

/// Returns the bytes of a view.
#[inline]
#[must_use]
pub fn view_bytes<'a>(view: &'a u128, data: &'a [u8]) -> &'a [u8] {
    let len = *view as u32 as usize;
    if len <= INLINE_BYTES {
        // The host is little-endian (checked below), so the bytes of the integer are the bytes of the view.
        &as_bytes(view)[4..4 + len]
    } else {
        let offset = (*view >> 96) as usize;
        &data[offset..offset + len]
    }
}

/// Returns the view of a short value.
///
/// # Panics
/// Panics if `value` is longer than [`INLINE_BYTES`].
#[inline]
#[must_use]
pub fn inline_view(value: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    bytes[0] = value.len() as u8;
    bytes[4..4 + value.len()].copy_from_slice(value);
    u128::from_le_bytes(bytes)
}

#[inline]
#[must_use]
pub fn outline_view(value: &[u8], offset: usize) -> u128 {
    let prefix = u32::from_le_bytes([value[0], value[1], value[2], value[3]]);
    value.len() as u128 | u128::from(prefix) << 32 | (offset as u128) << 96
}

const _: () = assert!(cfg!(target_endian = "little"), "the formats of memory and disk are little-endian");

fn as_bytes(view: &u128) -> &[u8; 16] {
    bytemuck::cast_ref(view)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_on_both_sides_of_the_inline_limit() {
        let mut views = Views::new();
        let values: Vec<Vec<u8>> = (0..40).map(|n| (0..n).map(|i| (i * 7 + n) as u8).collect()).collect();
        values.iter().for_each(|v| views.push(v));
        assert!(views.iter().eq(values.iter().map(Vec::as_slice)));
        let mut copy = Views::new();
        copy.extend_from_range(views.as_ref(), 10, 30);
        assert!(copy.iter().eq(values[10..].iter().map(Vec::as_slice)));
        let before = copy.clone();
        copy.extend_from_range(views.as_ref(), 0, 40);
        copy.truncate(before.len());
        assert_eq!(copy, before);
    }
}
