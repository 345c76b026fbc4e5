//! Bytes as text and hashes: `base64`, `from_base64`, `sha1`, `to_uuid`, `length_bytes`, `size_pretty`, as QuestDB
//! defines them; `chr` and `to_hex`, as in PostgreSQL.

use super::guarded::bytes_max;
use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use crate::Error;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine, alphabet};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, FixedSizeBinaryBuilder, Int32Array, StringViewArray, StringViewBuilder,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::Result;
use std::sync::Arc;
use tidalite_types::SqlState;
use tidalite_types::text::hex_digits;

pub(super) const FUNCTIONS: &[Scalar] = &[
    Scalar {
        name: "base64",
        takes: "bytes and the greatest length of the text",
        kinds: &[Kind::TextOrBytes, Kind::Long],
        least: 1,
        gives: Gives::Text,
        call: base64,
        ..PLAIN
    },
    Scalar {
        name: "from_base64",
        takes: "a text in base 64",
        kinds: &[Kind::Text],
        gives: Gives::Bytes,
        call: from_base64,
        ..PLAIN
    },
    Scalar {
        name: "sha1",
        takes: "a text or bytes",
        kinds: &[Kind::TextOrBytes],
        gives: Gives::Text,
        call: sha1,
        ..PLAIN
    },
    Scalar {
        name: "to_uuid",
        takes: "two integers, the lower and the upper 64 bits",
        kinds: &[Kind::Long, Kind::Long],
        gives: Gives::Uuid,
        call: to_uuid,
        ..PLAIN
    },
    Scalar {
        name: "length_bytes",
        takes: "a text or bytes",
        kinds: &[Kind::TextOrBytes],
        gives: Gives::Int,
        call: length_bytes,
        ..PLAIN
    },
    Scalar {
        name: "chr",
        takes: "the number of a character",
        kinds: &[Kind::Long],
        gives: Gives::Text,
        call: chr,
        ..PLAIN
    },
    Scalar { name: "to_hex", takes: "an integer", kinds: &[Kind::Any], gives: Gives::Text, call: to_hex, ..PLAIN },
    Scalar {
        name: "size_pretty",
        takes: "a number of bytes",
        kinds: &[Kind::Long],
        gives: Gives::Text,
        call: |call| {
            let sizes = call.columns[0].as_primitive::<Int64Type>().iter();
            Ok(Arc::new(sizes.map(|size| size.map(pretty)).collect::<StringViewArray>()))
        },
        ..PLAIN
    },
];

/// Returns the bytes of a row; `None` for NULL.
fn bytes(column: &ArrayRef, row: usize) -> Option<&[u8]> {
    if column.is_null(row) {
        return None;
    }
    match column.data_type() {
        DataType::BinaryView => Some(column.as_binary_view().value(row)),
        _ => column.as_string_view_opt().map(|texts| texts.value(row).as_bytes()),
    }
}

/// Returns the character of a number; texts of PostgreSQL's clients cannot have the character 0.
fn chr(call: &Call) -> Result<ArrayRef> {
    let refused = |text: String| Error::invalid(text).about("chr").with_code(SqlState::PROGRAM_LIMIT_EXCEEDED);
    let character = |number: i64| match u32::try_from(number).ok().and_then(char::from_u32) {
        Some('\0') => Err(refused("null character not permitted".to_owned())),
        Some(c) => Ok(c.to_string()),
        None => Err(refused(format!("requested character not valid for encoding: {number}"))),
    };
    let numbers = call.columns[0].as_primitive::<Int64Type>().iter();
    let texts = numbers.map(|number| number.map(character).transpose());
    Ok(Arc::new(texts.collect::<crate::Result<StringViewArray>>()?))
}

/// Writes an integer in hexadecimal: a negative one as its bits, 32 of INT and shorter integers, 64 of LONG.
fn to_hex(call: &Call) -> Result<ArrayRef> {
    let of = call.columns[0].data_type();
    if !of.is_signed_integer() && !of.is_null() {
        return Err(Error::invalid("to_hex takes an integer").about("to_hex").into());
    }
    let is_long = *of == DataType::Int64;
    let hex = |value: i64| if is_long { format!("{value:x}") } else { format!("{:x}", value as i32) };
    let longs = cast(&call.columns[0], &DataType::Int64)?;
    let texts = longs.as_primitive::<Int64Type>().iter().map(|value| value.map(hex));
    Ok(Arc::new(texts.collect::<StringViewArray>()))
}

/// RFC 4648, section 4; a text that is decoded may lack the padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Encodes with padding and without line ends.
fn encoded(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// Decodes base 64 without its white space; `None` for other texts.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    BASE64.decode(digits).ok()
}

