//! What casts between texts and UUIDs or IPv4 addresses become.

use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use crate::door::batches::{ipv4_bits, uuid_bytes};
use crate::{Error, Result};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeBinaryBuilder, StringViewArray, StringViewBuilder, UInt32Array,
};
use datafusion::arrow::datatypes::UInt32Type;
use std::fmt::Write;
use std::net::Ipv4Addr;
use std::sync::Arc;

const UUID_BYTES: i32 = 16;

pub(crate) const UUID_TO_TEXT: &str = "__uuid_to_text";
pub(crate) const IPV4_TO_TEXT: &str = "__ipv4_to_text";
pub(crate) const TEXT_TO_UUID: &str = "__text_to_uuid";
pub(crate) const TEXT_TO_IPV4: &str = "__text_to_ipv4";

pub(super) const FUNCTIONS: &[Scalar] = &[
    Scalar {
        name: UUID_TO_TEXT,
        takes: "a UUID",
        kinds: &[Kind::Any],
        gives: Gives::Text,
        call: |call| Ok(uuid_texts(call)),
        ..PLAIN
    },
    Scalar {
        name: IPV4_TO_TEXT,
        takes: "an IPv4 address",
        kinds: &[Kind::Any],
        gives: Gives::Text,
        call: |call| Ok(ipv4_texts(call)),
        ..PLAIN
    },
    Scalar {
        name: TEXT_TO_UUID,
        takes: "a text",
        kinds: &[Kind::Text],
        gives: Gives::Uuid,
        call: |call| Ok(uuids(call.columns[0].as_string_view())?),
        ..PLAIN
    },
    Scalar {
        name: TEXT_TO_IPV4,
        takes: "a text",
        kinds: &[Kind::Text],
        gives: Gives::Address,
        call: |call| Ok(addresses(call.columns[0].as_string_view())?),
        ..PLAIN
    },
];

fn uuid_texts(call: &Call) -> ArrayRef {
    let values = call.columns[0].as_fixed_size_binary();
    let (mut out, mut text) = (StringViewBuilder::with_capacity(call.rows), String::new());
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

fn ipv4_texts(call: &Call) -> ArrayRef {
    let values = call.columns[0].as_primitive::<UInt32Type>();
    let texts = values.iter().map(|value| value.map(|bits| Ipv4Addr::from(bits).to_string()));
    Arc::new(texts.collect::<StringViewArray>())
}

fn uuids(texts: &StringViewArray) -> Result<ArrayRef> {
    let mut out = FixedSizeBinaryBuilder::with_capacity(texts.len(), UUID_BYTES);
    for text in texts {
        match text {
            None => out.append_null(),
            Some(text) => {
                let bytes = uuid_bytes(text).ok_or_else(|| refused("UUID", text))?;
                out.append_value(bytes).map_err(|e| Error::internal(e.to_string()))?;
            }
        }
    }
    Ok(Arc::new(out.finish()))
}

fn addresses(texts: &StringViewArray) -> Result<ArrayRef> {
    let address = |text| ipv4_bits(text).ok_or_else(|| refused("IPV4", text));
    let addresses = texts.iter().map(|text| text.map(address).transpose());
    Ok(Arc::new(addresses.collect::<Result<UInt32Array>>()?))
}

fn refused(name: &str, text: &str) -> Error {
    Error::invalid(format!("invalid input for type {name}: \"{text}\""))
}
