//! Values in binary form after a second `=`: doubles and arrays (protocol version 2), decimals (version 3).

use super::field_value::{Decimal, Missing, Value};
use super::outcome::{Parsed, Stop, bad};

pub(super) const TYPE_DOUBLE: u8 = 16;
const TYPE_ARRAY: u8 = 14;
const TYPE_DECIMAL: u8 = 23;

const ELEMENT_DOUBLE: u8 = 10;
/// Element types from this one on mean "no array": QuestDB's code for NULL is its last type, which changes between
/// releases; its clients have sent 29 and higher.
const ELEMENT_NULL_MIN: u8 = 29;
const DIMS_MAX: u8 = 32;

/// Reads the value whose type byte is at `at`; returns the value and its end.
pub(super) fn parse(input: &[u8], at: usize, bytes_max: usize) -> Parsed<(Value<'_>, usize)> {
    let mut reader = BinaryReader { input, at };
    let value = match reader.byte()? {
        TYPE_DOUBLE => Value::Double(f64::from_le_bytes(reader.array()?)),
        TYPE_ARRAY => array(&mut reader, bytes_max)?,
        TYPE_DECIMAL => decimal(&mut reader)?,
        other => {
            return bad(
                at,
                format!(
                    "unknown binary type {other}: known are {TYPE_DOUBLE} (double), {TYPE_ARRAY} (array) and {TYPE_DECIMAL} (decimal)"
                ),
            );
        }
    };
    Ok((value, reader.at))
}

struct BinaryReader<'a> {
    input: &'a [u8],
    at: usize,
}

impl<'a> BinaryReader<'a> {
    fn bytes(&mut self, count: usize) -> Parsed<&'a [u8]> {
        let bytes = self.input.get(self.at..).and_then(|rest| rest.get(..count)).ok_or(Stop::Incomplete)?;
        self.at += count;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Parsed<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    fn byte(&mut self) -> Parsed<u8> {
        Ok(self.array::<1>()?[0])
    }
}

fn array<'a>(reader: &mut BinaryReader<'a>, bytes_max: usize) -> Parsed<Value<'a>> {
    let start = reader.at;
    match reader.byte()? {
        ELEMENT_DOUBLE => {}
        ELEMENT_NULL_MIN.. => return Ok(Value::Null),
        other => {
            return bad(
                start,
                format!("arrays of element type {other} are not supported, only of double ({ELEMENT_DOUBLE})"),
            );
        }
    }
    let dims = reader.byte()?;
    if dims == 0 {
        return Ok(Value::Null);
    }
    if dims > DIMS_MAX {
        return bad(start + 1, format!("an array of {dims} dimensions, at most {DIMS_MAX} are possible"));
    }
    let shape_at = reader.at;
    let shape = reader.bytes(4 * usize::from(dims))?;
    // A length beyond the longest line is rejected at once instead of waiting for its bytes.
    let mut value_bytes = 8_usize;
    for extent in shape.chunks_exact(4) {
        let extent = u32::from_le_bytes([extent[0], extent[1], extent[2], extent[3]]);
        value_bytes = value_bytes.saturating_mul(extent as usize);
    }
    if value_bytes > bytes_max {
        return bad(start, format!("an array of {value_bytes} bytes is longer than a line may be ({bytes_max} bytes)"));
    }
    reader.bytes(value_bytes)?;
    Ok(Value::Array { dims, bytes: &reader.input[shape_at..reader.at] })
}

fn decimal<'a>(reader: &mut BinaryReader<'a>) -> Parsed<Value<'a>> {
    let start = reader.at;
    let scale = reader.byte()?;
    let len = usize::from(reader.byte()?);
    let bytes = reader.bytes(len)?;
    let Some(&first) = bytes.first() else {
        return Ok(Value::Missing(Missing::Decimal));
    };
    let fill: u8 = if first >= 0x80 { 0xff } else { 0 };
    let surplus = len.saturating_sub(16);
    let (high, low) = bytes.split_at(surplus);
    let mut wide = [fill; 16];
    wide[16 - low.len()..].copy_from_slice(low);
    let unscaled = i128::from_be_bytes(wide);
    let fits = high.iter().all(|&b| b == fill) && (unscaled < 0) == (fill != 0);
    match Decimal::new(unscaled, i32::from(scale)) {
        Some(decimal) if fits => Ok(Value::Decimal(decimal)),
        _ => bad(start, "decimal has more than 38 digits"),
    }
}
