//! Joins: ON, and USING and NATURAL with their merged columns.

use super::from::scope_of_both;
use super::names::folded;
use super::scope::{Env, Place, ScopeColumn, Source, Visibility};
use super::{Binder, Result};
use crate::{Error, plan};
use datafusion::common::{JoinConstraint, JoinType, NullEquality};
use datafusion::functions::expr_fn::coalesce;
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::utils::can_hash;
use datafusion::logical_expr::{Expr, ExprSchemable, Join as JoinNode, LogicalPlan, LogicalPlanBuilder, lit};
use std::sync::Arc;
use tidalite_sql::Span;
use tidalite_sql::ast::{Join, JoinCondition, JoinKind, JoinSide};
use tidalite_types::ErrorKind;

/// A column of USING: its values on both sides.
struct Key {
    left: usize,
    right: usize,
}

impl Binder<'_> {
    pub(super) fn cross_joined(&self, left: Source, right: Source) -> Result<Source> {
        let columns = left.columns.into_iter().chain(right.columns).collect();
        Ok(Source { plan: LogicalPlanBuilder::from(left.plan).cross_join(right.plan)?.build()?, columns })
    }

    pub(super) fn joined(&self, left: Source, right: Source, join: &Join, env: &Env) -> Result<Source> {
        let span = join.relation.span;
        let join_type = match &join.kind {
            JoinKind::Cross => return self.cross_joined(left, right),
            JoinKind::Inner => JoinType::Inner,
            JoinKind::Left => JoinType::Left,
            JoinKind::Right => JoinType::Right,
            JoinKind::Full => JoinType::Full,
            JoinKind::Semi(JoinSide::Left) => JoinType::LeftSemi,
            JoinKind::Semi(JoinSide::Right) => JoinType::RightSemi,
            JoinKind::Anti(JoinSide::Left) => JoinType::LeftAnti,
            JoinKind::Anti(JoinSide::Right) => JoinType::RightAnti,
            JoinKind::Asof(by_time) => {
                return self.joined_by_time(left, right, by_time, &join.condition, env, span);
            }
            JoinKind::Window(_) => {
                let error = Error::invalid("WINDOW JOIN is a clause of its own SELECT, without PIVOT and parentheses");
                let error = error.with_hint("put it in a sub-query: FROM (SELECT … WINDOW JOIN …)");
                return Err(error.at(span.start as usize).into());
            }
            // Bound together with the relation that they follow.
            JoinKind::Horizon(_) => return self.horizon_joins(left, std::slice::from_ref(join), env),
        };
        let condition = match &join.condition {
            JoinCondition::None => match &join.kind {
                JoinKind::Semi(_) => return Err(without_condition("SEMI", span).into()),
                JoinKind::Anti(_) => return Err(without_condition("ANTI", span).into()),
                _ => None,
            },
            JoinCondition::On(condition) => {
                let scope = scope_of_both(&left, &right, env)?;
                Some(self.condition(condition, Place::new(&scope, env))?)
            }
            JoinCondition::Natural => {
                let keys = common(&left, &right, span)?;
                if keys.is_empty() && join_type == JoinType::Inner {
                    return self.cross_joined(left, right);
                }
                return joined_using(left, right, join_type, &keys);
            }
            JoinCondition::Using(names) => {
                let names = names.iter().map(|name| (folded(name), name.span));
                let keys = names.map(|(name, span)| key(&name, span, &left, &right)).collect::<Result<Vec<_>>>()?;
                return joined_using(left, right, join_type, &keys);
            }
        };
        let columns = kept(join_type, left.columns, right.columns);
        let plan = LogicalPlanBuilder::from(left.plan).join_on(right.plan, join_type, condition)?.build()?;
        Ok(Source { plan, columns })
    }
}

fn without_condition(kind: &str, span: Span) -> Error {
    let error = Error::invalid(format!("{kind} JOIN is not supported without a condition"));
    error.with_hint(format!("write {kind} JOIN … ON, or WHERE EXISTS (…)")).at(span.start as usize)
}

/// Returns the columns of a join.
fn kept(join_type: JoinType, left: Vec<ScopeColumn>, right: Vec<ScopeColumn>) -> Vec<ScopeColumn> {
    match join_type {
        JoinType::LeftSemi | JoinType::LeftAnti => left,
        JoinType::RightSemi | JoinType::RightAnti => right,
        _ => left.into_iter().chain(right).collect(),
    }
}

/// Returns the columns that both sides have, in the order of the left side.
fn common(left: &Source, right: &Source, span: Span) -> Result<Vec<Key>> {
    let mut names: Vec<&str> = Vec::new();
    for column in left.columns.iter().filter(|column| column.visibility.is_bare()) {
        let is_same = |other: &ScopeColumn| other.visibility.is_bare() && other.name == column.name;
        if right.columns.iter().any(is_same) && !names.contains(&column.name.as_str()) {
            names.push(&column.name);
        }
    }
    names.into_iter().map(|name| key(name, span, left, right)).collect()
}