/// QuestDB's second argument limits the bytes that are encoded so that the text has at most that length.
fn base64(call: &Call) -> Result<ArrayRef> {
    let limits = call.columns.get(1).map(|column| column.as_primitive::<Int64Type>());
    let mut total = 0_u128;
    let text = |row: usize| -> Result<Option<String>> {
        let Some(all) = bytes(&call.columns[0], row) else { return Ok(None) };
        let mut part = all;
        if let Some(limits) = limits {
            if limits.is_null(row) {
                return Ok(None);
            }
            let limit = limits.value(row);
            let Ok(limit) = usize::try_from(limit) else {
                let text = format!("base64 takes a length of 0 or more, not {limit}");
                return Err(Error::invalid(text).about("base64").into());
            };
            part = &all[..all.len().min(limit / 4 * 3)];
        }
        total += part.len() as u128 * 4 / 3 + 4;
        if total > bytes_max() as u128 {
            return Err(super::guarded::too_large("base64").into());
        }
        Ok(Some(encoded(part)))
    };
    Ok(Arc::new((0..call.rows).map(text).collect::<Result<StringViewArray>>()?))
}

fn from_base64(call: &Call) -> Result<ArrayRef> {
    let texts = call.columns[0].as_string_view();
    let value = |text: &str| {
        let refused = || Error::invalid("from_base64 takes a text in base 64").about("from_base64");
        Ok(decoded(text).ok_or_else(refused)?)
    };
    let values = texts.iter().map(|text| text.map(value).transpose()).collect::<Result<Vec<_>>>()?;
    let values: ArrayRef = Arc::new(values.into_iter().collect::<BinaryViewArray>());
    Ok(datafusion::arrow::compute::cast(&values, call.data_type)?)
}

fn sha1(call: &Call) -> Result<ArrayRef> {
    let mut out = StringViewBuilder::with_capacity(call.rows);
    for row in 0..call.rows {
        let Some(bytes) = bytes(&call.columns[0], row) else {
            out.append_null();
            continue;
        };
        let digest = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, bytes);
        out.append_value(hex_digits(digest.as_ref()));
    }
    Ok(Arc::new(out.finish()))
}

fn to_uuid(call: &Call) -> Result<ArrayRef> {
    let (low, high) = (call.columns[0].as_primitive::<Int64Type>(), call.columns[1].as_primitive::<Int64Type>());
    let mut out = FixedSizeBinaryBuilder::with_capacity(call.rows, 16);
    for (low, high) in low.iter().zip(high) {
        match low.zip(high) {
            Some((low, high)) => {
                out.append_value((u128::from(high as u64) << 64 | u128::from(low as u64)).to_be_bytes())?;
            }
            None => out.append_null(),
        }
    }
    Ok(Arc::new(out.finish()))
}

/// Returns lengths in bytes; −1 for NULL, as QuestDB.
fn length_bytes(call: &Call) -> Result<ArrayRef> {
    let length =
        |row: usize| bytes(&call.columns[0], row).map_or(-1, |bytes| i32::try_from(bytes.len()).unwrap_or(i32::MAX));
    Ok(Arc::new(Int32Array::from_iter_values((0..call.rows).map(length))))
}

/// Formats bytes with one digit after the point and a unit of powers of 1024.
fn pretty(bytes: i64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let (mut size, mut unit) = (bytes as f64, 0);
    while size.abs() >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test vectors of RFC 4648, section 10.
    #[test]
    fn base_64() {
        let vectors =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE=")];
        for (plain, text) in vectors {
            assert_eq!(encoded(plain.as_bytes()), text);
            assert_eq!(decoded(text).as_deref(), Some(plain.as_bytes()));
        }
        assert_eq!(decoded("Zm9v\nYmFy").as_deref(), Some(&b"foobar"[..]));
        assert_eq!(decoded("Zm8").as_deref(), Some(&b"fo"[..]));
        assert_eq!(["Z", "Zm9v=", "Zg===", "Zm 9*", "=g"].map(decoded), [const { None }; 5]);
        assert_eq!(decoded(&encoded(&[0xff, 0xfe, 0x00])), Some(vec![0xff, 0xfe, 0x00]));
    }

    /// The example of QuestDB's documentation is 400032 bytes.
    #[test]
    fn sizes_have_one_digit_after_the_point() {
        assert_eq!([pretty(400_032), pretty(0), pretty(1023)], ["390.7 KiB", "0.0 B", "1023.0 B"]);
        assert_eq!([pretty(1 << 40), pretty(i64::MAX), pretty(-2048)], ["1.0 TiB", "8.0 EiB", "-2.0 KiB"]);
    }
}
