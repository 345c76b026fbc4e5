//! Times rounded down: `date_trunc('month', ts [, zone])`, `date_bin(stride, ts [, origin])` and
//! `time_bucket(stride, ts [, origin])`, for the full range of the time type.

use super::field_columns::by_field;
use super::time_casts::{arrow_interval, interval, of_interval};
use super::times;
use super::timestamp_floor::time_zone;
use crate::calendar::{Buckets, Stride, Unit, Zone};
use crate::{Error, door};
use datafusion::arrow::array::{Array, ArrayRef, Int64Array, IntervalMonthDayNanoArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::ops::Range;
use std::sync::Arc;
use tidalite_types::interval::DAY_NANOS;
use tidalite_types::time::{civil_from_days, days_from_civil};
use tidalite_types::{Interval, TimeUnit};

const SECOND: i64 = 1_000_000_000;
/// Days since 1970-01-01 of 2000-01-01, and of the first Monday after it: the origins of time_bucket.
const YEAR_2000: i64 = 10_957;
const MONDAY_2000: i64 = 10_959;

/// The precision of date_trunc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Precision {
    /// Multiples of a number of nanoseconds, a day at most.
    Even(i64),
    Week,
    Months(i64),
    /// Multiples of years, counted from the year 0 or 1.
    Years(i64, i64),
}

impl Precision {
    fn from_name(name: &str) -> Option<Precision> {
        use super::date_part::Part;
        Some(match Part::from_name(name)? {
            Part::Nanoseconds => Precision::Even(1),
            Part::Microseconds => Precision::Even(1_000),
            Part::Milliseconds => Precision::Even(1_000_000),
            Part::Second => Precision::Even(SECOND),
            Part::Minute => Precision::Even(60 * SECOND),
            Part::Hour => Precision::Even(3_600 * SECOND),
            Part::Day => Precision::Even(DAY_NANOS),
            Part::Week => Precision::Week,
            Part::Month => Precision::Months(1),
            Part::Quarter => Precision::Months(3),
            Part::Year => Precision::Years(1, 0),
            Part::Decade => Precision::Years(10, 0),
            Part::Century => Precision::Years(100, 1),
            Part::Millennium => Precision::Years(1_000, 1),
            _ => return None,
        })
    }

    /// Returns the first day of the period that contains a day.
    fn day(self, days: i64) -> i64 {
        let (year, month, _) = civil_from_days(days);
        match self {
            Precision::Even(_) => days,
            Precision::Week => (days + 3).div_euclid(7) * 7 - 3,
            Precision::Months(count) => {
                let index = i64::from(month) - 1;
                days_from_civil(year, (index / count * count) as u32 + 1, 1)
            }
            Precision::Years(count, first) => days_from_civil((year - first).div_euclid(count) * count + first, 1, 1),
        }
    }
}

/// The function: date_trunc, date_bin or time_bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Trunc,
    Bin,
    Bucket,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Rounding {
    kind: Kind,
    signature: Signature,
    aliases: Vec<String>,
}

pub(super) fn functions() -> [ScalarUDF; 3] {
    [(Kind::Trunc, &["datetrunc"][..]), (Kind::Bin, &[][..]), (Kind::Bucket, &[][..])].map(|(kind, aliases)| {
        let aliases = aliases.iter().map(|alias| (*alias).to_owned()).collect();
        ScalarUDF::new_from_impl(Rounding { kind, signature: Signature::user_defined(Volatility::Immutable), aliases })
    })
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null)
}

impl Rounding {
    fn takes(&self) -> &'static str {
        match self.kind {
            Kind::Trunc => "a field, a timestamp and at most a time zone",
            Kind::Bin | Kind::Bucket => "an interval, a timestamp and at most an origin",
        }
    }

    fn refused(&self) -> datafusion::common::DataFusionError {
        Error::invalid(format!("{} takes {}", self.name(), self.takes())).about(self.name()).into()
    }

    fn output(&self, source: &DataType) -> Result<DataType> {
        match source {
            DataType::Interval(_) | DataType::Duration(_) | DataType::Time32(_) | DataType::Time64(_)
                if self.kind == Kind::Trunc =>
            {
                Ok(DataType::Interval(IntervalUnit::MonthDayNano))
            }
            source => times::timestamp_type(source, self.name()),
        }
    }
}

