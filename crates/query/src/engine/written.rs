//! Types of parameters by the text of a statement: casts, limits, conditions, arguments of functions, and lists.

mod tree;

use crate::parameters::number;
use crate::statement::Query;
use crate::{Statement, dialect};
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, LimitClause, SelectItem, SetExpr,
    UnaryOperator, Value, Visitor, VisitorMut,
};
use std::ops::ControlFlow;
use tidalite_types::pg_type::{self, PgType};
use tidalite_types::{ColumnType, TimeUnit};

type Types = Vec<Option<ColumnType>>;

const TIMESTAMP: ColumnType = ColumnType::Timestamp(TimeUnit::Micros);

/// The name of a function, and which of its arguments.
type Places = (&'static str, &'static [usize]);

/// Arguments that are of a type whatever the others are.
const ARGUMENTS: &[(ColumnType, &[Places])] = &[
    (
        ColumnType::Long,
        &[
            ("bit_and", &[0]),
            ("bit_or", &[0]),
            ("bit_xor", &[0]),
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
        ],
    ),
    (
        ColumnType::Double,
        &[
            ("abs", &[0]),
            ("avg", &[0]),
            ("ceil", &[0]),
            ("exp", &[0]),
            ("floor", &[0]),
            ("ln", &[0]),
            ("log", &[0, 1]),
            ("log10", &[0]),
            ("log2", &[0]),
            ("median", &[0]),
            ("power", &[0, 1]),
            ("round", &[0]),
            ("sign", &[0]),
            ("sqrt", &[0]),
            ("stddev", &[0]),
            ("sum", &[0]),
            ("trunc", &[0]),
        ],
    ),
    (ColumnType::Boolean, &[("bool_and", &[0]), ("bool_or", &[0])]),
    (TIMESTAMP, &[("dateadd", &[2]), ("date_part", &[1]), ("date_trunc", &[1]), ("timestamp_floor", &[1])]),
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

/// Fills in types that are not known; returns true if there were any.
pub(super) fn types(query: &Query, types: &mut Types) -> bool {
    let before = types.iter().flatten().count();
    if let Some(parsed) = &query.ast {
        let _ = dialect::visit(&**parsed, &mut Written { types });
    } else if let Some(tree) = &query.tree {
        tree::types(&tree.query, types);
    }
    types.iter().flatten().count() > before
}

/// Makes parameters that are output columns strings if their types are not known; returns true if there were any.
pub(super) fn columns(query: &Query, types: &mut Types) -> bool {
    let before = types.iter().flatten().count();
    if let Some(parsed) = &query.ast {
        let _ = dialect::visit(&**parsed, &mut Columns { types });
    } else if let Some(tree) = &query.tree {
        tree::columns(&tree.query, types);
    }
    types.iter().flatten().count() > before
}

/// Returns the types that parameters are cast to, which become the parameter types.
pub(super) fn casts(statement: &Statement, count: usize) -> Vec<Option<PgType>> {
    let mut found = Casts(vec![None; count]);
    let queries = match statement {
        Statement::Query(query) | Statement::Explain { query, .. } => vec![query],
        Statement::Insert(insert) => {
            let updated = insert.conflict.iter().filter_map(|conflict| conflict.update.as_ref()).map(|set| &set.query);
            std::iter::once(&insert.query).chain(updated).chain(&insert.returning).collect()
        }
        Statement::Delete(delete) => delete.query.iter().chain(&delete.returning).collect(),
        Statement::Update(update) => std::iter::once(&update.query).chain(&update.returning).collect(),
        Statement::CreateTableAs(create) => vec![&create.query],
        _ => Vec::new(),
    };
    for query in queries {
        if let Some(parsed) = &query.ast {
            let _ = dialect::visit(&**parsed, &mut found);
        } else if let Some(tree) = &query.tree {
            tree::casts(&tree.query, &mut found.0);
        }
    }
    found.0
}

/// Fills in the types of parameters that are values of a row; the first `skip` values are not for columns.
pub(super) fn assigned(targets: &[Option<ColumnType>], query: &Query, skip: usize, types: &mut Types) {
    if let Some(tree) = query.only_tree() {
        return tree::assigned(targets, &tree.query, skip, types);
    }
    let Some(SetExpr::Select(select)) = query.ast.as_deref().map(|parsed| &*parsed.body) else { return };
    for (at, item) in select.projection.iter().enumerate() {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item
            && let (Some(n), Some(target)) = (placeholder(expr), at.checked_sub(skip).and_then(|at| targets.get(at)))
        {
            fill(types, n, *target);
        }
    }
}

struct Casts(Vec<Option<PgType>>);

impl Visitor for Casts {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Cast { expr, data_type, .. } = expr
            && let Some(slot) = placeholder(expr).and_then(|n| self.0.get_mut(n - 1))
            && slot.is_none()
        {
            // The name may be in quotes, with the schema of the catalog.
            let name = data_type.to_string().replace('"', "");
            *slot = pg_type::by_sql_name(name.strip_prefix("pg_catalog.").unwrap_or(&name));
        }
        ControlFlow::Continue(())
    }
}

