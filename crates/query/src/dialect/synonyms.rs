//! Functions that are other functions by another name: `count_distinct(x)`, `variance(x)`, `to_timestamp(text, pattern)`, …
//!
//! They are put into their place after columns have got their names, which stay those that were written.

use datafusion::sql::sqlparser::ast::{
    DateTimeField, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    ObjectName, Query, Value, VisitorMut,
};
use std::ops::ControlFlow;

/// Aggregates that the engine does not know by these names.
pub(crate) const AGGREGATE_NAMES: &[&str] =
    &["count_distinct", "approx_count_distinct", "approx_percentile", "string_distinct_agg", "variance", "every"];

pub(super) fn replaced(query: &mut Query) {
    let _ = super::visit::visit_mut(query, &mut Replacer);
}

struct Replacer;

impl VisitorMut for Replacer {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(function) => named(function),
            Expr::Extract { field, expr: time, .. } => {
                let name = match field {
                    DateTimeField::Century => "century",
                    DateTimeField::Decade => "decade",
                    DateTimeField::Millennium | DateTimeField::Millenium => "millennium",
                    _ => return ControlFlow::Continue(()),
                };
                let time = std::mem::replace(time.as_mut(), Expr::Value(Value::Null.into()));
                *expr = super::sequences::call(name, vec![time]);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn named(function: &mut Function) {
    match function.name.to_string().as_str() {
        "count_distinct" => distinct(function, "count"),
        "string_distinct_agg" => distinct(function, "string_agg"),
        "approx_count_distinct" => rename(function, "approx_distinct"),
        "variance" => rename(function, "var_samp"),
        "every" => rename(function, "bool_and"),
        "approx_percentile" => {
            rename(function, "approx_percentile_cont");
            // QuestDB's third argument is its precision in digits, ours is what it takes.
            if let FunctionArguments::List(list) = &mut function.args {
                list.args.truncate(2);
            }
        }
        // `mode() WITHIN GROUP (ORDER BY x)`, as PostgreSQL has it.
        "mode" => {
            if let [key] = &function.within_group[..]
                && let FunctionArguments::List(list) = &mut function.args
                && list.args.is_empty()
            {
                list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(key.expr.clone()))];
                function.within_group.clear();
            }
        }
        "to_timestamp" => {
            if let FunctionArguments::List(list) = &function.args
                && let [_, FunctionArg::Unnamed(FunctionArgExpr::Expr(pattern))] = &list.args[..]
                && super::text(pattern).is_some_and(|pattern| !pattern.contains('%'))
            {
                rename(function, "__to_timestamp");
            }
        }
        _ => {}
    }
}

fn distinct(function: &mut Function, name: &str) {
    rename(function, name);
    if let FunctionArguments::List(list) = &mut function.args {
        list.duplicate_treatment = Some(DuplicateTreatment::Distinct);
    }
}

fn rename(function: &mut Function, name: &str) {
    function.name = ObjectName::from(vec![Ident::new(name)]);
}
