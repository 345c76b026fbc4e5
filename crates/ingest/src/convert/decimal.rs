//! Decimals: an integer and the number of its digits after the point.

use super::problem::Problem;
use tidalite_types::column_type::Physical;
use tidalite_types::{ColumnType, Values};

/// Number of digits that always fit an `i128`.
const DIGITS_MAX: usize = 38;
/// Limit of exponents: greater exponents are far out of any precision.
const EXPONENT_MAX: i32 = 1_000_000;

fn power_of_ten(exponent: i32) -> Option<i128> {
    10_i128.checked_pow(u32::try_from(exponent).ok()?)
}

/// Returns `value / 10^from` as digits of `DECIMAL(precision, scale)`, exactly.
pub(super) fn fit(value: i128, from: i32, precision: u8, scale: u8) -> Result<i128, Problem> {
    if value == 0 {
        return Ok(0);
    }
    let up = i32::from(scale) - from;
    let digits = if up >= 0 {
        power_of_ten(up).and_then(|p| value.checked_mul(p)).ok_or(Problem::Range)?
    } else {
        power_of_ten(-up).filter(|p| value % p == 0).map(|p| value / p).ok_or(Problem::Digits)?
    };
    let limit = power_of_ten(i32::from(precision)).ok_or(Problem::Range)?;
    if -limit < digits && digits < limit { Ok(digits) } else { Err(Problem::Range) }
}

/// Parses `[+-] digits [. digits] [e [+-] digits]` to an integer and the number of its digits after the point.
///
/// The number of digits may be negative.
pub(crate) fn parse_decimal(text: &str) -> Result<(i128, i32), Problem> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (number, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, parse_exponent(exponent).ok_or(Problem::Syntax)?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_number = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return Err(Problem::Syntax);
    }
    let all = [whole, fraction].concat();
    let digits = all.trim_end_matches('0');
    let digits_after =
        i32::try_from(fraction.len() as i64 - (all.len() - digits.len()) as i64).map_err(|_| Problem::Range)?;
    let scale = digits_after.saturating_sub(exponent);
    let digits = digits.trim_start_matches('0');
    match digits.len() {
        0 => Ok((0, 0)),
        1..=DIGITS_MAX => {
            let value: i128 = digits.parse().map_err(|_| Problem::Syntax)?;
            Ok((if text.starts_with('-') { -value } else { value }, scale))
        }
        // More digits before the point than in any type, or too many after it.
        n if n as i64 - i64::from(scale) > DIGITS_MAX as i64 => Err(Problem::Range),
        _ => Err(Problem::Digits),
    }
}

fn parse_exponent(text: &str) -> Option<i32> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let exponent = digits.parse().unwrap_or(EXPONENT_MAX).min(EXPONENT_MAX);
    Some(if text.starts_with('-') { -exponent } else { exponent })
}

pub(super) fn decimal_text(value: i128, scale: u8) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let digits = format!("{:0width$}", value.unsigned_abs(), width = usize::from(scale) + 1);
    match digits.split_at(digits.len() - usize::from(scale)) {
        (whole, "") => format!("{sign}{whole}"),
        (whole, fraction) => format!("{sign}{whole}.{fraction}"),
    }
}

/// Converts to the nearest double.
pub(super) fn to_f64(value: i128, scale: u8) -> f64 {
    // Both numbers are exact doubles, so only the division rounds.
    if value.unsigned_abs() < 1 << 53 && scale <= 22 {
        return value as f64 / 10_f64.powi(i32::from(scale));
    }
    through_text(value, scale)
}

/// Converts to the nearest float.
pub(super) fn to_f32(value: i128, scale: u8) -> f32 {
    if value.unsigned_abs() < 1 << 24 && scale <= 10 {
        return value as f32 / 10_f32.powi(i32::from(scale));
    }
    through_text(value, scale)
}

fn through_text<T: std::str::FromStr + Default>(value: i128, scale: u8) -> T {
    decimal_text(value, scale).parse().unwrap_or_default()
}

pub(super) fn widened(values: &Values) -> Vec<i128> {
    match values {
        Values::I32(v) => v.iter().map(|&v| i128::from(v)).collect(),
        Values::I64(v) => v.iter().map(|&v| i128::from(v)).collect(),
        Values::I128(v) => v.clone(),
        other => unreachable!("decimals stored as {:?}", other.physical()),
    }
}

/// Returns digits that fit the precision of `to`, in its storage width.
pub(crate) fn decimal_values(digits: Vec<i128>, to: ColumnType) -> Values {
    match to.physical() {
        Physical::I32 => Values::I32(digits.into_iter().map(|v| v as i32).collect()),
        Physical::I64 => Values::I64(digits.into_iter().map(|v| v as i64).collect()),
        _ => Values::I128(digits),
    }
}
