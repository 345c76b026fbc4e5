//! Places on the globe: geohashes as text, great-circle distances. Degrees everywhere; the globe is a sphere of the
//! earth's mean radius.

use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use crate::Error;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, StringViewArray};
use datafusion::arrow::datatypes::{Float64Type, Int64Type};
use datafusion::common::Result;
use std::sync::Arc;

/// The mean radius of the earth in metres.
const RADIUS_M: f64 = 6_371_008.8;
pub(crate) const BITS_MAX: u32 = 60;
/// The first bits of a geohash.
pub(crate) const CUT: &str = "__geohash";
const LETTERS: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";

const D4: &[Kind] = &[Kind::Double, Kind::Double, Kind::Double, Kind::Double];

pub(super) const FUNCTIONS: &[Scalar] = &[
    Scalar {
        name: "make_geohash",
        takes: "a longitude, a latitude and a number of bits",
        kinds: &[Kind::Double, Kind::Double, Kind::Long],
        gives: Gives::Text,
        call: make_geohash,
        ..PLAIN
    },
    Scalar {
        name: CUT,
        takes: "the text of a geohash",
        kinds: &[Kind::Text, Kind::Long],
        gives: Gives::Text,
        call: cut,
        ..PLAIN
    },
    Scalar {
        name: "geo_distance_meters",
        takes: "a latitude and a longitude, twice",
        kinds: D4,
        call: |call| {
            let distances = each(call, |v| distance_m((v[0], v[1]), (v[2], v[3])));
            Ok(Arc::new(distances.collect::<Float64Array>()))
        },
        ..PLAIN
    },
    Scalar {
        name: "geo_within_radius",
        takes: "a latitude and a longitude, those of a centre, and a radius in metres",
        kinds: &[Kind::Double, Kind::Double, Kind::Double, Kind::Double, Kind::Double],
        gives: Gives::Boolean,
        call: |call| {
            let is_within = each(call, |v| distance_m((v[0], v[1]), (v[2], v[3])) <= v[4]);
            Ok(Arc::new(is_within.collect::<BooleanArray>()))
        },
        ..PLAIN
    },
    Scalar {
        name: "geo_within_box",
        takes: "a latitude and a longitude, and those of two corners, south-west and north-east",
        kinds: &[Kind::Double, Kind::Double, Kind::Double, Kind::Double, Kind::Double, Kind::Double],
        gives: Gives::Boolean,
        call: |call| {
            let is_within = each(call, |v| {
                // A box over the date line has its west in the east.
                let is_between = if v[3] <= v[5] { v[3] <= v[1] && v[1] <= v[5] } else { v[1] >= v[3] || v[1] <= v[5] };
                v[2] <= v[0] && v[0] <= v[4] && is_between
            });
            Ok(Arc::new(is_within.collect::<BooleanArray>()))
        },
        ..PLAIN
    },
];

/// Applies a function to the arguments of each row; `None` if one of them is NULL.
pub(super) fn each<T>(call: &Call, of: impl Fn(&[f64]) -> T) -> impl Iterator<Item = Option<T>> {
    let columns: Vec<_> = call.columns.iter().map(|c| c.as_primitive::<Float64Type>().clone()).collect();
    let mut values = Vec::with_capacity(columns.len());
    (0..call.rows).map(move |row| {
        if columns.iter().any(|column| column.is_null(row)) {
            return None;
        }
        values.clear();
        values.extend(columns.iter().map(|column| column.value(row)));
        Some(of(&values))
    })
}

/// Along the great circle between two places, each a latitude and a longitude; by the haversine.
pub(super) fn distance_m(from: (f64, f64), to: (f64, f64)) -> f64 {
    let (lat1, lat2) = (from.0.to_radians(), to.0.to_radians());
    let (across, along) = ((lat2 - lat1) / 2.0, (to.1 - from.1).to_radians() / 2.0);
    let h = across.sin().powi(2) + lat1.cos() * lat2.cos() * along.sin().powi(2);
    2.0 * RADIUS_M * h.sqrt().min(1.0).asin()
}

