//! Values by chance: `rnd_int()`, `rnd_double(2)`, `rnd_symbol('a', 'b')`, … for test data.
//!
//! Over `long_sequence(n, seed1, seed2)` the dialect names the seeds, the place of the call in the statement and the
//! row, `__seeded(seed1, seed2, place, x, 'rnd_int', …)`: then a value depends on these alone, whatever threads do. Without
//! seeds each batch is another one. A `null_rate` of n makes one value of n NULL, of 0 none.

use super::geo;
use super::ipv4::Network;
use crate::Error;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, BooleanArray, FixedSizeBinaryBuilder, Float32Array, Float64Array,
    Int8Array, Int16Array, Int32Array, Int64Array, StringViewArray, UInt32Array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef, Int64Type, TimeUnit as ArrowUnit};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tidalite_types::{ColumnType, TimeUnit};

/// The function that the others are over a sequence with seeds.
pub(crate) const SEEDED: &str = "__seeded";
/// Arguments of it before those of the function it stands for.
const SEEDED_ARGUMENTS: usize = 5;

pub(crate) const NAMES: &[&str] = &[
    "rnd_boolean",
    "rnd_byte",
    "rnd_short",
    "rnd_int",
    "rnd_long",
    "rnd_long256",
    "rnd_float",
    "rnd_double",
    "rnd_date",
    "rnd_timestamp",
    "rnd_timestamp_ns",
    "rnd_char",
    "rnd_str",
    "rnd_varchar",
    "rnd_symbol",
    "rnd_uuid4",
    "gen_random_uuid",
    "rnd_ipv4",
    "rnd_geohash",
    "rnd_bin",
    "rnd_double_array",
    "rnd_decimal",
    "rnd_symbol_weighted",
    "rnd_symbol_zipf",
    "timestamp_shuffle",
];

mod arrays;
mod weighted;

