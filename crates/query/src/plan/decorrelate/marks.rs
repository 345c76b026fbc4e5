//! Predicates on sub-queries as columns of the outer rows, with three values: true, false and NULL.
//!
//! `x IN (SELECT y …)` is true where a mark join finds `y = x`. Otherwise it is NULL where a `y` is NULL, or where `x`
//! is NULL and the sub-query has rows; otherwise false. Row counts decide this: one count for all rows, or one for each
//! value of the domain. `x < ANY (…)` compares with the greatest `y`, `x > ANY (…)` with the least, and `ALL` is the
//! negation of `ANY`.

use super::predicates::{Node, Place, as_exists, has_subquery, is_for_stock, outer, subquery_of};
use super::push::columns;
use super::{Asked, Decorrelator, Domain, Pushed, first_column, looks_at, same_values, simple};
use crate::functions::adjusted;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, ExprSchema, JoinType, Result as DFResult, ScalarValue, Spans};
use datafusion::functions_aggregate::count::count;
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, binary_expr, lit, when,
};
use std::sync::Arc;

/// The item of a sub-query that is compared with a value.
const ITEM: &str = "__item";
/// The number of rows of a sub-query, and of its items that are not NULL.
const ROWS: &str = "__rows";
const KNOWN: &str = "__known";
/// The least and the greatest item.
const LEAST: &str = "__least";
const GREATEST: &str = "__greatest";

