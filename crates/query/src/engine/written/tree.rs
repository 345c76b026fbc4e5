//! The types of parameters by the tree of a statement that only the binder plans.

use super::{ARGUMENTS, TIMESTAMP, Types, fill};
use tidalite_sql::ast::walk::{self, Visitor};
use tidalite_sql::ast::{
    BinaryOperator, Body, Expr, ExprKind, FunctionArg, FunctionCall, IsTest, Limit, Projection, QuantifiedSet, Query,
    Relation, RelationKind, Select, SelectItem, SpecialCall, TypeName, UnaryOperator,
};
use tidalite_types::ColumnType;
use tidalite_types::pg_type::{self, PgType};

/// Returns the number of a parameter, from 1.
fn parameter(expr: &Expr) -> Option<usize> {
    match expr.kind {
        ExprKind::Parameter(number) => Some(number as usize).filter(|number| *number > 0),
        _ => None,
    }
}

/// Fills in the types that the expressions of a query determine.
pub(super) fn types(query: &Query, types: &mut Types) {
    walk::query(query, &mut Places { types });
}

/// Makes parameters that are output columns strings if their types are not known.
pub(super) fn columns(query: &Query, types: &mut Types) {
    struct Columns<'a>(&'a mut Types);
    impl Visitor for Columns<'_> {
        fn select(&mut self, select: &Select) {
            let Projection::Items(items) = &select.projection else { return };
            for item in items {
                if let SelectItem::Expr { expr, .. } = item
                    && let Some(n) = parameter(expr)
                {
                    fill(self.0, n, Some(ColumnType::Varchar));
                }
            }
        }
    }
    walk::query(query, &mut Columns(types));
}

/// Fills in the types of parameters that are values of a row; the first `skip` values are not for columns.
pub(super) fn assigned(targets: &[Option<ColumnType>], query: &Query, skip: usize, types: &mut Types) {
    let mut put = |at: usize, expr: &Expr| {
        if let (Some(n), Some(target)) = (parameter(expr), at.checked_sub(skip).and_then(|at| targets.get(at))) {
            fill(types, n, *target);
        }
    };
    match &query.body {
        Body::Values(rows) => rows.iter().for_each(|row| row.iter().enumerate().for_each(|(at, expr)| put(at, expr))),
        Body::Select(select) => {
            let Projection::Items(items) = &select.projection else { return };
            for (at, item) in items.iter().enumerate() {
                if let SelectItem::Expr { expr, .. } = item {
                    put(at, expr);
                }
            }
        }
        Body::Query(inner) => assigned(targets, inner, skip, types),
        Body::Set { .. } => {}
    }
}

/// Fills in the types that parameters are cast to.
pub(super) fn casts(query: &Query, found: &mut [Option<PgType>]) {
    struct Casts<'a>(&'a mut [Option<PgType>]);
    impl Visitor for Casts<'_> {
        fn expr(&mut self, expr: &Expr) -> bool {
            if let ExprKind::Cast { operand, data_type, .. } = &expr.kind
                && let Some(slot) = parameter(operand).and_then(|n| self.0.get_mut(n - 1))
                && slot.is_none()
            {
                let name = name_of(data_type);
                *slot = pg_type::by_sql_name(name.strip_prefix("pg_catalog.").unwrap_or(&name));
            }
            true
        }
    }
    walk::query(query, &mut Casts(found));
}

/// Returns the parameters that are arrays, as in `x = ANY($1)`, counted from 0.
pub(super) fn lists(query: &Query) -> Vec<usize> {
    struct Lists(Vec<usize>);
    impl Visitor for Lists {
        fn expr(&mut self, expr: &Expr) -> bool {
            if let ExprKind::Quantified { set, .. } = &expr.kind
                && let QuantifiedSet::Values(values) = &**set
                && let [list] = values.as_slice()
            {
                self.0.extend(parameter(list).map(|n| n - 1));
            }
            true
        }
    }
    let mut lists = Lists(Vec::new());
    walk::query(query, &mut lists);
    lists.0
}

