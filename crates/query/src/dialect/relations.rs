//! Clauses of ours as relations that the planner asks [`crate::plan`] about.
//!
//! `SELECT … SAMPLE BY …` becomes `SELECT * FROM __sample_by((SELECT …), …)`, `… LATEST ON …` becomes
//! `SELECT … FROM __latest_on((SELECT * …), …)`, `SELECT … FROM t WINDOW JOIN …` becomes
//! `SELECT * FROM __window_join((SELECT …))`, and what stands left of an ASOF JOIN goes into parentheses with it.

use super::clauses::{BOUND, LATEST_ON, SAMPLE_BY, TIME_JOIN, WINDOW_JOIN};
use super::using::merged_join;
use crate::{Error, Result};
use datafusion::sql::sqlparser::ast::{
    self, ExcludeSelectItem, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Ident, Join,
    JoinOperator, ObjectName, OrderByKind, Query, Select, SelectFlavor, SelectItem, SetExpr, TableFactor,
    TableWithJoins, Value, WildcardAdditionalOptions,
};

/// A relation of ours with what it is over.
pub(crate) enum Relation {
    /// The query as it was written and the arguments of the clause.
    SampleBy(Box<Select>, Vec<Expr>),
    /// All rows that the clause chooses from, and its arguments.
    LatestOn(Box<Query>, Vec<Expr>),
    /// The last join is the one in question.
    TimeJoin(Box<TableWithJoins>),
    /// The last join is one USING columns, or a NATURAL one.
    MergedJoin(Box<TableWithJoins>),
    /// The query as it was written, its last joins among them.
    WindowJoin(Box<Select>),
}

/// Takes the clauses out of their slots.
pub(super) fn clauses(select: &mut Select) -> Result<()> {
    if let Some(arguments) = taken(select.sort_by.first().map(|o| &o.expr), LATEST_ON)? {
        select.sort_by.clear();
        let rows = Select {
            projection: vec![all_columns()],
            from: std::mem::take(&mut select.from),
            selection: select.selection.take(),
            ..empty(select)
        };
        select.from = vec![over(LATEST_ON, rows, arguments)];
    }
    if let Some(arguments) = taken(select.cluster_by.first(), SAMPLE_BY)? {
        select.cluster_by.clear();
        if !matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty()) {
            return Err(Error::invalid("SAMPLE BY groups by every column selected: leave GROUP BY out"));
        }
        let rows = select.clone();
        *select =
            Select { projection: vec![all_columns()], from: vec![over(SAMPLE_BY, rows, arguments)], ..empty(select) };
    }
    if has_window_join(select) {
        let rows = select.clone();
        *select = Select {
            projection: vec![all_columns()],
            from: vec![over(WINDOW_JOIN, rows, Vec::new())],
            ..empty(select)
        };
    }
    if !select.cluster_by.is_empty() || !select.sort_by.is_empty() {
        return Err(Error::invalid("CLUSTER BY and SORT BY are not supported"));
    }
    Ok(())
}

/// ORDER BY of what SAMPLE BY computes may repeat the expression: it is the column that has it.
pub(super) fn order_by_names(query: &mut Query) {
    let (SetExpr::Select(select), Some(order)) = (query.body.as_ref(), &mut query.order_by) else { return };
    let OrderByKind::Expressions(keys) = &mut order.kind else { return };
    if select.cluster_by.is_empty() && !has_window_join(select) {
        return;
    }
    for key in keys {
        let named = select.projection.iter().position(|item| match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => *expr == key.expr,
            _ => false,
        });
        if let Some(position) = named.filter(|_| matches!(key.expr, Expr::Function(_))) {
            key.expr = Expr::Value(Value::Number((position + 1).to_string(), false).into());
        }
    }
}

/// A join and all that is left of it become one table, so that it is planned by us.
pub(super) fn nest_joins(select: &mut Select) {
    for table in &mut select.from {
        nest(table);
    }
}

