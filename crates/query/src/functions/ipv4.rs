//! IPv4 addresses in networks: `contains_ip('10.0.0.0/8', ip)`, which `ip << '10.0.0.0/8'` is, and `netmask`.

use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use crate::Error;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, UInt32Array};
use datafusion::arrow::datatypes::{Int64Type, UInt32Type};
use datafusion::common::{DataFusionError, Result};
use std::net::Ipv4Addr;
use std::sync::Arc;

const TAKES: &str = "two addresses or networks, the outer one first";

/// `outer >> inner`: strictly within.
pub(crate) const CONTAINS: &str = "contains_ip";
/// `outer >>= inner`.
pub(crate) const CONTAINS_OR_IS: &str = "contains_or_is_ip";

pub(crate) const PLUS: &str = "__ipv4_plus";
pub(crate) const MINUS: &str = "__ipv4_minus";
/// The function that returns the distance of two addresses as a LONG.
pub(crate) const DISTANCE: &str = "__ipv4_distance";
pub(crate) const AND: &str = "__ipv4_and";
pub(crate) const OR: &str = "__ipv4_or";
pub(crate) const XOR: &str = "__ipv4_xor";
pub(crate) const NOT: &str = "__ipv4_not";

const MOVED: Scalar = Scalar {
    takes: "an IPv4 address and a whole number",
    kinds: &[Kind::Address, Kind::Long],
    gives: Gives::Address,
    ..PLAIN
};
const OF_BITS: Scalar =
    Scalar { takes: "two IPv4 addresses", kinds: &[Kind::Address, Kind::Address], gives: Gives::Address, ..PLAIN };

pub(super) const FUNCTIONS: &[Scalar] = &[
    Scalar { name: PLUS, call: |call| moved(call, i64::checked_add), ..MOVED },
    Scalar { name: MINUS, call: |call| moved(call, i64::checked_sub), ..MOVED },
    Scalar { name: AND, call: |call| of_bits(call, |a, b| a & b), ..OF_BITS },
    Scalar { name: OR, call: |call| of_bits(call, |a, b| a | b), ..OF_BITS },
    Scalar { name: XOR, call: |call| of_bits(call, |a, b| a ^ b), ..OF_BITS },
    Scalar {
        name: NOT,
        kinds: &[Kind::Address],
        takes: "an IPv4 address",
        call: |call| {
            let addresses = call.columns[0].as_primitive::<UInt32Type>();
            Ok(Arc::new(addresses.unary::<_, UInt32Type>(|address| !address)))
        },
        ..OF_BITS
    },
    Scalar {
        name: DISTANCE,
        gives: Gives::Long,
        call: |call| {
            let of = |column: usize, row| {
                Ok::<_, DataFusionError>(network(&call.columns[column], row)?.map(|n| i64::from(n.address)))
            };
            let distance = |row| Ok(of(0, row)?.zip(of(1, row)?).map(|(a, b)| a - b));
            Ok(Arc::new((0..call.rows).map(distance).collect::<Result<Int64Array>>()?))
        },
        ..OF_BITS
    },
    Scalar {
        name: CONTAINS,
        takes: TAKES,
        kinds: &[Kind::Address, Kind::Address],
        gives: Gives::Boolean,
        call: |call| contained(call, |outer, inner| outer.contains(inner) && outer.bits < inner.bits),
        ..PLAIN
    },
    Scalar {
        name: CONTAINS_OR_IS,
        takes: TAKES,
        kinds: &[Kind::Address, Kind::Address],
        gives: Gives::Boolean,
        call: |call| contained(call, Network::contains),
        ..PLAIN
    },
    Scalar {
        name: "netmask",
        takes: "a network such as '10.0.0.0/8'",
        kinds: &[Kind::Address],
        gives: Gives::Address,
        call: |call| {
            let mask = |row| Ok(network(&call.columns[0], row)?.map(|n| n.mask()));
            Ok(Arc::new((0..call.rows).map(mask).collect::<Result<UInt32Array>>()?))
        },
        ..PLAIN
    },
];