impl ScalarUDFImpl for Rounding {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Trunc => "date_trunc",
            Kind::Bin => "date_bin",
            Kind::Bucket => "time_bucket",
        }
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let (first, source, third) = match types {
            [first, source] => (first, source, None),
            [first, source, third] => (first, source, Some(third)),
            _ => return Err(self.refused()),
        };
        let source = self.output(source)?;
        let mut out = match self.kind {
            Kind::Trunc if is_text(first) => vec![DataType::Utf8, source.clone()],
            Kind::Bin | Kind::Bucket
                if is_text(first) || matches!(first, DataType::Interval(_) | DataType::Duration(_)) =>
            {
                vec![DataType::Interval(IntervalUnit::MonthDayNano), source.clone()]
            }
            _ => return Err(self.refused()),
        };
        match (self.kind, third) {
            (_, None) => {}
            (Kind::Trunc, Some(zone)) if is_text(zone) => out.push(DataType::Utf8),
            (Kind::Trunc, Some(_)) => return Err(self.refused()),
            (_, Some(origin)) => {
                times::timestamp_type(origin, self.name())?;
                out.push(source);
            }
        }
        Ok(out)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        types.get(1).map_or_else(|| Err(self.refused()), |source| self.output(source))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let Some(source) = args.arg_fields.get(1) else { return Err(self.refused()) };
        let field = Field::new(self.name(), self.output(source.data_type())?, true);
        Ok(Arc::new(if door::has_instants(source) { door::of_instants(field) } else { field }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [first, source, ..] = &args.args[..] else { return Err(self.refused()) };
        if self.kind == Kind::Trunc && matches!(first, ColumnarValue::Array(_)) {
            return by_field(&args, |args| self.invoke_with_args(args));
        }
        let (rows, is_constant) = match source {
            ColumnarValue::Scalar(_) => (1, args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)))),
            ColumnarValue::Array(array) => (array.len(), false),
        };
        let rows = if is_constant { 1 } else { rows.max(args.number_rows) };
        let array = source.to_array(rows)?;
        let rounded = match self.kind {
            Kind::Trunc => truncated(&args, &array)?,
            kind => binned(&args, &array, kind)?,
        };
        let Some(rounded) = rounded else { return times::null(args.return_type()) };
        if is_constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&rounded, 0)?));
        }
        Ok(ColumnarValue::Array(rounded))
    }

    fn output_ordering(&self, input: &[ExprProperties]) -> Result<SortProperties> {
        let [first, source, rest @ ..] = input else { return Ok(SortProperties::Unordered) };
        let is_constant = |of: &ExprProperties| of.sort_properties == SortProperties::Singleton;
        // Local time goes back when summer time ends.
        let keeps_order =
            is_constant(first) && rest.iter().all(is_constant) && (self.kind != Kind::Trunc || rest.is_empty());
        Ok(if keeps_order { source.sort_properties } else { SortProperties::Unordered })
    }
}

fn out_of_range() -> datafusion::common::DataFusionError {
    Error::invalid("timestamp out of range").into()
}

fn precision(name: &str) -> Result<Precision> {
    Precision::from_name(name).ok_or_else(|| {
        let mut error = Error::invalid(format!("unit \"{name}\" not recognized for a timestamp"))
            .with_hint("units are microseconds, milliseconds, second, minute, hour, day, week, month, quarter, year, decade, century and millennium");
        error.subject = Some(format!("'{name}"));
        error.into()
    })
}

