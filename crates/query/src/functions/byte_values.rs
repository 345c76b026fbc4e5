//! Bytes as in PostgreSQL: `get_byte`, `set_byte`, `get_bit`, `set_bit`, `bit_count`, `convert_from`, `convert_to`.

use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use crate::Error;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, Int32Array, Int64Array, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::Result;
use std::sync::Arc;

const fn function(
    name: &'static str,
    takes: &'static str,
    kinds: &'static [Kind],
    gives: Gives,
    call: fn(&Call) -> Result<ArrayRef>,
) -> Scalar {
    Scalar { name, takes, kinds, gives, call, ..PLAIN }
}

const READ: &[Kind] = &[Kind::TextOrBytes, Kind::Long];
const WRITE: &[Kind] = &[Kind::TextOrBytes, Kind::Long, Kind::Long];

pub(super) const FUNCTIONS: &[Scalar] = &[
    function("get_byte", "bytes and a position from 0", READ, Gives::Int, |call| {
        read(call, 1, |bytes, at| bytes[at].into())
    }),
    function("get_bit", "bytes and a position from 0", READ, Gives::Int, |call| {
        read(call, 8, |bytes, at| (bytes[at / 8] >> (at % 8) & 1).into())
    }),
    function("set_byte", "bytes, a position from 0 and a value", WRITE, Gives::Bytes, |call| {
        // Only the lowest byte of the value counts, as in PostgreSQL.
        written(call, 1, |bytes, at, value| {
            bytes[at] = value as u8;
            true
        })
    }),
    function("set_bit", "bytes, a position from 0 and 0 or 1", WRITE, Gives::Bytes, |call| {
        written(call, 8, |bytes, at, value| {
            let bit = 1 << (at % 8);
            bytes[at / 8] = if value == 1 { bytes[at / 8] | bit } else { bytes[at / 8] & !bit };
            matches!(value, 0 | 1)
        })
    }),
    function("bit_count", "bytes", &[Kind::TextOrBytes], Gives::Long, |call| {
        let bytes = bytes(&call.columns[0])?;
        let count = |bytes: &[u8]| bytes.iter().map(|byte| i64::from(byte.count_ones())).sum::<i64>();
        Ok(Arc::new(bytes.as_binary_view().iter().map(|bytes| bytes.map(count)).collect::<Int64Array>()))
    }),
    function(
        "convert_from",
        "bytes and the name of their encoding",
        &[Kind::TextOrBytes, Kind::Text],
        Gives::Text,
        convert_from,
    ),
    function("convert_to", "a text and the name of an encoding", &[Kind::Text, Kind::Text], Gives::Bytes, convert_to),
];

/// Returns a column as bytes.
fn bytes(column: &ArrayRef) -> Result<ArrayRef> {
    Ok(cast(column, &DataType::BinaryView)?)
}

/// Returns the position that a number names among `units` for each byte.
fn position(bytes: &[u8], units: usize, at: i64) -> Result<usize> {
    let count = bytes.len().saturating_mul(units);
    let found = usize::try_from(at).ok().filter(|at| *at < count);
    found.ok_or_else(|| {
        let last = count as i64 - 1;
        Error::invalid(format!("index {at} out of valid range, 0..{last}")).into()
    })
}

fn read(call: &Call, units: usize, value: fn(&[u8], usize) -> i32) -> Result<ArrayRef> {
    let all = bytes(&call.columns[0])?;
    let places = call.columns[1].as_primitive::<Int64Type>();
    let one = |(bytes, at): (Option<&[u8]>, Option<i64>)| match bytes.zip(at) {
        Some((bytes, at)) => Ok(Some(value(bytes, position(bytes, units, at)?))),
        None => Ok(None),
    };
    Ok(Arc::new(all.as_binary_view().iter().zip(places).map(one).collect::<Result<Int32Array>>()?))
}

/// Changes one unit of each value; `change` returns false for a new value out of range.
fn written(call: &Call, units: usize, change: fn(&mut [u8], usize, i64) -> bool) -> Result<ArrayRef> {
    let all = bytes(&call.columns[0])?;
    let [places, values] = [1, 2].map(|n| call.columns[n].as_primitive::<Int64Type>());
    let one = |row: usize| -> Result<Option<Vec<u8>>> {
        if call.columns.iter().any(|column| column.is_null(row)) {
            return Ok(None);
        }
        let mut bytes = all.as_binary_view().value(row).to_vec();
        let at = position(&bytes, units, places.value(row))?;
        match change(&mut bytes, at, values.value(row)) {
            true => Ok(Some(bytes)),
            false => Err(Error::invalid("new bit must be 0 or 1").about(call.name).into()),
        }
    };
    let out: ArrayRef = Arc::new((0..call.rows).map(one).collect::<Result<BinaryViewArray>>()?);
    Ok(cast(&out, call.data_type)?)
}

/// Fails for encodings other than UTF-8.
fn check_encoding(name: &str, names: &StringViewArray) -> Result<()> {
    let is_utf8 = |name: &str| name.eq_ignore_ascii_case("utf8") || name.eq_ignore_ascii_case("utf-8");
    match names.iter().flatten().find(|name| !is_utf8(name)) {
        Some(other) => {
            Err(Error::invalid(format!("{name} supports the encoding UTF-8, not \"{other}\"")).about(name).into())
        }
        None => Ok(()),
    }
}

fn convert_from(call: &Call) -> Result<ArrayRef> {
    let (all, names) = (bytes(&call.columns[0])?, call.columns[1].as_string_view());
    check_encoding("convert_from", names)?;
    let text = |row: usize| -> Result<Option<String>> {
        if all.is_null(row) || names.is_null(row) {
            return Ok(None);
        }
        let text = std::str::from_utf8(all.as_binary_view().value(row));
        let refused = |_| Error::invalid("the bytes are not valid UTF-8").about("convert_from");
        Ok(Some(text.map_err(refused)?.to_owned()))
    };
    Ok(Arc::new((0..call.rows).map(text).collect::<Result<StringViewArray>>()?))
}

fn convert_to(call: &Call) -> Result<ArrayRef> {
    let (texts, names) = (call.columns[0].as_string_view(), call.columns[1].as_string_view());
    check_encoding("convert_to", names)?;
    let one = |(text, name): (Option<&str>, Option<&str>)| text.zip(name).map(|(text, _)| text.as_bytes().to_vec());
    let out: ArrayRef = Arc::new(texts.iter().zip(names).map(one).collect::<BinaryViewArray>());
    Ok(cast(&out, call.data_type)?)
}
