//! The value of a tag or a field.

use tidalite_types::TimeUnit;

/// A value as written. `Micros` and `Nanos` are the stored units; milliseconds were converted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    /// No value and no type.
    Null,
    /// NULL of a type, written as NaN.
    Missing(Missing),
    /// A tag.
    Symbol(&'a [u8]),
    Varchar(&'a [u8]),
    Long(i64),
    Double(f64),
    Boolean(bool),
    Timestamp(TimeUnit, i64),
    Decimal(Decimal),
    /// The bytes in the layout of `tidalite_types::views`.
    Array {
        dims: u8,
        bytes: &'a [u8],
    },
}

impl Value<'_> {
    pub(super) fn type_name(&self) -> String {
        match self {
            Value::Null => "NULL".to_owned(),
            Value::Missing(Missing::Double) => "DOUBLE".to_owned(),
            Value::Missing(Missing::Decimal) => "DECIMAL".to_owned(),
            Value::Symbol(_) => "SYMBOL".to_owned(),
            Value::Varchar(_) => "VARCHAR".to_owned(),
            Value::Long(_) => "LONG".to_owned(),
            Value::Double(_) => "DOUBLE".to_owned(),
            Value::Boolean(_) => "BOOLEAN".to_owned(),
            Value::Timestamp(TimeUnit::Nanos, _) => "TIMESTAMP_NS".to_owned(),
            Value::Timestamp(..) => "TIMESTAMP".to_owned(),
            Value::Decimal(_) => "DECIMAL".to_owned(),
            Value::Array { dims, .. } => "DOUBLE".to_owned() + &"[]".repeat(usize::from(*dims)),
        }
    }
}

/// The type of a NaN, which is stored as NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    Double,
    Decimal,
}

/// At most [`DECIMAL_DIGITS_MAX`] digits, `scale` of them after the point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Decimal {
    pub unscaled: i128,
    pub scale: u8,
}

pub(super) const DECIMAL_DIGITS_MAX: u8 = 38;
const DECIMAL_LIMIT: i128 = 10_i128.pow(DECIMAL_DIGITS_MAX as u32);

impl Decimal {
    /// Creates a decimal; `None` if it needs more than 38 digits. A negative scale multiplies.
    pub(super) fn new(mut unscaled: i128, mut scale: i32) -> Option<Decimal> {
        if unscaled == 0 {
            scale = scale.clamp(0, i32::from(DECIMAL_DIGITS_MAX));
        }
        while scale > i32::from(DECIMAL_DIGITS_MAX) && unscaled % 10 == 0 {
            unscaled /= 10;
            scale -= 1;
        }
        if scale < 0 {
            unscaled = unscaled.checked_mul(10_i128.checked_pow(scale.unsigned_abs())?)?;
            scale = 0;
        }
        let scale = u8::try_from(scale).ok().filter(|s| *s <= DECIMAL_DIGITS_MAX)?;
        (unscaled.unsigned_abs() < DECIMAL_LIMIT.unsigned_abs()).then_some(Decimal { unscaled, scale })
    }

    /// Returns the same number with more digits after the point.
    pub(super) fn rescaled(self, scale: u8) -> Option<Decimal> {
        let factor = 10_i128.checked_pow(u32::from(scale.checked_sub(self.scale)?))?;
        Decimal::new(self.unscaled.checked_mul(factor)?, i32::from(scale))
    }
}
