//! HORIZON JOIN: each left row at several offsets from its time, each with the latest right row as of that time.

use super::from::scope_of_both;
use super::names::folded;
use super::scope::{Env, Place, ScopeColumn, Source, Visibility};
use super::time_series::duration_text;
use super::{Binder, Result};
use crate::Error;
use crate::calendar::Stride;
use crate::door::timestamps::arrow_unit_nanos;
use crate::plan::{self, TimeJoin};
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{Column, ExprSchema, ScalarValue, TableReference};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use tidalite_sql::Span;
use tidalite_sql::ast::{ExprKind, HorizonGrid, HorizonJoin, Join, JoinKind, Literal, Offset, UnaryOperator};

/// The name of the clause in error texts.
const NAME: &str = "HORIZON JOIN";
/// The maximum number of offsets, each of which adds a row for each left row.
const OFFSETS_MAX: usize = 10_000;
/// The columns of the offsets: the offset in units of the left time, and the time at the offset.
const OFFSET: &str = "offset";
const TIMESTAMP: &str = "timestamp";
/// The table of the offsets without an alias.
const TABLE: &str = "horizon";

pub(super) fn is_horizon(join: &Join) -> bool {
    matches!(join.kind, JoinKind::Horizon(_))
}

impl Binder<'_> {
    /// Binds the joins of a relation from the first HORIZON JOIN on; the last join has the offsets.
    pub(super) fn horizon_joins(&self, left: Source, joins: &[Join], env: &Env) -> Result<Source> {
        let (grid, table) = grid_of(joins)?;
        let time = plan::time_of(&left.plan, "the left side of HORIZON JOIN")?;
        let at = TableReference::bare(table);
        let unit = unit_of(&left.plan, &time)?;
        let lengths = offsets(grid, unit)?.into_iter().map(|ticks| (ticks, duration(ticks, unit)));
        let (plan, own) = (at_offsets(&left.plan, &time, lengths, &at)?, columns(&at));
        let mut joined = Source { plan, columns: left.columns };
        for join in joins {
            joined = self.horizon_side(joined, join, &at, env)?;
        }
        joined.columns.extend(own);
        Ok(joined)
    }

    /// Binds one HORIZON JOIN.
    fn horizon_side(&self, left: Source, join: &Join, at: &TableReference, env: &Env) -> Result<Source> {
        let span = join.relation.span;
        let right = self.relation(&join.relation, env, None)?;
        let scope = scope_of_both(&left, &right, env)?;
        let columns = scope.columns.clone();
        let time = Column::new(Some(at.clone()), TIMESTAMP);
        let by_time = TimeJoin::by(left.plan, right.plan, time, NAME)?;
        let place = Place::new(&scope, env);
        let keys = self.time_keys(&join.condition, &by_time.left, &by_time.right, NAME, place, span)?;
        Ok(Source { plan: by_time.on(keys)?, columns })
    }
}

/// Returns the offsets, which the last join has, and the name of their columns.
fn grid_of(joins: &[Join]) -> Result<(&HorizonGrid, String)> {
    let refused = |message: &str, span: Span| Err(Error::invalid(message).at(span.start as usize).into());
    let mut last = None;
    for (at, join) in joins.iter().enumerate() {
        let JoinKind::Horizon(horizon) = &join.kind else {
            return refused("other joins stand before HORIZON JOIN", join.relation.span);
        };
        let HorizonJoin { grid, alias } = &**horizon;
        match grid {
            Some(grid) if at + 1 == joins.len() => last = Some((grid, alias)),
            None if at + 1 < joins.len() => {}
            _ => return refused("the last HORIZON JOIN, and no other, has RANGE or LIST", join.relation.span),
        }
    }
    let (grid, alias) = last.ok_or_else(|| Error::internal("a HORIZON JOIN without offsets"))?;
    Ok((grid, alias.as_ref().map_or_else(|| TABLE.to_owned(), folded)))
}

fn columns(table: &TableReference) -> Vec<ScopeColumn> {
    let column = |name: &str| ScopeColumn {
        relation: Some(table.clone()),
        name: name.to_owned(),
        value: Expr::Column(Column::new(Some(table.clone()), name)),
        visibility: Visibility::Side,
    };
    [OFFSET, TIMESTAMP].map(column).into()
}

fn unit_of(plan: &LogicalPlan, time: &Column) -> Result<TimeUnit> {
    match plan.schema().field_from_column(time)?.data_type() {
        DataType::Timestamp(unit, _) => Ok(*unit),
        other => Err(Error::invalid(format!("{NAME} takes a timestamp, not {other}")).into()),
    }
}

