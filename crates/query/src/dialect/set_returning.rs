//! PostgreSQL's set-returning functions, and scalar functions in FROM.
//!
//! `ARRAY(SELECT …)` becomes a sub-query that collects its rows, `FROM current_database()` a query of one row;
//! `generate_subscripts` and `_pg_expandarray` become unnested lists, `unnest(a) WITH ORDINALITY` a query of two lists.

use super::laterals::columns_of;
use super::sequences::call;
use super::{TidaliteDialect, relations};
use crate::functions::meta;
use datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments, GroupByExpr,
    Ident, ObjectName, OrderByKind, Query, Select, SelectItem, SetExpr, TableAlias, TableFactor, Value,
};
use datafusion::sql::sqlparser::parser::Parser;

/// The function that replaces a NULL list by an empty one.
pub(crate) const OR_EMPTY: &str = "__or_empty";
/// The function that returns the items of a list, each with its subscript.
pub(crate) const EXPANDED: &str = "__expanded";
/// The function that returns the subscripts of a list.
pub(crate) const SUBSCRIPTS: &str = "__subscripts";
/// The function that returns the numbers of the rows that lists give, from 1.
pub(crate) const ORDINALS: &str = "__ordinals";
/// The column of WITH ORDINALITY.
pub(crate) const ORDINALITY: &str = "ordinality";

/// Rewrites these functions to expressions that the planner supports.
pub(super) fn rewritten(expr: &mut Expr) {
    // `(f(x)).n`, `(t.pair).n`: field access.
    if let Expr::CompoundFieldAccess { root, access_chain } = expr
        && matches!(root.as_ref(), Expr::Nested(_))
        && let [AccessExpr::Dot(Expr::Identifier(name))] = &access_chain[..]
    {
        let name = Expr::Value(Value::SingleQuotedString(name.value.clone()).into());
        *expr = call("get_field", vec![root.as_ref().clone(), name]);
        return;
    }
    let Expr::Function(function) = expr else { return };
    let name = function.name.to_string();
    if let FunctionArguments::Subquery(query) = &mut function.args {
        if name == "array"
            && let Some(list) = collected(query.clone())
        {
            *expr = list;
        }
        return;
    }
    let list = match name.as_str() {
        "information_schema._pg_expandarray" => EXPANDED,
        "generate_subscripts" => SUBSCRIPTS,
        _ => return,
    };
    if let Some(args) = arguments(function) {
        *expr = call("unnest", vec![call(list, args)]);
    }
}

fn arguments(function: &Function) -> Option<Vec<Expr>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let expr = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    };
    list.args.iter().map(expr).collect()
}

/// Collects the rows of a query, in their order, into one list; an empty list when there are no rows.
fn collected(mut query: Box<Query>) -> Option<Expr> {
    let order = match query.order_by.as_ref().map(|order| &order.kind) {
        Some(OrderByKind::Expressions(exprs)) => exprs.clone(),
        Some(OrderByKind::All(_)) => return None,
        None => Vec::new(),
    };
    let is_by_name = order.iter().all(|by| !matches!(by.expr, Expr::Value(_)));
    if is_by_name
        && is_plain(&query)
        && let SetExpr::Select(select) = query.body.as_mut()
        && let [SelectItem::UnnamedExpr(item) | SelectItem::ExprWithAlias { expr: item, .. }] = &select.projection[..]
    {
        let mut list = call("array_agg", vec![item.clone()]);
        if let (Expr::Function(function), false) = (&mut list, order.is_empty())
            && let FunctionArguments::List(arguments) = &mut function.args
        {
            arguments.clauses.push(FunctionArgumentClause::OrderBy(order));
        }
        select.projection = vec![SelectItem::UnnamedExpr(list)];
        query.order_by = None;
        return Some(call(OR_EMPTY, vec![Expr::Subquery(query)]));
    }
    let mut template = parsed("(SELECT array_agg(__item) FROM __rows AS __rows(__item))")?;
    let Expr::Subquery(collects) = &mut template else { return None };
    let SetExpr::Select(select) = collects.body.as_mut() else { return None };
    let factor = &mut select.from.first_mut()?.relation;
    let TableFactor::Table { alias, .. } = factor else { return None };
    *factor = TableFactor::Derived { lateral: false, subquery: query, alias: alias.take(), sample: None };
    Some(call(OR_EMPTY, vec![template]))
}

/// Returns true if the rows are exactly those of FROM and WHERE.
fn is_plain(query: &Query) -> bool {
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    let is_grouped = !matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    let is_limited = query.limit_clause.is_some() || query.fetch.is_some() || query.with.is_some();
    let is_chosen = select.having.is_some() || select.qualify.is_some() || select.distinct.is_some();
    !is_grouped && !is_limited && !is_chosen
}

/// Rewrites scalar functions in FROM to queries of one row.
pub(super) fn in_from(select: &mut Select) {
    for of in &mut select.from {
        relations::relations_mut(of).for_each(as_query);
    }
}

