//! `EXISTS`, `IN`, `ANY` and `ALL`: the cases that the stock rules handle correctly, and the others.
//!
//! The stock rules turn a predicate that is a condition of WHERE into a semi or anti join, and a predicate inside such
//! a condition into a mark join. Their mark is true or false, which is correct for EXISTS. The mark of IN can also be
//! NULL, and their plan names a column twice where the item has an alias. The anti join for NOT IN checks for NULL among
//! all rows of the sub-query, and only if the comparison is between one column of each side.

use super::references::free;
use super::{first_column, looks_at, simple};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchemaRef, Result};
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::{
    Aggregate, Distinct, DistinctOn, Expr, ExprSchemable, FetchType, Filter, LogicalPlan, LogicalPlanBuilder, Operator,
    Projection, SkipType, Sort, Subquery, SubqueryAlias, Window, binary_expr, lit,
};
use std::sync::Arc;

/// The kind of node that an expression belongs to: the stock rules support two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Filter,
    Projection,
    Other,
}

/// The position of an expression in a plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) node: Node,
    /// True if the expression is a conjunct of a condition.
    pub(super) is_conjunct: bool,
    /// True if NULL in this position filters the same rows as false.
    pub(super) null_is_false: bool,
}

impl Place {
    /// A condition of WHERE, HAVING or an inner join.
    pub(super) const CONJUNCT: Place = Place { node: Node::Filter, is_conjunct: true, null_is_false: true };

    /// Returns a position in which true, false and NULL are distinct.
    pub(super) fn value(node: Node) -> Place {
        Place { node, is_conjunct: false, null_is_false: false }
    }

    /// Returns the position of the operands of `expr`, which is in this position.
    pub(super) fn of_parts(self, expr: &Expr) -> Place {
        let null_is_false = match expr {
            Expr::BinaryExpr(binary) => self.null_is_false && matches!(binary.op, Operator::And | Operator::Or),
            Expr::IsTrue(_) => true,
            _ => false,
        };
        Place { is_conjunct: false, null_is_false, ..self }
    }
}

/// Returns the sub-query of an expression that is a sub-query or a predicate on one.
pub(super) fn subquery_of(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::ScalarSubquery(of)
        | Expr::Exists(Exists { subquery: of, .. })
        | Expr::InSubquery(InSubquery { subquery: of, .. })
        | Expr::SetComparison(SetComparison { subquery: of, .. }) => Some(of),
        _ => None,
    }
}

pub(super) fn is_predicate(expr: &Expr) -> bool {
    !matches!(expr, Expr::ScalarSubquery(_)) && subquery_of(expr).is_some()
}

pub(super) fn has_predicate(expr: &Expr) -> bool {
    expr.exists(|e| Ok(is_predicate(e))).unwrap_or(true)
}

pub(super) fn has_subquery(expr: &Expr) -> bool {
    expr.exists(|e| Ok(subquery_of(e).is_some())).unwrap_or(true)
}