impl Decorrelator {
    /// Replaces sub-queries in `expr` that the stock rules do not handle by columns.
    pub(super) fn answer(&mut self, expr: Expr, place: Place, asked: &mut Asked) -> DFResult<Expr> {
        if !has_subquery(&expr) {
            return Ok(expr);
        }
        if subquery_of(&expr).is_none() {
            let parts = place.of_parts(&expr);
            return Ok(expr.map_children(|part| Ok(Transformed::yes(self.answer(part, parts, asked)?)))?.data);
        }
        if is_for_stock(&expr, asked.rows.schema(), place)? {
            return Ok(expr);
        }
        if let Some(exists) = as_exists(&expr, asked.rows.schema(), place)? {
            return Ok(exists);
        }
        let (found, is_negated) = match expr {
            Expr::ScalarSubquery(of) => (self.scalar(&of.subquery, asked)?, false),
            Expr::Exists(Exists { subquery, negated }) => (self.exists(&subquery, place, asked)?, negated),
            Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                let two_values = place.null_is_false && !negated;
                (self.is_in(*expr, &subquery, two_values, place, asked)?, negated)
            }
            Expr::SetComparison(of) => self.compared(of, place, asked)?,
            other => (other, false),
        };
        Ok(if is_negated { Expr::Not(Box::new(found)) } else { found })
    }

    /// Plans EXISTS as a value or a column.
    fn exists(&mut self, subquery: &Subquery, place: Place, asked: &mut Asked) -> DFResult<Expr> {
        let looks = looks_at(&subquery.subquery, asked.rows.schema())?;
        let rows = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone());
        // One row is enough for EXISTS.
        let rows = if looks { rows } else { rows.limit(0, Some(1))? };
        let counted = rows.aggregate(Vec::<Expr>::new(), [count(lit(1_i64)).alias(ROWS)])?;
        let counted = counted.project([column(ROWS).gt(lit(0_i64)).alias("__exists")])?.build()?;
        if !looks || (place.node != Node::Other && simple::is_one_row(&counted)?) {
            return self.one_value(counted, place, asked);
        }
        let (domain, pushed) = self.pushed(&subquery.subquery, &asked.rows, false)?;
        self.marked(asked, &domain, &pushed, None)
    }

    /// Returns the value of a one-row query: a scalar sub-query where the stock rules accept it.
    fn one_value(&mut self, plan: LogicalPlan, place: Place, asked: &mut Asked) -> DFResult<Expr> {
        let subquery = Arc::new(plan);
        let outer_ref_columns = subquery.all_out_ref_exprs();
        let value = Expr::ScalarSubquery(Subquery { subquery, outer_ref_columns, spans: Spans::new() });
        if place.node == Node::Other { self.as_column(value, asked) } else { Ok(value) }
    }

    /// Adds the value as a column, computed once for each row.
    fn as_column(&mut self, value: Expr, asked: &mut Asked) -> DFResult<Expr> {
        if matches!(value, Expr::Column(_)) {
            return Ok(value);
        }
        let name = self.name("__value");
        let own = asked.answered.schema().columns().into_iter().map(Expr::Column);
        let all: Vec<Expr> = own.chain([value.alias(&name)]).collect();
        let projected = LogicalPlanBuilder::from(asked.answered.clone()).project(all)?.build()?;
        asked.answered = self.nested(projected)?;
        Ok(column(&name))
    }

    /// Returns the rows of a sub-query for each value of the domain; without outer references, its rows.
    fn rows_of(&mut self, subquery: &LogicalPlan, asked: &Asked) -> DFResult<(Domain, Pushed)> {
        if looks_at(subquery, asked.rows.schema())? {
            return self.pushed(subquery, &asked.rows, false);
        }
        let plan = self.walk(subquery.clone())?;
        let none = LogicalPlanBuilder::empty(false).build()?;
        Ok((Domain { plan: none, outer: Vec::new() }, Pushed { plan, value: Vec::new() }))
    }

    /// Adds a column that is true if a sub-query row has the domain value and satisfies `item = value`.
    fn marked(
        &mut self,
        asked: &mut Asked,
        domain: &Domain,
        found: &Pushed,
        hit: Option<(Column, Expr)>,
    ) -> DFResult<Expr> {
        let alias = self.name("__mark");
        let names: Vec<String> = (0..found.value.len()).map(|n| format!("__key{n}")).collect();
        let keys = columns(&found.value).zip(&names).map(|(key, name)| key.alias(name));
        let item = hit.iter().map(|(item, _)| Expr::Column(item.clone()).alias(ITEM));
        let all: Vec<Expr> = keys.chain(item).collect();
        let right = LogicalPlanBuilder::from(found.plan.clone()).project(all)?.alias(&alias)?.build()?;
        let keys = names.iter().map(|name| Column::new(Some(alias.as_str()), name));
        let mut on = same_values(domain, keys, asked.rows.schema())?;
        on.extend(hit.map(|(_, value)| value.eq(Expr::Column(Column::new(Some(alias.as_str()), ITEM)))));
        let rows = LogicalPlanBuilder::from(asked.answered.clone());
        asked.answered = rows.join_on(right, JoinType::LeftMark, on)?.build()?;
        Ok(Expr::Column(Column::new(Some(alias), "mark")))
    }

    /// Plans `value IN (subquery)`. With `two_values`, false instead of NULL.
    fn is_in(
        &mut self,
        value: Expr,
        subquery: &Subquery,
        two_values: bool,
        place: Place,
        asked: &mut Asked,
    ) -> DFResult<Expr> {
        let value = self.answer(value, Place::value(Node::Other), asked)?;
        let item = first_column(&subquery.subquery)?;
        let is_constant = !value.any_column_refs() && !value.contains_outer();
        if is_constant && !looks_at(&subquery.subquery, asked.rows.schema())? {
            return self.constant_is_in(value, item, subquery, place, asked);
        }
        let value = self.as_column(value, asked)?;
        let (domain, found) = self.rows_of(&subquery.subquery, asked)?;
        let hit = self.marked(asked, &domain, &found, Some((item.clone(), value.clone())))?;
        let value_is_null = value.nullable(asked.answered.schema().as_ref())?;
        if two_values || (!value_is_null && !found.plan.schema().field_from_column(&item)?.is_nullable()) {
            return Ok(hit);
        }
        self.copied(&found.plan)?;
        // The count is 2 where an item is NULL, else 1 where there are rows, else 0.
        let counted = self.counted(&found, [count(lit(1_i64)).alias(ROWS), count(Expr::Column(item)).alias(KNOWN)])?;
        let state = when(column(KNOWN).lt(column(ROWS)), lit(2_i64))
            .when(column(ROWS).gt(lit(0_i64)), lit(1_i64))
            .otherwise(lit(0_i64))?;
        let state = if found.value.is_empty() {
            let plan = LogicalPlanBuilder::from(counted).project([state.alias("__state")])?.build()?;
            self.one_value(plan, place, asked)?
        } else {
            self.joined(asked, &domain, Pushed { plan: counted, value: found.value }, state)?
        };
        let least = when(value.is_null(), lit(0_i64)).otherwise(lit(1_i64))?;
        Ok(when(hit, lit(true)).when(state.gt(least), unknown()).otherwise(lit(false))?)
    }

    /// Plans `value IN (subquery)` without outer references: one answer for all rows.
    fn constant_is_in(
        &mut self,
        value: Expr,
        item: Column,
        subquery: &Subquery,
        place: Place,
        asked: &mut Asked,
    ) -> DFResult<Expr> {
        let is_equal = Expr::Column(item).eq(value);
        let plan = answer_of_rows(subquery.subquery.as_ref().clone(), is_equal)?;
        self.one_value(plan, place, asked)
    }

    /// Aggregates the rows of a sub-query for each value of the domain.
    fn counted<const N: usize>(&mut self, found: &Pushed, aggregates: [Expr; N]) -> DFResult<LogicalPlan> {
        let keys: Vec<Expr> = columns(&found.value).collect();
        LogicalPlanBuilder::from(found.plan.clone()).aggregate(keys, aggregates)?.build()
    }

    /// Plans `value op ANY (subquery)`, and returns true if the answer is its negation.
    ///
    /// `x < ALL (…)` is `NOT (x >= ANY (…))`.
    fn compared(&mut self, of: SetComparison, place: Place, asked: &mut Asked) -> DFResult<(Expr, bool)> {
        let SetComparison { expr, subquery, op, quantifier } = of;
        let (op, is_all) = match (quantifier, op.negate()) {
            (SetQuantifier::All, Some(negated)) => (negated, true),
            _ => (op, false),
        };
        if op == Operator::Eq {
            return Ok((self.is_in(*expr, &subquery, false, place, asked)?, is_all));
        }
        let value = self.answer(*expr, Place::value(Node::Other), asked)?;
        let value = self.as_column(value, asked)?;
        let item = first_column(&subquery.subquery)?;
        let data_type = subquery.subquery.schema().field_from_column(&item)?.data_type().clone();
        let bounds = |name: &str| binary_expr(value.clone(), op, column(name));
        let hit = match op {
            Operator::Lt | Operator::LtEq if has_order(&data_type) => bounds(GREATEST),
            Operator::Gt | Operator::GtEq if has_order(&data_type) => bounds(LEAST),
            Operator::NotEq if has_order(&data_type) => bounds(LEAST).or(bounds(GREATEST)),
            _ => return Ok((self.compared_by_row(&value, op, &subquery, item, asked)?, is_all)),
        };
        let (domain, found) = self.rows_of(&subquery.subquery, asked)?;
        let item = Expr::Column(item);
        let (rows, known) = (count(lit(1_i64)).alias(ROWS), count(item.clone()).alias(KNOWN));
        let [least, greatest] = adjusted::bounds();
        let (least, greatest) =
            (least.call(vec![item.clone()]).alias(LEAST), greatest.call(vec![item]).alias(GREATEST));
        let counted = self.counted(&found, [rows, known, least, greatest])?;
        let names = [ROWS, KNOWN, LEAST, GREATEST];
        let at = self.joined_all(asked, &domain, Pushed { plan: counted, value: found.value }, &names.map(column))?;
        let own = |name: &str| names.iter().position(|n| *n == name).and_then(|n| at.get(n).cloned());
        let replaced = |e: Expr| match &e {
            Expr::Column(Column { relation: None, name, .. }) => Ok(match own(name) {
                Some(own) => Transformed::yes(own),
                None => Transformed::no(e),
            }),
            _ => Ok(Transformed::no(e)),
        };
        let is_unknown = column(KNOWN).lt(column(ROWS)).or(value.is_null().and(column(ROWS).gt(lit(0_i64))));
        let answer = when(hit, lit(true)).when(is_unknown, unknown()).otherwise(lit(false))?;
        Ok((answer.transform_up(replaced)?.data, is_all))
    }

    /// Compares each value with each item, for types without min and max.
    fn compared_by_row(
        &mut self,
        value: &Expr,
        op: Operator,
        subquery: &Subquery,
        item: Column,
        asked: &mut Asked,
    ) -> DFResult<Expr> {
        self.copied(&asked.answered)?;
        asked.rows = asked.answered.clone();
        let value = outer(value.clone(), asked.rows.schema())?;
        let plan = answer_of_rows(subquery.subquery.as_ref().clone(), binary_expr(value, op, Expr::Column(item)))?;
        self.scalar(&plan, asked)
    }
}

/// Returns one row with the answer over all rows of the plan.
///
/// True when `hit` is true for a row, else NULL when it is NULL for a row, else false.
fn answer_of_rows(plan: LogicalPlan, hit: Expr) -> DFResult<LogicalPlan> {
    let is_hit = when(hit.clone(), lit(1_i64)).end()?;
    let counts = [count(is_hit).alias("__hits"), count(hit).alias(KNOWN), count(lit(1_i64)).alias(ROWS)];
    let counted = LogicalPlanBuilder::from(plan).aggregate(Vec::<Expr>::new(), counts)?;
    let answer = when(column("__hits").gt(lit(0_i64)), lit(true))
        .when(column(KNOWN).lt(column(ROWS)), unknown())
        .otherwise(lit(false))?;
    counted.project([answer.alias("__answer")])?.build()
}

fn column(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

fn unknown() -> Expr {
    lit(ScalarValue::Boolean(None))
}

/// Returns true if min and max of a type agree with its comparison operators.
fn has_order(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => has_order(values),
        DataType::Interval(_) => false,
        other => other.is_numeric() || other.is_temporal() || other.is_string(),
    }
}
