//! `LIMIT -n`: the last n rows, in the order of the query; `LIMIT -n, -m`: those of them but the last m; `LIMIT n, -m`:
//! all but the first n and the last m. The first n in sub-queries, too, are the first in time.

use super::in_time_order;
use crate::functions::limits::ALL_BUT_LAST;
use crate::{Error, Result};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, ScalarValue};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{
    Expr, ExprFunctionExt, FetchType, Limit, LogicalPlan, LogicalPlanBuilder, SkipType, SortExpr, lit,
};
use std::sync::Arc;

/// More rows than this are turned by a sort, which does not have to keep all in memory.
const TURNED_ROWS_MAX: usize = 1 << 16;

/// A limit that no result reaches; an offset added to it does not overflow.
///
/// Workaround for DataFusion 55: below a limit that only skips rows, the sort of a window's rows may be removed, so that
/// other rows are skipped. To try without: the sub-queries with OFFSET in `select.slt`.
pub(crate) const ROWS_MAX: i64 = i64::MAX / 2;

/// How many rows, and how many after them are left out.
#[derive(Clone, Copy)]
struct Last {
    /// `None` for all.
    rows: Option<usize>,
    after: usize,
    /// Whether the statement ends with them: sub-queries are taken apart, of which a node of ours knows nothing.
    is_end: bool,
}

/// At the end of a statement.
pub(crate) fn last_rows(plan: LogicalPlan, rows: u64) -> Result<LogicalPlan> {
    last(plan, Last { rows: usize::try_from(rows).ok(), after: 0, is_end: true })
}

/// In sub-queries, and where the number was not written: limits that are negative count from the end, all take their
/// rows in order of time where the query has no other order.
pub(crate) fn limits_in_time_order(plan: LogicalPlan) -> Result<LogicalPlan> {
    let without = |node: LogicalPlan| node.map_expressions(|expr| expr.transform(exists_without_limit));
    let in_order = |node: LogicalPlan| {
        let LogicalPlan::Limit(Limit { skip, fetch, input }) = node else { return Ok(Transformed::no(node)) };
        if let Some(after) = fetch.as_deref().and_then(left_out) {
            let limit = Limit { skip, fetch: None, input };
            let SkipType::Literal(skip) = limit.get_skip_type()? else {
                return Err(Error::invalid("LIMIT n, -m takes numbers").into());
            };
            let rows = last(limit.input.as_ref().clone(), Last { rows: None, after, is_end: false })?;
            let fetch = usize::try_from(ROWS_MAX).ok();
            return Ok(Transformed::yes(LogicalPlanBuilder::from(rows).limit(skip, fetch)?.build()?));
        }
        let Some(rows) = fetch.as_deref().and_then(negative) else {
            let input = Arc::new(in_time_order(Arc::unwrap_or_clone(input))?);
            let is_unbound = skip.is_some() && fetch.is_none() && sorts_windows(&input);
            let fetch = if is_unbound { Some(Box::new(lit(ROWS_MAX))) } else { fetch };
            return Ok(Transformed::yes(LogicalPlan::Limit(Limit { skip, fetch, input })));
        };
        let limit = Limit { skip, fetch: None, input };
        let SkipType::Literal(after) = limit.get_skip_type()? else {
            return Err(Error::invalid("LIMIT -n takes numbers").into());
        };
        Ok(Transformed::yes(last(limit.input.as_ref().clone(), Last { rows: Some(rows), after, is_end: false })?))
    };
    Ok(plan.transform_down_up_with_subqueries(without, in_order)?.data)
}

/// Returns true if the rows are those of window functions, sorted.
fn sorts_windows(plan: &LogicalPlan) -> bool {
    let mut is_sorted = false;
    let mut plan = plan;
    loop {
        plan = match plan {
            LogicalPlan::Projection(projection) => &projection.input,
            LogicalPlan::SubqueryAlias(alias) => &alias.input,
            LogicalPlan::Filter(filter) => &filter.input,
            LogicalPlan::Sort(sort) => {
                is_sorted = true;
                &sort.input
            }
            LogicalPlan::Window(_) => return is_sorted,
            _ => return false,
        };
    }
}

/// EXISTS is content with one row, in no order, and cannot be taken apart with one.
fn exists_without_limit(expr: Expr) -> datafusion::common::Result<Transformed<Expr>> {
    let Expr::Exists(mut exists) = expr else { return Ok(Transformed::no(expr)) };
    let LogicalPlan::Limit(limit) = exists.subquery.subquery.as_ref() else {
        return Ok(Transformed::no(Expr::Exists(exists)));
    };
    let is_one = limit.fetch.as_deref().and_then(negative).is_some()
        || matches!(limit.get_fetch_type(), Ok(FetchType::Literal(Some(1..))));
    if is_one && matches!(limit.get_skip_type(), Ok(SkipType::Literal(0))) {
        exists.subquery.subquery = limit.input.clone();
    }
    Ok(Transformed::yes(Expr::Exists(exists)))
}

