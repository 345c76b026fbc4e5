//! What is changed in a query's tree before it is planned: names for computed columns, GROUP BY where it is left out,
//! `LIMIT lo, hi` and `LIMIT -n`, and the clauses of ours, which become relations ([`super::relations`]).

use super::{
    balanced, casts, group_by, laterals, relations, row_values, sequences, set_returning, synonyms, using, values,
    windows,
};
use crate::functions::limits::ALL_BUT_LAST;
use crate::{Error, Result};
use datafusion::sql::sqlparser::ast::{
    self, Expr, Ident, LimitClause, Offset, OffsetRows, Query, Select, SelectFlavor, SelectItem, SetExpr, TableFactor,
    Value, Visitor, VisitorMut, WildcardAdditionalOptions,
};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

/// The longest name made from an expression's text, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Expressions of a sub-query, after what is changed in it. Some changes put a part in several places, and one within
/// another would grow without end.
const SUB_QUERY_MAX: usize = 50_000;

/// Returns n when the statement ends in `LIMIT -n`, the last n rows; the tree then has no limit there.
pub(super) fn rewrite(query: &mut Query) -> Result<Option<u64>> {
    let tail = match &query.limit_clause {
        Some(LimitClause::LimitOffset { limit: Some(limit), offset: None, .. }) => negative(limit),
        _ => None,
    };
    if tail.is_some() {
        query.limit_clause = None;
    }
    match super::visit::visit_mut(query, &mut Rewriter { depth: 0, tables: Vec::new() }) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => {
            synonyms::replaced(query);
            Ok(tail)
        }
    }
}

struct Rewriter {
    /// Queries that are open.
    depth: usize,
    /// What the tables are called of each SELECT that is open.
    tables: Vec<Vec<String>>,
}

impl Rewriter {
    /// Whether all that an aggregate is of belongs to queries around its own: it would be one of theirs.
    fn is_of_outer(&self, expr: &Expr) -> bool {
        let Expr::Function(function) = expr else { return false };
        let Some((own, outer)) = self.tables.split_last() else { return false };
        if outer.is_empty() || function.over.is_some() || !group_by::is_aggregate(&function.name.to_string()) {
            return false;
        }
        let columns = laterals::columns_of(expr);
        let is_outer = |parts: &Vec<String>| match &parts[..] {
            [.., table, _] => !own.contains(table) && outer.iter().any(|tables| tables.contains(table)),
            _ => false,
        };
        !columns.is_empty() && columns.iter().all(is_outer)
    }
}

impl VisitorMut for Rewriter {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        self.depth += 1;
        balanced::union(&mut query.body);
        name_all(&mut query.body);
        match using::marked(query) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if self.is_of_outer(expr) {
            let message = "aggregates of outer columns alone are not supported";
            let error =
                Error::invalid(message).with_hint("compute them in a sub-query in FROM: FROM (SELECT max(n) AS m …) a");
            return ControlFlow::Break(match super::call(expr) {
                Some((name, _)) => error.about(name),
                None => error,
            });
        }
        balanced::expr(expr);
        set_returning::rewritten(expr);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        self.depth -= 1;
        if let Err(error) = limit(query) {
            return ControlFlow::Break(error);
        }
        fetch(query);
        if let SetExpr::Select(select) = query.body.as_mut()
            && let Some(mut renamer) = super::laterals::rewritten(select)
            && let Some(order) = &mut query.order_by
        {
            let _ = super::visit::visit_mut(order, &mut renamer);
        }
        relations::order_by_names(query);
        row_values::values(&mut query.order_by);
        match set_expr(&mut query.body, &self.tables) {
            Ok(()) if self.depth > 0 && is_huge(query) => ControlFlow::Break(Error::invalid(
                "the statement is too large: its sub-queries are within each other too often",
            )),
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        set_returning::in_from(select);
        let names = relations::factors(select).into_iter().filter_map(laterals::name_of);
        self.tables.push(names.map(|name| name.value).collect());
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        self.tables.pop();
        relations::nest_joins(select);
        ControlFlow::Continue(())
    }

