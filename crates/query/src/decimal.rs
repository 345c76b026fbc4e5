//! Exact decimal numbers: digits of up to 76 places and a scale, as text, doubles and Arrow's decimals give them.

use crate::{Error, Result};
use datafusion::arrow::datatypes::{DataType, i256};
use datafusion::common::ScalarValue;
use std::cmp::Ordering;
use std::sync::LazyLock;

/// Digits of Arrow's widest decimal, and of a DECIMAL column.
pub(crate) const WIDE_DIGITS: u8 = 76;
pub(crate) const DIGITS: u8 = 38;

static POWERS: LazyLock<Vec<i256>> = LazyLock::new(|| {
    let next = |power: &i256| power.checked_mul(i256::from_i128(10));
    std::iter::successors(Some(i256::ONE), next).take(usize::from(WIDE_DIGITS) + 1).collect()
});

/// `digits` times 10 to the power of minus `scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    pub digits: i256,
    pub scale: i32,
}

/// A number at another scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rescaled {
    /// The value rounded toward minus infinity.
    pub floor: i256,
    /// True if `floor` equals the number.
    pub is_exact: bool,
    /// The value rounded to the nearest, halves away from zero.
    pub nearest: i256,
}

/// Returns 10 to the power of `n`; `None` past 76 digits.
pub(crate) fn power(n: u32) -> Option<i256> {
    POWERS.get(n as usize).copied()
}

/// Returns true if `digits` has at most `precision` digits.
pub(crate) fn fits(digits: i256, precision: u8) -> bool {
    let Some(limit) = power(u32::from(precision)) else { return true };
    digits > -limit && digits < limit
}

/// Returns `a / b` rounded to the nearest, halves away from zero; `None` for a division by zero.
pub(crate) fn divided(a: i256, b: i256) -> Option<i256> {
    let (quotient, rest) = (a.checked_div(b)?, a.checked_rem(b)?);
    let (rest, half) = (rest.wrapping_abs(), b.wrapping_abs());
    // Doubling the remainder might overflow.
    let is_up = rest >= half.wrapping_sub(rest);
    let away = if a.is_negative() == b.is_negative() { i256::ONE } else { i256::MINUS_ONE };
    Some(if rest != i256::ZERO && is_up { quotient.wrapping_add(away) } else { quotient })
}

