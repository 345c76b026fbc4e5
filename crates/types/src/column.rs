//! The values of one column for a number of rows, in memory.

use crate::column_type::Physical;
use crate::{Bitmap, Views};

#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    Bit(Bitmap),
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    I128(Vec<i128>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    U32(Vec<u32>),
    B16(Vec<[u8; 16]>),
    Views(Views),
}

/// Calls `$body` with `$v` bound to the vector of a fixed-width variant, `$bit` and `$views` for the two others.
#[macro_export]
macro_rules! match_values {
    ($values:expr, $v:ident => $body:expr, Bit($bit:ident) => $bit_body:expr, Views($views:ident) => $views_body:expr $(,)?) => {
        match $values {
            $crate::Values::Bit($bit) => $bit_body,
            $crate::Values::I8($v) => $body,
            $crate::Values::I16($v) => $body,
            $crate::Values::I32($v) => $body,
            $crate::Values::I64($v) => $body,
            $crate::Values::I128($v) => $body,
            $crate::Values::F32($v) => $body,
            $crate::Values::F64($v) => $body,
            $crate::Values::U32($v) => $body,
            $crate::Values::B16($v) => $body,
            $crate::Values::Views($views) => $views_body,
        }
    };
}

impl Values {
    #[must_use]
    pub fn with_capacity(physical: Physical, rows: usize) -> Values {
        match physical {
            Physical::Bit => Values::Bit(Bitmap::new()),
            Physical::I8 => Values::I8(Vec::with_capacity(rows)),
            Physical::I16 => Values::I16(Vec::with_capacity(rows)),
            Physical::I32 => Values::I32(Vec::with_capacity(rows)),
            Physical::I64 => Values::I64(Vec::with_capacity(rows)),
            Physical::I128 => Values::I128(Vec::with_capacity(rows)),
            Physical::F32 => Values::F32(Vec::with_capacity(rows)),
            Physical::F64 => Values::F64(Vec::with_capacity(rows)),
            Physical::U32 => Values::U32(Vec::with_capacity(rows)),
            Physical::B16 => Values::B16(Vec::with_capacity(rows)),
            Physical::Views => Values::Views(Views::with_capacity(rows)),
        }
    }

    #[must_use]
    pub fn physical(&self) -> Physical {
        match self {
            Values::Bit(_) => Physical::Bit,
            Values::I8(_) => Physical::I8,
            Values::I16(_) => Physical::I16,
            Values::I32(_) => Physical::I32,
            Values::I64(_) => Physical::I64,
            Values::I128(_) => Physical::I128,
            Values::F32(_) => Physical::F32,
            Values::F64(_) => Physical::F64,
            Values::U32(_) => Physical::U32,
            Values::B16(_) => Physical::B16,
            Values::Views(_) => Physical::Views,
        }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        match_values!(self, v => v.len(), Bit(b) => b.len(), Views(v) => v.len())
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the memory of the values without spare capacity.
    #[must_use]
    pub fn byte_count(&self) -> usize {
        match_values!(self, v => size_of_val(v.as_slice()), Bit(b) => b.words().len() * 8, Views(v) => v.len() * 16 + v.data().len())
    }

    /// Appends `count` zeros, empty values or false, the values of NULL rows.
    pub fn extend_default(&mut self, count: usize) {
        match_values!(
            self,
            v => v.resize(v.len() + count, Default::default()),
            Bit(b) => b.extend_filled(count, false),
            Views(v) => v.push_empty(count),
        );
    }

    /// Appends rows `from..from + count` of `other`.
    ///
    /// # Panics
    /// Panics if `other` has another physical type or fewer rows.
    pub fn extend_from_range(&mut self, other: &Values, from: usize, count: usize) {
        match (self, other) {
            (Values::Bit(a), Values::Bit(b)) => a.extend_from_range(b, from, count),
            (Values::I8(a), Values::I8(b)) => a.extend_from_slice(&b[from..from + count]),
            (Values::I16(a), Values::I16(b)) => a.extend_from_slice(&b[from..from + count]),
            (Values::I32(a), Values::I32(b)) => a.extend_from_slice(&b[from..from + count]),
            (Values::I64(a), Values::I64(b)) => a.extend_from_slice(&b[from..from + count]),
            (Values::I128(a), Values::I128(b)) => a.extend_from_slice(&b[from..from + count]),
            (Values::F32(a), Values::F32(b)) => a.extend_from_slice(&b[from..from + count]),
            (Values::F64(a), Values::F64(b)) => a.extend_from_slice(&b[from..from + count]),
            (Values::U32(a), Values::U32(b)) => a.extend_from_slice(&b[from..from + count]),
            (Values::B16(a), Values::B16(b)) => a.extend_from_slice(&b[from..from + count]),
            (Values::Views(a), Values::Views(b)) => a.extend_from_range(b.as_ref(), from, count),
            (a, b) => unreachable!("a column of {:?} extended by {:?}", a.physical(), b.physical()),
        }
    }

    pub fn truncate(&mut self, rows: usize) {
        match_values!(self, v => v.truncate(rows), Bit(b) => b.truncate(rows), Views(v) => v.truncate(rows));
    }
}

/// Values with validity.
///
/// Invariant: `validity`, if present, has the length of `values`; a set bit is a value, a clear bit NULL. Without
/// `validity` no row is NULL.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub values: Values,
    pub validity: Option<Bitmap>,
}

impl Column {
    #[must_use]
    pub fn new(values: Values) -> Column {
        Column { values, validity: None }
    }

    #[must_use]
    pub fn with_capacity(physical: Physical, rows: usize) -> Column {
        Column::new(Values::with_capacity(physical, rows))
    }

    #[must_use]
    pub fn nulls(physical: Physical, rows: usize) -> Column {
        let mut column = Column::with_capacity(physical, rows);
        column.extend_null(rows);
        column
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[must_use]
    pub fn is_valid(&self, row: usize) -> bool {
        self.validity.as_ref().is_none_or(|v| v.get(row))
    }

    #[must_use]
    pub fn null_count(&self) -> usize {
        self.validity.as_ref().map_or(0, Bitmap::count_zeros)
    }

    #[must_use]
    pub fn byte_count(&self) -> usize {
        self.values.byte_count() + self.validity.as_ref().map_or(0, |v| v.words().len() * 8)
    }

    pub fn extend_null(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        let len = self.len();
        self.validity.get_or_insert_with(|| Bitmap::filled(len, true)).extend_filled(count, false);
        self.values.extend_default(count);
    }

    /// Appends rows `from..from + count` of `other`, which has the same physical type.
    pub fn extend_from_range(&mut self, other: &Column, from: usize, count: usize) {
        match (&mut self.validity, &other.validity) {
            (None, None) => {}
            (Some(a), None) => a.extend_filled(count, true),
            (validity, Some(b)) => {
                let len = self.values.len();
                validity.get_or_insert_with(|| Bitmap::filled(len, true)).extend_from_range(b, from, count);
            }
        }
        self.values.extend_from_range(&other.values, from, count);
    }

    pub fn truncate(&mut self, rows: usize) {
        self.values.truncate(rows);
        if let Some(validity) = &mut self.validity {
            validity.truncate(rows);
        }
    }
}
