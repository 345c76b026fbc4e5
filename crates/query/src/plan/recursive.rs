//! Recursive queries over tables: `WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT b FROM ed JOIN r …)`.
//!
//! The stock operator requires fields with equal metadata from both terms. Tidalite's fields name their table column,
//! so the fields of the recursive term get the metadata of the first term.

use crate::Result;
use crate::functions::own_field;
use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result as DFResult};
use datafusion::logical_expr::expr::FieldMetadata;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, RecursiveQuery};
use std::sync::Arc;

/// Returns the plan with equal fields in both terms of its recursive queries.
///
/// # Errors
/// Fails if a term cannot be planned again.
pub(crate) fn same_fields(plan: LogicalPlan) -> Result<LogicalPlan> {
    let done = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::RecursiveQuery(of) => Ok(match term(&of)? {
            Some(recursive_term) => {
                Transformed::yes(LogicalPlan::RecursiveQuery(RecursiveQuery { recursive_term, ..of }))
            }
            None => Transformed::no(LogicalPlan::RecursiveQuery(of)),
        }),
        other => Ok(Transformed::no(other)),
    })?;
    Ok(done.data)
}

/// Returns the recursive term with the fields of the first term; `None` if they are equal already.
fn term(of: &RecursiveQuery) -> DFResult<Option<Arc<LogicalPlan>>> {
    let (first, own) = (of.static_term.schema(), of.recursive_term.schema());
    let is_same = |(a, b): (&FieldRef, &FieldRef)| a.metadata() == b.metadata();
    if first.fields().len() != own.fields().len() || first.fields().iter().zip(own.fields()).all(is_same) {
        return Ok(None);
    }
    let exprs = first.fields().iter().zip(own.iter()).map(|(field, (relation, own))| {
        let column = Expr::Column(Column::from((relation, own)));
        if field.metadata() == own.metadata() {
            return Ok(column);
        }
        let metadata = (!field.metadata().is_empty()).then(|| FieldMetadata::from(field.metadata()));
        Ok(own_field::call(column)?.alias_qualified_with_metadata(relation.cloned(), own.name(), metadata))
    });
    let exprs = exprs.collect::<DFResult<Vec<Expr>>>()?;
    Ok(Some(Arc::new(LogicalPlanBuilder::from(of.recursive_term.as_ref().clone()).project(exprs)?.build()?)))
}
