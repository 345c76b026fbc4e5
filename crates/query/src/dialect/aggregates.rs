//! Aggregates that are other aggregates by another name: `count_distinct(x)`, `vwap(price, amount)`, `geomean(x)`, …
//!
//! They are put into their place after columns have got their names, which stay those that were written.

use super::TidaliteDialect;
use datafusion::sql::sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArguments, Ident, ObjectName, Query, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;
use std::ops::ControlFlow;

/// The names this page knows, which have a column of its own in no GROUP BY.
pub(super) const NAMES: &[&str] = &[
    "count_distinct",
    "vwap",
    "weighted_avg",
    "geomean",
    "ksum",
    "nsum",
    "approx_count_distinct",
    "approx_percentile",
];

pub(super) fn replaced(query: &mut Query) {
    let _ = VisitMut::visit(query, &mut Replacer);
}

struct Replacer;

impl VisitorMut for Replacer {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        let name = function.name.to_string();
        match name.as_str() {
            "count_distinct" => {
                rename(function, "count");
                if let FunctionArguments::List(list) = &mut function.args {
                    list.duplicate_treatment = Some(DuplicateTreatment::Distinct);
                }
            }
            // Our sums are of doubles as they come; these two differ from a plain one by rounding only.
            "ksum" | "nsum" => rename(function, "sum"),
            "approx_count_distinct" => rename(function, "approx_distinct"),
            "approx_percentile" => rename(function, "approx_percentile_cont"),
            "vwap" | "weighted_avg" | "geomean" if function.over.is_none() && function.filter.is_none() => {
                if let Some(formula) = formula(&name, function) {
                    *expr = formula;
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn rename(function: &mut Function, name: &str) {
    function.name = ObjectName::from(vec![Ident::new(name)]);
}

/// Rows where one of the arguments is NULL do not count.
fn formula(name: &str, function: &Function) -> Option<Expr> {
    let (_, arguments) = super::call(&Expr::Function(function.clone()))?;
    let sql = match (name, &arguments[..]) {
        ("geomean", [x]) => format!("exp(avg(ln(({x})::double)))"),
        ("vwap" | "weighted_avg", [value, weight]) => format!(
            "(sum(({value})::double * ({weight})::double) / nullif(sum(CASE WHEN ({value}) IS NULL THEN NULL ELSE ({weight})::double END), 0))"
        ),
        _ => return None,
    };
    Parser::new(&TidaliteDialect).try_with_sql(&sql).ok()?.parse_expr().ok()
}
