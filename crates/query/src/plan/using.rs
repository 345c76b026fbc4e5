//! Joins USING and NATURAL joins with a column `c` of their own, which is that of the rows that are kept: of LEFT joins the
//! left one's, of RIGHT joins the right one's, of FULL joins whichever is there. It stands where the left side has it and
//! goes by that one's name; the right side's is gone. Columns of sides that are asked for as well have names of their own
//! ([`crate::dialect`]).

use super::relations::left_of;
use super::time_join::check_comparable;
use crate::dialect::{MergedJoin, merged_join};
use crate::names::{name_of_side, without_side};
use crate::{Error, Result};
use datafusion::common::{Column, JoinConstraint, JoinType, NullEquality};
use datafusion::functions::expr_fn::coalesce;
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::utils::can_hash;
use datafusion::logical_expr::{Expr, ExprSchemable, Join, LogicalPlan, Projection, lit};
use datafusion::sql::sqlparser::ast::{JoinOperator, TableWithJoins};
use std::sync::Arc;
use tidalite_types::ErrorKind;

pub(super) fn plan(mut joins: TableWithJoins, context: &mut dyn RelationPlannerContext) -> Result<LogicalPlan> {
    let last = joins.joins.pop();
    let Some((join, written)) = last.and_then(|join| merged_join(&join).map(|written| (join, written))) else {
        return Err(Error::internal("a join USING of another kind"));
    };
    let MergedJoin { columns, of_sides } = written;
    let join_type = match join.join_operator {
        JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => JoinType::Left,
        JoinOperator::Right(_) | JoinOperator::RightOuter(_) => JoinType::Right,
        JoinOperator::FullOuter(_) => JoinType::Full,
        _ => JoinType::Inner,
    };
    let left = left_of(joins, context)?;
    let right = context.plan(join.relation)?;
    let names = columns.unwrap_or_else(|| in_both(&left, &right));
    let keys = names.iter().map(|name| pair(name, &left, &right)).collect::<Result<Vec<_>>>()?;
    let width = left.schema().fields().len();
    let (on, compared): (Vec<_>, Vec<_>) = keys
        .iter()
        .map(|(l, r)| (Expr::Column(l.clone()), Expr::Column(r.clone())))
        .partition(|(l, _)| l.get_type(left.schema()).is_ok_and(|data_type| can_hash(&data_type)));
    let condition = compared.into_iter().map(|(l, r)| l.eq(r)).reduce(Expr::and);
    // All rows with all, where nothing is in both.
    let condition = condition.or_else(|| (on.is_empty() && join_type != JoinType::Inner).then(|| lit(true)));
    let (constraint, nulls) = (JoinConstraint::On, NullEquality::NullEqualsNothing);
    let join = Join::try_new(Arc::new(left), Arc::new(right), on, condition, join_type, constraint, nulls, false)?;
    let schema = join.schema.clone();
    let mut columns = Vec::with_capacity(schema.fields().len());
    for (at, column) in schema.columns().into_iter().enumerate() {
        let of_left = keys.iter().find(|(l, _)| at < width && *l == column);
        match of_left {
            Some((l, r)) => columns.push(kept(join_type, l, r, &join)?),
            None if keys.iter().any(|(_, r)| at >= width && *r == column) => {}
            None => columns.push(Expr::Column(column)),
        }
    }
    for (side, name) in of_sides {
        let is_of = |column: &Column| column.relation.as_ref().is_some_and(|relation| relation.table() == side);
        let own = name_of_side(&name, &side);
        let found = schema.columns().into_iter().find(|column| is_of(column) && column.name == name);
        if let Some(column) = found.filter(|c| !schema.has_column(&Column::new(c.relation.clone(), &own))) {
            let relation = column.relation.clone();
            columns.push(Expr::Column(column).alias_qualified(relation, own));
        }
    }
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(LogicalPlan::Join(join)))?))
}

/// The names of columns that both have, in the order of the left side.
fn in_both(left: &LogicalPlan, right: &LogicalPlan) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for field in left.schema().fields() {
        let name = field.name();
        let is_common = !right.schema().columns_with_unqualified_name(name).is_empty();
        if is_common && without_side(name) == name && !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// The column of each side.
fn pair(name: &str, left: &LogicalPlan, right: &LogicalPlan) -> Result<(Column, Column)> {
    let only = |plan: &LogicalPlan, side: &str| {
        let found = plan.schema().columns_with_unqualified_name(name);
        match <[Column; 1]>::try_from(found) {
            Ok([column]) => Ok(column),
            Err(found) if found.is_empty() => {
                let message = format!("column \"{name}\" of USING does not exist on the {side} side");
                Err(Error::new(ErrorKind::NotFound, message).about(name))
            }
            Err(_) => {
                let message = format!("column \"{name}\" of the join is in more than one table of the {side} side");
                Err(Error::invalid(message).about(name))
            }
        }
    };
    let (l, r) = (only(left, "left")?, only(right, "right")?);
    check_comparable((&l, left), (&r, right))?;
    Ok((l, r))
}

/// The column of the join.
fn kept(join_type: JoinType, left: &Column, right: &Column, join: &Join) -> Result<Expr> {
    let (l, r) = (Expr::Column(left.clone()), Expr::Column(right.clone()));
    let named = |value: Expr| value.alias_qualified(left.relation.clone(), &left.name);
    Ok(match join_type {
        JoinType::Right => named(r),
        JoinType::Full => {
            let (own, other) = (l.get_type(&join.schema)?, r.get_type(&join.schema)?);
            if own == other {
                return Ok(named(coalesce(vec![l, r])));
            }
            let both = comparison_coercion(&own, &other).unwrap_or(own);
            let (l, r) = (l.cast_to(&both, &join.schema)?, r.cast_to(&both, &join.schema)?);
            named(coalesce(vec![l, r]))
        }
        _ => l,
    })
}