/// The number of last rows that a limit stands for.
fn negative(fetch: &Expr) -> Option<usize> {
    let rows = number(fetch)?.checked_neg()?;
    usize::try_from(rows).ok().filter(|rows| *rows > 0)
}

/// The number of last rows that a limit leaves out.
fn left_out(fetch: &Expr) -> Option<usize> {
    match fetch {
        Expr::ScalarFunction(call) if call.name() == ALL_BUT_LAST => usize::try_from(number(call.args.first()?)?).ok(),
        _ => None,
    }
}

fn number(fetch: &Expr) -> Option<i64> {
    match fetch {
        Expr::Negative(inner) => number(inner)?.checked_neg(),
        Expr::Literal(ScalarValue::Int64(number), _) => *number,
        _ => None,
    }
}

/// The rows are sorted backwards, cut off, and sorted again; by time, the first sort is a scan from the end.
fn last(plan: LogicalPlan, rows: Last) -> Result<LogicalPlan> {
    let ordered = in_time_order(plan)?;
    match cut(&ordered, rows)? {
        Some(plan) => Ok(plan),
        None => Err(Error::invalid("LIMIT -n needs an order: add ORDER BY")),
    }
}

fn cut(plan: &LogicalPlan, rows: Last) -> Result<Option<LogicalPlan>> {
    match plan {
        LogicalPlan::Projection(_) => {
            let inputs = plan.inputs();
            let Some(input) = inputs.first().map(|input| cut(input, rows)).transpose()?.flatten() else {
                return Ok(None);
            };
            Ok(Some(plan.with_new_exprs(plan.expressions(), vec![input])?))
        }
        LogicalPlan::Sort(sort) => {
            let backwards = sort.expr.iter().map(|e| SortExpr::new(e.expr.clone(), !e.asc, !e.nulls_first));
            let backwards = LogicalPlanBuilder::from(sort.input.as_ref().clone()).sort(backwards)?.build()?;
            let last = LogicalPlanBuilder::from(in_time_order(backwards)?).limit(rows.after, rows.rows)?;
            let last = last.build()?;
            if rows.is_end && rows.rows.is_some_and(|rows| rows <= TURNED_ROWS_MAX) {
                return Ok(Some(super::turned::turned(last)));
            }
            sorted_backwards(last).map(Some)
        }
        plan if is_in_order(plan) => numbered(plan, rows).map(Some),
        _ => Ok(None),
    }
}

/// Whether rows come in an order of their own: those of LATEST ON and of joins by time.
fn is_in_order(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Extension(node) => !super::turned::is_turned(node),
        LogicalPlan::Filter(filter) => is_in_order(&filter.input),
        LogicalPlan::SubqueryAlias(alias) => is_in_order(&alias.input),
        LogicalPlan::Projection(projection) => is_in_order(&projection.input),
        _ => false,
    }
}

/// Rows from the last to the first: those of equal keys, too, which sorting again would leave as they come.
fn sorted_backwards(plan: LogicalPlan) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
    // A nested plan that is sorted backwards already has a column with a row number.
    let names = (0..).map(|n| format!("__number_{n}"));
    let number = names.map(Column::new_unqualified).find(|name| !plan.schema().has_column(name));
    let number = number.ok_or_else(|| Error::internal("the name of a row number is not free"))?;
    let numbered = LogicalPlanBuilder::from(plan).window([row_number().alias(number.name.as_str())])?;
    Ok(numbered.sort([Expr::Column(number).sort(false, false)])?.project(columns)?.build()?)
}

/// The last rows by their numbers.
fn numbered(plan: &LogicalPlan, rows: Last) -> Result<LogicalPlan> {
    const NUMBER: &str = "__number";
    let columns: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
    let time = plan.schema().iter().find(|(_, field)| crate::door::is_designated(field)).map(Column::from);
    let number = match time {
        Some(time) => row_number().order_by(vec![Expr::Column(time).sort(true, false)]).build()?,
        None => row_number(),
    };
    let name = number.schema_name().to_string();
    let with_number = columns.iter().cloned().chain([Expr::Column(Column::new_unqualified(name)).alias(NUMBER)]);
    let number_column = || Expr::Column(Column::new_unqualified(NUMBER));
    let numbered = LogicalPlanBuilder::from(plan.clone()).window([number])?.project(with_number.collect::<Vec<_>>())?;
    let last = numbered.sort([number_column().sort(false, false)])?.limit(rows.after, rows.rows)?;
    Ok(last.sort([number_column().sort(true, false)])?.project(columns)?.build()?)
}
