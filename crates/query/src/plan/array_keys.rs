//! Arrays and rows of floating point as keys: one zero and one NaN within them, as for numbers.
//!
//! The stock operators compare, hash and order arrays and rows by the bits of their elements. Keys of groups, of
//! DISTINCT, of joins and of set operations become calls of [`floats::KEY`], under the names that they had. `<` and
//! similar operators become calls of [`nested::COMPARE`].

use super::settled::call;
use crate::Error;
use crate::functions::{floats, nested, scalar_named};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Between, Case, InSubquery, ScalarFunction, Sort};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, Expr, ExprSchemable, GroupingSet, Join, LogicalPlan, LogicalPlanBuilder, Operator,
    RecursiveQuery, Subquery, lit,
};
use std::sync::Arc;

/// Returns true for an array or a row with floating point that is not a key yet.
pub(super) fn is_open(expr: &Expr, schema: &DFSchema) -> bool {
    let is_key = matches!(expr, Expr::ScalarFunction(function) if function.name() == floats::KEY);
    let is_nested = |t: &DataType| matches!(t, DataType::List(_) | DataType::Struct(_));
    !is_key && expr.get_type(schema).is_ok_and(|t| is_nested(&t) && floats::is_float(&t))
}

/// Returns the expression as a key if it is an array or a row with floating point.
pub(super) fn key(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    if is_open(&expr, schema) { call(floats::KEY, expr) } else { Ok(expr) }
}

/// Rewrites the keys of a node. Expressions in it were rewritten before.
pub(super) fn keys_of_node(node: LogicalPlan) -> Result<LogicalPlan> {
    match node {
        LogicalPlan::Aggregate(aggregate) => groups(aggregate),
        LogicalPlan::Distinct(Distinct::All(input)) => {
            Ok(LogicalPlan::Distinct(Distinct::All(columns_as_keys(input)?)))
        }
        LogicalPlan::RecursiveQuery(of) if of.is_distinct => {
            let (static_term, recursive_term) = (columns_as_keys(of.static_term)?, columns_as_keys(of.recursive_term)?);
            Ok(LogicalPlan::RecursiveQuery(RecursiveQuery { static_term, recursive_term, ..of }))
        }
        LogicalPlan::Join(join) => joined(join),
        other => Ok(other),
    }
}

/// Returns a plan whose columns are keys, under their names.
fn columns_as_keys(plan: Arc<LogicalPlan>) -> Result<Arc<LogicalPlan>> {
    let columns: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
    if !columns.iter().any(|column| is_open(column, plan.schema())) {
        return Ok(plan);
    }
    let keys = columns.into_iter().map(|column| named_key(column, plan.schema())).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(LogicalPlanBuilder::from(plan.as_ref().clone()).project(keys)?.build()?))
}

/// As [`key`], under the name that it had.
fn named_key(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    if !is_open(&expr, schema) {
        return Ok(expr);
    }
    let (relation, name) = expr.qualified_name();
    Ok(key(expr.unalias(), schema)?.alias_qualified(relation, name))
}

fn groups(aggregate: Aggregate) -> Result<LogicalPlan> {
    let input_schema = aggregate.input.schema();
    let are_named = |keys: Vec<Expr>| keys.into_iter().map(|k| named_key(k, input_schema)).collect::<Result<Vec<_>>>();
    let are_all_named = |sets: Vec<Vec<Expr>>| sets.into_iter().map(|keys| are_named(keys)).collect::<Result<Vec<_>>>();
    let of_group = |group: Expr| {
        Ok(match group {
            Expr::GroupingSet(GroupingSet::Rollup(keys)) => Expr::GroupingSet(GroupingSet::Rollup(are_named(keys)?)),
            Expr::GroupingSet(GroupingSet::Cube(keys)) => Expr::GroupingSet(GroupingSet::Cube(are_named(keys)?)),
            Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => {
                Expr::GroupingSet(GroupingSet::GroupingSets(are_all_named(sets)?))
            }
            key => named_key(key, input_schema)?,
        })
    };
    let keys = aggregate.group_expr.iter().cloned().map(of_group).collect::<Result<Vec<_>>>()?;
    if keys == aggregate.group_expr {
        return Ok(LogicalPlan::Aggregate(aggregate));
    }
    let Aggregate { input, aggr_expr, schema, .. } = aggregate;
    Ok(LogicalPlan::Aggregate(Aggregate::try_new_with_schema(input, keys, aggr_expr, schema)?))
}

fn joined(mut join: Join) -> Result<LogicalPlan> {
    let (left, right) = (join.left.schema().clone(), join.right.schema().clone());
    let pairs = std::mem::take(&mut join.on).into_iter();
    join.on = pairs.map(|(l, r)| Ok((key(l, &left)?, key(r, &right)?))).collect::<Result<_>>()?;
    Ok(LogicalPlan::Join(join))
}