pub(super) fn functions() -> Vec<ScalarUDF> {
    let own = NAMES.iter().map(|name| Random { name, is_seeded: false });
    let all = own.chain([Random { name: SEEDED, is_seeded: true }]);
    all.map(|of| ScalarUDF::new_from_impl(Function { of, signature: of.signature() })).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Random {
    name: &'static str,
    is_seeded: bool,
}

impl Random {
    fn signature(self) -> Signature {
        let volatility = if self.is_seeded { Volatility::Immutable } else { Volatility::Volatile };
        Signature::one_of(vec![TypeSignature::Nullary, TypeSignature::VariadicAny], volatility)
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Function {
    of: Random,
    signature: Signature,
}

fn type_of(name: &str) -> ColumnType {
    match name {
        "rnd_boolean" => ColumnType::Boolean,
        "rnd_byte" => ColumnType::Byte,
        "rnd_short" => ColumnType::Short,
        "rnd_int" => ColumnType::Int,
        "rnd_long" => ColumnType::Long,
        "rnd_float" => ColumnType::Float,
        "rnd_double" => ColumnType::Double,
        "rnd_date" => ColumnType::Timestamp(TimeUnit::Millis),
        "rnd_timestamp" => ColumnType::Timestamp(TimeUnit::Micros),
        "rnd_timestamp_ns" => ColumnType::Timestamp(TimeUnit::Nanos),
        "rnd_symbol" | "rnd_symbol_weighted" | "rnd_symbol_zipf" => ColumnType::Symbol,
        "rnd_uuid4" | "gen_random_uuid" => ColumnType::Uuid,
        "rnd_ipv4" => ColumnType::Ipv4,
        "rnd_bin" => ColumnType::Binary,
        "rnd_double_array" => ColumnType::DoubleArray { dims: 1 },
        _ => ColumnType::Varchar,
    }
}

/// Returns the type of a call; for some functions it depends on the arguments.
fn type_of_call(name: &str, constants: &[Option<&ScalarValue>], fields: &[FieldRef]) -> Result<ColumnType> {
    let integer = |n: usize| match constants.get(n).copied().flatten().map(|value| value.cast_to(&DataType::Int64)) {
        Some(Ok(ScalarValue::Int64(value))) => value,
        _ => None,
    };
    match name {
        "rnd_decimal" => {
            let (precision, scale) = (integer(0), integer(1));
            let fits = precision.zip(scale).filter(|(p, s)| (1..=38).contains(p) && (0..=*p).contains(s));
            let (precision, scale) = fits.ok_or_else(|| weighted::decimal_refused(name))?;
            Ok(ColumnType::Decimal { precision: precision as u8, scale: scale as u8 })
        }
        "rnd_double_array" => Ok(ColumnType::DoubleArray { dims: arrays::dims(name, integer(0))? }),
        "timestamp_shuffle" => {
            let is_nanos =
                |field: &FieldRef| matches!(field.data_type(), DataType::Timestamp(ArrowUnit::Nanosecond, _));
            let unit = if fields.iter().any(is_nanos) { TimeUnit::Nanos } else { TimeUnit::Micros };
            Ok(ColumnType::Timestamp(unit))
        }
        other => Ok(type_of(other)),
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.of.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(crate::door::arrow_type(type_of(self.of.name)))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let seeded = match args.scalar_arguments.get(SEEDED_ARGUMENTS - 1) {
            Some(Some(ScalarValue::Utf8(Some(name)) | ScalarValue::Utf8View(Some(name)))) if self.of.is_seeded => {
                name.as_str()
            }
            _ => self.of.name,
        };
        let first = if self.of.is_seeded { SEEDED_ARGUMENTS } else { 0 };
        let constants = args.scalar_arguments.get(first..).unwrap_or_default();
        let fields = args.arg_fields.get(first..).unwrap_or_default();
        Ok(crate::door::field(self.of.name, type_of_call(seeded, constants, fields)?, true))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let array = if self.of.is_seeded {
            let (fixed, own) = args.args.split_at(SEEDED_ARGUMENTS.min(args.args.len()));
            let [first, second, place, x, name] = fixed else {
                return Err(Error::internal("seeded values without their seeds").into());
            };
            let number =
                |value: &ColumnarValue| -> Result<ArrayRef> { Ok(cast(&value.to_array(rows)?, &DataType::Int64)?) };
            let (first, second, place, x) = (number(first)?, number(second)?, number(place)?, number(x)?);
            let of = |array: &ArrayRef, row: usize| array.as_primitive::<Int64Type>().value(row) as u64;
            let streams = (0..rows).map(|row| {
                let seed = mixed(of(&first, row) ^ mixed(of(&second, row) ^ mixed(of(&place, row))));
                Dice(mixed(seed ^ mixed(of(&x, row))))
            });
            let Some(name) = super::times::text(name, "the name of a function")? else {
                return Err(Error::internal("seeded values without a function").into());
            };
            made(&name, own, streams, rows)?
        } else {
            static CALLS: AtomicU64 = AtomicU64::new(0);
            let seed = RandomState::new().hash_one(CALLS.fetch_add(1, Ordering::Relaxed));
            made(self.of.name, &args.args, (0..rows).map(|row| Dice(mixed(seed.wrapping_add(row as u64)))), rows)?
        };
        Ok(ColumnarValue::Array(cast(&array, args.return_field.data_type())?))
    }
}

/// SplitMix64: every number gives another, and close ones give ones far apart.
fn mixed(value: u64) -> u64 {
    let z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The numbers of one row.
#[derive(Clone, Copy)]
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// At least 0 and less than 1.
    fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Both ends included.
    fn between(&mut self, lo: i64, hi: i64) -> i64 {
        let span = (i128::from(hi) - i128::from(lo) + 1) as u128;
        let drawn = (u128::from(self.next()) * span) >> 64;
        (i128::from(lo) + drawn as i128) as i64
    }

    fn is_null(&mut self, rate: i64) -> bool {
        rate > 0 && self.between(1, rate) == 1
    }

    fn letters(&mut self, count: i64) -> String {
        (0..count).map(|_| char::from(b'A' + self.between(0, 25) as u8)).collect()
    }
}

/// The arguments, which are the same for all rows.
struct Arguments<'a> {
    name: &'a str,
    values: Vec<ScalarValue>,
}

impl Arguments<'_> {
    fn refused<T>(&self, usage: &str) -> Result<T> {
        let mut error = Error::invalid(format!("{} takes {usage}", self.name));
        error.subject = Some(self.name.to_owned());
        Err(error.into())
    }

    fn integers(&self) -> Result<Vec<i64>> {
        let integer = |value: &ScalarValue| match value.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(Some(value))) => Ok(value),
            _ => self.refused("whole numbers"),
        };
        self.values.iter().map(integer).collect()
    }

    fn texts(&self) -> Option<Vec<Option<String>>> {
        let text = |value: &ScalarValue| match value {
            ScalarValue::Utf8(text) | ScalarValue::Utf8View(text) | ScalarValue::LargeUtf8(text) => Some(text.clone()),
            ScalarValue::Null => Some(None),
            _ => None,
        };
        self.values.iter().map(text).collect::<Option<Vec<_>>>().filter(|texts| !texts.is_empty())
    }

    /// Bounds, and how often NULL; everything there is when there are no arguments.
    fn range(&self, lo: i64, hi: i64) -> Result<(i64, i64, i64)> {
        let found = match self.integers()?[..] {
            [] => (lo, hi, 0),
            [lo, hi] => (lo, hi, 0),
            [lo, hi, rate] => (lo, hi, rate),
            _ => return self.refused("nothing, or a least and a greatest value and how often NULL"),
        };
        if found.0 > found.1 || found.0 < lo || found.1 > hi {
            return self.refused(&format!("a range within {lo} and {hi}"));
        }
        Ok(found)
    }

    fn times(&self, unit: TimeUnit) -> Result<(i64, i64, i64)> {
        let [lo, hi, rest @ ..] = &self.values[..] else { return self.refused("two timestamps and how often NULL") };
        let target = DataType::Timestamp(crate::door::arrow_unit(unit), None);
        let time = |value: &ScalarValue| match value.cast_to(&target).and_then(|v| v.cast_to(&DataType::Int64)) {
            Ok(ScalarValue::Int64(Some(ts))) => Ok(ts),
            _ => self.refused("two timestamps and how often NULL"),
        };
        let rate = Arguments { name: self.name, values: rest.to_vec() }.integers()?;
        let (lo, hi) = (time(lo)?, time(hi)?);
        Ok((lo.min(hi), lo.max(hi), rate.first().copied().unwrap_or(0)))
    }
}