pub(super) fn any_is_ours(exprs: &[Expr], schema: &DFSchemaRef, place: Place) -> Result<bool> {
    for expr in exprs {
        if is_ours(expr, schema, place)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns true if `expr` contains a sub-query that the stock rules do not handle.
pub(super) fn is_ours(expr: &Expr, schema: &DFSchemaRef, place: Place) -> Result<bool> {
    if !has_subquery(expr) {
        return Ok(false);
    }
    if subquery_of(expr).is_some() {
        return Ok(!is_for_stock(expr, schema, place)?);
    }
    let (mut found, parts) = (false, place.of_parts(expr));
    expr.apply_children(|part| {
        found = found || is_ours(part, schema, parts)?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// Returns true if the stock rules handle a sub-query correctly.
pub(super) fn is_for_stock(expr: &Expr, schema: &DFSchemaRef, place: Place) -> Result<bool> {
    let Some(of) = subquery_of(expr) else { return Ok(true) };
    let (plan, looks) = (of.subquery.as_ref(), looks_at(&of.subquery, schema)?);
    Ok(match expr {
        Expr::ScalarSubquery(_) => !looks || (place.node != Node::Other && simple::is_one_row(plan)?),
        // Without references there is one answer for all rows; references further out belong to the outer query.
        Expr::Exists(_) if !looks => !free(plan)?.is_empty(),
        Expr::Exists(_) => place.node == Node::Filter && simple::has_rows(plan)?,
        // With references the predicate is planned as EXISTS ([`as_exists`]): a cast of the item hides the columns that
        // the stock rule adds beside it.
        Expr::InSubquery(of) => {
            // What is computed may turn out as a constant, of which the stock rules make joins without keys.
            let is_condition = place.node == Node::Filter && place.is_conjunct;
            !looks && is_condition && matches!(of.expr.as_ref(), Expr::Column(_))
        }
        _ => false,
    })
}

/// Normalizes a predicate on a sub-query.
///
/// `NOT` is pushed into predicates, `= ANY` becomes IN, `<> ALL` becomes NOT IN, and sub-queries lose parts that do not
/// affect their predicate.
pub(super) fn normalized(expr: Expr) -> Result<Expr> {
    if !has_predicate(&expr) {
        return Ok(expr);
    }
    let done = expr.transform_up(|e| {
        Ok(match e {
            Expr::Not(inner) if is_predicate(&inner) => Transformed::yes(negated(*inner)),
            Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => match (op, &quantifier) {
                (Operator::Eq, SetQuantifier::Any) => Transformed::yes(is_in(expr, &subquery, false)?),
                (Operator::NotEq, SetQuantifier::All) => Transformed::yes(is_in(expr, &subquery, true)?),
                _ => Transformed::no(Expr::SetComparison(SetComparison { expr, subquery, op, quantifier })),
            },
            Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                Transformed::yes(is_in(expr, &subquery, negated)?)
            }
            Expr::Exists(Exists { subquery, negated }) => {
                let plan = rows_alone(&subquery.subquery)?;
                Transformed::yes(Expr::Exists(Exists { subquery: with_plan(&subquery, plan), negated }))
            }
            other => Transformed::no(other),
        })
    })?;
    Ok(done.data)
}

/// Negates a comparison: ANY becomes ALL with the opposite operator.
fn negated(expr: Expr) -> Expr {
    match expr {
        Expr::Exists(of) => Expr::Exists(Exists { negated: !of.negated, ..of }),
        Expr::InSubquery(of) => Expr::InSubquery(InSubquery { negated: !of.negated, ..of }),
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => match op.negate() {
            Some(op) => {
                let quantifier = match quantifier {
                    SetQuantifier::Any => SetQuantifier::All,
                    SetQuantifier::All => SetQuantifier::Any,
                };
                Expr::SetComparison(SetComparison { expr, subquery, op, quantifier })
            }
            None => Expr::Not(Box::new(Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }))),
        },
        other => Expr::Not(Box::new(other)),
    }
}

fn is_in(expr: Box<Expr>, subquery: &Subquery, negated: bool) -> Result<Expr> {
    let mut plan = subquery.subquery.clone();
    // Neither order nor duplicates matter.
    while let LogicalPlan::Sort(Sort { input, fetch: None, .. }) | LogicalPlan::Distinct(Distinct::All(input)) =
        plan.as_ref()
    {
        plan = input.clone();
    }
    let item = first_column(&plan)?;
    // The stock rule needs the expression of an item.
    if matches!(plan.as_ref(), LogicalPlan::Values(_)) {
        plan = Arc::new(LogicalPlanBuilder::from(plan.as_ref().clone()).project([Expr::Column(item)])?.build()?);
    }
    let subquery = with_plan(subquery, plan);
    Ok(Expr::InSubquery(InSubquery { expr, subquery, negated }))
}

pub(super) fn with_plan(of: &Subquery, plan: Arc<LogicalPlan>) -> Subquery {
    Subquery { outer_ref_columns: plan.all_out_ref_exprs(), subquery: plan, spans: of.spans.clone() }
}

/// Strips a plan to its existence of rows: no columns, order, groups or limits that do not affect it.
fn rows_alone(plan: &Arc<LogicalPlan>) -> Result<Arc<LogicalPlan>> {
    let mut below = plan;
    loop {
        below = match below.as_ref() {
            LogicalPlan::Projection(Projection { input, .. })
            | LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. })
            | LogicalPlan::Window(Window { input, .. })
            | LogicalPlan::Distinct(Distinct::All(input) | Distinct::On(DistinctOn { input, .. }))
            | LogicalPlan::Sort(Sort { input, fetch: None, .. }) => input,
            LogicalPlan::Aggregate(Aggregate { input, group_expr, .. })
                if !group_expr.is_empty() && !group_expr.iter().any(|e| matches!(e, Expr::GroupingSet(_))) =>
            {
                input
            }
            LogicalPlan::Limit(limit) if keeps_one(limit) => &limit.input,
            _ => break,
        };
    }
    // A projection of one column is enough; several columns may share a name.
    let is_plain = |of: &Projection| Arc::ptr_eq(below, &of.input) && of.expr.len() == 1;
    if Arc::ptr_eq(below, plan) || matches!(plan.as_ref(), LogicalPlan::Projection(of) if is_plain(of)) {
        return Ok(plan.clone());
    }
    Ok(Arc::new(LogicalPlanBuilder::from(below.as_ref().clone()).project([row()])?.build()?))
}