/// `array IN (SELECT …)`, of which the stock rules make a join.
pub(super) fn of_subquery(of: InSubquery, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let InSubquery { expr, subquery, negated } = of;
    let columns = subquery.subquery.schema().columns();
    let [column] = &columns[..] else {
        return Ok(Transformed::no(Expr::InSubquery(InSubquery { expr, subquery, negated })));
    };
    if !is_open(&expr, schema) {
        return Ok(Transformed::no(Expr::InSubquery(InSubquery { expr, subquery, negated })));
    }
    let item = named_key(Expr::Column(column.clone()), subquery.subquery.schema())?;
    let plan = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone()).project([item])?.build()?;
    let subquery = Subquery { subquery: Arc::new(plan), ..subquery };
    let expr = Box::new(key(*expr, schema)?);
    Ok(Transformed::yes(Expr::InSubquery(InSubquery { expr, subquery, negated })))
}

/// `array < array`, and BETWEEN, by the order of arrays and rows; `None` for other expressions.
pub(super) fn ordered(expr: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let are_nested = |sides: &[&Expr]| {
        sides.iter().all(|side| side.get_type(schema).is_ok_and(|data_type| nested::is_nested(&data_type)))
    };
    let compared = |left: &Expr, op: Operator, right: &Expr| -> Result<Expr> {
        let function = scalar_named(nested::COMPARE).ok_or_else(|| Error::internal("function __compare is missing"))?;
        let call = ScalarFunction::new_udf(function, vec![left.clone(), right.clone()]);
        let order = Box::new(Expr::ScalarFunction(call));
        Ok(Expr::BinaryExpr(BinaryExpr::new(order, op, Box::new(lit(0_i32)))))
    };
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: op @ (Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq),
            right,
        }) if are_nested(&[left, right]) => Some(compared(left, *op, right)?),
        Expr::Between(Between { expr, negated, low, high }) if are_nested(&[expr, low, high]) => {
            let (low, high) = (compared(expr, Operator::GtEq, low)?, compared(expr, Operator::LtEq, high)?);
            let within = low.and(high);
            Some(if *negated { Expr::Not(Box::new(within)) } else { within })
        }
        _ => None,
    })
}

/// Adds an IS NULL key before each array or row key whose NULLs sort at the other end than NULL elements: the stock
/// sort puts both at one end.
pub(super) fn nulls_apart(keys: Vec<Sort>, schema: &DFSchema) -> Vec<Sort> {
    let mut apart = Vec::with_capacity(keys.len());
    for key in keys {
        let is_nested = key.expr.get_type(schema).is_ok_and(|data_type| nested::is_nested(&data_type));
        if is_nested && key.nulls_first == key.asc {
            apart.push(Sort::new(key.expr.clone().is_null(), !key.nulls_first, false));
            apart.push(Sort { nulls_first: !key.asc, ..key });
        } else {
            apart.push(key);
        }
    }
    apart
}

/// Returns true for `CASE array WHEN …` with floating point.
pub(super) fn has_open_base(case: &Case, schema: &DFSchema) -> bool {
    case.expr.as_ref().is_some_and(|base| is_open(base, schema) && !base.is_volatile())
}

/// `CASE array WHEN …` as `CASE WHEN array = …`: the stock operator compares numbers and texts only.
pub(super) fn searched_case(case: Case, schema: &DFSchema) -> Result<Expr> {
    let Case { expr, when_then_expr, else_expr } = case;
    let Some(base) = expr else { return Ok(Expr::Case(Case { expr, when_then_expr, else_expr })) };
    let base = key(*base, schema)?;
    let searched = |(when, then): (Box<Expr>, Box<Expr>)| Ok((Box::new(base.clone().eq(key(*when, schema)?)), then));
    let when_then_expr = when_then_expr.into_iter().map(searched).collect::<Result<_>>()?;
    Ok(Expr::Case(Case { expr: None, when_then_expr, else_expr }))
}

/// `nullif(array, other)` as a CASE; `None` for another call.
pub(super) fn nullif(call: &ScalarFunction, schema: &DFSchema) -> Result<Option<Expr>> {
    let ("nullif", [value, other]) = (call.name(), &call.args[..]) else { return Ok(None) };
    if !is_open(value, schema) || value.is_volatile() {
        return Ok(None);
    }
    let is_equal = key(value.clone(), schema)?.eq(key(other.clone(), schema)?);
    let null = Expr::Literal(ScalarValue::try_from(value.get_type(schema)?)?, None);
    let pairs = vec![(Box::new(is_equal), Box::new(null))];
    Ok(Some(Expr::Case(Case { expr: None, when_then_expr: pairs, else_expr: Some(Box::new(value.clone())) })))
}
