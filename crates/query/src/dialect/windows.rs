//! Windows that build on a named one: `sum(v) OVER (w ROWS 1 PRECEDING) … WINDOW w AS (PARTITION BY k ORDER BY v)`. The
//! stock planner takes only what stands in the parentheses; what the named window says is put there.

use datafusion::sql::sqlparser::ast::{
    Expr, NamedWindowDefinition, NamedWindowExpr, Select, SelectItem, WindowSpec, WindowType,
};

pub(super) fn resolved(select: &mut Select) {
    let named = std::mem::take(&mut select.named_window);
    let mut resolve = |expr: &mut Expr| {
        if let Expr::Function(function) = expr
            && let Some(WindowType::WindowSpec(spec)) = &mut function.over
        {
            build(spec, &named);
        }
    };
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            super::visit::change_own(expr, &mut resolve);
        }
    }
    if let Some(qualify) = &mut select.qualify {
        super::visit::change_own(qualify, &mut resolve);
    }
    // They may build on each other, each on one before it.
    let mut done: Vec<NamedWindowDefinition> = Vec::new();
    for NamedWindowDefinition(name, window) in named {
        let window = match window {
            NamedWindowExpr::WindowSpec(mut spec) => {
                build(&mut spec, &done);
                NamedWindowExpr::WindowSpec(spec)
            }
            other => other,
        };
        done.push(NamedWindowDefinition(name, window));
    }
    select.named_window = done;
}

/// Puts what the window says that `spec` names into it.
fn build(spec: &mut WindowSpec, named: &[NamedWindowDefinition]) {
    // A name that names itself is named once.
    for _ in 0..=named.len() {
        let Some(name) = &spec.window_name else { return };
        let found = named.iter().find(|NamedWindowDefinition(known, _)| known.value == name.value);
        match found.map(|NamedWindowDefinition(_, window)| window) {
            Some(NamedWindowExpr::WindowSpec(base)) => {
                if spec.partition_by.iter().all(super::exclusions::is_note) {
                    spec.partition_by.extend(base.partition_by.iter().cloned());
                }
                if spec.order_by.is_empty() {
                    spec.order_by.clone_from(&base.order_by);
                }
                if spec.window_frame.is_none() {
                    spec.window_frame.clone_from(&base.window_frame);
                }
                spec.window_name.clone_from(&base.window_name);
            }
            Some(NamedWindowExpr::NamedWindow(other)) => spec.window_name = Some(other.clone()),
            None => return,
        }
    }
}