/// Truncates times; `None` if an argument is NULL.
fn truncated(args: &ScalarFunctionArgs, source: &ArrayRef) -> Result<Option<ArrayRef>> {
    let Some(name) = times::text(&args.args[0], "the unit of date_trunc")? else { return Ok(None) };
    let precision = precision(&name)?;
    if matches!(source.data_type(), DataType::Interval(_)) {
        let lengths = of_interval(source)?;
        let cut = lengths.iter().map(|v| v.map(|v| arrow_interval(cut(interval(v), precision))));
        return Ok(Some(Arc::new(cut.collect::<IntervalMonthDayNanoArray>())));
    }
    let unit = times::unit(source.data_type())?;
    let zone = match args.args.get(2) {
        None => Zone::UTC,
        Some(zone) => match times::text(zone, "the time zone of date_trunc")? {
            Some(zone) => time_zone(&zone)?,
            None => return Ok(None),
        },
    };
    let ticks = times::ticks(source)?;
    let floor = Floor { precision, zone, unit };
    // Rows mostly come in time order: the period of the previous row is tried first.
    let (mut known, mut start) = (0..0, 0);
    let mut starts = Vec::with_capacity(ticks.len());
    for (row, ts) in ticks.values().iter().enumerate() {
        if !known.contains(ts) && ticks.is_valid(row) {
            start = floor.start(*ts).ok_or_else(out_of_range)?;
            known = floor.same_start(*ts, start);
        }
        starts.push(start);
    }
    let starts = Int64Array::new(starts.into(), ticks.nulls().cloned());
    Ok(Some(times::of_ticks(starts, source.data_type())?))
}

struct Floor {
    precision: Precision,
    zone: Zone,
    unit: TimeUnit,
}

impl Floor {
    /// Times around `ts`, whose period begins at `start`, in the same period: a day at most, none outside UTC.
    fn same_start(&self, ts: i64, start: i64) -> Range<i64> {
        let per_day = 86_400 * self.unit.per_second();
        match (self.zone == Zone::UTC, self.step()) {
            (false, _) => 0..0,
            (true, Some(step)) => start..start.saturating_add(step),
            (true, None) => {
                let midnight = ts - ts.rem_euclid(per_day);
                midnight..midnight.saturating_add(per_day)
            }
        }
    }

    /// Ticks of a period that is a fixed part of a day.
    fn step(&self) -> Option<i64> {
        match self.precision {
            Precision::Even(nanos) => Some((nanos / (SECOND / self.unit.per_second())).max(1)),
            _ => None,
        }
    }

    /// Returns the start of the period that contains a time; `None` past the range of the unit.
    fn start(&self, ts: i64) -> Option<i64> {
        let per_second = self.unit.per_second();
        let offset = |ts: i64| self.zone.offset(ts.div_euclid(per_second)).checked_mul(per_second);
        match self.precision {
            Precision::Even(nanos) if nanos < DAY_NANOS => {
                let step = self.step()?;
                let ahead = offset(ts)?;
                let local = ts.checked_add(ahead)?;
                ts.checked_sub(local.rem_euclid(step))
            }
            precision => {
                let local = ts.checked_add(offset(ts)?)?;
                let day = precision.day(local.div_euclid(86_400 * per_second));
                let seconds = self.zone.to_utc(day.checked_mul(86_400)?);
                seconds.checked_mul(per_second)
            }
        }
    }
}

/// Truncates an interval to a field, as PostgreSQL does.
fn cut(of: Interval, precision: Precision) -> Interval {
    let months = |count: i32| Interval { months: of.months / count * count, days: 0, nanos: 0 };
    match precision {
        Precision::Even(DAY_NANOS) => Interval { nanos: 0, ..of },
        Precision::Even(nanos) => Interval { nanos: of.nanos / nanos * nanos, ..of },
        Precision::Week => Interval { days: of.days / 7 * 7, nanos: 0, ..of },
        Precision::Months(count) => months(count as i32),
        Precision::Years(count, _) => months(12 * count as i32),
    }
}

