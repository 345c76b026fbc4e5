//! Joins whose right side looks at the left one, in shapes that the planner does not know or that are better so.
//!
//! - `t, UNNEST(t.a) AS u(v)` becomes `(SELECT *, unnest(t.a) AS v FROM t) AS t`.
//! - `t, LATERAL (SELECT … FROM q WHERE q.k = t.k AND … ORDER BY o LIMIT n) l` becomes
//!   `t JOIN (SELECT …, q.k AS __key0, row_number() OVER (PARTITION BY q.k ORDER BY o) AS __rank FROM q WHERE …) l
//!   ON l.__key0 = t.k AND l.__rank <= n`.
//! - `t, generate_series(1, t.n) g(x)` becomes `t, LATERAL (SELECT unnest(generate_series(1, t.n)) AS x) g`.
//!
//! What fits none goes on as it is ([`crate::plan`] takes LATERAL apart).

use super::TidaliteDialect;
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, Expr, FunctionArg, FunctionArgExpr, GroupByExpr, Ident, Join, JoinConstraint, JoinOperator,
    LimitClause, Query, Select, SelectItem, SetExpr, TableFactor, TableFunctionArgs, TableWithJoins, Value, Values,
    Visitor, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;
use std::ops::ControlFlow;

/// Gives what renames columns of an UNNEST around the SELECT, in its ORDER BY.
pub(super) fn rewritten(select: &mut Select) -> Option<Renamer> {
    for (n, table) in select.from.iter_mut().enumerate() {
        made_of_columns(&mut table.relation, n > 0);
        table.joins.iter_mut().for_each(|join| made_of_columns(&mut join.relation, true));
    }
    commas(select);
    let mut hidden = Vec::new();
    for table in &mut select.from {
        for join in &mut table.joins {
            if let Some(columns) = limited(join) {
                hidden.extend(columns);
            }
        }
    }
    if !hidden.is_empty() {
        super::relations::hide(select, hidden);
    }
    let (from, to, columns) = unnested(select)?;
    let mut renamer = Renamer { from, to, columns };
    let _ = super::visit::visit_mut(select, &mut renamer);
    Some(renamer)
}

/// A lateral table behind a comma is joined to what stands before it.
fn commas(select: &mut Select) {
    let mut at = 1;
    while at < select.from.len() {
        let is_ours = match &select.from[at].relation {
            TableFactor::Derived { lateral: true, subquery, .. } => subquery.limit_clause.is_some(),
            TableFactor::UNNEST { array_exprs, .. } => array_exprs.iter().any(has_column),
            _ => false,
        };
        if !is_ours {
            at += 1;
            continue;
        }
        let TableWithJoins { relation, joins } = select.from.remove(at);
        let operator = JoinOperator::CrossJoin(JoinConstraint::None);
        let before = &mut select.from[at - 1].joins;
        before.push(Join { relation, global: false, join_operator: operator });
        before.extend(joins);
    }
}

/// Numbers or times up to a column of an outer row, and lists of values of it, as a query of that row.
fn made_of_columns(factor: &mut TableFactor, is_lateral: bool) {
    let (name, args, alias) = match factor {
        TableFactor::Table { name, args: Some(TableFunctionArgs { args, .. }), alias, .. }
        | TableFactor::Function { name, args, alias, .. } => (name.to_string(), args, alias),
        TableFactor::Derived { subquery, .. } => {
            if let SetExpr::Values(values) = subquery.body.as_ref()
                && values.rows.iter().any(|row| row.content.iter().any(has_column))
            {
                listed(values).into_iter().for_each(|query| *subquery.body = *query.body);
            }
            return;
        }
        _ => return,
    };
    let is_of_columns =
        |arg: &FunctionArg| matches!(arg, FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) if has_column(e));
    if !args.iter().any(is_of_columns) || !["generate_series", "range"].contains(&name.as_str()) {
        return;
    }
    let mut alias = alias.take();
    let column = match alias.as_mut().map(|alias| (std::mem::take(&mut alias.columns), &alias.name)) {
        Some((columns, name)) => columns.into_iter().next().map_or_else(|| name.clone(), |column| column.name),
        None => Ident::new(&name),
    };
    let list = args.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let Some(query) = parsed(&format!("SELECT unnest({name}({list})) AS {}", quoted(&column))) else { return };
    *factor = TableFactor::Derived { lateral: is_lateral, subquery: Box::new(query), alias, sample: None };
}

fn listed(values: &Values) -> Option<Query> {
    let row = |row: &ast::Parens<Vec<Expr>>| {
        let items = row.content.iter().enumerate().map(|(n, expr)| format!("{expr} AS column{}", n + 1));
        format!("SELECT {}", items.collect::<Vec<_>>().join(", "))
    };
    parsed(&values.rows.iter().map(row).collect::<Vec<_>>().join(" UNION ALL "))
}

fn has_column(expr: &Expr) -> bool {
    !columns_of(expr).is_empty()
}