impl Decimal {
    /// Parses `[+-]digits[.digits][e[+-]digits]` with spaces around.
    ///
    /// `None` for other texts and past 76 digits.
    pub fn parse(text: &str) -> Option<Decimal> {
        let text = text.trim();
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok().filter(|e| e.abs() < 10_000)?),
            None => (text, 0),
        };
        let (is_negative, mantissa) = match mantissa.as_bytes().first()? {
            b'-' => (true, &mantissa[1..]),
            b'+' => (false, &mantissa[1..]),
            _ => (false, mantissa),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let is_number = |digits: &str| digits.bytes().all(|b| b.is_ascii_digit());
        if whole.len() + fraction.len() == 0 || !is_number(whole) || !is_number(fraction) {
            return None;
        }
        let fraction = fraction.trim_end_matches('0');
        let mut digits = i256::ZERO;
        for digit in whole.bytes().chain(fraction.bytes()) {
            let ten_times = digits.checked_mul(i256::from_i128(10))?;
            digits = ten_times.checked_add(i256::from_i128(i128::from(digit - b'0')))?;
        }
        let scale = i32::try_from(fraction.len()).ok()? - exponent;
        let digits = if is_negative { digits.wrapping_neg() } else { digits };
        fits(digits, WIDE_DIGITS).then_some(Decimal { digits, scale })
    }

    /// Returns the number of the shortest text that reads back as `value`.
    ///
    /// `None` for NaN, infinities and numbers of more than 76 digits.
    pub fn from_double(value: f64) -> Option<Decimal> {
        if value.is_finite() { Decimal::parse(&format!("{value:e}")) } else { None }
    }

    pub fn from_single(value: f32) -> Option<Decimal> {
        if value.is_finite() { Decimal::parse(&format!("{value:e}")) } else { None }
    }

    pub fn from_integer(value: i128) -> Decimal {
        Decimal { digits: i256::from_i128(value), scale: 0 }
    }

    /// Converts a constant; `None` for other types, NULL and numbers that are not finite.
    pub fn from_scalar(value: &ScalarValue) -> Option<Decimal> {
        let of = |v: i128| Some(Decimal::from_integer(v));
        match value {
            ScalarValue::Decimal128(Some(v), _, scale) => {
                Some(Decimal { digits: i256::from_i128(*v), scale: i32::from(*scale) })
            }
            ScalarValue::Decimal256(Some(digits), _, scale) => {
                Some(Decimal { digits: *digits, scale: i32::from(*scale) })
            }
            ScalarValue::Float64(Some(v)) => Decimal::from_double(*v),
            ScalarValue::Float32(Some(v)) => Decimal::from_single(*v),
            ScalarValue::Int8(Some(v)) => of(i128::from(*v)),
            ScalarValue::Int16(Some(v)) => of(i128::from(*v)),
            ScalarValue::Int32(Some(v)) => of(i128::from(*v)),
            ScalarValue::Int64(Some(v)) => of(i128::from(*v)),
            ScalarValue::UInt64(Some(v)) => of(i128::from(*v)),
            _ => None,
        }
    }

    /// Returns the number at a scale from 0 to 76; `None` where 256 bits are too few.
    pub fn rescaled(self, scale: i32) -> Option<Rescaled> {
        if self.digits == i256::ZERO {
            return Some(Rescaled { floor: i256::ZERO, is_exact: true, nearest: i256::ZERO });
        }
        let up = scale - self.scale;
        if up >= 0 {
            let digits = self.digits.checked_mul(power(up.unsigned_abs())?)?;
            return Some(Rescaled { floor: digits, is_exact: true, nearest: digits });
        }
        let below = if self.digits.is_negative() { i256::MINUS_ONE } else { i256::ZERO };
        let Some(by) = power(up.unsigned_abs()) else {
            // The value is less than half of a unit.
            return Some(Rescaled { floor: below, is_exact: false, nearest: i256::ZERO });
        };
        let (quotient, rest) = (self.digits.checked_div(by)?, self.digits.checked_rem(by)?);
        let is_exact = rest == i256::ZERO;
        let floor = if is_exact { quotient } else { quotient.wrapping_add(below) };
        Some(Rescaled { floor, is_exact, nearest: divided(self.digits, by)? })
    }

    /// Returns the digits before and after the point of the narrowest type that holds the number.
    fn extent(self) -> (i32, i32) {
        let mut own = self;
        while own.scale > 0
            && own.digits.checked_rem(i256::from_i128(10)) == Some(i256::ZERO)
            && own.digits != i256::ZERO
        {
            own = Decimal { digits: own.digits.wrapping_div(i256::from_i128(10)), scale: own.scale - 1 };
        }
        if own.digits == i256::ZERO {
            return (1, 0);
        }
        let places = POWERS.partition_point(|power| *power <= own.digits.wrapping_abs()) as i32;
        ((places - own.scale).max(0), own.scale.max(0))
    }

    /// Returns a constant of the narrowest decimal type; `None` where no type is wide enough.
    pub fn constant(self) -> Option<ScalarValue> {
        let (whole, scale) = self.extent();
        let precision = u8::try_from((whole + scale).max(1)).ok().filter(|p| *p <= WIDE_DIGITS)?;
        let digits = self.rescaled(scale)?.floor;
        let scale = i8::try_from(scale).ok()?;
        Some(match digits.to_i128().filter(|_| precision <= DIGITS) {
            Some(digits) => ScalarValue::Decimal128(Some(digits), precision, scale),
            None => ScalarValue::Decimal256(Some(digits), precision, scale),
        })
    }

    /// Returns the nearest double.
    pub fn to_double(self) -> f64 {
        // Both operands are exact up to this bound, and one division rounds once.
        const EXACT: i128 = 1 << 53;
        match self.digits.to_i128() {
            Some(digits) if digits.abs() <= EXACT && (0..=22).contains(&self.scale) => {
                digits as f64 / 10_f64.powi(self.scale)
            }
            _ => format!("{}e{}", self.digits, -self.scale).parse().unwrap_or(f64::NAN),
        }
    }

    /// Formats the number with exactly `scale` digits after the point.
    pub fn text(self) -> String {
        let sign = if self.digits.is_negative() { "-" } else { "" };
        let digits = self.digits.wrapping_abs().to_string();
        match usize::try_from(self.scale) {
            Ok(0) => format!("{sign}{digits}"),
            Ok(scale) => {
                let digits = format!("{digits:0>width$}", width = scale + 1);
                let (whole, fraction) = digits.split_at(digits.len() - scale);
                format!("{sign}{whole}.{fraction}")
            }
            Err(_) => format!("{sign}{digits}{}", "0".repeat(self.scale.unsigned_abs() as usize)),
        }
    }

    /// Compares two numbers; `None` where one of them does not fit the scale of the other.
    pub fn compare(self, other: Decimal) -> Option<Ordering> {
        let scale = self.scale.max(other.scale).max(0);
        Some(self.rescaled(scale)?.floor.cmp(&other.rescaled(scale)?.floor))
    }
}