fn as_query(factor: &mut TableFactor) {
    if let Some(query) = with_ordinals(factor) {
        *factor = query;
        return;
    }
    let TableFactor::Table { name, alias, args: Some(arguments), with_ordinality: false, .. } = factor else { return };
    let plain = name.to_string();
    let is_scalar = meta::names().any(|known| known == plain);
    // Series of columns are rewritten by `laterals`.
    let is_series =
        plain == "generate_series" && !arguments.args.iter().all(is_constant) && !arguments.args.iter().any(has_column);
    if plain.starts_with("__") || !is_series && (!is_scalar || meta::table_names().any(|known| known == plain)) {
        return;
    }
    let exprs = arguments.args.iter().map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    });
    let Some(exprs) = exprs.collect::<Option<Vec<_>>>() else { return };
    let lateral = arguments.args.iter().any(has_column);
    let value = call(&plain, exprs);
    let value = if is_series { call("unnest", vec![value]) } else { value };
    let named = alias.take();
    let table = named.as_ref().map_or_else(|| Ident::new(&plain), |alias| alias.name.clone());
    let column =
        named.as_ref().and_then(|alias| alias.columns.first()).map_or_else(|| table.clone(), |c| c.name.clone());
    let Some(Expr::Subquery(mut subquery)) = parsed("(SELECT 1)") else { return };
    if let SetExpr::Select(select) = subquery.body.as_mut() {
        select.projection = vec![SelectItem::ExprWithAlias { expr: value, alias: column }];
    }
    let alias = TableAlias { explicit: true, name: table, columns: Vec::new(), at: None };
    *factor = TableFactor::Derived { lateral, subquery, alias: Some(alias), sample: None };
}

/// Rewrites arrays and series in FROM with WITH ORDINALITY to a query that also returns the numbers of the rows.
fn with_ordinals(factor: &mut TableFactor) -> Option<TableFactor> {
    let (name, lists, alias) = match factor {
        TableFactor::UNNEST { alias, array_exprs, with_ordinality: true, with_offset: false, .. } => {
            ("unnest", array_exprs.clone(), alias)
        }
        TableFactor::Table { name, alias, args: Some(arguments), with_ordinality: true, .. } => {
            let (name, lists) = lists_of(name, &arguments.args)?;
            (name, lists, alias)
        }
        // Behind LATERAL.
        TableFactor::Function { name, args, with_ordinality: true, alias, .. } => {
            let (name, lists) = lists_of(name, args)?;
            (name, lists, alias)
        }
        _ => return None,
    };
    let lateral = lists.iter().any(|list| !columns_of(list).is_empty());
    let named = alias.take();
    let table = named.as_ref().map_or_else(|| Ident::new(name), |alias| alias.name.clone());
    let given: Vec<Ident> = named.iter().flat_map(|alias| &alias.columns).map(|column| column.name.clone()).collect();
    let usual = |at: usize| match at {
        0 => table.clone(),
        at if at == lists.len() => Ident::new(ORDINALITY),
        at => Ident::new(format!("{}{at}", table.value)),
    };
    let numbers = call(ORDINALS, lists.clone());
    let items = lists.iter().cloned().chain([numbers]).enumerate().map(|(at, list)| SelectItem::ExprWithAlias {
        expr: call("unnest", vec![list]),
        alias: given.get(at).cloned().unwrap_or_else(|| usual(at)),
    });
    let items = items.collect();
    let Expr::Subquery(mut subquery) = parsed("(SELECT 1)")? else { return None };
    let SetExpr::Select(select) = subquery.body.as_mut() else { return None };
    select.projection = items;
    let alias = TableAlias { explicit: true, name: table, columns: Vec::new(), at: None };
    Some(TableFactor::Derived { lateral, subquery, alias: Some(alias), sample: None })
}

/// Returns the name of a function of rows, and the lists whose items are its rows.
fn lists_of(name: &ObjectName, args: &[FunctionArg]) -> Option<(&'static str, Vec<Expr>)> {
    let expr = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    };
    let args = args.iter().map(expr).collect::<Option<Vec<_>>>()?;
    match name.to_string().as_str() {
        "unnest" => Some(("unnest", args)),
        "generate_series" => Some(("generate_series", vec![call("generate_series", args)])),
        _ => None,
    }
}

fn has_column(arg: &FunctionArg) -> bool {
    matches!(arg, FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) if !columns_of(expr).is_empty())
}

/// Returns true if the argument is constant, as a table function requires.
fn is_constant(arg: &FunctionArg) -> bool {
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg else { return true };
    let mut expr = expr;
    while let Expr::UnaryOp { expr: inner, .. } | Expr::Nested(inner) | Expr::Cast { expr: inner, .. } = expr {
        expr = inner;
    }
    match expr {
        Expr::Function(_) | Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Subquery(_) => false,
        _ => true,
    }
}

/// Parses the expression of a template.
fn parsed(sql: &str) -> Option<Expr> {
    Parser::new(&TidaliteDialect).try_with_sql(sql).and_then(|mut parser| parser.parse_expr()).ok()
}