/// The columns an expression names, each by its parts.
pub(super) fn columns_of(expr: &Expr) -> Vec<Vec<String>> {
    struct Names(Vec<Vec<String>>);
    impl Visitor for Names {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match expr {
                Expr::Identifier(ident) => self.0.push(vec![ident.value.clone()]),
                Expr::CompoundIdentifier(parts) => self.0.push(parts.iter().map(|p| p.value.clone()).collect()),
                _ => {}
            }
            ControlFlow::Continue(())
        }
    }
    let mut names = Names(Vec::new());
    let _ = super::visit::visit(expr, &mut names);
    names.0
}

fn parsed(sql: &str) -> Option<Query> {
    let query = Parser::new(&TidaliteDialect).try_with_sql(sql).and_then(|mut parser| parser.parse_query());
    query.ok().map(|query| *query)
}

/// The name of a table or a sub-query.
pub(super) fn name_of(factor: &TableFactor) -> Option<Ident> {
    matches!(factor, TableFactor::Table { .. } | TableFactor::Derived { .. })
        .then(|| super::relations::called(factor))
        .flatten()
}

/// The alias of the UNNEST that was taken into the first table, the name of that, and the columns it gave.
fn unnested(select: &mut Select) -> Option<(Ident, Ident, Vec<Ident>)> {
    let table = select.from.first_mut()?;
    let join = table.joins.first()?;
    if !matches!(join.join_operator, JoinOperator::CrossJoin(JoinConstraint::None)) {
        return None;
    }
    let TableFactor::UNNEST { alias, array_exprs, with_offset: false, with_ordinality: false, .. } = &join.relation
    else {
        return None;
    };
    if !array_exprs.iter().any(has_column) {
        return None;
    }
    let name = name_of(&table.relation)?;
    let from = alias.as_ref().map_or_else(|| Ident::new("unnest"), |alias| alias.name.clone());
    let given: Vec<Ident> = alias.iter().flat_map(|a| a.columns.iter().map(|c| c.name.clone())).collect();
    let columns: Vec<Ident> = (0..array_exprs.len())
        .map(|n| {
            given.get(n).cloned().unwrap_or_else(|| {
                Ident::new(format!("{}{}", from.value, if n == 0 { String::new() } else { n.to_string() }))
            })
        })
        .collect();
    let items =
        array_exprs.iter().zip(&columns).map(|(array, column)| format!("unnest({array}) AS {}", quoted(column)));
    let lengths = array_exprs.iter().map(|array| format!("cardinality({array}) > 0"));
    let (items, lengths) = (items.collect::<Vec<_>>().join(", "), lengths.collect::<Vec<_>>().join(" OR "));
    let sql = format!("SELECT {}.*, {items} FROM __t WHERE {lengths}", quoted(&name));
    let mut query = parsed(&sql)?;
    let SetExpr::Select(inner) = query.body.as_mut() else { return None };
    let alias = parsed(&format!("SELECT 1 FROM __t AS {}", quoted(&name)))?;
    let SetExpr::Select(alias) = *alias.body else { return None };
    let TableFactor::Table { alias: Some(alias), .. } = alias.from.into_iter().next()?.relation else { return None };
    let placeholder = std::mem::replace(&mut inner.from.first_mut()?.relation, table.relation.clone());
    drop(placeholder);
    table.relation =
        TableFactor::Derived { lateral: false, subquery: Box::new(query), alias: Some(alias), sample: None };
    table.joins.remove(0);
    Some((from, name, columns))
}

fn quoted(name: &Ident) -> String {
    crate::names::in_quotes(&name.value)
}

/// What was called after the UNNEST is now a column of the table.
pub(super) struct Renamer {
    from: Ident,
    to: Ident,
    columns: Vec<Ident>,
}

