//! DECLARE: variables are replaced by their values before the query is bound.

use super::names::folded;
use crate::{Error, Result};
use std::mem::take;
use tidalite_sql::Span;
use tidalite_sql::ast::walk::{self, Visitor};
use tidalite_sql::ast::walk_mut::{self, VisitorMut};
use tidalite_sql::ast::{
    Declaration, Expr, ExprKind, Ident, Literal, ObjectName, Query, Quote, Relation, RelationKind,
};
use tidalite_types::ErrorKind;

/// The maximum number of expressions that replace variables: a value may name earlier variables several times, which
/// multiplies the size of the query.
const EXPRESSIONS_MAX: usize = 100_000;
/// The maximum height of the value of a variable, whose expressions are bound by recursion.
const LEVELS_MAX: usize = 1_000;

/// Replaces the variables of a query by their values.
///
/// # Errors
/// A variable is not declared, or the values are too large.
pub(crate) fn resolve(query: &mut Query) -> Result<()> {
    let mut resolver = VariableResolver::default();
    walk_mut::query(query, &mut resolver);
    resolver.error.map_or(Ok(()), Err)
}

/// Returns the error for a variable that is not declared.
pub(super) fn unknown(name: &Ident) -> Error {
    let error = Error::new(ErrorKind::NotFound, format!("variable {} is not declared", name.value));
    let error = error.with_hint(format!("declare it: DECLARE {} := 1 SELECT …", name.value));
    error.about(name.value.clone()).at(name.span.start as usize)
}

struct Variable {
    name: String,
    value: Expr,
    size: Size,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Size {
    expressions: usize,
    levels: usize,
}

#[derive(Default)]
struct VariableResolver {
    /// The variables that are visible, the innermost last.
    variables: Vec<Variable>,
    /// The number of variables outside of each open query.
    outside: Vec<usize>,
    /// The number of expressions that have replaced variables.
    replaced: usize,
    error: Option<Error>,
}

impl VariableResolver {
    fn declare(&mut self, declaration: Declaration) {
        let Declaration { name, mut value, .. } = declaration;
        walk_mut::expr(&mut value, self);
        let size = size(&value);
        if size.levels > LEVELS_MAX {
            let message = format!("the value of variable {} has more than {LEVELS_MAX} levels", name.value);
            self.refuse(Error::invalid(message).at(name.span.start as usize));
        }
        self.variables.push(Variable { name: folded(&name), value, size });
    }

    fn refuse(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }

    /// Returns the value of a variable.
    fn value(&mut self, name: &Ident, span: Span) -> Option<Expr> {
        if self.error.is_some() {
            return None;
        }
        let key = folded(name);
        let Some(at) = self.variables.iter().rposition(|variable| variable.name == key) else {
            self.refuse(unknown(name));
            return None;
        };
        self.replaced += self.variables[at].size.expressions;
        if self.replaced > EXPRESSIONS_MAX {
            let message =
                format!("the statement grows too long: variables stand for more than {EXPRESSIONS_MAX} expressions");
            self.refuse(Error::invalid(message).at(span.start as usize));
            return None;
        }
        Some(self.variables[at].value.clone())
    }
}

impl VisitorMut for VariableResolver {
    fn query(&mut self, query: &mut Query) {
        self.outside.push(self.variables.len());
        for declaration in take(&mut query.declare) {
            self.declare(declaration);
        }
    }

    fn leave_query(&mut self, _: &mut Query) {
        self.variables.truncate(self.outside.pop().unwrap_or_default());
    }

    fn relation(&mut self, relation: &mut Relation) {
        let RelationKind::Variable(name) = &relation.kind else { return };
        let Some(value) = self.value(name, relation.span) else { return };
        match relation_of(value) {
            Ok(kind) => relation.kind = kind,
            Err(span) => self.refuse(
                Error::invalid("a variable in FROM stands for the name of a table or a query in parentheses")
                    .at(span.start as usize),
            ),
        }
    }

    fn expr(&mut self, expr: &mut Expr) -> bool {
        let ExprKind::Variable(name) = &expr.kind else { return true };
        if let Some(value) = self.value(&name.clone(), expr.span) {
            *expr = value;
        }
        false
    }
}

/// Returns the relation that a value stands for.
fn relation_of(value: Expr) -> std::result::Result<RelationKind, Span> {
    match value.kind {
        ExprKind::Column(name) => Ok(RelationKind::Table { name }),
        ExprKind::Literal(Literal::Text(text)) => {
            let part = Ident { value: text, quote: Some(Quote::Single), span: value.span };
            Ok(RelationKind::Table { name: ObjectName { parts: vec![part], span: value.span } })
        }
        ExprKind::Subquery(query) => Ok(RelationKind::Query { lateral: false, query }),
        _ => Err(value.span),
    }
}

/// Returns the number of expressions of a value, those of its sub-queries included, and its height.
fn size(value: &Expr) -> Size {
    #[derive(Default)]
    struct Counter {
        size: Size,
        level: usize,
    }
    impl Visitor for Counter {
        fn expr(&mut self, _: &Expr) -> bool {
            self.level += 1;
            self.size.expressions += 1;
            self.size.levels = self.size.levels.max(self.level);
            true
        }

        fn leave_expr(&mut self, _: &Expr) {
            self.level -= 1;
        }
    }
    let mut counter = Counter::default();
    walk::expr(value, &mut counter);
    counter.size
}