fn made(name: &str, args: &[ColumnarValue], dice: impl Iterator<Item = Dice>, rows: usize) -> Result<ArrayRef> {
    let values = args.iter().map(|value| match value {
        ColumnarValue::Scalar(value) => Ok(value.clone()),
        ColumnarValue::Array(array) if array.len() == 1 => ScalarValue::try_from_array(array, 0),
        ColumnarValue::Array(_) => Err(Error::invalid(format!("{name} takes constants")).into()),
    });
    let args = Arguments { name, values: values.collect::<Result<Vec<_>>>()? };
    Ok(match name {
        "rnd_boolean" => Arc::new(dice.map(|mut d| Some(d.next() & 1 == 1)).collect::<BooleanArray>()),
        "rnd_byte" => ranged(dice, args.range(i8::MIN.into(), i8::MAX.into())?, |v| v as i8, Int8Array::from),
        "rnd_short" => ranged(dice, args.range(i16::MIN.into(), i16::MAX.into())?, |v| v as i16, Int16Array::from),
        "rnd_int" => ranged(dice, args.range(i32::MIN.into(), i32::MAX.into())?, |v| v as i32, Int32Array::from),
        "rnd_long" => ranged(dice, args.range(i64::MIN, i64::MAX)?, |v| v, Int64Array::from),
        "rnd_float" | "rnd_double" => {
            let rate = match args.integers()?[..] {
                [] => 0,
                [rate] => rate,
                _ => return args.refused("nothing, or how often NULL"),
            };
            let values = dice.map(|mut d| (!d.is_null(rate)).then(|| d.part()));
            if name == "rnd_double" {
                Arc::new(values.collect::<Float64Array>())
            } else {
                Arc::new(values.map(|v| v.map(|v| v as f32)).collect::<Float32Array>())
            }
        }
        "rnd_date" => ranged(dice, args.times(TimeUnit::Millis)?, |v| v, Int64Array::from),
        "rnd_timestamp" => ranged(dice, args.times(TimeUnit::Micros)?, |v| v, Int64Array::from),
        "rnd_timestamp_ns" => ranged(dice, args.times(TimeUnit::Nanos)?, |v| v, Int64Array::from),
        "rnd_char" => Arc::new(dice.map(|mut d| Some(d.letters(1))).collect::<StringViewArray>()),
        "rnd_str" | "rnd_varchar" | "rnd_symbol" => {
            Arc::new(texts(&args, dice)?.into_iter().collect::<StringViewArray>())
        }
        "rnd_long256" => Arc::new(dice.map(|mut d| Some(hexadecimal(&mut d, 4))).collect::<StringViewArray>()),
        "rnd_uuid4" | "gen_random_uuid" => Arc::new(uuids(dice, rows)?),
        "rnd_ipv4" => {
            let (network, rate) = match &args.texts() {
                None if args.values.is_empty() => (Network { address: 0, bits: 0 }, 0),
                _ => subnet(&args)?,
            };
            let address = |mut d: Dice| {
                (!d.is_null(rate)).then(|| network.address & network.mask() | d.next() as u32 & !network.mask())
            };
            Arc::new(dice.map(address).collect::<UInt32Array>())
        }
        "rnd_geohash" => {
            let [bits @ 1..=60] = args.integers()?[..] else { return args.refused("a number of bits from 1 to 60") };
            let hash = |mut d: Dice| Some(geo::text(d.next() >> (64 - bits), bits as u32));
            Arc::new(dice.map(hash).collect::<StringViewArray>())
        }
        "rnd_bin" => {
            let (lo, hi, rate) = if args.values.is_empty() { (32, 32, 0) } else { args.range(1, 1 << 20)? };
            let bytes = dice.map(|mut d| {
                (!d.is_null(rate)).then(|| (0..d.between(lo, hi)).map(|_| d.next() as u8).collect::<Vec<u8>>())
            });
            Arc::new(bytes.collect::<BinaryViewArray>())
        }
        "rnd_double_array" => arrays::made(&args, dice)?,
        "rnd_decimal" => weighted::decimals(&args, dice)?,
        "rnd_symbol_weighted" => weighted::chosen(&weighted::Choices::weighted(&args)?, dice),
        "rnd_symbol_zipf" => weighted::chosen(&weighted::Choices::zipf(&args)?, dice),
        "timestamp_shuffle" => {
            let is_nanos = |value: &ScalarValue| matches!(value, ScalarValue::TimestampNanosecond(..));
            let unit = if args.values.iter().any(is_nanos) { TimeUnit::Nanos } else { TimeUnit::Micros };
            if args.values.len() != 2 {
                return args.refused("two timestamps");
            }
            ranged(dice, args.times(unit)?, |v| v, Int64Array::from)
        }
        _ => return Err(Error::invalid(format!("function {name} does not exist")).into()),
    })
}

