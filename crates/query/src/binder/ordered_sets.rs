//! Aggregates WITHIN GROUP that stand for other expressions: `percentile_disc`, and the ranks that a row would have in a
//! group, `rank(1) WITHIN GROUP (ORDER BY x)`.

use super::order::sort_key;
use super::scope::Place;
use super::{Binder, Result};
use crate::Error;
use crate::functions::percentiles::POSITION;
use crate::plan::{percentiles, text_as};
use datafusion::arrow::datatypes::DataType;
use datafusion::functions_nested::expr_fn::make_array;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, SortExpr, cast, lit, when};
use tidalite_sql::Span;
use tidalite_sql::ast::{BinaryOperator, FunctionArg, FunctionCall, OrderItem};
use tidalite_types::SqlState;

/// Ranks of a row that is not there.
pub(super) const HYPOTHETICAL_SETS: &[&str] = &["rank", "dense_rank", "percent_rank", "cume_dist"];

/// Conditions on a row of a group, compared with the row whose rank is wanted.
struct Compared {
    is_before: Expr,
    is_equal: Expr,
}

impl Binder<'_> {
    /// Binds `percentile_disc(share)`: the first value in order that at least `share` of all values do not exceed.
    ///
    /// Several shares, as an array, give an array.
    pub(super) fn percentile(&self, call: &FunctionCall, place: Place, span: Span) -> Result<Expr> {
        let ([FunctionArg::Expr(share)], [key]) = (call.args.as_slice(), call.within_group.as_slice()) else {
            let error = Error::invalid("percentile_disc takes one share and one key in WITHIN GROUP");
            return Err(error.at(span.start as usize).into());
        };
        let inner = place.within_call();
        let (value, share) = (self.expr(&key.expr, inner)?, self.expr(share, inner)?);
        let filter = self.filter_of(call, place)?;
        let count = self.aggregate_of("count", vec![value.clone()], filter.clone(), Vec::new())?;
        let is_known = and(value.clone().is_not_null(), filter);
        let order_by = vec![sort_key(key, value.clone())];
        let values = self.aggregate_of("array_agg", vec![value], Some(is_known), order_by)?;
        let one = |share: Expr| self.value_at(&values, share, count.clone());
        match percentiles(&share, "percentile_disc")? {
            Some(shares) => {
                let values = make_array(shares.into_iter().map(one).collect::<Result<_>>()?);
                Ok(when(count.clone().gt(lit(0_i64)), values).end()?)
            }
            None => one(share),
        }
    }

    fn value_at(&self, values: &Expr, share: Expr, count: Expr) -> Result<Expr> {
        let position = self.scalar_call(POSITION, vec![share, count])?;
        self.scalar_call("array_element", vec![values.clone(), position])
    }

    fn filter_of(&self, call: &FunctionCall, place: Place) -> Result<Option<Expr>> {
        call.filter.as_ref().map(|filter| self.expr(filter, place.within_call())).transpose()
    }

    /// Binds `rank(values) WITHIN GROUP (ORDER BY keys)` and the other ranks of a row that is not there.
    pub(super) fn rank_within(&self, name: &str, call: &FunctionCall, place: Place, span: Span) -> Result<Expr> {
        let (args, keys) = (call.args.as_slice(), call.within_group.as_slice());
        if args.len() != keys.len() {
            let text = format!("{name} takes as many values as WITHIN GROUP has keys");
            return Err(Error::invalid(text).about(name).with_code(SqlState::UNDEFINED_FUNCTION).into());
        }
        let inner = place.within_call();
        let (mut is_before, mut is_equal): (Option<Expr>, Option<Expr>) = (None, None);
        let mut first_key = None;
        for (arg, item) in args.iter().zip(keys) {
            let FunctionArg::Expr(value) = arg else {
                let error = Error::invalid(format!("{name} takes values as arguments")).about(name);
                return Err(error.at(span.start as usize).into());
            };
            let key = self.expr(&item.expr, inner)?;
            let compared = self.compared_with(key.clone(), self.expr(value, inner)?, item, place, span)?;
            let own = match is_equal.clone() {
                Some(equal) => equal.and(compared.is_before),
                None => compared.is_before,
            };
            is_before = Some(is_before.map_or(own.clone(), |before| before.or(own)));
            is_equal = Some(is_equal.map_or(compared.is_equal.clone(), |equal| equal.and(compared.is_equal)));
            first_key.get_or_insert(key);
        }
        let (Some(is_before), Some(is_equal), Some(key)) = (is_before, is_equal, first_key) else {
            let error = Error::invalid(format!("{name} takes a key in WITHIN GROUP")).about(name);
            return Err(error.at(span.start as usize).into());
        };
        let filter = self.filter_of(call, place)?;
        let count = |condition: Option<Expr>| self.aggregate_of("count", vec![lit(1_i64)], condition, Vec::new());
        let rows = |condition: Expr| count(Some(and(condition, filter.clone())));
        let double = |expr: Expr| cast(expr, DataType::Float64);
        Ok(match name {
            "rank" => rows(is_before)? + lit(1_i64),
            "dense_rank" if keys.len() > 1 => {
                let error = Error::invalid("dense_rank of several values is not supported").about(name);
                return Err(error.at(span.start as usize).into());
            }
            "dense_rank" => {
                let before = Some(and(is_before.clone(), filter.clone()));
                let distinct = self.distinct_count(key.clone(), before)?;
                let with_null = rows(is_before.and(key.is_null()))?;
                let one_of_null = when(with_null.gt(lit(0_i64)), lit(1_i64)).otherwise(lit(0_i64))?;
                distinct + one_of_null + lit(1_i64)
            }
            "percent_rank" => {
                let all = count(filter.clone())?;
                let share = double(rows(is_before)?) / double(all.clone());
                when(all.eq(lit(0_i64)), lit(0.0)).otherwise(share)?
            }
            _ => (double(rows(is_before.or(is_equal))?) + lit(1.0)) / (double(count(filter.clone())?) + lit(1.0)),
        })
    }

    /// Compares a key with a value in the order of a key of WITHIN GROUP.
    fn compared_with(&self, key: Expr, value: Expr, item: &OrderItem, place: Place, span: Span) -> Result<Compared> {
        let schema = &place.scope.schema;
        let SortExpr { asc, nulls_first, .. } = sort_key(item, key.clone());
        let op = if asc { BinaryOperator::Less } else { BinaryOperator::Greater };
        let is_less = self.operator(op, key.clone(), value.clone(), schema, span)?.is_true();
        let (first, other) = if nulls_first { (&key, &value) } else { (&value, &key) };
        let is_null_before = first.clone().is_null().and(other.clone().is_not_null());
        let value = text_as(value, &key, schema)?;
        let same = BinaryExpr::new(Box::new(key), Operator::IsNotDistinctFrom, Box::new(value));
        Ok(Compared { is_before: is_less.or(is_null_before), is_equal: Expr::BinaryExpr(same) })
    }
}

fn and(condition: Expr, filter: Option<Expr>) -> Expr {
    match filter {
        Some(filter) => condition.and(filter),
        None => condition,
    }
}
