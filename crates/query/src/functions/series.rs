//! Rows made of nothing, as table functions: `generate_series(start, end [, step])` of numbers and timestamps, `range`,
//! which leaves the end out, and `long_sequence(n [, seed1, seed2])`, the numbers from 1 to n in a column `x`.

use crate::Error;
use crate::calendar::{Stride, Unit};
use crate::door;
use crate::door::timestamps::parse_timestamp;
use crate::exec::operator::Operator;
use crate::exec::series::{Made, Step};
use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;
use tidalite_types::Interval;
use tidalite_types::{ColumnType, TimeUnit};

pub(crate) const LONG_SEQUENCE: &str = "long_sequence";
pub(crate) const NAMES: &[&str] = &["generate_series", "range", LONG_SEQUENCE];

#[derive(Debug)]
pub(crate) struct Series {
    pub name: &'static str,
}

impl TableFunctionImpl for Series {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let values = args.exprs().iter().map(|expr| self.value(expr)).collect::<crate::Result<Vec<_>>>()?;
        let made = if self.name == LONG_SEQUENCE { self.sequence(&values)? } else { self.series(&values)? };
        let column = if self.name == LONG_SEQUENCE { "x" } else { self.name };
        let field = door::named(&door::field("", made.column_type, false), column);
        Ok(Arc::new(SeriesTable { schema: Arc::new(Schema::new(vec![field])), made }))
    }
}

impl Series {
    fn refused(&self, what: &str) -> Error {
        let mut error = Error::invalid(format!("{}() takes {what}", self.name));
        error.subject = Some(self.name.to_owned());
        error
    }

    fn usage(&self) -> Error {
        self.refused("a start, an end and a step, all numbers, or timestamps and an interval").with_hint(
            "generate_series(1, 10, 2), generate_series(timestamp '2024-01-01', timestamp '2024-02-01', interval '1 day')",
        )
    }

    fn value(&self, expr: &Expr) -> crate::Result<ScalarValue> {
        match expr {
            Expr::Literal(value, _) => Ok(value.clone()),
            Expr::Cast(cast) => match cast.expr.as_ref() {
                Expr::Literal(value, _) => Ok(value.cast_to(cast.field.data_type()).map_err(Error::from)?),
                _ => Err(self.refused("constants")),
            },
            _ => Err(self.refused("constants")),
        }
    }

    fn sequence(&self, values: &[ScalarValue]) -> crate::Result<Made> {
        let [count, seeds @ ..] = values else { return Err(self.refused("a number of rows")) };
        let count = integer(count).ok_or_else(|| self.refused("a number of rows"))?;
        if !(seeds.is_empty() || seeds.len() == 2 && seeds.iter().all(|seed| integer(seed).is_some())) {
            return Err(self.refused("a number of rows and two seeds or none"));
        }
        Ok(Made {
            column_type: ColumnType::Long,
            start: 1,
            end: count,
            step: Step::Number(1),
            takes_end: true,
            has_column: true,
        })
    }

    fn series(&self, values: &[ScalarValue]) -> crate::Result<Made> {
        let takes_end = self.name != "range";
        let made = |start: i64, end: i64, step: i64| Made {
            column_type: ColumnType::Long,
            start,
            end,
            step: Step::Number(step),
            takes_end,
            has_column: true,
        };
        // One NULL makes it empty, as in PostgreSQL.
        if values.len() <= 3 && values.iter().any(ScalarValue::is_null) {
            let times = values.iter().find(|v| matches!(v.data_type(), DataType::Timestamp(..)));
            let unit = if times.is_some_and(is_fine) { TimeUnit::Nanos } else { TimeUnit::Micros };
            let column_type = if times.is_some() { ColumnType::Timestamp(unit) } else { ColumnType::Long };
            return Ok(Made { takes_end: false, column_type, ..made(0, 0, 1) });
        }
        let integers: Option<Vec<i64>> = values.iter().map(integer).collect();
        match integers.as_deref() {
            Some([end]) => return Ok(made(0, *end, 1)),
            Some([start, end]) => return Ok(made(*start, *end, 1)),
            Some([_, _, 0]) => return Err(Error::invalid("step size cannot equal zero")),
            Some([start, end, step]) => return Ok(made(*start, *end, *step)),
            _ => {}
        }
        let [start, end, step] = values else { return Err(self.usage()) };
        let unit = if [start, end].into_iter().any(is_fine) { TimeUnit::Nanos } else { TimeUnit::Micros };
        let (Some(start), Some(end)) = (time(start, unit), time(end, unit)) else { return Err(self.usage()) };
        let step = time_step(step, unit).ok_or_else(|| self.usage())?;
        if matches!(step, Step::Time { months: 0, days: 0, ticks: 0, .. }) {
            return Err(Error::invalid("step size cannot equal zero"));
        }
        Ok(Made { column_type: ColumnType::Timestamp(unit), start, end, step, takes_end, has_column: true })
    }
}