fn ranged<T, A: Array + 'static>(
    dice: impl Iterator<Item = Dice>,
    (lo, hi, rate): (i64, i64, i64),
    value: fn(i64) -> T,
    array: fn(Vec<Option<T>>) -> A,
) -> ArrayRef {
    let values = dice.map(|mut d| (!d.is_null(rate)).then(|| value(d.between(lo, hi))));
    Arc::new(array(values.collect()))
}

/// One of a list, or letters: of so many different texts, of a least and a greatest length, with NULLs.
fn texts(args: &Arguments, dice: impl Iterator<Item = Dice>) -> Result<Vec<Option<String>>> {
    if let Some(list) = args.texts() {
        let last = list.len() as i64 - 1;
        return Ok(dice.map(|mut d| list[d.between(0, last) as usize].clone()).collect());
    }
    const LENGTH_MAX: i64 = 65_536;
    let (pool, lo, hi, rate) = match args.integers()?[..] {
        [] => (None, 4, 10, 0),
        [lo, hi, rate] => (None, lo, hi, rate),
        [pool, lo, hi, rate] if pool > 0 => (Some(pool), lo, hi, rate),
        _ => (None, 1, 0, 0),
    };
    if lo < 0 || lo > hi || hi > LENGTH_MAX {
        return args.refused("texts to choose from, or how many, a least and a greatest length, and how often NULL");
    }
    let text = |mut d: Dice| {
        if d.is_null(rate) {
            return None;
        }
        // Of a pool each text has dice of its own, so that all rows see the same pool.
        let mut own = pool.map_or(d, |pool| Dice(mixed(d.between(1, pool) as u64)));
        let length = own.between(lo, hi);
        Some(own.letters(length))
    };
    Ok(dice.map(text).collect())
}

fn subnet(args: &Arguments) -> Result<(Network, i64)> {
    let usage = "nothing, or a network such as '10.0.0.0/8' and how often NULL";
    let [ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)), rest @ ..] = &args.values[..] else {
        return args.refused(usage);
    };
    let Some(network) = Network::parse(text) else { return args.refused(usage) };
    let rate = Arguments { name: args.name, values: rest.to_vec() }.integers()?;
    Ok((network, rate.first().copied().unwrap_or(0)))
}

fn hexadecimal(dice: &mut Dice, words: usize) -> String {
    let digits: String = (0..words).map(|_| format!("{:016x}", dice.next())).collect();
    format!("0x{digits}")
}

fn uuids(dice: impl Iterator<Item = Dice>, rows: usize) -> Result<datafusion::arrow::array::FixedSizeBinaryArray> {
    let mut out = FixedSizeBinaryBuilder::with_capacity(rows, 16);
    for mut d in dice {
        let value = u128::from(d.next()) << 64 | u128::from(d.next());
        // Version 4, variant 1.
        let value = value & !(0xf << 76) | 4 << 76;
        let value = value & !(3 << 62) | 2 << 62;
        out.append_value(value.to_be_bytes())?;
    }
    Ok(out.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dice_stay_within_their_bounds_and_reach_them() {
        let mut dice = Dice(7);
        let drawn: Vec<i64> = (0..1_000).map(|_| dice.between(-1, 1)).collect();
        assert!([-1, 0, 1].iter().all(|v| drawn.contains(v)) && drawn.iter().all(|v| (-1..=1).contains(v)));
        assert!((0..1_000).map(|_| dice.part()).all(|p| (0.0..1.0).contains(&p)));
        dice.between(i64::MIN, i64::MAX);
        assert!(dice.is_null(1) && !dice.is_null(0));
    }
}