pub(crate) fn nest(table: &mut TableWithJoins) {
    for relation in relations_mut(table) {
        let TableFactor::NestedJoin { table_with_joins: inner, alias } = relation else { continue };
        // What ends in such a join, and has no name, is one already.
        let last = inner.joins.pop_if(|join| alias.is_none() && is_ours(join));
        nest(inner);
        inner.joins.extend(last);
    }
    while let Some(at) = table.joins.iter().position(is_ours) {
        let rest = table.joins.split_off(at + 1);
        let placeholder =
            TableFactor::Derived { lateral: false, subquery: Box::new(no_query()), alias: None, sample: None };
        let inner = TableWithJoins {
            relation: std::mem::replace(&mut table.relation, placeholder),
            joins: std::mem::take(&mut table.joins),
        };
        table.relation = TableFactor::NestedJoin { table_with_joins: Box::new(inner), alias: None };
        table.joins = rest;
    }
}

fn is_ours(join: &Join) -> bool {
    is_by_time(join) && window_join(join).is_none() || merged_join(join).is_some()
}

pub(super) fn relations_mut(of: &mut TableWithJoins) -> impl Iterator<Item = &mut TableFactor> {
    std::iter::once(&mut of.relation).chain(of.joins.iter_mut().map(|join| &mut join.relation))
}

fn relations(of: &TableWithJoins) -> impl Iterator<Item = &TableFactor> {
    std::iter::once(&of.relation).chain(of.joins.iter().map(|join| &join.relation))
}

/// The tables of a SELECT, those within joins among them.
pub(super) fn factors(select: &Select) -> Vec<&TableFactor> {
    let (mut found, mut left) = (Vec::new(), Vec::new());
    left.extend(select.from.iter().rev());
    while let Some(of) = left.pop() {
        for relation in relations(of) {
            match relation {
                TableFactor::NestedJoin { table_with_joins, alias: None } => left.push(table_with_joins),
                other => found.push(other),
            }
        }
    }
    found
}

/// What a table goes by.
pub(crate) fn called(factor: &TableFactor) -> Option<Ident> {
    match factor {
        TableFactor::Table { name, alias: None, .. } => name.0.last()?.as_ident().cloned(),
        TableFactor::Table { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::UNNEST { alias, .. }
        | TableFactor::NestedJoin { alias, .. }
        | TableFactor::Pivot { alias, .. }
        | TableFactor::Unpivot { alias, .. } => Some(alias.as_ref()?.name.clone()),
        _ => None,
    }
}

fn is_by_time(join: &Join) -> bool {
    matches!(join.join_operator, JoinOperator::AsOf { .. })
}

/// The bounds of a WINDOW JOIN and whether the row before them counts; nothing of another join.
pub(crate) fn window_join(join: &Join) -> Option<([(Expr, String); 2], bool)> {
    let JoinOperator::AsOf { match_condition, .. } = &join.join_operator else { return None };
    let (name, arguments) = call(match_condition)?;
    let [lo, hi, prevailing] = &arguments[..] else { return None };
    let bound = |expr: &Expr| match call(expr)? {
        (name, arguments) if name == BOUND => {
            let [length, unit] = <[Expr; 2]>::try_from(arguments).ok()?;
            Some((length, text(&unit)?))
        }
        _ => None,
    };
    (name == WINDOW_JOIN).then(|| Some(([bound(lo)?, bound(hi)?], text(prevailing)? == "include")))?
}

pub(super) fn has_window_join(select: &Select) -> bool {
    select.from.iter().any(|table| table.joins.iter().any(|join| window_join(join).is_some()))
}

/// What a table factor of ours stands for; any other is given back.
pub(crate) fn relation(factor: TableFactor) -> std::result::Result<Relation, TableFactor> {
    match factor {
        TableFactor::Function { ref name, ref args, .. }
            if [SAMPLE_BY, LATEST_ON, WINDOW_JOIN].contains(&name.to_string().as_str()) =>
        {
            let clause = name.to_string();
            let mut expressions = args.iter().filter_map(|arg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
                _ => None,
            });
            let Some(Expr::Subquery(query)) = expressions.next() else { return Err(factor) };
            let arguments = expressions.collect();
            if clause == LATEST_ON {
                return Ok(Relation::LatestOn(query, arguments));
            }
            match *query.body {
                SetExpr::Select(select) if clause == SAMPLE_BY => Ok(Relation::SampleBy(select, arguments)),
                SetExpr::Select(select) => Ok(Relation::WindowJoin(select)),
                _ => Err(factor),
            }
        }
        TableFactor::NestedJoin { table_with_joins, alias: None }
            if table_with_joins.joins.last().is_some_and(is_by_time) =>
        {
            Ok(Relation::TimeJoin(table_with_joins))
        }
        TableFactor::NestedJoin { table_with_joins, alias: None }
            if table_with_joins.joins.last().is_some_and(|join| merged_join(join).is_some()) =>
        {
            Ok(Relation::MergedJoin(table_with_joins))
        }
        other => Err(other),
    }
}

