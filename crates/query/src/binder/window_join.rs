//! WINDOW JOIN: a SELECT of aggregates of the right rows around the time of each left row.

use super::from::scope_of_both;
use super::order::with_outputs;
use super::scope::{Env, Place, Scope, Source};
use super::{Binder, Result};
use crate::Error;
use crate::plan::{self, Bound, WindowJoins};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use std::sync::Arc;
use tidalite_sql::ast::{Join, JoinKind, Offset, OrderBy, Select, TableRef, WindowBound, WindowJoin};

/// The name of the clause in error texts.
const NAME: &str = "WINDOW JOIN";

/// Returns true if a SELECT is one of WINDOW JOINs.
pub(super) fn has_window_join(select: &Select) -> bool {
    select.from.iter().any(|table| table.joins.iter().any(is_window))
}

fn is_window(join: &Join) -> bool {
    matches!(join.kind, JoinKind::Window(_))
}

impl Binder<'_> {
    pub(super) fn window_joins(&self, select: &Select, order: Option<&OrderBy>, env: &Env) -> Result<LogicalPlan> {
        let table = only_table(select)?;
        let at = table.joins.iter().position(is_window).unwrap_or(table.joins.len());
        let (before, joins) = table.joins.split_at(at);
        let left = self.left_side(table, before, select, env)?;
        let mut windows = WindowJoins::try_new(left.plan.clone())?;
        let mut columns = left.columns.clone();
        for join in joins {
            columns.extend(self.window_side(join, &left, &mut windows, env)?.columns);
        }
        let left_scope = left.scope(env.outer);
        let scope = Scope { schema: Arc::new(windows.schema()?), columns, outer: env.outer };
        let stars = Place::new(&left_scope, env);
        let items = self.items_of(select, Place { windows: &select.windows, ..Place::new(&scope, env) }, stars)?;
        let plan = windows.planned(with_outputs(items))?;
        self.sampled_order(plan, select, order, env)
    }

    /// Binds the relations before the first WINDOW JOIN, and WHERE, which is about them.
    fn left_side(&self, table: &TableRef, before: &[Join], select: &Select, env: &Env) -> Result<Source> {
        let first = TableRef { relation: table.relation.clone(), joins: before.to_vec() };
        let left = self.table_ref(&first, env, None)?;
        let Some(selection) = &select.selection else { return Ok(left) };
        let condition = {
            let scope = left.scope(env.outer);
            self.condition(selection, Place::new(&scope, env))
        };
        let hint = "WHERE of a WINDOW JOIN is about its left side; filter the right one in a sub-query";
        let condition = condition.map_err(|error| super::names::with_hint(error, hint))?;
        Ok(Source { plan: LogicalPlanBuilder::from(left.plan).filter(condition)?.build()?, columns: left.columns })
    }

    /// Binds one WINDOW JOIN and returns its right side.
    fn window_side(&self, join: &Join, left: &Source, windows: &mut WindowJoins, env: &Env) -> Result<Source> {
        let span = join.relation.span;
        let JoinKind::Window(window) = &join.kind else {
            return Err(plan::behind().at(span.start as usize).into());
        };
        let WindowJoin { lower, upper, includes_prevailing } = &**window;
        let right = self.table_ref(&TableRef { relation: join.relation.clone(), joins: Vec::new() }, env, None)?;
        let scope = scope_of_both(left, &right, env)?;
        let of_both = Place::new(&scope, env);
        let keys = self.time_keys(&join.condition, &left.plan, &right.plan, NAME, of_both, span)?.without_null(NAME)?;
        let left_scope = left.scope(env.outer);
        let place = Place::new(&left_scope, env);
        let bounds = [self.window_bound(lower, place)?, self.window_bound(upper, place)?];
        windows.add(right.plan.clone(), keys, bounds, includes_prevailing.unwrap_or(true))?;
        Ok(right)
    }

    fn window_bound(&self, bound: &WindowBound, place: Place) -> Result<Bound> {
        let (offset, is_preceding) = match bound {
            WindowBound::CurrentRow => return Ok(Bound { length: lit(0_i64), unit: "n".to_owned() }),
            WindowBound::Preceding(offset) => (offset, true),
            WindowBound::Following(offset) => (offset, false),
        };
        let (length, unit) = match offset {
            Offset::Duration(duration) => match duration.count.parse::<i64>() {
                Ok(count) => (lit(count), Some(duration.unit)),
                Err(_) => {
                    let error = Error::invalid("the length of a window is out of range");
                    return Err(error.at(duration.span.start as usize).into());
                }
            },
            Offset::Expr { expr, unit } => (self.expr(expr, place)?, *unit),
        };
        let length = if is_preceding { Expr::Negative(Box::new(length)) } else { length };
        let unit = unit.map(|unit| super::time_series::unit_letter(unit).to_string()).unwrap_or_default();
        Ok(Bound { length, unit })
    }
}

/// Returns the only item of FROM; other clauses go around a WINDOW JOIN.
fn only_table(select: &Select) -> Result<&TableRef> {
    let refused = |message: &str| Error::invalid(message).at(select.span.start as usize);
    if select.group_by.is_some() || select.having.is_some() || select.distinct.is_some() || select.qualify.is_some() {
        return Err(refused("GROUP BY, HAVING, DISTINCT and QUALIFY go around WINDOW JOIN")
            .with_hint("put it in parentheses: SELECT … FROM (SELECT … WINDOW JOIN …) GROUP BY …")
            .into());
    }
    if select.sample_by.is_some() || select.latest_on.is_some() {
        return Err(refused("SAMPLE BY and LATEST ON go around WINDOW JOIN")
            .with_hint("put it in parentheses: SELECT … FROM (SELECT … WINDOW JOIN …) SAMPLE BY …")
            .into());
    }
    match select.from.as_slice() {
        [only] => Ok(only),
        _ => Err(refused("WINDOW JOIN takes one table on its left side").into()),
    }
}
