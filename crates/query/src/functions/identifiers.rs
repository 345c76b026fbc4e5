//! What casts between texts and UUIDs or IPv4 addresses become, and what chooses among addresses.

use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use crate::Error;
use crate::door::batches::{ipv4_bits, uuid_bytes};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeBinaryBuilder, StringViewArray, StringViewBuilder, UInt32Array,
};
use datafusion::arrow::datatypes::UInt32Type;
use datafusion::common::{DataFusionError, Result as DFResult};
use std::fmt::Write;
use std::net::Ipv4Addr;
use std::sync::Arc;

const UUID_BYTES: i32 = 16;

pub(crate) const UUID_TO_TEXT: &str = "__uuid_to_text";
pub(crate) const IPV4_TO_TEXT: &str = "__ipv4_to_text";
/// An address that is one of several: the planner takes it for a number.
pub(crate) const IPV4: &str = "__ipv4";
pub(crate) const TEXT_TO_UUID: &str = "__text_to_uuid";
pub(crate) const TEXT_TO_IPV4: &str = "__text_to_ipv4";
/// NULL where a text is none.
pub(crate) const TRY_TEXT_TO_UUID: &str = "__try_text_to_uuid";
pub(crate) const TRY_TEXT_TO_IPV4: &str = "__try_text_to_ipv4";

pub(super) const FUNCTIONS: &[Scalar] = &[
    Scalar {
        name: UUID_TO_TEXT,
        takes: "a UUID",
        kinds: &[Kind::Any],
        gives: Gives::Text,
        call: |call| Ok(uuid_texts(&call.columns[0])),
        ..PLAIN
    },
    Scalar {
        name: IPV4_TO_TEXT,
        takes: "an IPv4 address",
        kinds: &[Kind::Any],
        gives: Gives::Text,
        call: |call| Ok(ipv4_texts(&call.columns[0])),
        ..PLAIN
    },
    Scalar {
        name: IPV4,
        takes: "an IPv4 address",
        kinds: &[Kind::Address],
        gives: Gives::Address,
        call: |call| Ok(call.columns[0].clone()),
        ..PLAIN
    },
    Scalar { name: TEXT_TO_UUID, gives: Gives::Uuid, call: |call| uuids(call, false), ..OF_TEXT },
    Scalar { name: TRY_TEXT_TO_UUID, gives: Gives::Uuid, call: |call| uuids(call, true), ..OF_TEXT },
    Scalar { name: TEXT_TO_IPV4, gives: Gives::Address, call: |call| addresses(call, false), ..OF_TEXT },
    Scalar { name: TRY_TEXT_TO_IPV4, gives: Gives::Address, call: |call| addresses(call, true), ..OF_TEXT },
];

const OF_TEXT: Scalar = Scalar { takes: "a text", kinds: &[Kind::Text], ..PLAIN };

/// Returns the texts of UUIDs, 16 bytes each.
pub(super) fn uuid_texts(column: &ArrayRef) -> ArrayRef {
    let values = column.as_fixed_size_binary();
    let (mut out, mut text) = (StringViewBuilder::with_capacity(column.len()), String::new());
    for value in values {
        let Some(value) = value else {
            out.append_null();
            continue;
        };
        text.clear();
        for (at, byte) in value.iter().enumerate() {
            let hyphen = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
            // A String takes all that is written.
            let _ = write!(text, "{hyphen}{byte:02x}");
        }
        out.append_value(&text);
    }
    Arc::new(out.finish())
}

/// Returns the texts of IPv4 addresses.
pub(super) fn ipv4_texts(column: &ArrayRef) -> ArrayRef {
    let values = column.as_primitive::<UInt32Type>();
    let texts = values.iter().map(|value| value.map(|bits| Ipv4Addr::from(bits).to_string()));
    Arc::new(texts.collect::<StringViewArray>())
}

fn uuids(call: &Call, is_tried: bool) -> DFResult<ArrayRef> {
    let mut out = FixedSizeBinaryBuilder::with_capacity(call.rows, UUID_BYTES);
    for text in call.columns[0].as_string_view() {
        match text.map(|text| uuid_bytes(text).ok_or(text)) {
            Some(Ok(bytes)) => out.append_value(bytes)?,
            Some(Err(text)) if !is_tried => return Err(refused("UUID", text)),
            _ => out.append_null(),
        }
    }
    Ok(Arc::new(out.finish()))
}

fn addresses(call: &Call, is_tried: bool) -> DFResult<ArrayRef> {
    let address = |text| match ipv4_bits(text) {
        None if !is_tried => Err(refused("IPV4", text)),
        found => Ok(found),
    };
    let texts = call.columns[0].as_string_view().iter();
    let addresses = texts.map(|text| text.map_or(Ok(None), address)).collect::<DFResult<UInt32Array>>()?;
    Ok(Arc::new(addresses))
}

fn refused(name: &str, text: &str) -> DataFusionError {
    Error::invalid_text(name, text).into()
}