fn make_geohash(call: &Call) -> Result<ArrayRef> {
    let longitudes = call.columns[0].as_primitive::<Float64Type>();
    let latitudes = call.columns[1].as_primitive::<Float64Type>();
    let bits = call.columns[2].as_primitive::<Int64Type>();
    let hash = |row: usize| -> Result<Option<String>> {
        if longitudes.is_null(row) || latitudes.is_null(row) || bits.is_null(row) {
            return Ok(None);
        }
        let (longitude, latitude) = (longitudes.value(row), latitudes.value(row));
        if !(-180.0..=180.0).contains(&longitude) || !(-90.0..=90.0).contains(&latitude) {
            let place = format!("longitude {longitude}, latitude {latitude}");
            return Err(Error::invalid(format!("there is no such place: {place}")).into());
        }
        if !(1..=i64::from(BITS_MAX)).contains(&bits.value(row)) {
            return Err(Error::invalid(format!("a geohash has 1 to {BITS_MAX} bits")).into());
        }
        Ok(Some(text(geohash(longitude, latitude, bits.value(row) as u32), bits.value(row) as u32)))
    };
    Ok(Arc::new((0..call.rows).map(hash).collect::<Result<StringViewArray>>()?))
}

/// Halves of longitude and latitude in turns.
pub(super) fn geohash(longitude: f64, latitude: f64, bits: u32) -> u64 {
    let mut ranges = [(-180.0, 180.0, longitude), (-90.0, 90.0, latitude)];
    let mut hash = 0;
    for bit in 0..bits {
        let (lo, hi, value) = &mut ranges[bit as usize % 2];
        let middle = (*lo + *hi) / 2.0;
        let is_upper = *value >= middle;
        *(if is_upper { lo } else { hi }) = middle;
        hash = hash << 1 | u64::from(is_upper);
    }
    hash
}

/// Letters for every five bits; binary digits when the bits make no whole letters.
pub(crate) fn text(hash: u64, bits: u32) -> String {
    if !bits.is_multiple_of(5) {
        return (0..bits).rev().map(|bit| if hash >> bit & 1 == 1 { '1' } else { '0' }).collect();
    }
    (0..bits / 5).rev().map(|letter| char::from(LETTERS[(hash >> (letter * 5) & 31) as usize])).collect()
}

/// The bits of letters, and how many.
pub(crate) fn parsed(text: &str) -> Option<(u64, u32)> {
    let bits = u32::try_from(text.len()).ok()?.checked_mul(5).filter(|bits| (1..=BITS_MAX).contains(bits))?;
    let letter = |c: u8| LETTERS.iter().position(|l| *l == c.to_ascii_lowercase()).map(|at| at as u64);
    let hash = text.bytes().try_fold(0, |hash, c| Some(hash << 5 | letter(c)?))?;
    Some((hash, bits))
}

fn cut(call: &Call) -> Result<ArrayRef> {
    let (texts, bits) = (call.columns[0].as_string_view(), call.columns[1].as_primitive::<Int64Type>());
    let hash = |row: usize| -> Result<Option<String>> {
        if texts.is_null(row) || bits.is_null(row) {
            return Ok(None);
        }
        let (given, wanted) = (texts.value(row), u32::try_from(bits.value(row)).unwrap_or(u32::MAX));
        match parsed(given).filter(|(_, bits)| *bits >= wanted) {
            Some((hash, bits)) => Ok(Some(text(hash >> (bits - wanted), wanted))),
            None => {
                let mut error = Error::invalid(format!("invalid geohash of {wanted} bits: \"{given}\""));
                error.subject = Some(format!("'{given}"));
                Err(error.into())
            }
        }
    };
    Ok(Arc::new((0..call.rows).map(hash).collect::<Result<StringViewArray>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_of_known_places() {
        // The example of the geohash article of Wikipedia, and Null Island's south-western neighbour.
        assert_eq!(text(geohash(-5.6, 42.6, 25), 25), "ezs42");
        assert_eq!(text(geohash(10.40744, 57.64911, 55), 55), "u4pruydqqvj");
        assert_eq!(text(geohash(-0.1, -0.1, 3), 3), "001");
        assert_eq!(parsed("ezs42"), Some((geohash(-5.6, 42.6, 25), 25)));
        assert_eq!([parsed(""), parsed("a"), parsed("0123456789bcd")], [None, None, None]);
    }

    #[test]
    fn a_quarter_of_a_great_circle() {
        let quarter = std::f64::consts::FRAC_PI_2 * RADIUS_M;
        assert!((distance_m((0.0, 0.0), (0.0, 90.0)) - quarter).abs() < 1e-6);
        assert!((distance_m((90.0, 12.0), (0.0, -77.0)) - quarter).abs() < 1e-6);
        assert_eq!(distance_m((51.5, -0.1), (51.5, -0.1)), 0.0);
    }
}