/// Returns the left rows at each offset; `offsets` has numbers of units and lengths.
fn at_offsets(
    left: &LogicalPlan,
    time: &Column,
    offsets: impl Iterator<Item = (i64, ScalarValue)>,
    table: &TableReference,
) -> Result<LogicalPlan> {
    let rows = offsets.map(|(ticks, length)| vec![lit(ticks), Expr::Literal(length, None)]);
    let rows = LogicalPlanBuilder::values(rows.collect())?.alias(table.clone())?.build()?;
    let [offset, length] = <[Column; 2]>::try_from(rows.schema().columns())
        .map_err(|_| Error::internal("the offsets of a HORIZON JOIN have other columns"))?;
    let own = [
        Expr::Column(offset).alias_qualified(Some(table.clone()), OFFSET),
        (Expr::Column(time.clone()) + Expr::Column(length)).alias_qualified(Some(table.clone()), TIMESTAMP),
    ];
    let columns = left.schema().columns().into_iter().map(Expr::Column).chain(own);
    Ok(LogicalPlanBuilder::from(left.clone()).cross_join(rows)?.project(columns)?.build()?)
}

fn duration(ticks: i64, unit: TimeUnit) -> ScalarValue {
    match unit {
        TimeUnit::Second => ScalarValue::DurationSecond(Some(ticks)),
        TimeUnit::Millisecond => ScalarValue::DurationMillisecond(Some(ticks)),
        TimeUnit::Microsecond => ScalarValue::DurationMicrosecond(Some(ticks)),
        TimeUnit::Nanosecond => ScalarValue::DurationNanosecond(Some(ticks)),
    }
}

/// Returns the offsets in units of the left time.
fn offsets(grid: &HorizonGrid, unit: TimeUnit) -> Result<Vec<i64>> {
    match grid {
        HorizonGrid::List(list) => {
            let (Some(first), true) = (list.first(), list.len() > OFFSETS_MAX) else {
                return list.iter().map(|offset| ticks(offset, unit)).collect();
            };
            Err(too_many(span_of(first)).into())
        }
        HorizonGrid::Range { from, to, step } => {
            let span = span_of(step);
            let refused = |message: &str| Error::invalid(message).at(span.start as usize);
            let (from, to, step) = (ticks(from, unit)?, ticks(to, unit)?, ticks(step, unit)?);
            if step <= 0 {
                return Err(refused("STEP of HORIZON JOIN is a length of at least one unit").into());
            }
            if from > to {
                return Err(refused("RANGE of HORIZON JOIN goes from the earlier offset to the later one").into());
            }
            let count = (i128::from(to) - i128::from(from)) / i128::from(step) + 1;
            match usize::try_from(count) {
                Ok(count) if count <= OFFSETS_MAX => {
                    Ok(std::iter::successors(Some(from), |at| at.checked_add(step)).take(count).collect())
                }
                _ => Err(too_many(span).into()),
            }
        }
    }
}

fn too_many(span: Span) -> Error {
    Error::invalid(format!("HORIZON JOIN has more than {OFFSETS_MAX} offsets")).at(span.start as usize)
}

fn span_of(offset: &Offset) -> Span {
    match offset {
        Offset::Duration(duration) => duration.span,
        Offset::Expr { expr, .. } => expr.span,
    }
}

/// Returns a constant offset in units of the left time.
fn ticks(offset: &Offset, unit: TimeUnit) -> Result<i64> {
    let refused = |message: &str| Error::invalid(message).at(span_of(offset).start as usize);
    let constant = || refused("an offset of HORIZON JOIN is a constant such as 0, 5s or -1m");
    let total = match offset {
        Offset::Duration(duration) => {
            let Stride { count, unit } = Stride::parse(&duration_text(duration)).ok_or_else(constant)?;
            let nanos = unit.nanos().ok_or_else(|| refused("months and years have no fixed length"))?;
            i128::from(count) * nanos
        }
        Offset::Expr { expr, unit: None } => {
            let (sign, digits) = match &expr.kind {
                ExprKind::Unary { op: UnaryOperator::Minus, operand } => (-1, &operand.kind),
                kind => (1, kind),
            };
            let ExprKind::Literal(Literal::Number(digits)) = digits else { return Err(constant().into()) };
            let count = digits.parse::<i64>().map_err(|_| constant())?;
            return Ok(sign * count);
        }
        Offset::Expr { .. } => return Err(constant().into()),
    };
    let tick = i128::from(arrow_unit_nanos(unit));
    if total % tick != 0 {
        return Err(refused("an offset of HORIZON JOIN is shorter than a unit of the left time").into());
    }
    i64::try_from(total / tick).map_err(|_| constant().into())
}
