//! GROUP BY where it is left out: `SELECT symbol, avg(price) FROM trades` groups by `symbol`.

use datafusion::sql::sqlparser::ast::{Expr, GroupByExpr, Query, Select, SelectItem, Value, Visitor};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::LazyLock;

static AGGREGATES: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let stock = datafusion::functions_aggregate::all_default_aggregate_functions();
    let ours = crate::functions::aggregates();
    let names = stock.iter().chain(&ours).flat_map(|f| f.aliases().iter().cloned().chain([f.name().to_owned()]));
    names.chain(super::AGGREGATE_NAMES.iter().map(|name| (*name).to_owned())).collect()
});

/// Whether a function of the name is an aggregate.
pub(super) fn is_aggregate(name: &str) -> bool {
    AGGREGATES.contains(name)
}

/// As [`crate::functions::prepare`].
pub(crate) fn prepare() {
    LazyLock::force(&AGGREGATES);
}

/// `GROUP BY ROLLUP(1, 2)`: columns by their position, as in plain lists.
pub(super) fn positions(select: &mut Select) {
    let GroupByExpr::Expressions(keys, _) = &mut select.group_by else { return };
    for key in keys {
        let (Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets)) = key else { continue };
        for item in sets.iter_mut().flatten() {
            if let Some(expr) = at_position(item, &select.projection) {
                *item = expr.clone();
            }
        }
    }
}

/// What is selected at the place that a key says.
fn at_position<'a>(key: &Expr, projection: &'a [SelectItem]) -> Option<&'a Expr> {
    let Expr::Value(value) = key else { return None };
    let Value::Number(text, _) = &value.value else { return None };
    let at = text.parse::<usize>().ok()?.checked_sub(1)?;
    match projection.get(at)? {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

/// What a key of GROUP BY stands for: an item of the list by its position or by its name, or itself.
pub(super) fn meant<'a>(key: &'a Expr, projection: &'a [SelectItem]) -> &'a Expr {
    let by_name = || {
        let Expr::Identifier(name) = key else { return None };
        projection.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if alias.value == name.value => Some(expr),
            _ => None,
        })
    };
    at_position(key, projection).or_else(by_name).unwrap_or(key)
}

/// Groups by everything selected that has a column and no aggregate, when something else has one.
pub(super) fn implied(select: &mut Select) {
    let is_grouped = !matches!(&select.group_by, GroupByExpr::Expressions(keys, modifiers) if keys.is_empty() && modifiers.is_empty());
    let is_ours = !select.cluster_by.is_empty() || super::relations::has_window_join(select);
    if is_grouped || is_ours || select.from.is_empty() {
        return;
    }
    let mut keys = Vec::new();
    let mut has_aggregate = false;
    for item in &select.projection {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { return };
        let found = Found::within(expr);
        has_aggregate |= found.has_aggregate;
        if found.has_column && !found.has_aggregate && !found.has_window {
            keys.push(expr.clone());
        }
    }
    if has_aggregate && !keys.is_empty() {
        select.group_by = GroupByExpr::Expressions(keys, Vec::new());
    }
}

/// What an expression has outside of its sub-queries.
#[derive(Default)]
struct Found {
    has_aggregate: bool,
    has_window: bool,
    has_column: bool,
    depth: usize,
}

impl Found {
    fn within(expr: &Expr) -> Found {
        let mut found = Found::default();
        let _ = super::visit::visit(expr, &mut found);
        found
    }
}

impl Visitor for Found {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        match expr {
            Expr::Function(function) if function.over.is_some() => self.has_window = true,
            Expr::Function(function) => {
                self.has_aggregate |= is_aggregate(&function.name.to_string());
            }
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => self.has_column = true,
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