/// Returns the select list of EXISTS.
fn row() -> Expr {
    lit(1_i64).alias("__row")
}

/// Returns true if a limit keeps at least one of the rows.
pub(super) fn keeps_one(limit: &datafusion::logical_expr::Limit) -> bool {
    matches!(limit.get_skip_type(), Ok(SkipType::Literal(0)))
        && matches!(limit.get_fetch_type(), Ok(FetchType::Literal(None | Some(1..))))
}

/// Returns a condition in the form that the stock rules decompose, if there is one.
pub(super) fn conjunct(part: Expr, schema: &DFSchemaRef) -> Result<Expr> {
    if !is_predicate(&part) || is_for_stock(&part, schema, Place::CONJUNCT)? {
        return Ok(part);
    }
    Ok(as_exists(&part, schema, Place::CONJUNCT)?.unwrap_or(part))
}

/// Rewrites a comparison with a sub-query to EXISTS, where NULL counts as false.
///
/// `x < ANY (SELECT y …)` becomes `EXISTS (… WHERE x < y)` and `x >= ALL (…)` becomes `NOT EXISTS (… WHERE x < y OR x
/// IS NULL OR y IS NULL)`; IN and NOT IN likewise.
pub(super) fn as_exists(predicate: &Expr, schema: &DFSchemaRef, place: Place) -> Result<Option<Expr>> {
    let (expr, op, subquery, negated) = match predicate {
        Expr::InSubquery(of) => (&of.expr, Operator::Eq, &of.subquery, of.negated),
        Expr::SetComparison(of) => match (&of.quantifier, of.op.negate()) {
            (SetQuantifier::Any, _) => (&of.expr, of.op, &of.subquery, false),
            (SetQuantifier::All, Some(op)) => (&of.expr, op, &of.subquery, true),
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    let is_asked = place.node == Node::Filter && place.null_is_false;
    if !is_asked || has_subquery(expr) || expr.is_volatile() || !looks_at(&subquery.subquery, schema)? {
        return Ok(None);
    }
    let (item, rows) = item_of(&subquery.subquery)?;
    let value = outer(expr.as_ref().clone(), schema)?;
    let mut hit = binary_expr(value.clone(), op, item.clone());
    if negated && item.nullable(rows.schema().as_ref())? {
        hit = hit.or(item.is_null());
    }
    if negated && expr.nullable(schema.as_ref())? {
        hit = hit.or(value.is_null());
    }
    // A single filter: of two nested filters the stock rule loses columns of the lower one.
    let (hit, rows) = match rows.as_ref() {
        LogicalPlan::Filter(Filter { predicate, input, .. }) => (predicate.clone().and(hit), input),
        _ => (hit, rows),
    };
    let plan = LogicalPlanBuilder::from(rows.as_ref().clone()).filter(hit)?.project([row()])?.build()?;
    let exists = Expr::Exists(Exists { subquery: with_plan(subquery, Arc::new(plan)), negated });
    Ok(is_for_stock(&exists, schema, place)?.then_some(exists))
}

/// Returns the item of a sub-query and the rows it is computed from.
fn item_of(plan: &Arc<LogicalPlan>) -> Result<(Expr, &Arc<LogicalPlan>)> {
    if let LogicalPlan::Projection(Projection { expr, input, .. }) = plan.as_ref()
        && let [item] = expr.as_slice()
        && !has_subquery(item)
        && !item.is_volatile()
    {
        return Ok((item.clone().unalias(), input));
    }
    Ok((Expr::Column(first_column(plan)?), plan))
}

/// Converts the columns of an expression to outer references.
pub(super) fn outer(expr: Expr, schema: &DFSchemaRef) -> Result<Expr> {
    let done = expr.transform_up(|e| match e {
        Expr::Column(column) => {
            let (_, field) = schema.qualified_field_from_column(&column)?;
            Ok(Transformed::yes(Expr::OuterReferenceColumn(field.clone(), column)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(done.data)
}