    /// What the planner would pass over in silence is refused.
    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        match factor {
            TableFactor::Table { sample: Some(_), .. } => {
                ControlFlow::Break(Error::invalid("TABLESAMPLE is not supported"))
            }
            TableFactor::Table { version: Some(_), .. } => {
                ControlFlow::Break(Error::invalid("versions of tables are not supported"))
            }
            TableFactor::Table { with_ordinality: true, .. } | TableFactor::Function { with_ordinality: true, .. } => {
                let error = Error::invalid("WITH ORDINALITY is not supported for this function");
                ControlFlow::Break(error.with_hint("it follows unnest and generate_series"))
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

fn is_huge(query: &Query) -> bool {
    struct Counter(usize);
    impl Visitor for Counter {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            self.0 += usize::from(!matches!(expr, Expr::Value(_)));
            if self.0 > SUB_QUERY_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }
    super::visit::visit(query, &mut Counter(0)).is_break()
}

/// `outer` are the tables of each SELECT around it.
fn set_expr(mut body: &mut SetExpr, outer: &[Vec<String>]) -> Result<()> {
    // Left-deep, as long chains of UNION are.
    loop {
        match body {
            SetExpr::Select(select) => {
                let _ = laterals::rewritten(select);
                windows::resolved(select);
                name_columns(select, outer);
                sequences::rewritten(select);
                group_by::positions(select);
                group_by::implied(select);
                casts::told_apart(select);
                row_values::rewritten(select);
                return relations::clauses(select);
            }
            SetExpr::SetOperation { left, right, .. } => {
                set_expr(right, outer)?;
                body = left;
            }
            SetExpr::Values(list) => {
                values::typed(list);
                return Ok(());
            }
            _ => return Ok(()),
        }
    }
}

/// `FROM t` is `SELECT * FROM t`.
fn name_all(body: &mut SetExpr) {
    for select in selects_mut(body) {
        if matches!(select.flavor, SelectFlavor::FromFirstNoSelect) {
            select.projection = vec![relations::all_columns()];
            select.flavor = SelectFlavor::Standard;
        }
    }
}

/// Those that a query is made of, not those of sub-queries.
pub(super) fn selects_mut(body: &mut SetExpr) -> Vec<&mut Select> {
    let (mut found, mut left) = (Vec::new(), vec![body]);
    while let Some(body) = left.pop() {
        match body {
            SetExpr::Select(select) => found.push(select.as_mut()),
            SetExpr::SetOperation { left: one, right: other, .. } => left.extend([one.as_mut(), other.as_mut()]),
            _ => {}
        }
    }
    found
}

/// `FETCH FIRST n ROWS ONLY` is `LIMIT n`.
fn fetch(query: &mut Query) {
    let Some(ast::Fetch { with_ties: false, percent: false, quantity }) = &query.fetch else { return };
    let rows = quantity.clone().unwrap_or_else(|| Expr::Value(Value::Number("1".to_owned(), false).into()));
    let offset = match query.limit_clause.take() {
        None => None,
        Some(LimitClause::LimitOffset { limit: None, offset, .. }) => offset,
        limited => {
            query.limit_clause = limited;
            return;
        }
    };
    query.fetch = None;
    query.limit_clause = Some(LimitClause::LimitOffset { limit: Some(rows), offset, limit_by: Vec::new() });
}

/// QuestDB's `LIMIT lo, hi` are the rows after `lo` up to `hi`; the stock parser reads MySQL's offset and count.
fn limit(query: &mut Query) -> Result<()> {
    if let Some(LimitClause::LimitOffset { limit: Some(limit), offset: Some(_), .. }) = &query.limit_clause
        && negative(limit).is_some()
    {
        return Err(
            Error::invalid("LIMIT -n is supported only without OFFSET").with_hint("LIMIT -n, -m leaves out the last m")
        );
    }
    if let Some(LimitClause::OffsetCommaLimit { offset, limit }) = &query.limit_clause {
        let number = |n: u64| Expr::Value(Value::Number(n.to_string(), false).into());
        let (limit, skipped) = match (integer(offset), integer(limit), negative(offset), negative(limit)) {
            (Some(lo), Some(hi), ..) => (number(hi.saturating_sub(lo)), lo),
            // From the end: the plan turns a negative limit round.
            (.., Some(from), Some(to)) if from > to => {
                let rows = Box::new(number(from - to));
                (Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr: rows }, to)
            }
            (.., Some(_), Some(_)) => (number(0), 0),
            // All rows after `lo`.
            (Some(lo), .., Some(0)) => (Expr::Value(Value::Null.into()), lo),
            (Some(lo), .., Some(to)) => (sequences::call(ALL_BUT_LAST, vec![number(to)]), lo),
            // NULL counts no rows from the start, and all rows up to the end.
            _ if is_unknown(offset) || is_unknown(limit) => {
                let (limit, value) = (Some(limit.clone()), offset.clone());
                let offset = Some(Offset { value, rows: OffsetRows::None });
                query.limit_clause = Some(LimitClause::LimitOffset { limit, offset, limit_by: Vec::new() });
                return Ok(());
            }
            _ => {
                let message = "LIMIT lo, hi takes two numbers, the first not from the end unless the second is, too";
                return Err(Error::invalid(message));
            }
        };
        query.limit_clause = Some(LimitClause::LimitOffset {
            limit: Some(limit),
            offset: Some(Offset { value: number(skipped), rows: OffsetRows::None }),
            limit_by: Vec::new(),
        });
    }
    Ok(())
}

/// Returns true for NULL and for a parameter without a value.
fn is_unknown(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => matches!(value.value, Value::Null | Value::Placeholder(_)),
        Expr::Cast { expr, .. } => is_unknown(expr),
        _ => false,
    }
}

fn negative(expr: &Expr) -> Option<u64> {
    match expr {
        Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr } => integer(expr),
        // The value of a parameter is one word with its sign.
        _ => digits(expr)?.strip_prefix('-')?.parse().ok(),
    }
}

