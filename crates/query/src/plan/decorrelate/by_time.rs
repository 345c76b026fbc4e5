//! Clauses by time for every value of the domain: the columns of the value are keys besides the clause's own.

use super::push::{columns, looks_at};
use super::{Decorrelator, Domain, Pushed};
use crate::plan::fill::FillNode;
use crate::plan::latest_on::LatestOnNode;
use crate::plan::time_join::TimeJoinNode;
use crate::plan::window_join::WindowJoinNode;
use datafusion::common::{Column, ExprSchema, Result, ScalarValue};
use datafusion::functions::expr_fn::coalesce;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::{
    AggregateUDF, Expr, Extension, LogicalPlan, LogicalPlanBuilder, UserDefinedLogicalNodeCore, WindowFrame,
    WindowFunctionDefinition, lit,
};
use std::sync::Arc;

impl Decorrelator {
    /// `None` where a clause has more to it than keys.
    pub(super) fn push_by_time(&mut self, of: &Extension, domain: &Domain) -> Result<Option<Pushed>> {
        let node = of.node.as_any();
        if let Some(latest) = node.downcast_ref::<LatestOnNode>() {
            return self.push_latest(latest, domain);
        }
        if let Some(fill) = node.downcast_ref::<FillNode>() {
            return self.push_fill(fill, domain);
        }
        if let Some(join) = node.downcast_ref::<WindowJoinNode>() {
            return self.push_window_join(join, domain);
        }
        match node.downcast_ref::<TimeJoinNode>() {
            Some(join) => self.push_time_join(join, domain),
            None => Ok(None),
        }
    }

    fn push_latest(&mut self, of: &LatestOnNode, domain: &Domain) -> Result<Option<Pushed>> {
        let [input] = of.inputs()[..] else { return Ok(None) };
        let Some(input) = self.push(input, domain, false)? else { return Ok(None) };
        let latest = of.with_keys(input.plan, &input.value);
        Ok(Some(Pushed { plan: LogicalPlan::Extension(Extension { node: Arc::new(latest) }), value: input.value }))
    }

    /// Buckets are made from the first to the last of all rows, for every key; those outside of what the rows of a value
    /// span are left out again. The span is a key, too, as it is one for each value.
    fn push_fill(&mut self, of: &FillNode, domain: &Domain) -> Result<Option<Pushed>> {
        // Where the buckets begin with the first row, each value has other ones; and between FROM and TO there are
        // buckets of values that have no row.
        if of.spec.is_first || (of.spec.from.is_some() && of.spec.to.is_some() && of.spec.keys == 0) {
            return Ok(None);
        }
        let [rows] = of.inputs()[..] else { return Ok(None) };
        let own = rows.schema().columns();
        let Some(input) = self.push(rows, domain, false)? else { return Ok(None) };
        let bucket = Expr::Column(own[0].clone());
        let span = |f: Arc<AggregateUDF>| over(f, bucket.clone(), columns(&input.value).collect());
        let (first, last) = (span(min_udaf()), span(max_udaf()));
        let names = [self.name("__first"), self.name("__last")];
        let exprs = [&first, &last].map(|e| Expr::Column(Column::new_unqualified(e.schema_name().to_string())));
        let spans = exprs.into_iter().zip(&names).map(|(e, name)| e.alias(name));
        let split = 1 + of.spec.keys;
        let keys = own[..split].iter().cloned().map(Expr::Column);
        let values = own[split..].iter().cloned().map(Expr::Column);
        let all: Vec<Expr> = keys.chain(columns(&input.value)).chain(spans).chain(values).collect();
        let rows = LogicalPlanBuilder::from(input.plan).window([first, last])?.project(all)?.build()?;
        let mut spec = of.spec.clone();
        spec.keys += input.value.len() + names.len();
        let filled = FillNode::new(rows, spec)?;
        let filled = LogicalPlan::Extension(Extension { node: Arc::new(filled) });
        let edge = |name: &String| Expr::Column(Column::new_unqualified(name));
        let is_behind = if of.spec.from.is_some() { lit(true) } else { bucket.clone().gt_eq(edge(&names[0])) };
        let is_before = if of.spec.to.is_some() { lit(true) } else { bucket.lt_eq(edge(&names[1])) };
        let kept = own.iter().cloned().map(Expr::Column).chain(columns(&input.value));
        let plan = LogicalPlanBuilder::from(filled).filter(is_behind.and(is_before))?.project(kept)?.build()?;
        Ok(Some(Pushed { plan, value: input.value }))
    }

