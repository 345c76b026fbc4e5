//! What goes with `FROM long_sequence(n, seed1, seed2)`: values by chance get the seeds and the number of the row, and
//! `timestamp_sequence(start, step)` becomes the start and the steps up to the row.

use super::TidaliteDialect;
use crate::functions::random::{self, SEEDED};
use crate::functions::sequence;
use crate::functions::series::LONG_SEQUENCE;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, ObjectName, Select,
    SelectItem, TableFactor, Value, Visitor, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;
use std::ops::ControlFlow;

pub(super) fn rewritten(select: &mut Select) {
    let factors = super::relations::factors(select);
    let Some(mut rewriter) = factors.into_iter().find_map(sequence_of) else { return };
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            let _ = super::visit::visit_mut(expr, &mut rewriter);
        }
    }
    if let Some(selection) = &mut select.selection {
        let _ = super::visit::visit_mut(selection, &mut rewriter);
    }
}

fn sequence_of(factor: &TableFactor) -> Option<Rewriter> {
    let TableFactor::Table { name, alias, args: Some(args), .. } = factor else { return None };
    if name.to_string() != LONG_SEQUENCE {
        return None;
    }
    let seeds: Vec<Expr> = args.args[1.min(args.args.len())..].iter().filter_map(plain).cloned().collect();
    let x = match alias {
        Some(alias) => Expr::CompoundIdentifier(vec![alias.name.clone(), Ident::new("x")]),
        None => Expr::Identifier(Ident::new("x")),
    };
    Some(Rewriter { x, seeds: <[Expr; 2]>::try_from(seeds).ok(), calls: 0 })
}

fn plain(arg: &FunctionArg) -> Option<&Expr> {
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    }
}

struct Rewriter {
    x: Expr,
    seeds: Option<[Expr; 2]>,
    calls: usize,
}

impl VisitorMut for Rewriter {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Some((name, args)) = super::call(expr) else { return ControlFlow::Continue(()) };
        if random::NAMES.contains(&name.as_str()) {
            if let Some([first, second]) = self.seeds.clone() {
                self.calls += 1;
                let own = [first, second, number(self.calls), self.x.clone(), text(&name)];
                *expr = call(SEEDED, own.into_iter().chain(args).collect());
            }
        } else if let (true, [start, step]) = (sequence::NAMES.contains(&name.as_str()), &args[..]) {
            let after =
                if name.ends_with("_ns") { format!("{}_ns", sequence::AFTER) } else { sequence::AFTER.to_owned() };
            if let Some(steps) = steps(step, &self.x) {
                *expr = call(&after, vec![start.clone(), steps]);
            }
        }
        ControlFlow::Continue(())
    }
}

/// What lies between the first row and row `x`.
fn steps(step: &Expr, x: &Expr) -> Option<Expr> {
    let sql = if has_call(step) {
        format!("coalesce(sum({step}) OVER (ORDER BY {x} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)")
    } else {
        format!("(({x} - 1) * ({step}))")
    };
    Parser::new(&TidaliteDialect).try_with_sql(&sql).ok()?.parse_expr().ok()
}

/// Whether a step may be another one for each row.
fn has_call(expr: &Expr) -> bool {
    struct Finder;
    impl Visitor for Finder {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            if matches!(expr, Expr::Function(_) | Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        }
    }
    super::visit::visit(expr, &mut Finder).is_break()
}

fn number(value: usize) -> Expr {
    Expr::Value(Value::Number(value.to_string(), false).into())
}

fn text(value: &str) -> Expr {
    Expr::Value(Value::SingleQuotedString(value.to_owned()).into())
}

/// A call of a function.
pub(super) fn call(name: &str, args: Vec<Expr>) -> Expr {
    let args = args.into_iter().map(|expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))).collect();
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}
