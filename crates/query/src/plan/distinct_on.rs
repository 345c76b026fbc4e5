//! DISTINCT ON by columns alone: what is computed for it becomes columns of a projection below.
//!
//! What it is of and what its order begins with have to stay the same expressions, whatever the optimizer makes of them;
//! nothing may stand twice in either, and −0 is 0 and every NaN one value.

use super::array_keys::nulls_apart;
use super::settled::{is_float_key, plain};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Distinct, DistinctOn, Expr, LogicalPlan, LogicalPlanBuilder};
use std::sync::Arc;

pub(super) fn with_columns(mut on: DistinctOn) -> Result<LogicalPlan> {
    let mut below: Vec<Expr> = on.input.schema().columns().into_iter().map(Expr::Column).collect();
    let own = below.len();
    let input = on.input.schema().clone();
    let mut computed: Vec<Expr> = Vec::new();
    let mut column_of = |key: Expr| -> Result<Expr> {
        let key = key.unalias_nested().data;
        let key = if is_float_key(&key, &input) { plain(key)? } else { key };
        if matches!(key, Expr::Column(_)) {
            return Ok(key);
        }
        let at = computed.iter().position(|known| *known == key).unwrap_or(computed.len());
        // Of no column below, nor of a plan that was here before.
        let name = format!("__key{}", own + at);
        if at == computed.len() {
            below.push(key.clone().alias(&name));
            computed.push(key);
        }
        Ok(Expr::Column(Column::new_unqualified(name)))
    };
    // The order begins with the keys, which have to stay the same.
    let mut order = on.sort_expr.unwrap_or_default();
    let rest = order.split_off(order.len().min(on.on_expr.len()));
    order.extend(nulls_apart(rest, &input));
    let keys = on.on_expr.into_iter().map(&mut column_of).collect::<Result<Vec<_>>>()?;
    for key in &mut order {
        key.expr = column_of(key.expr.clone())?;
    }
    on.on_expr = each_once(keys, |key| key);
    on.sort_expr = (!order.is_empty()).then(|| each_once(order, |key| &key.expr));
    if below.len() > own {
        let projected = LogicalPlanBuilder::from(Arc::unwrap_or_clone(on.input)).project(below)?;
        on.input = Arc::new(projected.build()?);
    }
    Ok(LogicalPlan::Distinct(Distinct::On(on)))
}

pub(super) fn each_once<T>(items: Vec<T>, expr: impl Fn(&T) -> &Expr) -> Vec<T> {
    let mut out: Vec<T> = Vec::with_capacity(items.len());
    for item in items {
        if !out.iter().any(|known| expr(known) == expr(&item)) {
            out.push(item);
        }
    }
    out
}