/// Returns the text of a type without the arguments.
fn name_of(data_type: &TypeName) -> String {
    let parts: Vec<&str> = data_type.name.parts.iter().map(|part| part.value.as_str()).collect();
    let zone = match data_type.with_time_zone {
        Some(true) => " with time zone",
        Some(false) => " without time zone",
        None => "",
    };
    format!("{}{zone}{}", parts.join("."), "[]".repeat(data_type.dimensions.len())).to_lowercase()
}

/// Fills in types of parameters by their places.
struct Places<'a> {
    types: &'a mut Types,
}

impl Places<'_> {
    fn is(&mut self, expr: &Expr, column_type: ColumnType) {
        if let Some(n) = parameter(expr) {
            fill(self.types, n, Some(column_type));
        }
    }

    fn all<'a>(&mut self, exprs: impl IntoIterator<Item = &'a Expr>, column_type: ColumnType) {
        exprs.into_iter().for_each(|expr| self.is(expr, column_type));
    }

    fn arguments(&mut self, call: &FunctionCall) {
        let [name] = call.name.parts.as_slice() else { return };
        let name = name.value.to_lowercase();
        for (column_type, functions) in ARGUMENTS {
            let Some((_, places)) = functions.iter().find(|(known, _)| *known == name) else { continue };
            for argument in places.iter().filter_map(|at| call.args.get(*at)) {
                if let FunctionArg::Expr(expr) = argument {
                    self.is(expr, *column_type);
                }
            }
        }
        self.all(&call.filter, ColumnType::Boolean);
    }

    fn special(&mut self, call: &SpecialCall) {
        match call {
            SpecialCall::Extract { operand, .. } => self.is(operand, TIMESTAMP),
            SpecialCall::Substring { from, length, .. } => self.all(from.iter().chain(length), ColumnType::Long),
            _ => {}
        }
    }

    fn binary(&mut self, left: &Expr, op: BinaryOperator, right: &Expr) {
        let is_shift = matches!(op, BinaryOperator::Add | BinaryOperator::Subtract);
        if is_shift && matches!(right.kind, ExprKind::Interval(_)) {
            return self.is(left, TIMESTAMP);
        }
        if parameter(left).is_none() || parameter(right).is_none() {
            return;
        }
        // The types of two parameters are determined by the operator only.
        match op {
            BinaryOperator::Concat => self.all([left, right], ColumnType::Varchar),
            BinaryOperator::BitAnd | BinaryOperator::BitOr => self.all([left, right], ColumnType::Long),
            _ => {}
        }
    }
}

impl Visitor for Places<'_> {
    fn query(&mut self, query: &Query) {
        match query.limit.as_deref() {
            Some(Limit::Count { count, offset } | Limit::Fetch { count, offset, .. }) => {
                self.all(count.iter().chain(offset), ColumnType::Long);
            }
            Some(Limit::Range { lo, hi }) => self.all([lo, hi], ColumnType::Long),
            None => {}
        }
    }

    fn select(&mut self, select: &Select) {
        let conditions = [&select.selection, &select.having, &select.qualify];
        self.all(conditions.into_iter().flatten(), ColumnType::Boolean);
    }

    fn relation(&mut self, relation: &Relation) {
        if let RelationKind::Function { call, .. } = &relation.kind {
            self.arguments(call);
        }
    }

    fn expr(&mut self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Cast { operand, data_type, .. } => {
                if let Some(n) = parameter(operand) {
                    let name = name_of(data_type);
                    let found = match name.as_str() {
                        "float" => Some(ColumnType::Double),
                        name => ColumnType::from_sql_name(name),
                    };
                    fill(self.types, n, found);
                }
            }
            ExprKind::Function(call) => self.arguments(call),
            ExprKind::Special(call) => self.special(call),
            ExprKind::Case { operand: None, branches, .. } => {
                self.all(branches.iter().map(|branch| &branch.when), ColumnType::Boolean);
            }
            ExprKind::Is { operand, test: IsTest::True | IsTest::False, .. }
            | ExprKind::Unary { op: UnaryOperator::Not, operand } => self.is(operand, ColumnType::Boolean),
            ExprKind::And(list) | ExprKind::Or(list) => self.all(list, ColumnType::Boolean),
            ExprKind::Binary { left, op, right } => self.binary(left, *op, right),
            _ => {}
        }
        true
    }
}