fn is_fine(value: &ScalarValue) -> bool {
    matches!(value, ScalarValue::TimestampNanosecond(..))
}

fn integer(value: &ScalarValue) -> Option<i64> {
    if !value.data_type().is_integer() {
        return None;
    }
    match value.cast_to(&DataType::Int64) {
        Ok(ScalarValue::Int64(value)) => value,
        _ => None,
    }
}

fn time(value: &ScalarValue, unit: TimeUnit) -> Option<i64> {
    if let ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) = value {
        return parse_timestamp(text, unit).map(|(ts, _)| ts);
    }
    let target = DataType::Timestamp(door::arrow_unit(unit), None);
    match (value.data_type(), value.cast_to(&target).and_then(|v| v.cast_to(&DataType::Int64))) {
        (DataType::Timestamp(..) | DataType::Date32, Ok(ScalarValue::Int64(ts))) => ts,
        _ => None,
    }
}

fn time_step(value: &ScalarValue, unit: TimeUnit) -> Option<Step> {
    let ticks = |nanos: i64| nanos / (1_000_000_000 / unit.per_second());
    Some(match value {
        ScalarValue::IntervalMonthDayNano(Some(step)) => {
            Step::Time { months: step.months.into(), days: step.days.into(), ticks: ticks(step.nanoseconds), unit }
        }
        ScalarValue::IntervalYearMonth(Some(months)) => {
            Step::Time { months: i64::from(*months), days: 0, ticks: 0, unit }
        }
        ScalarValue::IntervalDayTime(Some(step)) => Step::Time {
            months: 0,
            days: step.days.into(),
            ticks: ticks(i64::from(step.milliseconds) * 1_000_000),
            unit,
        },
        ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) => {
            let Some(Stride { count, unit: length }) = Stride::parse(text) else {
                let step = Interval::parse(text, None).ok()?;
                let (months, days) = (step.months.into(), step.days.into());
                return Some(Step::Time { months, days, ticks: ticks(step.nanos), unit });
            };
            match length {
                Unit::Months => Step::Time { months: count, days: 0, ticks: 0, unit },
                Unit::Years => Step::Time { months: count.checked_mul(12)?, days: 0, ticks: 0, unit },
                length => {
                    let nanos = length.nanos()?.checked_mul(count.into())?;
                    Step::Time { months: 0, days: 0, ticks: ticks(i64::try_from(nanos).ok()?), unit }
                }
            }
        }
        _ => return None,
    })
}

#[derive(Debug)]
struct SeriesTable {
    schema: SchemaRef,
    made: Made,
}

#[async_trait]
impl TableProvider for SeriesTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let has_column = projection.is_none_or(|columns| !columns.is_empty());
        let made = Made { has_column, ..self.made.clone() };
        let schema = if has_column { self.schema.clone() } else { Arc::new(Schema::empty()) };
        Ok(Arc::new(Operator::new(made.with_schema(schema), Vec::new())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_time_are_read() {
        let hours = time_step(&ScalarValue::Utf8(Some("2h".to_owned())), TimeUnit::Micros);
        assert_eq!(hours, Some(Step::Time { months: 0, days: 0, ticks: 7_200_000_000, unit: TimeUnit::Micros }));
        let years = time_step(&ScalarValue::Utf8(Some("-1y".to_owned())), TimeUnit::Nanos);
        assert_eq!(years, Some(Step::Time { months: -12, days: 0, ticks: 0, unit: TimeUnit::Nanos }));
        assert_eq!(time_step(&ScalarValue::Utf8(Some("x".to_owned())), TimeUnit::Nanos), None);
    }
}
