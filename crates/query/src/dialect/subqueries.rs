//! `EXISTS (…)` and `x IN (SELECT …)` among what is selected: counted, as the planner answers them in WHERE only.

use super::TidaliteDialect;
use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Query, Select, SelectItem, SetExpr, TableFactor, UnaryOperator, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;
use std::ops::ControlFlow;

pub(super) fn rewritten(select: &mut Select) {
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            super::visit::change_own(expr, &mut counted);
        }
    }
}

fn counted(expr: &mut Expr) {
    let (found, negated) = match expr {
        Expr::Exists { subquery, negated } => (exists(subquery), *negated),
        Expr::InSubquery { expr, subquery, negated } => (is_in(expr, subquery), *negated),
        _ => return,
    };
    if let Some(found) = found {
        *expr = if negated {
            Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(Expr::Nested(Box::new(found))) }
        } else {
            found
        };
    }
}

pub(super) fn parsed(sql: &str) -> Option<Expr> {
    Parser::new(&TidaliteDialect).try_with_sql(sql).and_then(|mut parser| parser.parse_expr()).ok()
}

fn exists(query: &Query) -> Option<Expr> {
    let mut template = parsed("(SELECT count(*) > 0 FROM __rows)")?;
    if is_plain(query) {
        let Expr::Subquery(counted) = &template else { return None };
        let SetExpr::Select(counted) = counted.body.as_ref() else { return None };
        let mut query = query.clone();
        query.order_by = None;
        if let SetExpr::Select(select) = query.body.as_mut() {
            select.projection = counted.projection.clone();
            select.distinct = None;
        }
        return Some(Expr::Subquery(Box::new(query)));
    }
    put(&mut template, query, None);
    Some(template)
}

/// Whether its rows are those of its FROM and WHERE.
pub(super) fn is_plain(query: &Query) -> bool {
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    let is_grouped = !matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    let is_limited = query.limit_clause.is_some() || query.fetch.is_some() || query.with.is_some();
    let is_chosen = select.having.is_some() || select.qualify.is_some() || !select.from.iter().any(|_| true);
    let is_simple = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_))
        }
        _ => true,
    };
    !is_grouped && !is_limited && !is_chosen && select.projection.iter().all(is_simple)
}

/// True when one is equal, else unknown when one is NULL or nothing can be equal to NULL, else false.
fn is_in(value: &Expr, query: &Query) -> Option<Expr> {
    let mut template = parsed(
        "CASE WHEN (SELECT count(*) > 0 FROM __rows AS __in(__item) WHERE __item = __value) THEN true \
         WHEN (SELECT count(*) > 0 FROM __rows AS __in(__item) WHERE __item IS NULL) THEN NULL \
         WHEN __value IS NULL AND (SELECT count(*) > 0 FROM __rows AS __in(__item)) THEN NULL ELSE false END",
    )?;
    put(&mut template, query, Some(value));
    Some(template)
}

/// Puts the query and the value into their places.
pub(super) fn put(template: &mut Expr, query: &Query, value: Option<&Expr>) {
    let _ = super::visit::visit_mut(template, &mut Places { query, value });
}

struct Places<'a> {
    query: &'a Query,
    value: Option<&'a Expr>,
}

impl VisitorMut for Places<'_> {
    type Break = ();

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, alias, .. } = factor
            && name.to_string() == "__rows"
        {
            let (subquery, alias) = (Box::new(self.query.clone()), alias.take());
            *factor = TableFactor::Derived { lateral: false, subquery, alias, sample: None };
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let (Expr::Identifier(ident), Some(value)) = (&*expr, self.value)
            && ident.value == "__value"
        {
            *expr = match value {
                Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_) => value.clone(),
                other => Expr::Nested(Box::new(other.clone())),
            };
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_queries_are_counted_where_they_stand() {
        let expr = parsed("EXISTS (SELECT 1 FROM q WHERE q.k = t.k)").expect("an expression");
        let Expr::Exists { subquery, .. } = &expr else { panic!("{expr}") };
        let counted = exists(subquery).expect("it can be counted");
        assert_eq!(counted.to_string(), "(SELECT count(*) > 0 FROM q WHERE q.k = t.k)");
        let expr = parsed("EXISTS (SELECT 1 FROM q LIMIT 1)").expect("an expression");
        let Expr::Exists { subquery, .. } = &expr else { panic!("{expr}") };
        let counted = exists(subquery).expect("it can be counted");
        assert_eq!(counted.to_string(), "(SELECT count(*) > 0 FROM (SELECT 1 FROM q LIMIT 1))");
    }
}
