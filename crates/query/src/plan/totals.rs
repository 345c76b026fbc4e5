//! Sums and means of whole tables in the form in which blocks give them: what a block comes to instead of its rows.
//!
//! Works on the finished plan: an aggregation without keys whose arguments are numbers of a scan, as they are or widened.

use crate::exec::group::{GroupExec, Input};
use crate::scan::exec::ScanExec;
use crate::scan::spec::Total;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use std::sync::Arc;
use tidalite_kernels::Fold;

#[derive(Debug)]
pub(crate) struct TotalsOfBlocks;

type Plan = Arc<dyn ExecutionPlan>;

impl PhysicalOptimizerRule for TotalsOfBlocks {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        plan.transform_up(|node| {
            let totalled = node.downcast_ref::<GroupExec>().and_then(totalled);
            Ok(totalled.map_or_else(|| Transformed::no(node), |group| Transformed::yes(Arc::new(group) as Plan)))
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "TotalsOfBlocks"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn totalled(group: &GroupExec) -> Option<GroupExec> {
    if !group.keys().is_empty() || group.inputs().is_empty() {
        return None;
    }
    let scan = scan_of(group.input())?;
    // Where some of the rows will do, blocks have more.
    scan.pieces()?;
    let totals: Vec<Total> =
        group.inputs().iter().map(|input| total(input, group.input(), scan)).collect::<Option<_>>()?;
    let folds = group.folds().iter().map(|fold| match *fold {
        Fold::Rows => Some(Fold::SumInt(0)),
        Fold::Present(input) => Some(Fold::SumInt(1 + 2 * input)),
        Fold::SumInt(input) => Some(Fold::SumInt(2 + 2 * input)),
        Fold::SumFloat(input) => Some(Fold::SumFloat(2 + 2 * input)),
        _ => None,
    });
    let folds = folds.collect::<Option<_>>()?;
    let scan: Plan = Arc::new(scan.with_totals(totals));
    let schema = scan.schema();
    let inputs = schema.fields().iter().enumerate().map(|(at, field)| Input {
        argument: Some(Arc::new(Column::new(field.name(), at))),
        filter: None,
        is_float: Some(*field.data_type() == DataType::Float64),
    });
    let inputs = inputs.collect();
    Some(group.totalled(scan, Vec::new(), inputs, folds))
}

/// The scan below what only passes columns on.
pub(super) fn scan_of(plan: &Plan) -> Option<&ScanExec> {
    let plan = as_dealt(plan);
    match plan.downcast_ref::<ProjectionExec>() {
        Some(projection) => scan_of(projection.input()),
        None => plan.downcast_ref(),
    }
}

/// Without what deals rows out to threads: totals are few.
fn as_dealt(plan: &Plan) -> &Plan {
    plan.downcast_ref::<RepartitionExec>().map_or(plan, |dealt| as_dealt(dealt.input()))
}

fn total(input: &Input, plan: &Plan, scan: &ScanExec) -> Option<Total> {
    let argument = input.argument.as_ref().filter(|_| input.filter.is_none())?;
    let (column, wide) = column_of(argument, plan)?;
    let data_type = scan.schema().field(column).data_type().clone();
    let is_int = matches!(data_type, DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64);
    let is_float = matches!(data_type, DataType::Float32 | DataType::Float64);
    let is_widened = match wide {
        None | Some(DataType::Float64) => is_int || is_float,
        Some(DataType::Int64) => is_int,
        Some(_) => false,
    };
    is_widened.then_some(Total { column, is_float: input.is_float.unwrap_or(is_float) })
}

/// The place in the scan of a column that is passed on as it is, or once cast to a type.
pub(super) fn column_of(expr: &Arc<dyn PhysicalExpr>, plan: &Plan) -> Option<(usize, Option<DataType>)> {
    if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        let (column, inner) = column_of(cast.expr(), plan)?;
        return inner.is_none().then(|| (column, Some(cast.cast_type().clone())));
    }
    let at = expr.downcast_ref::<Column>()?.index();
    match as_dealt(plan).downcast_ref::<ProjectionExec>() {
        Some(projection) => column_of(&projection.expr()[at].expr, projection.input()),
        None => Some((at, None)),
    }
}