fn integer(expr: &Expr) -> Option<u64> {
    digits(expr)?.parse().ok()
}

fn digits(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(text, _) | Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// Gives computed columns the names PostgreSQL and QuestDB give them: the function's, else the text; a name that
/// comes twice is counted, as the planner wants distinct ones. A column of `outer` tables has its own name, too, which the
/// planner would make another of.
fn name_columns(select: &mut Select, outer: &[Vec<String>]) {
    let names = relations::factors(select).into_iter().filter_map(laterals::name_of);
    let own: HashSet<String> = names.map(|name| name.value).collect();
    let is_outer = |parts: &[Ident]| match parts {
        [.., table, _] => !own.contains(&table.value) && outer.iter().any(|tables| tables.contains(&table.value)),
        _ => false,
    };
    // Names as they are written; none made up here may be one of them.
    let mut taken: HashSet<String> = HashSet::new();
    for item in &select.projection {
        match item {
            SelectItem::ExprWithAlias { alias, .. } => taken.insert(alias.value.clone()),
            SelectItem::UnnamedExpr(Expr::Identifier(ident)) => taken.insert(ident.value.clone()),
            _ => false,
        };
    }
    let mut seen: HashMap<String, usize> = HashMap::new();
    let starred = Starred::of(select);
    for item in &mut select.projection {
        let is_again = starred.has(item);
        let (name, is_named) = match &*item {
            SelectItem::ExprWithAlias { alias, .. } => (alias.value.clone(), true),
            SelectItem::UnnamedExpr(Expr::Identifier(ident)) => (ident.value.clone(), true),
            SelectItem::UnnamedExpr(expr @ Expr::CompoundIdentifier(_)) => (expr.to_string(), true),
            SelectItem::UnnamedExpr(expr) => (computed_name(expr), false),
            _ => continue,
        };
        let count = seen.entry(name.clone()).or_insert(usize::from(is_again));
        *count += 1;
        let count = *count;
        let column = match &*item {
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => parts.last().map(|part| part.value.clone()),
            _ => None,
        };
        // `t.n` beside `x AS n`, which has the name by itself.
        let gives_way = column.as_ref().is_some_and(|column| taken.contains(column));
        let is_of_outer = matches!(&*item, SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) if is_outer(parts));
        if is_named && count == 1 && !gives_way && !is_of_outer {
            continue;
        }
        let base = column.unwrap_or(name);
        let is_free = (!is_named || is_of_outer) && count == 1 && !taken.contains(&base);
        let alias = if is_free {
            base
        } else {
            let numbers = count.saturating_sub(1).max(1)..;
            let free = numbers.map(|n| format!("{base}{n}")).find(|name| !taken.contains(name));
            free.unwrap_or(base)
        };
        taken.insert(alias.clone());
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { continue };
        let expr = std::mem::replace(expr, Expr::Value(Value::Null.into()));
        *item = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', alias) };
    }
}

