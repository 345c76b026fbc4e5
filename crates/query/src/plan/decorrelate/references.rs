//! Which columns of the queries around it a plan looks at, and those columns under other names.
//!
//! A reference says the name of a column, not how many queries further out it is: it belongs to the nearest one that
//! has such a column.

use super::predicates::subquery_of;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DFSchemaRef, Result};
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, Join, LogicalPlan, Subquery, SubqueryAlias};
use std::sync::Arc;

/// Old names and the new ones.
pub(super) type Renames = [(Column, Column)];

/// Every reference that nothing in the plan answers.
pub(super) fn free(plan: &LogicalPlan) -> Result<Vec<Column>> {
    let mut found = Vec::new();
    collect(plan, &mut Vec::new(), &mut found)?;
    Ok(found)
}

fn collect(plan: &LogicalPlan, bound: &mut Vec<DFSchemaRef>, found: &mut Vec<Column>) -> Result<()> {
    let mut nested = Vec::new();
    plan.apply_expressions(|expr| {
        expr.apply(|e| {
            match e {
                Expr::OuterReferenceColumn(_, column) if !is_bound(bound, column) => found.push(column.clone()),
                other => nested.extend(subquery_of(other).map(|of| of.subquery.clone())),
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    if !nested.is_empty() {
        bound.push(inputs_of(plan));
        nested.iter().try_for_each(|plan| collect(plan, bound, found))?;
        bound.pop();
    }
    match plan {
        LogicalPlan::Join(join) if is_lateral(&join.right) => {
            collect(&join.left, bound, found)?;
            bound.push(join.left.schema().clone());
            let done = collect(&join.right, bound, found);
            bound.pop();
            done
        }
        other => other.inputs().into_iter().try_for_each(|input| collect(input, bound, found)),
    }
}

fn is_bound(bound: &[DFSchemaRef], column: &Column) -> bool {
    bound.iter().any(|schema| schema.has_column(column))
}

fn inputs_of(plan: &LogicalPlan) -> DFSchemaRef {
    let mut schema = DFSchema::empty();
    plan.inputs().iter().for_each(|input| schema.merge(input.schema()));
    Arc::new(schema)
}

/// Whether it is the right side of a join that may look at the left one.
pub(super) fn is_lateral(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Subquery(_) => true,
        LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }) => is_lateral(input),
        LogicalPlan::Join(join) => is_lateral(&join.right),
        _ => false,
    }
}

/// The plan with references under their new names.
fn renamed(plan: LogicalPlan, renames: &Renames, bound: &mut Vec<DFSchemaRef>) -> Result<LogicalPlan> {
    let inputs = inputs_of(&plan);
    let names = NamePreserver::new(&plan);
    let plan = match plan {
        LogicalPlan::Join(join) if is_lateral(&join.right) => {
            let left = renamed(join.left.as_ref().clone(), renames, bound)?;
            bound.push(left.schema().clone());
            let right = renamed(join.right.as_ref().clone(), renames, bound);
            bound.pop();
            LogicalPlan::Join(Join { left: Arc::new(left), right: Arc::new(right?), ..join })
        }
        LogicalPlan::Subquery(of) => return Ok(LogicalPlan::Subquery(subquery(of, renames, bound)?)),
        other => other.map_children(|child| Ok(Transformed::yes(renamed(child, renames, bound)?)))?.data,
    };
    let done = plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let done = expr.transform_up(|e| match e {
            Expr::OuterReferenceColumn(field, column) if !is_bound(bound, &column) => {
                Ok(match new_name(renames, &column) {
                    Some(new) => Transformed::yes(Expr::OuterReferenceColumn(field, new)),
                    None => Transformed::no(Expr::OuterReferenceColumn(field, column)),
                })
            }
            other => nested(other, renames, bound, &inputs),
        })?;
        Ok(done.update_data(|expr| name.restore(expr)))
    })?;
    Ok(done.data)
}

fn subquery(of: Subquery, renames: &Renames, bound: &mut Vec<DFSchemaRef>) -> Result<Subquery> {
    let plan = renamed(of.subquery.as_ref().clone(), renames, bound)?;
    Ok(Subquery { outer_ref_columns: plan.all_out_ref_exprs(), subquery: Arc::new(plan), spans: of.spans })
}

fn nested(
    expr: Expr,
    renames: &Renames,
    bound: &mut Vec<DFSchemaRef>,
    inputs: &DFSchemaRef,
) -> Result<Transformed<Expr>> {
    bound.push(inputs.clone());
    let done = match expr {
        Expr::ScalarSubquery(of) => subquery(of, renames, bound).map(|of| Transformed::yes(Expr::ScalarSubquery(of))),
        Expr::Exists(Exists { subquery: of, negated }) => {
            subquery(of, renames, bound).map(|subquery| Transformed::yes(Expr::Exists(Exists { subquery, negated })))
        }
        Expr::InSubquery(InSubquery { expr, subquery: of, negated }) => subquery(of, renames, bound)
            .map(|subquery| Transformed::yes(Expr::InSubquery(InSubquery { expr, subquery, negated }))),
        Expr::SetComparison(SetComparison { expr, subquery: of, op, quantifier }) => subquery(of, renames, bound)
            .map(|of| Transformed::yes(Expr::SetComparison(SetComparison::new(expr, of, op, quantifier)))),
        other => Ok(Transformed::no(other)),
    };
    bound.pop();
    done
}

fn new_name(renames: &Renames, column: &Column) -> Option<Column> {
    renames.iter().find(|(old, _)| old == column).map(|(_, new)| new.clone())
}

/// An expression over `inputs` in which references have become columns of its own; those in sub-queries of it are
/// still references, to these columns.
pub(super) fn resolved(expr: Expr, renames: &Renames, inputs: &DFSchemaRef) -> Result<Expr> {
    let done = expr.transform_up(|e| match e {
        Expr::OuterReferenceColumn(field, column) => Ok(match new_name(renames, &column) {
            Some(new) => Transformed::yes(Expr::Column(new)),
            None => Transformed::no(Expr::OuterReferenceColumn(field, column)),
        }),
        other => nested(other, renames, &mut Vec::new(), inputs),
    })?;
    Ok(done.data)
}

/// A lateral table whose references to what is around its join have new names.
pub(super) fn relabelled(plan: &LogicalPlan, renames: &Renames, left: &DFSchemaRef) -> Result<LogicalPlan> {
    renamed(plan.clone(), renames, &mut vec![left.clone()])
}
