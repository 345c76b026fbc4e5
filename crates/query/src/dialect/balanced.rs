//! Long chains of AND, OR and UNION as trees of few levels: `a OR b OR c OR d` as `(a OR b) OR (c OR d)`.
//!
//! The parser makes a level of each operator, and the planner's time grows with the levels. Where the order in which the
//! operators are taken changes nothing, the chain is put together again in halves; what stands in it keeps its order.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, SetExpr, SetOperator, SetQuantifier, Value};

/// A shorter chain stays as it is.
const LONG: usize = 16;

/// Balances the chain that an expression is the end of.
pub(super) fn expr(expr: &mut Expr) {
    let Expr::BinaryOp { op, .. } = expr else { return };
    let (BinaryOperator::And | BinaryOperator::Or) = op else { return };
    let op = op.clone();
    if !is_long(&*expr, |e| match e {
        Expr::BinaryOp { left, op: of, .. } if *of == op => Some(left.as_ref()),
        _ => None,
    }) {
        return;
    }
    let chain = std::mem::replace(expr, Expr::Value(Value::Null.into()));
    let parts = taken_apart(chain, |part| match part {
        Expr::BinaryOp { left, op: of, right } if of == op => Ok((*left, *right)),
        first => Err(first),
    });
    let join = |left, right| Expr::BinaryOp { left: Box::new(left), op: op.clone(), right: Box::new(right) };
    if let Some(balanced) = halves(parts, &join) {
        *expr = balanced;
    }
}

/// As [`expr`], for queries.
pub(super) fn union(body: &mut SetExpr) {
    let SetExpr::SetOperation { op: SetOperator::Union, set_quantifier, .. } = body else { return };
    let (SetQuantifier::All | SetQuantifier::None | SetQuantifier::Distinct) = set_quantifier else { return };
    let quantifier = *set_quantifier;
    if !is_long(&*body, |b| match b {
        SetExpr::SetOperation { op: SetOperator::Union, set_quantifier, left, .. } if *set_quantifier == quantifier => {
            Some(left.as_ref())
        }
        _ => None,
    }) {
        return;
    }
    let chain = std::mem::replace(body, SetExpr::Values(empty()));
    let parts = taken_apart(chain, |part| match part {
        SetExpr::SetOperation { op: SetOperator::Union, set_quantifier, left, right }
            if set_quantifier == quantifier =>
        {
            Ok((*left, *right))
        }
        first => Err(first),
    });
    let join = |left, right| SetExpr::SetOperation {
        op: SetOperator::Union,
        set_quantifier: quantifier,
        left: Box::new(left),
        right: Box::new(right),
    };
    if let Some(balanced) = halves(parts, &join) {
        *body = balanced;
    }
}

fn empty() -> datafusion::sql::sqlparser::ast::Values {
    datafusion::sql::sqlparser::ast::Values { explicit_row: false, value_keyword: false, rows: Vec::new() }
}

/// The parts of a chain in their order; `split` gives the chain before an operator and what is behind it, or the first part.
fn taken_apart<T>(mut chain: T, split: impl Fn(T) -> Result<(T, T), T>) -> Vec<T> {
    let mut parts = Vec::new();
    loop {
        match split(chain) {
            Ok((before, part)) => {
                parts.push(part);
                chain = before;
            }
            Err(first) => {
                parts.push(first);
                parts.reverse();
                return parts;
            }
        }
    }
}

fn is_long<T>(mut node: &T, left: impl Fn(&T) -> Option<&T>) -> bool {
    for _ in 0..LONG {
        match left(node) {
            Some(next) => node = next,
            None => return false,
        }
    }
    true
}

/// Joins neighbours until one is left; `None` without parts.
pub(crate) fn halves<T>(mut parts: Vec<T>, join: &impl Fn(T, T) -> T) -> Option<T> {
    while parts.len() > 1 {
        let mut joined = Vec::with_capacity(parts.len().div_ceil(2));
        let mut rest = parts.into_iter();
        while let Some(left) = rest.next() {
            joined.push(match rest.next() {
                Some(right) => join(left, right),
                None => left,
            });
        }
        parts = joined;
    }
    parts.pop()
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::sql::sqlparser::parser::Parser;

    fn parsed(sql: &str) -> Expr {
        Parser::new(&super::super::TidaliteDialect)
            .try_with_sql(sql)
            .and_then(|mut p| p.parse_expr())
            .expect("an expression")
    }

    fn levels(expr: &Expr) -> usize {
        match expr {
            Expr::BinaryOp { left, right, .. } => 1 + levels(left).max(levels(right)),
            _ => 0,
        }
    }

    #[test]
    fn a_long_chain_gets_few_levels_and_keeps_its_order() {
        for (n, levels_max) in [(10, 9), (17, 5), (1_000, 10), (1_025, 11)] {
            let sql = (0..n).map(|i| format!("c{i}")).collect::<Vec<_>>().join(" OR ");
            let mut chain = parsed(&sql);
            expr(&mut chain);
            assert_eq!(chain.to_string(), sql);
            assert_eq!(levels(&chain), levels_max, "{n}");
        }
        let mut mixed = parsed(&format!("a AND b OR {}", vec!["c"; 40].join(" OR ")));
        let before = mixed.to_string();
        expr(&mut mixed);
        assert_eq!(mixed.to_string(), before);
        let mut sum = parsed(&vec!["x"; 40].join(" - "));
        let before = sum.clone();
        expr(&mut sum);
        assert_eq!(sum, before);
    }
}
