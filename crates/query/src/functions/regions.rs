//! Regions that contain a point or a geohash, as QuestDB defines them: `within(hash, prefix, …)`, `within_box`,
//! `within_radius` in a plane, `geo_within_radius_latlon` on the globe.
//!
//! Coordinates that are NaN or out of range, and a negative radius, are errors. Distances on the globe are along great
//! circles, where QuestDB uses a flat projection.

use super::geo::{self, distance_m};
use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use crate::Error;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::common::Result;
use std::sync::Arc;

const D5: &[Kind] = &[Kind::Double; 5];
const D6: &[Kind] = &[Kind::Double; 6];

const fn region(
    name: &'static str,
    takes: &'static str,
    kinds: &'static [Kind],
    call: fn(&Call) -> Result<ArrayRef>,
) -> Scalar {
    Scalar { name, takes, kinds, gives: Gives::Boolean, call, ..PLAIN }
}

pub(super) const FUNCTIONS: &[Scalar] = &[
    Scalar {
        is_variadic: true,
        ..region("within", "the text of a geohash, and those of one or more regions", &[Kind::Text, Kind::Text], within)
    },
    region("within_box", "x and y of a point, and those of the least and the greatest corner", D6, |call| {
        tested(call, |v| Ok(v[2] <= v[0] && v[0] <= v[4] && v[3] <= v[1] && v[1] <= v[5]))
    }),
    region("within_radius", "x and y of a point, those of a centre, and a radius", D5, |call| {
        tested(call, |v| {
            radius(call.name, v[4])?;
            Ok((v[0] - v[2]).hypot(v[1] - v[3]) <= v[4])
        })
    }),
    region(
        "geo_within_radius_latlon",
        "a latitude and a longitude, those of a centre, and a radius in metres",
        D5,
        |call| {
            tested(call, |v| {
                radius(call.name, v[4])?;
                place(call.name, v[0], v[1])?;
                place(call.name, v[2], v[3])?;
                Ok(distance_m((v[0], v[1]), (v[2], v[3])) <= v[4])
            })
        },
    ),
];

fn wrong(name: &str, what: &str) -> Error {
    Error::invalid(format!("{name} takes {what}")).about(name)
}

fn check_numbers(name: &str, values: &[f64]) -> Result<()> {
    match values.iter().any(|value| value.is_nan()) {
        true => Err(wrong(name, "numbers other than NaN").into()),
        false => Ok(()),
    }
}

fn radius(name: &str, radius: f64) -> Result<()> {
    if radius < 0.0 { Err(wrong(name, "a radius of 0 or more").into()) } else { Ok(()) }
}

fn place(name: &str, latitude: f64, longitude: f64) -> Result<()> {
    if latitude.abs() > 90.0 || longitude.abs() > 180.0 {
        return Err(wrong(name, "a latitude from -90 to 90 and a longitude from -180 to 180").into());
    }
    Ok(())
}

/// Applies a test to the numbers of each row.
///
/// # Errors
/// Fails for NaN.
fn tested(call: &Call, test: impl Fn(&[f64]) -> Result<bool>) -> Result<ArrayRef> {
    let test = |values: &[f64]| check_numbers(call.name, values).and_then(|()| test(values));
    Ok(Arc::new(geo::each(call, test).map(Option::transpose).collect::<Result<BooleanArray>>()?))
}

/// Returns the bits of a geohash, in letters or in binary digits.
///
/// A number of bits that makes no whole letters is written in binary digits ([`geo::text`]).
fn bits(text: &str) -> Result<(u64, u32)> {
    let letters = text.strip_prefix('#').unwrap_or(text);
    let is_binary = !letters.len().is_multiple_of(5) && letters.bytes().all(|byte| matches!(byte, b'0' | b'1'));
    let found = match text.strip_prefix("##") {
        Some(digits) => binary(digits),
        None if is_binary => binary(letters),
        None => geo::parsed(letters),
    };
    found.ok_or_else(|| Error::invalid(format!("invalid geohash: \"{text}\"")).about(format!("'{text}")).into())
}

fn binary(digits: &str) -> Option<(u64, u32)> {
    let bits = u32::try_from(digits.len()).ok().filter(|bits| (1..=geo::BITS_MAX).contains(bits))?;
    // A sign would be accepted by the parser of the standard library.
    let digits = Some(digits).filter(|digits| digits.bytes().all(|byte| matches!(byte, b'0' | b'1')))?;
    Some((u64::from_str_radix(digits, 2).ok()?, bits))
}

/// Returns true if a geohash is a region or within it: the region's bits are the first bits of the geohash.
fn within(call: &Call) -> Result<ArrayRef> {
    let texts: Vec<_> = call.columns.iter().map(|column| column.as_string_view()).collect();
    let test = |row: usize| -> Result<Option<bool>> {
        if texts.iter().any(|texts| texts.is_null(row)) {
            return Ok(None);
        }
        let (hash, length) = bits(texts[0].value(row))?;
        let mut is_within = false;
        for region in &texts[1..] {
            let (region, region_length) = bits(region.value(row))?;
            is_within |= region_length <= length && hash >> (length - region_length) == region;
        }
        Ok(Some(is_within))
    };
    Ok(Arc::new((0..call.rows).map(test).collect::<Result<BooleanArray>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn geohashes_in_letters_and_in_bits() {
        // u is 26 and 3 is 3: 11010 00011.
        assert_eq!(bits("u3").expect("a geohash"), (0b11010_00011, 10));
        assert_eq!(bits("#u3").expect("a geohash"), (0b11010_00011, 10));
        assert_eq!(bits("##110").expect("a geohash"), (0b110, 3));
        assert!(bits("").is_err() && bits("a").is_err() && bits("##2").is_err() && bits("##+1").is_err());
    }
}
