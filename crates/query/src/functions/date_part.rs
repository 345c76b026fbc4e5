//! `extract(field FROM x)`, which is `date_part('field', x)`, of timestamps, dates, times of day and intervals.
//!
//! Fields are integers, except `second`, `milliseconds`, `epoch` and `julian`, which have a fraction. If the field is a
//! column, the result is a DOUBLE.

use super::field_columns::by_field;
use super::time_casts::{interval, of_interval};
use super::times;
use crate::calendar::{Civil, week_of};
use crate::{Error, door};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int32Array, Int64Array};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Time64NanosecondType, TimeUnit as ArrowUnit};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;
use tidalite_types::Interval;
use tidalite_types::interval::DAY_NANOS;
use tidalite_types::time::days_from_civil;

const SECOND: i64 = 1_000_000_000;
/// The Julian day of 1970-01-01.
const JULIAN_1970: i64 = 2_440_588;
/// Seconds of a year in the epoch of an interval: 365.25 days, as in PostgreSQL.
const YEAR_S: f64 = 31_557_600.0;

/// A field of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Century,
    Day,
    Decade,
    Dow,
    Doy,
    Epoch,
    Hour,
    Isodow,
    Isoyear,
    Julian,
    Microseconds,
    Millennium,
    Milliseconds,
    Minute,
    Month,
    Nanoseconds,
    Quarter,
    Second,
    /// The offset from UTC in seconds, hours or minutes: always 0.
    Zone,
    Week,
    Year,
}

/// PostgreSQL's names, the documented one first.
const NAMES: &[(Part, &[&str])] = &[
    (Part::Century, &["century", "centuries", "cent", "c"]),
    (Part::Day, &["day", "days", "d"]),
    (Part::Decade, &["decade", "decades", "dec"]),
    (Part::Dow, &["dow", "dayofweek"]),
    (Part::Doy, &["doy", "dayofyear"]),
    (Part::Epoch, &["epoch"]),
    (Part::Hour, &["hour", "hours", "hr", "hrs", "h"]),
    (Part::Isodow, &["isodow"]),
    (Part::Isoyear, &["isoyear"]),
    (Part::Julian, &["julian"]),
    (Part::Microseconds, &["microseconds", "microsecond", "usec", "usecs", "useconds", "us"]),
    (Part::Millennium, &["millennium", "millennia", "millenium", "mil"]),
    (Part::Milliseconds, &["milliseconds", "millisecond", "msec", "msecs", "mseconds", "ms"]),
    (Part::Minute, &["minute", "minutes", "min", "mins", "m"]),
    (Part::Month, &["month", "months", "mon", "mons"]),
    (Part::Nanoseconds, &["nanoseconds", "nanosecond", "ns"]),
    (Part::Quarter, &["quarter", "quarters", "qtr"]),
    (Part::Second, &["second", "seconds", "sec", "secs", "s"]),
    (Part::Zone, &["timezone", "timezone_hour", "timezone_minute"]),
    (Part::Week, &["week", "weeks", "w"]),
    (Part::Year, &["year", "years", "yr", "yrs", "y"]),
];

impl Part {
    pub fn from_name(name: &str) -> Option<Part> {
        let is_named = |names: &[&str]| names.iter().any(|own| own.eq_ignore_ascii_case(name.trim()));
        NAMES.iter().find(|(_, names)| is_named(names)).map(|(part, _)| *part)
    }

