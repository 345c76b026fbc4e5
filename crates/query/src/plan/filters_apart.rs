//! A filter that gives out some of its columns only, apart from what chooses them.
//!
//! The stock rule that moves a projection below such a filter takes a column of the filter's rows for one of its output
//! that has the same name and place. Of a join of `l.v` and `r.v` both have the name, and the filter would be asked of
//! the other, or the projection of columns beside those that are meant.

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use std::sync::Arc;

/// Before the stock rule, each time.
#[derive(Debug)]
pub(crate) struct FiltersApart;

impl PhysicalOptimizerRule for FiltersApart {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let Some(filter) = node.downcast_ref::<FilterExec>() else { return Ok(Transformed::no(node)) };
            Ok(match apart(filter)? {
                Some(plan) => Transformed::yes(plan),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "FiltersApart"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn apart(filter: &FilterExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(kept) = filter.projection() else { return Ok(None) };
    let given = filter.schema();
    let is_mistaken = |column: &Column| {
        let same_place = given.fields().get(column.index());
        same_place.is_some_and(|field| field.name() == column.name())
            && kept.get(column.index()) != Some(&column.index())
    };
    if !collect_columns(filter.predicate()).iter().any(is_mistaken) {
        return Ok(None);
    }
    let columns = kept.iter().zip(given.fields()).map(|(at, field)| ProjectionExpr {
        expr: Arc::new(Column::new(field.name(), *at)),
        alias: field.name().clone(),
    });
    let columns: Vec<ProjectionExpr> = columns.collect();
    let whole = FilterExecBuilder::from(filter).apply_projection(None)?.build()?;
    Ok(Some(Arc::new(ProjectionExec::try_new(columns, Arc::new(whole))?)))
}
