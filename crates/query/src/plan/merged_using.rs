//! The columns of `a LEFT JOIN b USING (c)` and NATURAL joins as SQL has them: `c` is that of the rows that are kept, of
//! FULL joins whichever is there. The planner takes either side's, which is NULL where the other side has no row.
//!
//! In the rows of the join both sides' columns become what `c` is. A statement that names the column of a side, too
//! (`b.c IS NULL`), keeps the sides apart; where it also asks for `c` alone and would be told wrong, it is refused.

use crate::dialect;
use crate::{Error, Result};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNodeRecursion};
use datafusion::common::{Column, JoinConstraint, JoinType, Result as DFResult};
use datafusion::functions::expr_fn::coalesce;
use datafusion::logical_expr::{Expr, ExprSchemable, Join, LogicalPlan, Projection};
use datafusion::sql::sqlparser::ast::{self, SelectItem, Visitor};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

/// `query` is what the plan was made of, before it is optimised.
pub(crate) fn merged_using(plan: LogicalPlan, query: &ast::Query) -> Result<LogicalPlan> {
    let mut is_any = false;
    plan.apply_with_subqueries(|node| {
        is_any |= matches!(node, LogicalPlan::Join(join) if is_outer(join));
        Ok(if is_any { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !is_any {
        return Ok(plan);
    }
    let mut names = Names::default();
    let _ = dialect::visit(query, &mut names);
    let done = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Join(join) if is_outer(&join) => merged(join, &names).map(Transformed::yes),
        other => Ok(Transformed::no(other)),
    });
    Ok(done.data()?)
}

fn is_outer(join: &Join) -> bool {
    join.join_constraint == JoinConstraint::Using
        && matches!(join.join_type, JoinType::Left | JoinType::Right | JoinType::Full)
}

/// How a statement names columns.
#[derive(Default)]
struct Names {
    alone: HashSet<String>,
    of_a_side: HashSet<String>,
    all: bool,
    all_of_a_side: bool,
}

impl Visitor for Names {
    type Break = ();

    fn pre_visit_select(&mut self, select: &ast::Select) -> ControlFlow<()> {
        for item in &select.projection {
            self.all |= matches!(item, SelectItem::Wildcard(_));
            self.all_of_a_side |= matches!(item, SelectItem::QualifiedWildcard(..));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &ast::Expr) -> ControlFlow<()> {
        match expr {
            ast::Expr::Identifier(name) => {
                self.alone.insert(name.value.clone());
            }
            ast::Expr::CompoundIdentifier(parts) => {
                self.of_a_side.extend(parts.last().map(|name| name.value.clone()));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn merged(join: Join, names: &Names) -> DFResult<LogicalPlan> {
    let mut values = HashMap::new();
    for (left, right) in &join.on {
        let (Expr::Column(l), Expr::Column(r)) = (left, right) else { continue };
        if names.all_of_a_side || names.of_a_side.contains(&l.name) {
            if is_told_wrong(join.join_type, (l, r), names) {
                return Err(refused(&l.name).into());
            }
            continue;
        }
        let value = match join.join_type {
            JoinType::Left => left.clone(),
            JoinType::Right => right.clone(),
            _ => coalesce(vec![left.clone(), right.clone()]),
        };
        values.insert(l.clone(), value.clone());
        values.insert(r.clone(), value);
    }
    if values.is_empty() {
        return Ok(LogicalPlan::Join(join));
    }
    let schema = join.schema.clone();
    let columns = schema.iter().map(|(relation, field)| {
        let column = Column::from((relation, field));
        match values.get(&column) {
            Some(value) if *value != Expr::Column(column.clone()) => {
                let value = value.clone().cast_to(field.data_type(), &schema)?;
                Ok(value.alias_qualified(column.relation, column.name))
            }
            _ => Ok(Expr::Column(column)),
        }
    });
    let columns = columns.collect::<DFResult<Vec<_>>>()?;
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(LogicalPlan::Join(join)))?))
}

/// Whether the planner took the wrong side's column for what is asked for alone: of `*` that whose name is less, of a
/// name the left one.
fn is_told_wrong(join: JoinType, (left, right): (&Column, &Column), names: &Names) -> bool {
    let is_left_of_all = left <= right;
    let is_wrong = |is_left: bool| match join {
        JoinType::Left => !is_left,
        JoinType::Right => is_left,
        _ => true,
    };
    names.all && is_wrong(is_left_of_all) || names.alone.contains(&left.name) && is_wrong(true)
}

fn refused(name: &str) -> Error {
    let mut error = Error::invalid(format!("\"{name}\" of an outer join USING is asked for beside that of one side"));
    error.hint = Some(format!("join ON a.{name} = b.{name} instead, and say which is meant"));
    error.subject = Some(name.to_owned());
    error
}