/// Returns the precision and scale of a decimal type.
pub(crate) fn decimal_type(data_type: &DataType) -> Option<(u8, i8)> {
    match data_type {
        DataType::Decimal32(p, s)
        | DataType::Decimal64(p, s)
        | DataType::Decimal128(p, s)
        | DataType::Decimal256(p, s) => Some((*p, *s)),
        _ => None,
    }
}

/// Returns the precision and scale of a decimal type, or of the decimal that holds an integer type.
pub(crate) fn as_decimal_type(data_type: &DataType) -> Option<(u8, i8)> {
    Some(match data_type {
        DataType::Int8 | DataType::UInt8 => (3, 0),
        DataType::Int16 | DataType::UInt16 => (5, 0),
        DataType::Int32 | DataType::UInt32 => (10, 0),
        DataType::Int64 => (19, 0),
        DataType::UInt64 => (20, 0),
        other => return decimal_type(other),
    })
}

/// Returns the decimal type of a precision and scale, at most 76 digits.
pub(crate) fn arrow_decimal(precision: i32, scale: i32) -> DataType {
    let scale = scale.clamp(0, i32::from(WIDE_DIGITS));
    let precision = precision.clamp(scale.max(1), i32::from(WIDE_DIGITS)) as u8;
    match precision {
        ..=DIGITS => DataType::Decimal128(precision, scale as i8),
        _ => DataType::Decimal256(precision, scale as i8),
    }
}

/// Creates the error for a value that does not fit its type.
pub(crate) fn overflow(what: &str, precision: u8, scale: i8) -> Error {
    Error::invalid(format!("numeric field overflow: {what} does not fit DECIMAL({precision},{scale})"))
}

/// Converts digits to the storage of a 128-bit decimal.
///
/// # Errors
/// Fails if the number has more than `precision` digits.
pub(crate) fn narrow(digits: i256, precision: u8, scale: i8) -> Result<i128> {
    let shown = || Decimal { digits, scale: i32::from(scale) }.text();
    let fitting = digits.to_i128().filter(|_| fits(digits, precision));
    fitting.ok_or_else(|| overflow(&shown(), precision, scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Decimal {
        Decimal::parse(text).unwrap_or_else(|| panic!("{text} is no number"))
    }

    #[test]
    fn texts_are_exact() {
        for (text, digits, scale) in [
            ("1.15", 115, 2),
            ("-0.070", -7, 2),
            ("+5", 5, 0),
            (" .5 ", 5, 1),
            ("5.", 5, 0),
            ("1.5e3", 15, -2),
            ("12e-3", 12, 3),
            ("0e5", 0, -5),
        ] {
            assert_eq!(parsed(text), Decimal { digits: i256::from_i128(digits), scale }, "{text}");
        }
        for text in ["", "-", ".", "1e", "1.2.3", "1_0", "NaN", "0x1f", &"9".repeat(77)] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }

    #[test]
    fn doubles_are_their_shortest_text() {
        for (value, text) in [(1.15, "1.15"), (0.07, "0.07"), (-1e-7, "-0.0000001"), (1e17, "100000000000000000")] {
            assert_eq!(Decimal::from_double(value).expect("finite").compare(parsed(text)), Some(Ordering::Equal));
        }
        assert_eq!(Decimal::from_double(f64::NAN), None);
        assert_eq!(Decimal::from_double(1e300), Some(parsed("1e300")));
    }

    #[test]
    fn scales_round_down_or_to_the_nearest() {
        for (text, scale, floor, nearest, is_exact) in [
            ("1.005", 2, 100, 101, false),
            ("-1.005", 2, -101, -101, false),
            ("-1.004", 2, -101, -100, false),
            ("2.5", 0, 2, 3, false),
            ("-2.5", 0, -3, -3, false),
            ("7", 2, 700, 700, true),
            ("1e-90", 2, 0, 0, false),
        ] {
            let found = parsed(text).rescaled(scale).expect("room");
            let (floor, nearest) = (i256::from_i128(floor), i256::from_i128(nearest));
            assert_eq!(found, Rescaled { floor, is_exact, nearest }, "{text}");
        }
    }

    #[test]
    fn doubles_and_texts_of_decimals() {
        for text in ["0.07", "123456789012345678.125", "-0.000000000000000001", "12345678901234567890.12"] {
            assert_eq!(parsed(text).to_double(), text.parse::<f64>().expect("a number"), "{text}");
            assert_eq!(parsed(text).text(), text);
        }
        assert_eq!(parsed("0.10").constant(), Some(ScalarValue::Decimal128(Some(1), 1, 1)));
        assert_eq!(parsed("1e3").constant(), Some(ScalarValue::Decimal128(Some(1000), 4, 0)));
    }
}
