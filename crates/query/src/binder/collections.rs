//! `ARRAY(SELECT …)`, and maps and structs written with braces.

use super::scope::Place;
use super::{Binder, Result};
use crate::Error;
use crate::dialect::set_returning::OR_EMPTY;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Spans;
use datafusion::logical_expr::planner::{PlannerResult, RawDictionaryExpr};
use datafusion::logical_expr::{Expr, ExprSchemable, Limit, LogicalPlan, LogicalPlanBuilder, SortExpr, Subquery};
use std::sync::Arc;
use tidalite_sql::Span;
use tidalite_sql::ast::{self, FunctionCall, Query};

/// The rows of a query with one column.
struct Rows {
    input: LogicalPlan,
    /// The column over `input`.
    value: Expr,
    order: Vec<SortExpr>,
}

impl Binder<'_> {
    /// Binds `ARRAY(SELECT …)`: the rows in their order; an empty array without rows.
    pub(super) fn array_of_query(&self, query: &Query, place: Place) -> Result<Expr> {
        let Subquery { subquery, .. } = self.single_column(query, place)?;
        let Rows { input, value, order } = rows(Arc::unwrap_or_clone(subquery))?;
        let list = self.aggregate_of("array_agg", vec![value], None, order)?;
        let no_keys: Vec<Expr> = Vec::new();
        let plan = LogicalPlanBuilder::from(input).aggregate(no_keys, vec![list])?.build()?;
        let outer_ref_columns = plan.all_out_ref_exprs();
        let list = Expr::ScalarSubquery(Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: Spans::new() });
        self.scalar_call(OR_EMPTY, vec![list])
    }

    /// Binds `MAP {key: value}` and the struct `{'name': value}`.
    pub(super) fn dictionary(
        &self,
        is_map: bool,
        entries: &[(ast::Expr, ast::Expr)],
        place: Place,
        span: Span,
    ) -> Result<Expr> {
        let keys = entries.iter().map(|(key, _)| self.expr(key, place)).collect::<Result<Vec<_>>>()?;
        let values = entries.iter().map(|(_, value)| self.expr(value, place)).collect::<Result<Vec<_>>>()?;
        if is_map {
            return self.map_of(keys, values, place);
        }
        let mut raw = RawDictionaryExpr { keys, values };
        for planner in self.state.expr_planners() {
            match planner.plan_dictionary_literal(raw, &place.scope.schema)? {
                PlannerResult::Planned(expr) => return Ok(expr),
                PlannerResult::Original(original) => raw = original,
            }
        }
        Err(Error::invalid("structs in braces are not supported").at(span.start as usize).into())
    }

    fn map_of(&self, keys: Vec<Expr>, values: Vec<Expr>, place: Place) -> Result<Expr> {
        let schema = &place.scope.schema;
        let arrays = vec![self.array_of(keys, schema)?, self.array_of(values, schema)?];
        self.scalar_call("map", arrays)
    }

    /// Binds `map(keys, values)`, `map(key, value, …)` and `make_map(key, value, …)`.
    pub(super) fn map_call(&self, name: &str, call: &FunctionCall, place: Place, span: Span) -> Result<Expr> {
        let args = self.arguments(&call.args, place)?.values;
        let is_array = |arg: &Expr| {
            arg.get_type(&place.scope.schema).is_ok_and(|data_type| matches!(data_type, DataType::List(_)))
        };
        if name == "map" && args.len() == 2 && args.iter().all(is_array) {
            return self.scalar_call("map", args);
        }
        if !args.len().is_multiple_of(2) {
            let error = Error::invalid(format!("{name} takes pairs of a key and a value")).about(name);
            return Err(error.at(span.start as usize).into());
        }
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        let mut args = args.into_iter();
        while let (Some(key), Some(value)) = (args.next(), args.next()) {
            keys.push(key);
            values.push(value);
        }
        self.map_of(keys, values, place)
    }
}

/// Splits a plan into rows, the value of each row, and the order of the rows.
fn rows(plan: LogicalPlan) -> Result<Rows> {
    let (inner, value) = match &plan {
        LogicalPlan::Projection(projection) => match projection.input.as_ref() {
            input @ LogicalPlan::Sort(_) => (input.clone(), projection.expr.first().cloned()),
            _ => (plan.clone(), None),
        },
        LogicalPlan::Limit(limit) => match limit.input.as_ref() {
            // The limit is the same below the projection.
            LogicalPlan::Projection(projection) if matches!(projection.input.as_ref(), LogicalPlan::Sort(_)) => {
                let limited = Limit { input: projection.input.clone(), ..limit.clone() };
                (LogicalPlan::Limit(limited), projection.expr.first().cloned())
            }
            _ => (plan.clone(), None),
        },
        _ => (plan.clone(), None),
    };
    let column = || inner.schema().columns().into_iter().next().map(Expr::Column);
    let value = value.map(Expr::unalias).or_else(column);
    let value = value.ok_or_else(|| Error::internal("a sub-query of one column has no column"))?;
    let order = match &inner {
        LogicalPlan::Sort(sort) => sort.expr.clone(),
        LogicalPlan::Limit(limit) => match limit.input.as_ref() {
            LogicalPlan::Sort(sort) => sort.expr.clone(),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    };
    let input = match inner {
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => Arc::unwrap_or_clone(sort.input),
        other => other,
    };
    Ok(Rows { input, value, order })
}