/// Whose columns a SELECT has by `*`.
struct Starred {
    has_all: bool,
    tables: HashSet<String>,
    /// The only table there is.
    single: Option<String>,
}

impl Starred {
    fn of(select: &Select) -> Starred {
        let single = match select.from.as_slice() {
            [only] if only.joins.is_empty() => laterals::name_of(&only.relation).map(|name| name.value),
            _ => None,
        };
        let mut starred = Starred { has_all: false, tables: HashSet::new(), single };
        for item in &select.projection {
            match item {
                SelectItem::Wildcard(options) if is_plain(options) => starred.has_all = true,
                SelectItem::QualifiedWildcard(ast::SelectItemQualifiedWildcardKind::ObjectName(name), options)
                    if is_plain(options) =>
                {
                    starred.tables.insert(last_part(name));
                }
                _ => {}
            }
        }
        starred
    }

    /// Whether a column that is named is among these, too.
    fn has(&self, item: &SelectItem) -> bool {
        match item {
            SelectItem::UnnamedExpr(Expr::Identifier(_)) => {
                self.has_all || self.single.as_ref().is_some_and(|table| self.tables.contains(table))
            }
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => match parts.as_slice() {
                [.., table, _] => self.has_all || self.tables.contains(&table.value),
                _ => false,
            },
            _ => false,
        }
    }
}

fn is_plain(options: &WildcardAdditionalOptions) -> bool {
    options.opt_except.is_none()
        && options.opt_exclude.is_none()
        && options.opt_replace.is_none()
        && options.opt_rename.is_none()
        && options.opt_ilike.is_none()
}

pub(super) fn computed_name(expr: &Expr) -> String {
    match expr {
        Expr::Function(function) if function.name.to_string() == super::RANGE => "interval".to_owned(),
        Expr::Function(function) => last_part(&function.name),
        Expr::Nested(inner) => computed_name(inner),
        Expr::Identifier(ident) => ident.value.clone(),
        Expr::CompoundIdentifier(parts) => parts.last().map(|p| p.value.clone()).unwrap_or_default(),
        Expr::Cast { expr: inner, .. } if !matches!(**inner, Expr::Value(_)) => computed_name(inner),
        Expr::Cast { data_type, .. } => data_type.to_string().to_lowercase(),
        Expr::Case { .. } => "case".to_owned(),
        Expr::Extract { .. } => "extract".to_owned(),
        Expr::Substring { .. } => "substring".to_owned(),
        Expr::Trim { .. } => "trim".to_owned(),
        Expr::Ceil { .. } => "ceil".to_owned(),
        Expr::Floor { .. } => "floor".to_owned(),
        Expr::Position { .. } => "position".to_owned(),
        Expr::Exists { .. } => "exists".to_owned(),
        Expr::Subquery(_) => "column".to_owned(),
        other => {
            let text = super::subscripts::as_written(&super::clauses::as_written(&other.to_string()));
            let text = super::symmetric::as_written(&text);
            if text.len() <= NAME_BYTES_MAX { text } else { "column".to_owned() }
        }
    }
}

fn last_part(name: &ast::ObjectName) -> String {
    name.0.last().and_then(|part| part.as_ident()).map_or_else(|| name.to_string(), |ident| ident.value.clone())
}