/// Bins times; `None` if an argument is NULL.
fn binned(args: &ScalarFunctionArgs, source: &ArrayRef, kind: Kind) -> Result<Option<ArrayRef>> {
    let strides = of_interval(&args.args[0].to_array(source.len())?)?;
    let unit = times::unit(source.data_type())?;
    let per_day = 86_400 * unit.per_second();
    let ticks = times::ticks(source)?;
    let origins = args.args.get(2).map(|origin| times::ticks(&origin.to_array(source.len())?)).transpose()?;
    let mut out = Vec::with_capacity(ticks.len());
    for row in 0..ticks.len() {
        let is_null = ticks.is_null(row) || strides.is_null(row) || origins.as_ref().is_some_and(|o| o.is_null(row));
        if is_null {
            out.push(None);
            continue;
        }
        let stride = interval(strides.value(row));
        let default = match (kind, stride.months) {
            (Kind::Bucket, 0) => MONDAY_2000 * per_day,
            (Kind::Bucket, _) => YEAR_2000.saturating_mul(per_day),
            _ => 0,
        };
        let origin = origins.as_ref().map_or(default, |origins| origins.value(row));
        out.push(Some(bin(ticks.value(row), stride, origin, unit)?));
    }
    Ok(Some(times::of_ticks(Int64Array::from(out), source.data_type())?))
}

/// Returns the latest time not after `ts` that is a multiple of the stride from the origin.
fn bin(ts: i64, stride: Interval, origin: i64, unit: TimeUnit) -> Result<i64> {
    let nanos = i128::from(stride.days) * i128::from(DAY_NANOS) + i128::from(stride.nanos);
    if stride.months != 0 {
        if nanos != 0 || stride.months < 0 {
            return Err(Error::invalid("a stride is either months or days and time, and greater than zero").into());
        }
        let stride = Stride { count: i64::from(stride.months), unit: Unit::Months };
        return Ok(Buckets { stride, zone: Zone::UTC, offset_s: 0, origin: Some(origin), unit }.range(ts).0);
    }
    if nanos <= 0 {
        return Err(Error::invalid("stride must be greater than zero").into());
    }
    let per_tick = i128::from(SECOND / unit.per_second());
    let since = (i128::from(ts) - i128::from(origin)) * per_tick;
    let start = i128::from(origin) + (since.div_euclid(nanos) * nanos).div_euclid(per_tick);
    i64::try_from(start).map_err(|_| out_of_range())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(year: i64, month: u32, day: u32) -> i64 {
        days_from_civil(year, month, day) * 86_400 * 1_000_000
    }

    /// Expected values are outputs of PostgreSQL 15.
    #[test]
    fn periods_of_the_calendar() {
        let start = |name: &str, ts: i64| {
            let precision = Precision::from_name(name).expect("a field");
            Floor { precision, zone: Zone::UTC, unit: TimeUnit::Micros }.start(ts)
        };
        assert_eq!(start("month", at(9999, 12, 31) + 5), Some(at(9999, 12, 1)));
        assert_eq!(start("week", at(1, 1, 3)), Some(at(1, 1, 1)));
        assert_eq!(start("quarter", at(2024, 8, 31)), Some(at(2024, 7, 1)));
        assert_eq!(start("century", at(2000, 5, 1)), Some(at(1901, 1, 1)));
        assert_eq!(start("millennium", at(2001, 5, 1)), Some(at(2001, 1, 1)));
        assert_eq!(start("decade", at(1969, 5, 1)), Some(at(1960, 1, 1)));
        assert_eq!(start("hour", -1), Some(-3_600_000_000));
        assert_eq!(start("year", i64::MIN), None);
    }

    #[test]
    fn bins_of_all_times() {
        let day = Interval { months: 0, days: 1, nanos: 0 };
        let of = |ts| bin(ts, day, 0, TimeUnit::Micros).expect("in range");
        assert_eq!(
            [of(at(9999, 12, 31) + 7), of(at(1, 1, 1) + 7), of(-1)],
            [at(9999, 12, 31), at(1, 1, 1), at(1969, 12, 31)]
        );
        assert!(bin(0, Interval::default(), 0, TimeUnit::Micros).is_err());
        assert!(bin(i64::MIN, day, 0, TimeUnit::Micros).is_err());
        let months = Interval { months: 2, days: 0, nanos: 0 };
        assert_eq!(bin(at(2024, 4, 30), months, at(2000, 1, 1), TimeUnit::Micros).expect("in range"), at(2024, 3, 1));
    }
}
