//! Comparisons of row constructors, `(a, b)` or `ROW(a, b)`, value by value, and tests of rows for NULL (DF-71).
//!
//! `(a, b) = (c, d)` is `a = c AND b = d`, and `<` compares the first values that are not equal; a comparison with NULL is
//! unknown. A row that is a column or another value is compared as a whole, where NULL equals NULL
//! ([`crate::functions::nested`]). A row is NULL if all its values are NULL, and NOT NULL if none is. All as in PostgreSQL.

use super::settled::is_comparison;
use crate::dialect::halves;
use crate::{Error, Result};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result as DFResult};
use datafusion::functions::core::expr_fn::get_field;
use datafusion::logical_expr::expr::{Between, InList};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, when};
use tidalite_types::SqlState;

/// The name of DataFusion's function for a row constructor.
const ROW: &str = "struct";
/// A list with more rows is searched as a whole unless a value is NULL.
const LISTED_MAX: usize = 16;

/// Rewrites the comparisons of row constructors.
pub(crate) fn row_values(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut has_rows = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            has_rows |= expr.exists(|e| Ok(values(e).is_some()))?;
            Ok(if has_rows { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    })?;
    if !has_rows {
        return Ok(plan);
    }
    let done = plan.transform_up_with_subqueries(|node| {
        let mut schema = DFSchema::empty();
        node.inputs().iter().for_each(|input| schema.merge(input.schema()));
        let names = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            let done = expr.transform_up(|e| rewritten(e, &schema))?;
            Ok(done.update_data(|expr| name.restore(expr)))
        })
    })?;
    Ok(done.data)
}

/// Returns the values of a row constructor.
fn values(expr: &Expr) -> Option<&[Expr]> {
    match expr {
        Expr::ScalarFunction(function) if function.name() == ROW => Some(&function.args),
        _ => None,
    }
}

fn rewritten(expr: Expr, schema: &DFSchema) -> DFResult<Transformed<Expr>> {
    let found = match &expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => compared(left, *op, right)?,
        Expr::Between(between) => within(between)?,
        Expr::InList(list) if values(&list.expr).is_some() => listed(list)?,
        Expr::IsNull(row) => each_value(row, schema, Expr::is_null)?,
        Expr::IsNotNull(row) => each_value(row, schema, Expr::is_not_null)?,
        _ => None,
    };
    Ok(found.map_or_else(|| Transformed::no(expr), Transformed::yes))
}

/// Returns the comparison of two row constructors; `None` for other operands.
fn compared(left: &Expr, op: Operator, right: &Expr) -> Result<Option<Expr>> {
    let (Some(left), Some(right)) = (values(left), values(right)) else { return Ok(None) };
    let is_repeated = !matches!(op, Operator::Eq | Operator::NotEq);
    if !is_comparison(op) || is_repeated && left.iter().chain(right).any(Expr::is_volatile) {
        return Ok(None);
    }
    compared_values(left, op, right).map(Some)
}

/// Returns the comparison of the values of two rows.
///
/// # Errors
/// The rows have different numbers of values.
pub(crate) fn compared_values(left: &[Expr], op: Operator, right: &[Expr]) -> Result<Expr> {
    check_lengths(left, right)?;
    let found = match op {
        Operator::Eq | Operator::IsNotDistinctFrom => pairwise(left, op, right, Expr::and),
        Operator::NotEq | Operator::IsDistinctFrom => pairwise(left, op, right, Expr::or),
        _ => ordered(left, op, right),
    };
    found.ok_or_else(|| Error::invalid("cannot compare rows of zero length"))
}

fn check_lengths(left: &[Expr], right: &[Expr]) -> Result<()> {
    if left.len() == right.len() {
        return Ok(());
    }
    let error = Error::invalid("unequal number of entries in row expressions");
    Err(error.with_code(SqlState::SYNTAX_ERROR))
}

/// Checks that two written rows can be compared: the planner derives a type before it rewrites the comparison.
///
/// # Errors
/// The rows have different numbers of values.
pub(crate) fn check_rows(left: &Expr, right: &Expr) -> Result<()> {
    match (values(left), values(right)) {
        (Some(left), Some(right)) => check_lengths(left, right),
        _ => Ok(()),
    }
}

fn binary(left: &Expr, op: Operator, right: &Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left.clone()), op, Box::new(right.clone())))
}

fn pairwise(left: &[Expr], op: Operator, right: &[Expr], join: fn(Expr, Expr) -> Expr) -> Option<Expr> {
    halves(left.iter().zip(right).map(|(left, right)| binary(left, op, right)).collect(), &join)
}

/// Compares the first halves and, if they are equal, the second halves.
fn ordered(left: &[Expr], op: Operator, right: &[Expr]) -> Option<Expr> {
    if let ([left], [right]) = (left, right) {
        return Some(binary(left, op, right));
    }
    let strict = match op {
        Operator::LtEq => Operator::Lt,
        Operator::GtEq => Operator::Gt,
        other => other,
    };
    let ((left, left_rest), (right, right_rest)) = (left.split_at(left.len() / 2), right.split_at(right.len() / 2));
    let is_equal = pairwise(left, Operator::Eq, right, Expr::and)?;
    Some(ordered(left, strict, right)?.or(is_equal.and(ordered(left_rest, op, right_rest)?)))
}

fn negated(expr: Expr, is_negated: bool) -> Expr {
    if is_negated { Expr::Not(Box::new(expr)) } else { expr }
}

fn within(between: &Between) -> Result<Option<Expr>> {
    let low = compared(&between.expr, Operator::GtEq, &between.low)?;
    let high = compared(&between.expr, Operator::LtEq, &between.high)?;
    Ok(low.zip(high).map(|(low, high)| negated(low.and(high), between.negated)))
}

/// `(a, b) IN ((c, d), …)`.
fn listed(list: &InList) -> Result<Option<Expr>> {
    let equal = |item: &Expr| {
        let found = compared(&list.expr, Operator::Eq, item)?;
        Ok(found.unwrap_or_else(|| binary(&list.expr, Operator::Eq, item)))
    };
    let Some(any) = halves(list.list.iter().map(equal).collect::<Result<_>>()?, &Expr::or) else { return Ok(None) };
    let is_known = |value: &Expr| matches!(value, Expr::Literal(value, _) if !value.is_null());
    let are_known = |item: &Expr| values(item).is_some_and(|values| values.iter().all(is_known));
    if list.list.len() <= LISTED_MAX || !list.list.iter().all(are_known) {
        return Ok(Some(negated(any, list.negated)));
    }
    let own = values(&list.expr).unwrap_or_default().iter().map(|value| value.clone().is_not_null());
    let Some(has_all) = halves(own.collect(), &Expr::and) else { return Ok(None) };
    let as_whole = Expr::InList(InList::new(list.expr.clone(), list.list.clone(), false));
    Ok(Some(negated(when(has_all, as_whole).otherwise(any)?, list.negated)))
}

/// Returns the conjunction of a test over the values of a row; `None` for other operands.
fn each_value(row: &Expr, schema: &DFSchema, test: fn(Expr) -> Expr) -> DFResult<Option<Expr>> {
    let tests: Vec<Expr> = match values(row) {
        Some(values) => values.iter().cloned().map(test).collect(),
        None => match row.get_type(schema) {
            Ok(DataType::Struct(fields)) => {
                fields.iter().map(|field| test(get_field(row.clone(), field.name().as_str()))).collect()
            }
            _ => return Ok(None),
        },
    };
    Ok(halves(tests, &Expr::and))
}
