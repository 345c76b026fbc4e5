//! Logical nodes of ours to operators. The plain operators stand here; faster ones for native tables take their place
//! here, too.

use super::fill::FillNode;
use super::group::GroupNode;
use super::latest_on::LatestOnNode;
use super::time_join::TimeJoinNode;
use super::turned::TurnedNode;
use super::window_join::WindowJoinNode;
use crate::exec::latest_on::LatestOn;
use crate::exec::operator::Operator;
use crate::exec::time_join::TimeJoin;
use crate::exec::turned::Turned;
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Planner;

#[async_trait]
impl QueryPlanner for Planner {
    async fn create_physical_plan(&self, plan: &LogicalPlan, session: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(Nodes)]);
        planner.create_physical_plan(plan, session).await
    }
}

struct Nodes;

#[async_trait]
impl ExtensionPlanner for Nodes {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        logical: &[&LogicalPlan],
        physical: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let node = node.as_any();
        if let Some(fill) = node.downcast_ref::<FillNode>() {
            return Ok(Some(Arc::new(Operator::new(fill.spec.clone(), physical.to_vec()))));
        }
        if node.is::<TurnedNode>() {
            return Ok(Some(Arc::new(Operator::new(Turned, physical.to_vec()))));
        }
        if let Some(latest) = node.downcast_ref::<LatestOnNode>() {
            let schema = logical[0].schema();
            let time = schema.index_of_column(&latest.time)?;
            let keys = latest.keys.iter().map(|k| schema.index_of_column(k)).collect::<Result<Vec<_>>>()?;
            return Ok(Some(Arc::new(Operator::new(LatestOn { time, keys }, physical.to_vec()))));
        }
        if let Some(join) = node.downcast_ref::<TimeJoinNode>() {
            let columns = join.indexes(logical[0].schema(), logical[1].schema())?;
            let schema = Arc::new(UserDefinedLogicalNode::schema(join).as_arrow().clone());
            let join = TimeJoin { spec: join.spec.clone(), columns, schema };
            return Ok(Some(Arc::new(Operator::new(join, physical.to_vec()))));
        }
        if let Some(join) = node.downcast_ref::<WindowJoinNode>() {
            let join = join.operation(logical[0].schema(), logical[1].schema())?;
            return Ok(Some(Arc::new(Operator::new(join, physical.to_vec()))));
        }
        if let (Some(group), [input]) = (node.downcast_ref::<GroupNode>(), physical) {
            return Ok(Some(Arc::new(group.operator(input.clone(), planner, session, context)?)));
        }
        Ok(None)
    }
}
