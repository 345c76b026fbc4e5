//! Sub-queries in the ON of a join.
//!
//! An inner join is a cross product with conditions, so its predicates become conditions above it. The ON of an outer
//! join decides which pairs match, not which rows are kept: predicates on one side become columns of that side.
//! Predicates on both sides are evaluated once for the distinct values of the pairs, and the answers are joined to the
//! side that the join does not preserve.

use super::predicates::{self, Node, Place, has_subquery};
use super::references::free;
use super::{Decorrelator, Domain, same_values};
use crate::Error;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchemaRef, JoinType, Result};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, Join, LogicalPlan, LogicalPlanBuilder};
use std::sync::Arc;

impl Decorrelator {
    pub(super) fn join_on(&mut self, join: Join) -> Result<LogicalPlan> {
        let place = Place { node: Node::Other, ..Place::CONJUNCT };
        let is_asked = match &join.filter {
            Some(filter) => predicates::is_ours(filter, &join.schema, place)?,
            None => false,
        };
        if !is_asked {
            return Ok(LogicalPlan::Join(join));
        }
        let Join { filter, .. } = &join;
        let parts = filter.iter().cloned().flat_map(split_conjunction_owned);
        let (ours, others): (Vec<Expr>, Vec<Expr>) = parts.partition(has_subquery);
        let join = Join { filter: conjunction(others), ..join };
        if join.join_type == JoinType::Inner {
            let Some(predicate) = conjunction(ours) else { return Ok(LogicalPlan::Join(join)) };
            return self.filter(Filter::try_new(predicate, Arc::new(LogicalPlan::Join(join)))?);
        }
        let looked_at = looked_at(&ours, &join.schema)?;
        let is_of = |schema: &DFSchemaRef| looked_at.iter().all(|column| schema.has_column(column));
        let columns: Vec<Expr> = join.schema.columns().into_iter().map(Expr::Column).collect();
        let joined = if is_of(join.left.schema()) {
            let mut left = join.left.as_ref().clone();
            let found = self.answered(ours, &mut left, place)?;
            with_parts(left, join.right.as_ref().clone(), &join, found)?
        } else if is_of(join.right.schema()) {
            let mut right = join.right.as_ref().clone();
            let found = self.answered(ours, &mut right, place)?;
            with_parts(join.left.as_ref().clone(), right, &join, found)?
        } else {
            self.of_pairs(ours, looked_at, &join, place)?
        };
        LogicalPlanBuilder::from(self.nested(joined)?).project(columns)?.build()
    }

    /// Plans predicates that reference both sides.
    fn of_pairs(&mut self, ours: Vec<Expr>, looked_at: Vec<Column>, join: &Join, place: Place) -> Result<LogicalPlan> {
        let keeps_left = match join.join_type {
            JoinType::Left => true,
            JoinType::Right => false,
            _ => {
                let message = "the ON of this join cannot have a sub-query that looks at both of its sides";
                return Err(Error::invalid(message).into());
            }
        };
        let (left, right) = (join.left.as_ref().clone(), join.right.as_ref().clone());
        self.copied(&left)?;
        self.copied(&right)?;
        let inner = Join { join_type: JoinType::Inner, ..join.clone() };
        let pairs = with_parts(left.clone(), right.clone(), &inner, Vec::new())?;
        let values = looked_at.iter().cloned().map(Expr::Column);
        let mut values = LogicalPlanBuilder::from(pairs).project(values)?.distinct()?.build()?;
        let found = self.answered(ours, &mut values, place)?;
        // The columns of the values and of the answers get unique names.
        let alias = self.name("__pairs");
        let named = |n: usize| format!("__key{n}");
        let keys = looked_at.iter().enumerate().map(|(n, column)| Expr::Column(column.clone()).alias(named(n)));
        let answers = found.into_iter().enumerate().map(|(n, found)| found.alias(format!("__answer{n}")));
        let all: Vec<Expr> = keys.chain(answers).collect();
        let count = all.len() - looked_at.len();
        let answered = LogicalPlanBuilder::from(values).project(all)?.alias(&alias)?.build()?;
        let same = |side: &LogicalPlan| {
            let of_side = looked_at.iter().enumerate().filter(|(_, column)| side.schema().has_column(column));
            let (at, outer): (Vec<usize>, Vec<Column>) = of_side.map(|(n, column)| (n, column.clone())).unzip();
            let keys = at.into_iter().map(|n| Column::new(Some(alias.as_str()), named(n)));
            same_values(&Domain { plan: side.clone(), outer }, keys, side.schema())
        };
        let kept = if keeps_left { &left } else { &right };
        let other = if keeps_left { &right } else { &left };
        let mut on = same(kept)?;
        let of_other = same(other)?;
        let other = LogicalPlanBuilder::from(other.clone()).join_on(answered, JoinType::Inner, of_other)?.build()?;
        on.extend((0..count).map(|n| Expr::Column(Column::new(Some(alias.as_str()), format!("__answer{n}")))));
        let (left, right) = if keeps_left { (left, other) } else { (other, right) };
        with_parts(left, right, join, on)
    }
}

/// Returns the join of these sides with additional conditions.
fn with_parts(left: LogicalPlan, right: LogicalPlan, join: &Join, parts: Vec<Expr>) -> Result<LogicalPlan> {
    let filter = conjunction(join.filter.iter().cloned().chain(parts));
    let (on, kind, using) = (join.on.clone(), join.join_type, join.join_constraint);
    let (left, right) = (Arc::new(left), Arc::new(right));
    let joined = Join::try_new(left, right, on, filter, kind, using, join.null_equality, join.null_aware)?;
    Ok(LogicalPlan::Join(joined))
}

/// Returns the columns of the join that conditions and their sub-queries reference.
fn looked_at(exprs: &[Expr], schema: &DFSchemaRef) -> Result<Vec<Column>> {
    let mut found: Vec<Column> = Vec::new();
    for expr in exprs {
        expr.apply(|e| {
            let outside = predicates::subquery_of(e).map(|of| free(&of.subquery)).transpose()?.unwrap_or_default();
            let own = if let Expr::Column(column) = e { Some(column.clone()) } else { None };
            for column in outside.into_iter().chain(own) {
                if schema.has_column(&column) && !found.contains(&column) {
                    found.push(column);
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(found)
}