/// The arguments of a clause that was put into a function call.
fn taken(slot: Option<&Expr>, name: &str) -> Result<Option<Vec<Expr>>> {
    let Some(slot) = slot else { return Ok(None) };
    match call(slot) {
        Some((found, arguments)) if found == name => Ok(Some(arguments)),
        _ => Err(Error::invalid("CLUSTER BY and SORT BY are not supported")),
    }
}

/// A function call by name, with its plain arguments.
pub(crate) fn call(expr: &Expr) -> Option<(String, Vec<Expr>)> {
    let Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) = expr else { return None };
    let arguments = list.args.iter().filter_map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    });
    Some((name.to_string(), arguments.collect()))
}

/// How an ASOF JOIN was written: its kind and its tolerance.
pub(crate) fn time_join(condition: &Expr) -> Option<(String, String)> {
    let (name, arguments) = call(condition)?;
    let [kind, tolerance] = &arguments[..] else { return None };
    (name == TIME_JOIN).then(|| Some((text(kind)?, text(tolerance)?)))?
}

/// The text of a literal.
pub(crate) fn text(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    }
}

fn over(name: &str, rows: Select, arguments: Vec<Expr>) -> TableWithJoins {
    let rows = Expr::Subquery(Box::new(query(rows)));
    let arguments = std::iter::once(rows).chain(arguments);
    let args = arguments.map(|e| FunctionArg::Unnamed(FunctionArgExpr::Expr(e))).collect();
    let name = ObjectName::from(vec![Ident::new(name)]);
    let relation = TableFactor::Function { lateral: false, name, args, with_ordinality: false, alias: None };
    TableWithJoins { relation, joins: Vec::new() }
}

pub(crate) fn all_columns() -> SelectItem {
    SelectItem::Wildcard(WildcardAdditionalOptions::default())
}

/// `*` does not show them.
pub(super) fn hide(select: &mut Select, hidden: Vec<Ident>) {
    for item in &mut select.projection {
        let SelectItem::Wildcard(options) = item else { continue };
        let names = hidden.iter().map(|name| ObjectName::from(vec![name.clone()]));
        let excluded = match options.opt_exclude.take() {
            None => names.collect(),
            Some(ExcludeSelectItem::Single(one)) => std::iter::once(one).chain(names).collect(),
            Some(ExcludeSelectItem::Multiple(some)) => some.into_iter().chain(names).collect(),
        };
        options.opt_exclude = Some(ExcludeSelectItem::Multiple(excluded));
    }
}

pub(crate) fn query(select: Select) -> Query {
    Query { body: Box::new(SetExpr::Select(Box::new(select))), ..no_query() }
}

/// Returns a query without rows or columns.
fn no_query() -> Query {
    Query {
        with: None,
        body: Box::new(SetExpr::Values(ast::Values { explicit_row: false, value_keyword: false, rows: Vec::new() })),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}

/// A SELECT of nothing from nowhere.
pub(crate) fn empty(like: &Select) -> Select {
    Select {
        select_token: like.select_token.clone(),
        optimizer_hints: Vec::new(),
        distinct: None,
        select_modifiers: None,
        top: None,
        top_before_distinct: false,
        projection: Vec::new(),
        exclude: None,
        into: None,
        from: Vec::new(),
        lateral_views: Vec::new(),
        prewhere: None,
        selection: None,
        group_by: GroupByExpr::Expressions(Vec::new(), Vec::new()),
        cluster_by: Vec::new(),
        distribute_by: Vec::new(),
        sort_by: Vec::new(),
        having: None,
        named_window: Vec::new(),
        window_before_qualify: false,
        qualify: None,
        value_table_mode: None,
        connect_by: Vec::new(),
        flavor: SelectFlavor::Standard,
    }
}