    fn push_time_join(&mut self, of: &TimeJoinNode, domain: &Domain) -> Result<Option<Pushed>> {
        // Rows of the right side that no left one has come for each value.
        if of.is_splice() {
            return Ok(None);
        }
        let Some(Sides { left, right, value, keys }) = self.push_sides(of.inputs(), domain)? else { return Ok(None) };
        let joined = of.with_keys(left, right, keys)?;
        Ok(Some(Pushed { plan: LogicalPlan::Extension(Extension { node: Arc::new(joined) }), value }))
    }

    fn push_window_join(&mut self, of: &WindowJoinNode, domain: &Domain) -> Result<Option<Pushed>> {
        let Some(Sides { left, right, value, keys }) = self.push_sides(of.inputs(), domain)? else { return Ok(None) };
        let joined = of.with_keys(left, right, keys)?;
        Ok(Some(Pushed { plan: LogicalPlan::Extension(Extension { node: Arc::new(joined) }), value }))
    }

    /// The left side for every value, and the right one as well where it looks at them.
    fn push_sides(&mut self, sides: Vec<&LogicalPlan>, domain: &Domain) -> Result<Option<Sides>> {
        let [left, right] = sides[..] else { return Ok(None) };
        let right_looks = looks_at(right, domain)?;
        let Some(left) = self.push(left, domain, false)? else { return Ok(None) };
        if !right_looks {
            return Ok(Some(Sides { left: left.plan, right: right.clone(), value: left.value, keys: Vec::new() }));
        }
        let Some(right) = self.push(right, domain, false)? else { return Ok(None) };
        let value = left.value.clone();
        let Some((left, own)) = self.with_known(left)? else { return Ok(None) };
        let Some((right, others)) = self.with_known(right)? else { return Ok(None) };
        Ok(Some(Sides { left, right, value, keys: own.into_iter().zip(others).collect() }))
    }

    /// The rows with columns that are equal where the values are: two for a value that may be NULL, as keys that are have
    /// no partner.
    fn with_known(&mut self, pushed: Pushed) -> Result<Option<(LogicalPlan, Vec<Column>)>> {
        let schema = pushed.plan.schema().clone();
        let (mut added, mut keys) = (Vec::new(), Vec::new());
        for column in pushed.value {
            let field = schema.field_from_column(&column)?;
            if !field.is_nullable() {
                keys.push(column);
                continue;
            }
            let Ok(default) = ScalarValue::new_default(field.data_type()) else { return Ok(None) };
            let value = Expr::Column(column);
            for key in [coalesce(vec![value.clone(), lit(default)]), value.is_null()] {
                let name = self.name("__known");
                added.push(key.alias(&name));
                keys.push(Column::new_unqualified(name));
            }
        }
        if added.is_empty() {
            return Ok(Some((pushed.plan, keys)));
        }
        let all = schema.columns().into_iter().map(Expr::Column).chain(added);
        let plan = LogicalPlanBuilder::from(pushed.plan).project(all.collect::<Vec<_>>())?.build()?;
        Ok(Some((plan, keys)))
    }
}

/// Both sides of a join by time, the columns of the value on its left, and the pairs of columns that have it.
struct Sides {
    left: LogicalPlan,
    right: LogicalPlan,
    value: Vec<Column>,
    keys: Vec<(Column, Column)>,
}

pub(super) fn is_splice(of: &Extension) -> bool {
    of.node.as_any().downcast_ref::<TimeJoinNode>().is_some_and(TimeJoinNode::is_splice)
}

fn over(function: Arc<AggregateUDF>, value: Expr, partition_by: Vec<Expr>) -> Expr {
    let params = WindowFunctionParams {
        args: vec![value],
        partition_by,
        order_by: Vec::new(),
        window_frame: WindowFrame::new(None),
        filter: None,
        null_treatment: None,
        distinct: false,
    };
    let fun = WindowFunctionDefinition::AggregateUDF(function);
    Expr::WindowFunction(Box::new(WindowFunction { fun, params }))
}