#[derive(Clone, Copy, Debug)]
pub(super) struct Network {
    pub address: u32,
    pub bits: u32,
}

impl Network {
    /// `10.1.2.3`, `10.0.0.0/8`, `10/8`.
    pub fn parse(text: &str) -> Option<Network> {
        let (address, bits) = match text.trim().split_once('/') {
            Some((address, bits)) => (address, bits.parse().ok().filter(|bits| *bits <= 32)?),
            None => (text.trim(), 32),
        };
        let missing = 3_usize.checked_sub(address.matches('.').count())?;
        let padded = format!("{address}{}", ".0".repeat(missing));
        if missing > 0 && bits == 32 {
            return None;
        }
        Some(Network { address: padded.parse::<Ipv4Addr>().ok()?.into(), bits })
    }

    pub fn mask(self) -> u32 {
        u32::MAX.checked_shl(32 - self.bits).unwrap_or(0)
    }

    fn contains(self, inner: Network) -> bool {
        self.bits <= inner.bits && (self.address ^ inner.address) & self.mask() == 0
    }
}

fn network(column: &ArrayRef, row: usize) -> Result<Option<Network>> {
    if column.is_null(row) {
        return Ok(None);
    }
    if let Some(addresses) = column.as_primitive_opt::<UInt32Type>() {
        return Ok(Some(Network { address: addresses.value(row), bits: 32 }));
    }
    let text = column.as_string_view().value(row);
    Network::parse(text).map(Some).ok_or_else(|| {
        let mut error = Error::invalid(format!("invalid IPv4 network: \"{text}\""));
        error.subject = Some(format!("'{text}"));
        error.into()
    })
}

/// Moves addresses by a count; a result outside of the address range is an error.
fn moved(call: &Call, by: fn(i64, i64) -> Option<i64>) -> Result<ArrayRef> {
    let counts = call.columns[1].as_primitive::<Int64Type>();
    let one = |row| -> Result<Option<u32>> {
        let Some(address) = network(&call.columns[0], row)?.filter(|_| counts.is_valid(row)) else { return Ok(None) };
        let found = by(i64::from(address.address), counts.value(row)).and_then(|sum| u32::try_from(sum).ok());
        Ok(Some(found.ok_or_else(|| Error::invalid("IPv4 address out of range"))?))
    };
    Ok(Arc::new((0..call.rows).map(one).collect::<Result<UInt32Array>>()?))
}

fn of_bits(call: &Call, bits: fn(u32, u32) -> u32) -> Result<ArrayRef> {
    let of = |column: usize, row| network(&call.columns[column], row);
    let one = |row| Ok(of(0, row)?.zip(of(1, row)?).map(|(a, b)| bits(a.address, b.address)));
    Ok(Arc::new((0..call.rows).map(one).collect::<Result<UInt32Array>>()?))
}

fn contained(call: &Call, is_contained: fn(Network, Network) -> bool) -> Result<ArrayRef> {
    let (outer, inner) = (&call.columns[0], &call.columns[1]);
    let value =
        |row| Ok(network(outer, row)?.zip(network(inner, row)?).map(|(outer, inner)| is_contained(outer, inner)));
    Ok(Arc::new((0..call.rows).map(value).collect::<Result<BooleanArray>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_and_contain() {
        let of = |text| Network::parse(text).expect("a network");
        assert!(of("10.0.0.0/8").contains(of("10.255.1.2")));
        assert!(of("0.0.0.0/0").contains(of("255.255.255.255")) && of("10/8").contains(of("10.1.0.0/16")));
        assert!(!of("10.0.0.0/9").contains(of("10.128.0.0")) && !of("10.0.0.0/16").contains(of("10.0.0.0/8")));
        assert!(
            ["10.0.0.0/33", "10", "10.0.0.0.0", "10.0.0.256", "/8", ""].iter().all(|t| Network::parse(t).is_none())
        );
    }
}
