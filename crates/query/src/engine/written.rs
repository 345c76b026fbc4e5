//! What the text of a statement says of its parameters: casts around them, limits, places in calls of functions, and
//! which are lists.

use crate::parameters::number;
use crate::{Statement, dialect};
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, LimitClause, Value, Visitor,
    VisitorMut,
};
use std::ops::ControlFlow;
use tidalite_types::ColumnType;

type Types = Vec<Option<ColumnType>>;

/// Arguments that are whole numbers whatever the others are.
const WHOLE: &[(&str, &[usize])] = &[
    ("chr", &[0]),
    ("dateadd", &[1]),
    ("generate_series", &[0, 1, 2]),
    ("lag", &[1]),
    ("lead", &[1]),
    ("left", &[1]),
    ("long_sequence", &[0]),
    ("lpad", &[1]),
    ("nth_value", &[1]),
    ("ntile", &[0]),
    ("range", &[0, 1, 2]),
    ("repeat", &[1]),
    ("right", &[1]),
    ("round", &[1]),
    ("rpad", &[1]),
    ("split_part", &[2]),
    ("substr", &[1, 2]),
    ("substring", &[1, 2]),
    ("trunc", &[1]),
];

pub(super) fn fill(types: &mut Types, n: usize, known: Option<ColumnType>) {
    if let Some(slot) = types.get_mut(n - 1)
        && slot.is_none()
    {
        *slot = known;
    }
}

/// The number of a parameter.
pub(super) fn placeholder(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Placeholder(name) => number(name),
            _ => None,
        },
        Expr::Nested(inner) => placeholder(inner),
        _ => None,
    }
}

/// Fills in types that are not known; whether there were any.
pub(super) fn types(query: &ast::Query, types: &mut Types) -> bool {
    let before = types.iter().flatten().count();
    let _ = dialect::visit(query, &mut Written { types });
    types.iter().flatten().count() > before
}

struct Written<'a> {
    types: &'a mut Types,
}

impl Visitor for Written<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<()> {
        if let Some(LimitClause::LimitOffset { limit, offset, .. }) = &query.limit_clause {
            limit.iter().chain(offset.iter().map(|o| &o.value)).for_each(|expr| self.whole(expr));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &ast::TableFactor) -> ControlFlow<()> {
        if let ast::TableFactor::Table { name, args: Some(list), .. } = factor {
            self.arguments(&name.to_string(), &list.args);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Cast { expr, data_type, .. } => {
                if let Some(n) = placeholder(expr) {
                    let name = data_type.to_string();
                    let name = name.split('(').next().unwrap_or_default().trim();
                    fill(self.types, n, ColumnType::from_sql_name(name));
                }
            }
            Expr::Function(function) => {
                if let FunctionArguments::List(list) = &function.args {
                    self.arguments(&function.name.to_string(), &list.args);
                }
            }
            // Of neither side it can be told what is joined: texts.
            Expr::BinaryOp { left, op: BinaryOperator::StringConcat, right } => {
                if let (Some(n), Some(m)) = (placeholder(left), placeholder(right)) {
                    fill(self.types, n, Some(ColumnType::Varchar));
                    fill(self.types, m, Some(ColumnType::Varchar));
                }
            }
            Expr::Substring { substring_from, substring_for, .. } => {
                substring_from.iter().chain(substring_for).for_each(|expr| self.whole(expr));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Written<'_> {
    fn whole(&mut self, expr: &Expr) {
        if let Some(n) = placeholder(expr) {
            fill(self.types, n, Some(ColumnType::Long));
        }
    }

    fn arguments(&mut self, name: &str, arguments: &[FunctionArg]) {
        let Some((_, places)) = WHOLE.iter().find(|(known, _)| *known == name) else { return };
        for (at, argument) in arguments.iter().enumerate() {
            if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument
                && places.contains(&at)
            {
                self.whole(expr);
            }
        }
    }
}

/// `x = ANY($1)` becomes `x = $1`, which has the type of the list's items; gives the parameters that are such lists.
pub(super) fn lists(statement: &mut Statement) -> Vec<usize> {
    let mut found = Lists(Vec::new());
    let query = match statement {
        Statement::Query(query) | Statement::Explain { query, .. } => query,
        Statement::Delete(delete) => match &mut delete.query {
            Some(query) => query,
            None => return found.0,
        },
        Statement::Update(update) => &mut update.query,
        _ => return found.0,
    };
    let _ = dialect::visit_mut(query.ast.as_mut(), &mut found);
    found.0
}

struct Lists(Vec<usize>);

impl VisitorMut for Lists {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let item = match expr {
            Expr::AnyOp { left, compare_op, right, .. } | Expr::AllOp { left, compare_op, right } => {
                placeholder(right).map(|n| (n, left.clone(), compare_op.clone(), right.clone()))
            }
            Expr::Function(function) if function.name.to_string() == "array_has" => of_call(function),
            _ => None,
        };
        if let Some((n, left, op, right)) = item {
            self.0.push(n - 1);
            *expr = Expr::BinaryOp { left, op, right };
        }
        ControlFlow::Continue(())
    }
}

type Item = (usize, Box<Expr>, BinaryOperator, Box<Expr>);

fn of_call(function: &ast::Function) -> Option<Item> {
    let FunctionArguments::List(list) = &function.args else { return None };
    match &list.args[..] {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(list)), FunctionArg::Unnamed(FunctionArgExpr::Expr(item))] => {
            Some((placeholder(list)?, Box::new(item.clone()), BinaryOperator::Eq, Box::new(list.clone())))
        }
        _ => None,
    }
}