struct Columns<'a> {
    types: &'a mut Types,
}

impl Visitor for Columns<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &ast::Select) -> ControlFlow<()> {
        for item in &select.projection {
            if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item
                && let Some(n) = placeholder(expr)
            {
                fill(self.types, n, Some(ColumnType::Varchar));
            }
        }
        ControlFlow::Continue(())
    }
}

struct Written<'a> {
    types: &'a mut Types,
}

impl Visitor for Written<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<()> {
        if let Some(LimitClause::LimitOffset { limit, offset, .. }) = &query.limit_clause {
            limit.iter().chain(offset.iter().map(|o| &o.value)).for_each(|expr| self.is(expr, ColumnType::Long));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &ast::Select) -> ControlFlow<()> {
        let conditions = [&select.selection, &select.having, &select.qualify];
        conditions.into_iter().flatten().for_each(|expr| self.is(expr, ColumnType::Boolean));
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
                    let found = if name.eq_ignore_ascii_case("float") {
                        Some(ColumnType::Double)
                    } else {
                        ColumnType::from_sql_name(name)
                    };
                    fill(self.types, n, found);
                }
            }
            Expr::Function(function) => {
                if let FunctionArguments::List(list) = &function.args {
                    self.arguments(&function.name.to_string(), &list.args);
                }
                function.filter.iter().for_each(|expr| self.is(expr, ColumnType::Boolean));
            }
            Expr::Substring { substring_from, substring_for, .. } => {
                substring_from.iter().chain(substring_for).for_each(|expr| self.is(expr, ColumnType::Long));
            }
            Expr::Ceil { expr, .. } | Expr::Floor { expr, .. } => self.is(expr, ColumnType::Double),
            Expr::Extract { expr, .. } => self.is(expr, TIMESTAMP),
            Expr::Case { operand: None, conditions, .. } => {
                conditions.iter().for_each(|when| self.is(&when.condition, ColumnType::Boolean));
            }
            Expr::IsTrue(of) | Expr::IsFalse(of) | Expr::IsNotTrue(of) | Expr::IsNotFalse(of) => {
                self.is(of, ColumnType::Boolean);
            }
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => self.is(expr, ColumnType::Boolean),
            Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
                self.is(left, ColumnType::Boolean);
                self.is(right, ColumnType::Boolean);
            }
            Expr::BinaryOp { left, op: BinaryOperator::Plus | BinaryOperator::Minus, right }
                if matches!(**right, Expr::Interval(_)) =>
            {
                self.is(left, TIMESTAMP);
            }
            // The types of two parameters are determined by the operator only.
            Expr::BinaryOp { left, op, right } if placeholder(left).is_some() && placeholder(right).is_some() => {
                let both = match op {
                    BinaryOperator::StringConcat => ColumnType::Varchar,
                    BinaryOperator::BitwiseAnd | BinaryOperator::BitwiseOr => ColumnType::Long,
                    _ => return ControlFlow::Continue(()),
                };
                self.is(left, both);
                self.is(right, both);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Written<'_> {
    fn is(&mut self, expr: &Expr, column_type: ColumnType) {
        if let Some(n) = placeholder(expr) {
            fill(self.types, n, Some(column_type));
        }
    }

    fn arguments(&mut self, name: &str, arguments: &[FunctionArg]) {
        for (column_type, functions) in ARGUMENTS {
            let Some((_, places)) = functions.iter().find(|(known, _)| *known == name) else { continue };
            for (at, argument) in arguments.iter().enumerate() {
                if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument
                    && places.contains(&at)
                {
                    self.is(expr, *column_type);
                }
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
    if let Some(parsed) = &mut query.ast {
        let _ = dialect::visit_mut(&mut **parsed, &mut found);
    } else if let Some(tree) = &query.tree {
        return tree::lists(&tree.query);
    }
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
