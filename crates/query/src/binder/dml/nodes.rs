//! Nodes of syntax trees that the statement does not have itself. Their spans are empty.

use tidalite_sql::Span;
use tidalite_sql::ast::{
    Alias, Body, Expr, ExprKind, Ident, IsTest, Literal, ObjectName, Projection, Query, Quote, Relation, RelationKind,
    Select, SelectItem, TableRef, UnaryOperator, Wildcard, With,
};

pub(super) fn ident(value: &str) -> Ident {
    Ident { value: value.to_owned(), quote: Some(Quote::Double), span: Span::default() }
}

pub(super) fn expr(kind: ExprKind) -> Expr {
    Expr { kind, span: Span::default() }
}

/// Returns `table.column`.
pub(super) fn column(table: &str, column: &str) -> Expr {
    expr(ExprKind::Column(ObjectName { parts: vec![ident(table), ident(column)], span: Span::default() }))
}

pub(super) fn literal(value: Literal) -> Expr {
    expr(ExprKind::Literal(value))
}

/// Returns `condition IS NOT TRUE`.
pub(super) fn not_true(condition: Expr) -> Expr {
    expr(ExprKind::Is { operand: Box::new(condition), negated: true, test: IsTest::True })
}

/// Returns `NOT EXISTS (query)`.
pub(super) fn not_exists(query: Query) -> Expr {
    let operand = Box::new(expr(ExprKind::Exists(Box::new(query))));
    expr(ExprKind::Unary { op: UnaryOperator::Not, operand })
}

/// Connects conditions with AND; `None` without conditions.
pub(super) fn all(conditions: Vec<Expr>) -> Option<Expr> {
    connected(conditions, ExprKind::And)
}

/// Connects conditions with OR; `None` without conditions.
pub(super) fn any(conditions: Vec<Expr>) -> Option<Expr> {
    connected(conditions, ExprKind::Or)
}

fn connected(mut conditions: Vec<Expr>, connect: fn(Vec<Expr>) -> ExprKind) -> Option<Expr> {
    match conditions.len() {
        0 | 1 => conditions.pop(),
        _ => Some(expr(connect(conditions))),
    }
}

pub(super) fn item(expr: Expr, alias: Option<&str>) -> SelectItem {
    SelectItem::Expr { expr, alias: alias.map(ident) }
}

pub(super) fn star() -> SelectItem {
    SelectItem::Wildcard(Wildcard { of: None, changes: Vec::new(), span: Span::default() })
}

/// Returns the relation `name AS alias`; each part of the name in turn.
pub(super) fn table(name: &[&str], alias: &str, span: Span) -> TableRef {
    let parts = name.iter().map(|part| Ident { span, ..ident(part) }).collect();
    let kind = RelationKind::Table { name: ObjectName { parts, span } };
    let alias = Some(Alias { name: ident(alias), columns: Vec::new() });
    table_ref(Relation::new(kind, alias, span))
}

pub(super) fn table_ref(relation: Relation) -> TableRef {
    TableRef { relation, joins: Vec::new() }
}

pub(super) fn select(items: Vec<SelectItem>, from: Vec<TableRef>, selection: Option<Expr>) -> Query {
    let select = Select { selection, ..Select::new(Projection::Items(items), from, Span::default()) };
    query(None, Body::Select(Box::new(select)), Span::default())
}

pub(super) fn query(with: Option<With>, body: Body, span: Span) -> Query {
    Query { with, ..Query::new(body, span) }
}

/// Returns a query with all rows of another one. A negative LIMIT of that query is part of the plan.
pub(super) fn whole(with: Option<With>, inner: Query) -> Query {
    let span = inner.span;
    query(with, Body::Query(Box::new(inner)), span)
}