fn key(name: &str, span: Span, left: &Source, right: &Source) -> Result<Key> {
    let only = |source: &Source, side: &str| -> Result<usize> {
        let is_named = |column: &ScopeColumn| column.visibility.is_bare() && column.name == name;
        let mut found = source.columns.iter().enumerate().filter(|(_, column)| is_named(column)).map(|(at, _)| at);
        let error = match (found.next(), found.next()) {
            (Some(at), None) => return Ok(at),
            (None, _) => {
                let message = format!("column \"{name}\" of USING does not exist on the {side} side");
                Error::new(ErrorKind::NotFound, message)
            }
            _ => Error::invalid(format!("column \"{name}\" of the join is in more than one table of the {side} side")),
        };
        Err(error.about(name).at(span.start as usize).into())
    };
    Ok(Key { left: only(left, "left")?, right: only(right, "right")? })
}

/// Joins by columns; a pair of columns is one column of the result.
fn joined_using(left: Source, right: Source, join_type: JoinType, keys: &[Key]) -> Result<Source> {
    let (left_schema, right_schema) = (left.plan.schema().clone(), right.plan.schema().clone());
    let (mut on, mut compared) = (Vec::new(), Vec::new());
    for key in keys {
        let (l, r) = (left.columns[key.left].value.clone(), right.columns[key.right].value.clone());
        let (l_type, r_type) = (l.get_type(&left_schema)?, r.get_type(&right_schema)?);
        if comparison_coercion(&l_type, &r_type).is_none() {
            let message = format!("\"{}\" and \"{}\" cannot be compared", l.schema_name(), r.schema_name());
            return Err(Error::invalid(message).into());
        }
        let (l, r) = match plan::compared_type(&l_type, &r_type) {
            Some(both) => (l.cast_to(&both, &left_schema)?, r.cast_to(&both, &right_schema)?),
            None => (l, r),
        };
        if can_hash(&l_type) { on.push((l, r)) } else { compared.push(l.eq(r)) }
    }
    let condition = compared.into_iter().reduce(Expr::and);
    // Without keys each row matches each row.
    let condition = condition.or_else(|| on.is_empty().then(|| lit(true)));
    let (constraint, nulls) = (JoinConstraint::On, NullEquality::NullEqualsNothing);
    let (left_plan, right_plan) = (Arc::new(left.plan.clone()), Arc::new(right.plan.clone()));
    let join = JoinNode::try_new(left_plan, right_plan, on, condition, join_type, constraint, nulls, false)?;
    let columns = merged(&left, &right, keys, &join)?;
    Ok(Source { plan: LogicalPlan::Join(join), columns })
}

fn merged(left: &Source, right: &Source, keys: &[Key], join: &JoinNode) -> Result<Vec<ScopeColumn>> {
    let mut of_left = Vec::new();
    for (at, column) in left.columns.iter().enumerate() {
        match (keys.iter().find(|key| key.left == at), join.join_type) {
            (Some(key), _) if is_merged(column, &right.columns[key.right], join)? => {
                let value = merged_value(column, &right.columns[key.right], join)?;
                of_left.push(ScopeColumn { value, visibility: Visibility::Merged, ..column.clone() });
                if column.visibility.is_of_table() {
                    of_left.push(ScopeColumn { visibility: Visibility::Side, ..column.clone() });
                }
            }
            _ => of_left.push(column.clone()),
        }
    }
    let is_key = |at: usize| keys.iter().any(|key| key.right == at);
    let of_right = right.columns.iter().enumerate().filter_map(|(at, column)| match is_key(at) {
        false => Some(column.clone()),
        true if join.join_type == JoinType::RightSemi || join.join_type == JoinType::RightAnti => Some(column.clone()),
        true if column.visibility.is_of_table() => Some(ScopeColumn { visibility: Visibility::Side, ..column.clone() }),
        true => None,
    });
    Ok(kept(join.join_type, of_left, of_right.collect()))
}

/// Returns true if the merged column of a key is not the column of the left side.
fn is_merged(left: &ScopeColumn, right: &ScopeColumn, join: &JoinNode) -> Result<bool> {
    Ok(match join.join_type {
        JoinType::Right | JoinType::Full => true,
        JoinType::Inner | JoinType::Left => {
            plan::common_type(&left.value.get_type(&join.schema)?, &right.value.get_type(&join.schema)?).is_some()
        }
        _ => false,
    })
}

/// Returns the value of a merged column: the right value for RIGHT joins, the first that is not NULL for FULL joins, else
/// the left value. A DECIMAL and a DOUBLE are a DOUBLE, a DATE and a TIMESTAMP a TIMESTAMP.
fn merged_value(left: &ScopeColumn, right: &ScopeColumn, join: &JoinNode) -> Result<Expr> {
    let (l, r) = (left.value.clone(), right.value.clone());
    let (own, other) = (l.get_type(&join.schema)?, r.get_type(&join.schema)?);
    let common = plan::common_type(&own, &other);
    let both = match (join.join_type, common) {
        (_, Some(both)) => both,
        (JoinType::Full, None) if own != other => comparison_coercion(&own, &other).unwrap_or(own),
        (JoinType::Right, None) => other,
        _ => own,
    };
    let [l, r] = [l, r].map(|side| side.cast_to(&both, &join.schema));
    Ok(match join.join_type {
        JoinType::Full => coalesce(vec![l?, r?]),
        JoinType::Right => r?,
        _ => l?,
    })
}
