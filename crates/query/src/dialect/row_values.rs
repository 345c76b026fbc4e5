//! Rewrites `(x, y) IN (SELECT a, b …)`, which the planner does not support, to EXISTS over equal rows.

use super::TidaliteDialect;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Ident, Query, Select, SelectItem, SetExpr, TableFactor, UnaryOperator, Value,
    VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;
use std::ops::ControlFlow;

pub(super) fn rewritten(select: &mut Select) {
    if let Some(condition) = &mut select.selection {
        conditions(condition);
    }
    let selected = select.projection.iter_mut().filter_map(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    });
    for expr in selected.chain(&mut select.selection).chain(&mut select.having) {
        values(expr);
    }
    values(&mut select.from);
}

/// Rewrites the row values of a node with three-valued logic; row values of nested sub-queries stay.
pub(super) fn values(node: &mut impl VisitMut) {
    super::visit::change_own(node, &mut |expr| {
        if let Some((values, subquery, negated)) = row_of(expr)
            && let Some(found) = is_in(values, subquery, negated)
        {
            *expr = found;
        }
    });
}

/// Rewrites each conjunct of a condition, where NULL counts as false.
fn conditions(expr: &mut Expr) {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            conditions(left);
            conditions(right);
        }
        Expr::Nested(inner) => conditions(inner),
        other => {
            if let Some((values, subquery, negated)) = row_of(other)
                && let Some(equal) = equal(values)
            {
                let hit = if negated { is(Expr::IsNotFalse, equal) } else { equal };
                if let Some(found) = exists(values.len(), subquery, hit) {
                    *other = if negated { not(found) } else { found };
                }
            }
        }
    }
}

fn row_of(expr: &Expr) -> Option<(&Vec<Expr>, &Query, bool)> {
    match expr {
        Expr::InSubquery { expr: row, subquery, negated } => match row.as_ref() {
            Expr::Tuple(values) => Some((values, subquery.as_ref(), *negated)),
            _ => None,
        },
        _ => None,
    }
}

/// Returns true when a row is equal, else NULL when one may be equal, else false.
fn is_in(values: &[Expr], subquery: &Query, negated: bool) -> Option<Expr> {
    let equal = equal(values)?;
    let found = exists(values.len(), subquery, equal.clone())?;
    let may_be = exists(values.len(), subquery, is(Expr::IsNull, equal))?;
    let value = |value: Value| Expr::Value(value.into());
    let when = |condition, result| CaseWhen { condition, result };
    let conditions = vec![when(found, value(Value::Boolean(!negated))), when(may_be, value(Value::Null))];
    let otherwise = Some(Box::new(value(Value::Boolean(negated))));
    Some(Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions,
        else_result: otherwise,
    })
}

fn item(n: usize) -> Ident {
    Ident::new(format!("__item{n}"))
}

/// Returns the condition that the items of a row are equal to the values.
fn equal(values: &[Expr]) -> Option<Expr> {
    let binary = |left, op, right| Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) };
    let each = values
        .iter()
        .enumerate()
        .map(|(n, value)| binary(Expr::Identifier(item(n)), BinaryOperator::Eq, Expr::Nested(Box::new(value.clone()))));
    each.reduce(|a, b| binary(a, BinaryOperator::And, b))
}

fn is(what: fn(Box<Expr>) -> Expr, expr: Expr) -> Expr {
    what(Box::new(Expr::Nested(Box::new(expr))))
}

fn not(expr: Expr) -> Expr {
    Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(expr) }
}

/// Returns EXISTS of the sub-query rows for which `hit` is true.
fn exists(items: usize, subquery: &Query, hit: Expr) -> Option<Expr> {
    let names: Vec<String> = (0..items).map(|n| item(n).value).collect();
    let sql = format!("EXISTS (SELECT 1 FROM __rows AS __in({}))", names.join(", "));
    let mut exists =
        Parser::new(&TidaliteDialect).try_with_sql(&sql).and_then(|mut parser| parser.parse_expr()).ok()?;
    let mut rows = subquery.clone();
    if let SetExpr::Select(select) = rows.body.as_mut() {
        for (n, item) in select.projection.iter_mut().enumerate() {
            // Two columns may have the same name.
            if let SelectItem::UnnamedExpr(expr) = item {
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: self::item(n) };
            }
        }
    }
    let _ = super::visit::visit_mut(&mut exists, &mut Rows(&rows));
    let Expr::Exists { subquery, .. } = &mut exists else { return None };
    let SetExpr::Select(select) = subquery.body.as_mut() else { return None };
    select.selection = Some(hit);
    Some(exists)
}

/// Replaces the table by the query.
struct Rows<'a>(&'a Query);

impl VisitorMut for Rows<'_> {
    type Break = ();

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, alias, .. } = factor
            && name.to_string() == "__rows"
        {
            let (subquery, alias) = (Box::new(self.0.clone()), alias.take());
            *factor = TableFactor::Derived { lateral: false, subquery, alias, sample: None };
        }
        ControlFlow::Continue(())
    }
}