    /// Returns the type of the numbers.
    fn data_type(self) -> DataType {
        match self {
            Part::Second | Part::Milliseconds | Part::Epoch | Part::Julian => DataType::Float64,
            Part::Nanoseconds => DataType::Int64,
            _ => DataType::Int32,
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct DatePart {
    signature: Signature,
    aliases: Vec<String>,
    stock: Arc<ScalarUDF>,
}

impl DatePart {
    pub fn new() -> DatePart {
        DatePart {
            signature: Signature::user_defined(Volatility::Immutable),
            aliases: vec!["datepart".to_owned()],
            stock: datafusion::functions::datetime::date_part(),
        }
    }
}

fn part_of(name: &str) -> Result<Part> {
    Part::from_name(name).ok_or_else(|| {
        let mut error = Error::invalid(format!("unit \"{name}\" not recognized"))
            .with_hint("units are year, quarter, month, week, day, hour, minute, second, epoch, dow, doy and others");
        error.subject = Some(name.to_owned());
        error.into()
    })
}

/// Returns the field of a constant first argument; `None` for NULL.
fn constant_part(value: &ScalarValue) -> Result<Option<Part>> {
    if value.is_null() {
        return Ok(None);
    }
    match value.try_as_str().flatten() {
        Some(name) => part_of(name).map(Some),
        None => Err(Error::invalid("the field of date_part must be a text").into()),
    }
}

impl ScalarUDFImpl for DatePart {
    fn name(&self) -> &'static str {
        "date_part"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [_, source] = types else { return Err(Error::invalid("date_part takes a field and a time").into()) };
        let source = match source {
            DataType::Interval(_) | DataType::Duration(_) => source.clone(),
            DataType::Time32(_) | DataType::Time64(_) => DataType::Time64(ArrowUnit::Nanosecond),
            other => times::timestamp_type(other, "date_part")?,
        };
        Ok(vec![DataType::Utf8, source])
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Err(Error::internal("date_part is typed by its field").into())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let data_type = match args.scalar_arguments.first().copied().flatten() {
            Some(name) => constant_part(name)?.map_or(DataType::Float64, Part::data_type),
            // The fields of a column have one type.
            None => DataType::Float64,
        };
        Ok(Arc::new(Field::new(self.name(), data_type, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [name, source] = &args.args[..] else { return Err(Error::internal("date_part without a time").into()) };
        let ColumnarValue::Scalar(name) = name else {
            return by_field(&args, |args| self.invoke_with_args(args));
        };
        let Some(part) = constant_part(name)? else { return times::null(args.return_type()) };
        let is_constant = matches!(source, ColumnarValue::Scalar(_));
        let array = source.to_array(if is_constant { 1 } else { args.number_rows })?;
        let parts = extracted(part, &array)?;
        if is_constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&parts, 0)?));
        }
        Ok(ColumnarValue::Array(parts))
    }

    /// A year of a column corresponds to a range of times.
    fn preimage(&self, args: &[Expr], literal: &Expr, info: &SimplifyContext) -> Result<PreimageResult> {
        self.stock.preimage(args, literal, info)
    }
}

fn refused(part: Part, source: &DataType) -> datafusion::common::DataFusionError {
    let name = NAMES.iter().find(|(own, _)| *own == part).and_then(|(_, names)| names.first());
    let of = door::type_name(&Field::new("", source.clone(), true)).to_lowercase();
    Error::invalid(format!("unit \"{}\" not supported for type {of}", name.unwrap_or(&""))).into()
}

fn extracted(part: Part, source: &ArrayRef) -> Result<ArrayRef> {
    match source.data_type() {
        DataType::Interval(_) | DataType::Duration(_) => {
            let intervals = of_interval(source)?;
            let one = |v: Option<_>| v.map_or(Some(None), |v| of_length(part, interval(v)).map(Some));
            let values = intervals.iter().map(one).collect::<Option<Vec<_>>>();
            numbers(part, values.ok_or_else(|| refused(part, source.data_type()))?)
        }
        DataType::Time64(_) => {
            let clocks = source.as_primitive::<Time64NanosecondType>();
            let one = |v: Option<i64>| v.map_or(Some(None), |v| of_clock(part, v).map(Some));
            let values = clocks.iter().map(one).collect::<Option<Vec<_>>>();
            numbers(part, values.ok_or_else(|| refused(part, source.data_type()))?)
        }
        _ => of_timestamps(part, source),
    }
}

/// An integer, or a number with a fraction.
#[derive(Clone, Copy)]
enum Number {
    Whole(i64),
    Real(f64),
}

fn numbers(part: Part, values: Vec<Option<Number>>) -> Result<ArrayRef> {
    let whole = |v: &Option<Number>| match v {
        Some(Number::Whole(v)) => Some(*v),
        Some(Number::Real(v)) => Some(v.floor() as i64),
        None => None,
    };
    let real = |v: &Option<Number>| match v {
        Some(Number::Whole(v)) => Some(*v as f64),
        Some(Number::Real(v)) => Some(*v),
        None => None,
    };
    Ok(match part.data_type() {
        DataType::Float64 => Arc::new(values.iter().map(real).collect::<Float64Array>()),
        DataType::Int64 => Arc::new(values.iter().map(whole).collect::<Int64Array>()),
        _ => {
            let narrow = values.iter().map(|v| whole(v).and_then(|v| i32::try_from(v).ok()));
            Arc::new(narrow.collect::<Int32Array>())
        }
    })
}

fn of_timestamps(part: Part, source: &ArrayRef) -> Result<ArrayRef> {
    let unit = times::unit(source.data_type())?;
    let ticks = times::ticks(source)?;
    if part == Part::Epoch {
        let per_second = unit.per_second() as f64;
        let seconds = ticks.iter().map(|v| v.map(|v| v as f64 / per_second));
        return Ok(Arc::new(seconds.collect::<Float64Array>()));
    }
    let value = |ts: i64| -> Number {
        let t = Civil::of(ts, unit);
        let of_second = t.second_of_day % 60 * SECOND + t.nanos;
        Number::Whole(match part {
            Part::Century => crate::calendar::civil::centuries(t.year, 100),
            Part::Millennium => crate::calendar::civil::centuries(t.year, 1_000),
            Part::Decade => t.year.div_euclid(10),
            Part::Year => t.year,
            Part::Isoyear => week_of(&t).0,
            Part::Quarter => i64::from(t.month - 1) / 3 + 1,
            Part::Month => i64::from(t.month),
            Part::Week => week_of(&t).1,
            Part::Day => i64::from(t.day),
            Part::Dow => (t.days + 4).rem_euclid(7),
            Part::Isodow => (t.days + 3).rem_euclid(7) + 1,
            Part::Doy => t.days - days_from_civil(t.year, 1, 1) + 1,
            Part::Hour => t.second_of_day / 3_600,
            Part::Minute => t.second_of_day / 60 % 60,
            Part::Second => return Number::Real(of_second as f64 / 1e9),
            Part::Milliseconds => return Number::Real(of_second as f64 / 1e6),
            Part::Microseconds => of_second / 1_000,
            Part::Nanoseconds => of_second,
            Part::Zone | Part::Epoch => 0,
            Part::Julian => {
                let of_day = (t.second_of_day * SECOND + t.nanos) as f64 / DAY_NANOS as f64;
                return Number::Real((t.days + JULIAN_1970) as f64 + of_day);
            }
        })
    };
    numbers(part, ticks.iter().map(|v| v.map(value)).collect())
}

/// Returns a field of an interval, whose hours are not limited to a day.
fn of_length(part: Part, length: Interval) -> Option<Number> {
    let Interval { months, days, nanos } = length;
    let of_minute = nanos % (60 * SECOND);
    Some(Number::Whole(match part {
        Part::Millennium => i64::from(months / 12_000),
        Part::Century => i64::from(months / 1_200),
        Part::Decade => i64::from(months / 120),
        Part::Year => i64::from(months / 12),
        Part::Quarter => i64::from(months % 12 / 3 + 1),
        Part::Month => i64::from(months % 12),
        Part::Day => i64::from(days),
        Part::Hour => nanos / (3_600 * SECOND),
        Part::Minute => nanos / (60 * SECOND) % 60,
        Part::Second => return Some(Number::Real(of_minute as f64 / 1e9)),
        Part::Milliseconds => return Some(Number::Real(of_minute as f64 / 1e6)),
        Part::Microseconds => of_minute / 1_000,
        Part::Nanoseconds => of_minute,
        Part::Epoch => {
            let whole = f64::from(months / 12) * YEAR_S + (f64::from(months % 12) * 30.0 + f64::from(days)) * 86_400.0;
            return Some(Number::Real(whole + nanos as f64 / 1e9));
        }
        _ => return None,
    }))
}

fn of_clock(part: Part, nanos: i64) -> Option<Number> {
    let of_minute = nanos % (60 * SECOND);
    Some(Number::Whole(match part {
        Part::Hour => nanos / (3_600 * SECOND),
        Part::Minute => nanos / (60 * SECOND) % 60,
        Part::Second => return Some(Number::Real(of_minute as f64 / 1e9)),
        Part::Milliseconds => return Some(Number::Real(of_minute as f64 / 1e6)),
        Part::Microseconds => of_minute / 1_000,
        Part::Nanoseconds => of_minute,
        Part::Epoch => return Some(Number::Real(nanos as f64 / 1e9)),
        _ => return None,
    }))
}
