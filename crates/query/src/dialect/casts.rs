//! Expressions that differ in casts alone: `max(v::int), max(v)`, `GROUP BY n, n::varchar`.
//!
//! The planner names them without their casts, so that two of them are one to it. Where that is so, a cast says its type
//! in a call around it, which does nothing.

use super::group_by;
use crate::functions::same_name;
use datafusion::sql::sqlparser::ast::{Expr, GroupByExpr, Select, SelectItem, Value};
use std::collections::{HashMap, HashSet};

pub(super) fn told_apart(select: &mut Select) {
    let mut has_casts = false;
    own(select, &mut |expr| has_casts |= is_cast(expr));
    if !has_casts {
        return;
    }
    let mut written: HashMap<String, HashSet<String>> = HashMap::new();
    let mut note = |expr: &Expr| {
        written.entry(bare(expr)).or_default().insert(expr.to_string());
    };
    own(select, &mut |expr| {
        if matches!(expr, Expr::Function(_)) {
            note(expr);
        }
    });
    if let GroupByExpr::Expressions(keys, _) = &select.group_by {
        keys.iter().map(|key| group_by::meant(key, &select.projection)).for_each(&mut note);
    }
    let alike: HashSet<String> = written.into_values().filter(|texts| texts.len() > 1).flatten().collect();
    if alike.is_empty() {
        return;
    }
    own(select, &mut |expr| {
        if alike.contains(&expr.to_string()) {
            super::visit::change_own(expr, &mut named);
        }
    });
}

/// Shows the expressions that the planner names.
fn own(select: &mut Select, look: &mut dyn FnMut(&mut Expr)) {
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            super::visit::change_own(expr, look);
        }
    }
    if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
        keys.iter_mut().for_each(|key| super::visit::change_own(key, look));
    }
    for expr in select.having.iter_mut().chain(&mut select.qualify) {
        super::visit::change_own(expr, look);
    }
}

fn is_cast(expr: &Expr) -> bool {
    matches!(expr, Expr::Cast { .. } | Expr::AtTimeZone { .. })
}

/// The text without casts.
fn bare(expr: &Expr) -> String {
    let mut expr = expr.clone();
    super::visit::change_own(&mut expr, &mut |e| {
        if let Expr::Cast { expr: inner, .. } | Expr::AtTimeZone { timestamp: inner, .. } | Expr::Nested(inner) = e {
            *e = inner.as_ref().clone();
        }
    });
    expr.to_string()
}

fn named(expr: &mut Expr) {
    let kind = match expr {
        Expr::Cast { data_type, .. } => data_type.to_string(),
        Expr::AtTimeZone { time_zone, .. } => time_zone.to_string(),
        _ => return,
    };
    let cast = std::mem::replace(expr, Expr::Value(Value::Null.into()));
    let kind = Expr::Value(Value::SingleQuotedString(kind).into());
    *expr = super::sequences::call(same_name::AS, vec![cast, kind]);
}
