//! `x NOT IN (1, 2) OR x NOT IN (3)` is true of every x but NULL, of which it is not known; `x IN (1) AND x IN (2)` is
//! false of every other. The stock optimizer joins such lists and, when nothing is left in them, forgets NULL; so they
//! are joined here before. And its `x IN (0.0, …)` goes by bits, so that −0 was none of them.

use super::settled::{any_of, is_zero};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Cast, InList};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};
use std::collections::HashSet;

/// What an operand says of a value: that it is one of these, or none.
struct List<'a> {
    of: &'a Expr,
    items: Vec<&'a Expr>,
    is_none: bool,
}

/// So many items are compared one by one.
const FEW: usize = 3;

/// A list of floating-point numbers that has each zero with the other sign, too.
pub(super) fn with_both_zeros(mut list: InList) -> Transformed<Expr> {
    let values: Vec<Option<ScalarValue>> = list.list.iter().map(constant).collect();
    let zeros = values.iter().flatten().filter(|value| is_zero(value));
    let has_unknown = values.iter().any(Option::is_none);
    let Some(zero) = zeros.clone().next().cloned().filter(|_| !has_unknown) else {
        return match has_unknown && !list.expr.is_volatile() {
            true => Transformed::yes(any_of(list)),
            false => Transformed::no(Expr::InList(list)),
        };
    };
    if list.list.len() <= FEW && !list.expr.is_volatile() {
        return Transformed::yes(any_of(list));
    }
    let Ok(other) = zero.arithmetic_negate() else { return Transformed::no(Expr::InList(list)) };
    if zeros.into_iter().any(|known| *known == other) {
        return Transformed::no(Expr::InList(list));
    }
    list.list.push(Expr::Literal(other, None));
    Transformed::yes(Expr::InList(list))
}

fn constant(item: &Expr) -> Option<ScalarValue> {
    match item {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Cast(Cast { expr, field }) => constant(expr)?.cast_to(field.data_type()).ok(),
        _ => None,
    }
}

/// An AND or OR with what its lists of one value come to, where that is nothing.
pub(super) fn sound(whole: BinaryExpr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let op = whole.op;
    let whole = Expr::BinaryExpr(whole);
    Ok(match joined(&whole, op, schema) {
        Some(sound) => Transformed::yes(sound),
        None => Transformed::no(whole),
    })
}

fn joined(whole: &Expr, op: Operator, schema: &DFSchema) -> Option<Expr> {
    let mut operands = Vec::new();
    flattened(whole, op, false, &mut operands);
    let lists: Vec<(usize, List)> =
        operands.iter().enumerate().filter_map(|(at, (expr, no))| Some((at, listed(expr, *no)?))).collect();
    let (of, places) = lists.iter().find_map(|(_, first)| {
        let own: Vec<_> = lists.iter().filter(|(_, list)| list.of == first.of).collect();
        let is_nothing = own.len() > 1 && leaves_nothing(op, &own) && first.of.nullable(schema).unwrap_or(true);
        is_nothing.then(|| (first.of.clone(), own.iter().map(|(at, _)| *at).collect::<Vec<_>>()))
    })?;
    let unknown = Expr::Literal(ScalarValue::Boolean(None), None);
    let joined = match op {
        Operator::And => of.is_null().and(unknown),
        _ => of.is_not_null().or(unknown),
    };
    let rest = operands.iter().enumerate().filter(|(at, _)| !places.contains(at)).map(|(_, (expr, is_not))| {
        let expr = (*expr).clone();
        if *is_not { Expr::Not(Box::new(expr)) } else { expr }
    });
    let with = |left: Expr, right: Expr| Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)));
    Some(rest.fold(joined, with))
}

fn leaves_nothing(op: Operator, lists: &[&(usize, List)]) -> bool {
    // That x is none of a list or none of another is false of what is in both.
    let (common, without): (Vec<&List>, Vec<&List>) =
        lists.iter().map(|(_, list)| list).partition(|list| list.is_none == (op == Operator::Or));
    let [first, more @ ..] = &common[..] else { return false };
    if op == Operator::Or && (!without.is_empty() || more.is_empty()) {
        return false;
    }
    let set = |list: &&List<'_>| list.items.iter().map(|item| (*item).clone()).collect::<HashSet<Expr>>();
    let (more, without): (Vec<_>, Vec<_>) = (more.iter().map(set).collect(), without.iter().map(set).collect());
    let is_left =
        |item: &Expr| more.iter().all(|set| set.contains(item)) && !without.iter().any(|set| set.contains(item));
    !first.items.iter().any(|item| is_left(item))
}

/// The operands of a chain, each with whether a NOT is around it.
fn flattened<'a>(expr: &'a Expr, op: Operator, is_not: bool, out: &mut Vec<(&'a Expr, bool)>) {
    let wanted = match (op, is_not) {
        (Operator::And, true) => Operator::Or,
        (Operator::Or, true) => Operator::And,
        (op, _) => op,
    };
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: of, right }) if *of == wanted => {
            flattened(left, op, is_not, out);
            flattened(right, op, is_not, out);
        }
        Expr::Not(inner) => flattened(inner, op, !is_not, out),
        other => out.push((other, is_not)),
    }
}

fn listed(expr: &Expr, is_not: bool) -> Option<List<'_>> {
    match expr {
        Expr::InList(InList { expr, list, negated }) if list.iter().all(is_known) => {
            Some(List { of: expr, items: list.iter().collect(), is_none: *negated != is_not })
        }
        // The optimizer makes a list of these first.
        Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }) => {
            let mut equals = Vec::new();
            flattened(expr, Operator::Or, false, &mut equals);
            let pairs = equals.into_iter().map(|(e, no)| if no { None } else { equal(e) });
            let pairs = pairs.collect::<Option<Vec<_>>>()?;
            let of = pairs.first()?.0;
            let items = pairs.into_iter().map(|(column, item)| (column == of).then_some(item));
            Some(List { items: items.collect::<Option<_>>()?, of, is_none: is_not })
        }
        _ => None,
    }
}

fn equal(expr: &Expr) -> Option<(&Expr, &Expr)> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = expr else { return None };
    match (left.as_ref(), right.as_ref()) {
        (column @ Expr::Column(_), item) | (item, column @ Expr::Column(_)) if is_known(item) => Some((column, item)),
        _ => None,
    }
}

/// A constant, which may be on its way to another type.
fn is_known(item: &Expr) -> bool {
    match item {
        Expr::Literal(value, _) => !value.is_null(),
        Expr::Cast(cast) => is_known(&cast.expr),
        _ => false,
    }
}