impl VisitorMut for Renamer {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::CompoundIdentifier(parts) if parts.len() == 2 && parts[0].value == self.from.value => {
                parts[0] = self.to.clone();
            }
            Expr::Identifier(ident) if ident.value == self.from.value && self.columns.len() == 1 => {
                *ident = self.columns[0].clone();
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Takes a lateral query with a LIMIT apart; gives the columns that it has now besides its own.
fn limited(join: &mut Join) -> Option<Vec<Ident>> {
    let keeps_all = match &join.join_operator {
        JoinOperator::CrossJoin(JoinConstraint::None) => false,
        JoinOperator::Inner(on) | JoinOperator::Join(on) if is_true(on) => false,
        JoinOperator::Left(on) | JoinOperator::LeftOuter(on) if is_true(on) => true,
        _ => return None,
    };
    let TableFactor::Derived { lateral, subquery, alias: Some(alias), .. } = &mut join.relation else { return None };
    let Some(LimitClause::LimitOffset { limit: Some(limit), offset: None, limit_by }) = &subquery.limit_clause else {
        return None;
    };
    // Rows from the end are counted by the plan.
    let is_count =
        matches!(limit, Expr::Value(value) if matches!(&value.value, Value::Number(n, _) if !n.starts_with('-')));
    if !*lateral || !limit_by.is_empty() || !is_count {
        return None;
    }
    let limit = limit.clone();
    let SetExpr::Select(select) = subquery.body.as_mut() else { return None };
    // Without an order the first rows are those in time, of which the plan knows.
    let ast::OrderByKind::Expressions(mut order) = subquery.order_by.clone()?.kind else { return None };
    for key in &mut order {
        key.expr = made_by(&key.expr, &select.projection)?;
    }
    let is_grouped = !matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    if is_grouped || select.distinct.is_some() || select.having.is_some() || select.qualify.is_some() {
        return None;
    }
    let inner: Vec<Ident> = select
        .from
        .iter()
        .flat_map(|t| std::iter::once(&t.relation).chain(t.joins.iter().map(|j| &j.relation)))
        .filter_map(name_of)
        .collect();
    let is_outer =
        |parts: &Vec<String>| parts.len() > 1 && !inner.iter().any(|name| name.value == parts[parts.len() - 2]);
    // What it makes of outer columns is known beside their rows only.
    let mut made: Vec<&Expr> = Vec::new();
    for item in &select.projection {
        match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => made.push(expr),
            _ => {}
        }
    }
    made.extend(order.iter().map(|key| &key.expr));
    if made.into_iter().flat_map(columns_of).any(|parts| is_outer(&parts)) {
        return None;
    }
    let (mut own, mut keys) = (Vec::new(), Vec::new());
    for part in conjuncts(select.selection.clone()?) {
        let columns = columns_of(&part);
        if !columns.iter().any(is_outer) {
            own.push(part);
            continue;
        }
        let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = part else { return None };
        let sides = [&left, &right].map(|side| columns_of(side));
        let outer = sides.each_ref().map(|side| !side.is_empty() && side.iter().all(is_outer));
        let inside = sides.each_ref().map(|side| !side.is_empty() && !side.iter().any(is_outer));
        match (outer, inside) {
            ([true, _], [_, true]) => keys.push((*left, *right)),
            ([_, true], [true, _]) => keys.push((*right, *left)),
            _ => return None,
        }
    }
    if keys.is_empty() {
        return None;
    }
    let list = keys.iter().map(|(_, inner)| inner.to_string()).collect::<Vec<_>>().join(", ");
    let mut items: Vec<String> =
        keys.iter().enumerate().map(|(n, (_, inner))| format!("{inner} AS __key{n}")).collect();
    let order = order.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    items.push(format!("row_number() OVER (PARTITION BY {list} ORDER BY {order}) AS __rank"));
    let added = parsed(&format!("SELECT {}", items.join(", ")))?;
    let SetExpr::Select(added) = *added.body else { return None };
    let name = quoted(&alias.name);
    let mut on: Vec<String> =
        keys.iter().enumerate().map(|(n, (outer, _))| format!("{name}.__key{n} = {outer}")).collect();
    on.push(format!("{name}.__rank <= {limit}"));
    let on = Parser::new(&TidaliteDialect).try_with_sql(&on.join(" AND ")).and_then(|mut p| p.parse_expr()).ok()?;
    select.projection.extend(added.projection);
    select.selection = own.into_iter().reduce(|a, b| Expr::BinaryOp {
        left: Box::new(a),
        op: BinaryOperator::And,
        right: Box::new(b),
    });
    subquery.limit_clause = None;
    subquery.order_by = None;
    *lateral = false;
    let hidden = (0..keys.len()).map(|n| Ident::new(format!("__key{n}"))).chain([Ident::new("__rank")]).collect();
    let on = JoinConstraint::On(on);
    join.join_operator = if keeps_all { JoinOperator::Left(on) } else { JoinOperator::Inner(on) };
    Some(hidden)
}

/// What a key of ORDER BY is behind a position or a name among what is selected; `None` where that cannot be said.
fn made_by(key: &Expr, selected: &[SelectItem]) -> Option<Expr> {
    let named = |ident: &Ident| {
        selected.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if alias.value == ident.value => Some(expr.clone()),
            _ => None,
        })
    };
    match key {
        Expr::Value(value) => {
            let Value::Number(position, _) = &value.value else { return None };
            let before = selected.get(..position.parse().ok()?)?;
            if before.iter().any(|item| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))) {
                return None;
            }
            match before.last()? {
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr.clone()),
                _ => None,
            }
        }
        Expr::Identifier(ident) => Some(named(ident).unwrap_or_else(|| key.clone())),
        _ => {
            let names_any =
                columns_of(key).iter().any(|parts| matches!(&parts[..], [one] if named(&Ident::new(one)).is_some()));
            (!names_any).then(|| key.clone())
        }
    }
}

fn is_true(on: &JoinConstraint) -> bool {
    matches!(on, JoinConstraint::On(Expr::Value(value)) if value.value == Value::Boolean(true))
}

fn conjuncts(expr: Expr) -> Vec<Expr> {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            let mut all = conjuncts(*left);
            all.extend(conjuncts(*right));
            all
        }
        Expr::Nested(inner) => conjuncts(*inner),
        other => vec![other],
    }
}
