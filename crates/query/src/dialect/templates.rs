//! Functions that are written as expressions of others, with their arguments in the places.

use super::TidaliteDialect;
use crate::functions::percentiles::POSITION;
use datafusion::sql::sqlparser::ast::{Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, VisitorMut};
use datafusion::sql::sqlparser::parser::Parser;
use std::ops::ControlFlow;

/// `None` when it is another function, or is written in another way.
pub(super) fn expression(function: &Function) -> Option<Expr> {
    if function.over.is_some() {
        return None;
    }
    match function.name.to_string().as_str() {
        "percentile_disc" => percentile(function),
        "mod" => of_arguments(function, "(__a % __b)"),
        _ => None,
    }
}

fn of_arguments(function: &Function, template: &str) -> Option<Expr> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let argument = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    };
    let given: Vec<Expr> = list.args.iter().map(argument).collect::<Option<_>>()?;
    let names = ["__a", "__b"].into_iter().filter(|name| template.contains(name));
    let places: Vec<(&str, &Expr)> = names.clone().zip(&given).collect();
    (places.len() == given.len() && given.len() == names.count()).then(|| filled(template, &places)).flatten()
}

/// The first value in order that so large a share of all is not behind: of all values in order the one at that place.
fn percentile(function: &Function) -> Option<Expr> {
    let [key] = &function.within_group[..] else { return None };
    let FunctionArguments::List(list) = &function.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(share))] = &list.args[..] else { return None };
    let order = if key.options.asc == Some(false) { " DESC" } else { "" };
    let (and, counted) = match &function.filter {
        Some(_) => (" AND __filter", " FILTER (WHERE __filter)"),
        None => ("", ""),
    };
    let template = format!(
        "array_element(array_agg(__value ORDER BY __value{order}) FILTER (WHERE __value IS NOT NULL{and}), \
         {POSITION}(__share, count(__value){counted}))"
    );
    let mut places = vec![("__value", &key.expr), ("__share", share)];
    places.extend(function.filter.as_deref().map(|filter| ("__filter", filter)));
    filled(&template, &places)
}

fn filled(template: &str, places: &[(&str, &Expr)]) -> Option<Expr> {
    let mut expr = Parser::new(&TidaliteDialect).try_with_sql(template).ok()?.parse_expr().ok()?;
    let _ = super::visit::visit_mut(&mut expr, &mut Places(places));
    Some(expr)
}

struct Places<'a>(&'a [(&'a str, &'a Expr)]);

impl VisitorMut for Places<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Expr::Identifier(place) = &*expr else { return ControlFlow::Continue(()) };
        if let Some((_, put)) = self.0.iter().find(|(name, _)| *name == place.value) {
            *expr = Expr::Nested(Box::new((*put).clone()));
        }
        ControlFlow::Continue(())
    }
}
