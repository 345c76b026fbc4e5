//! Scopes: the columns that an expression may name, and where names of outer queries are looked up.

use super::sequences::Sequence;
use datafusion::common::{Column, DFSchemaRef, TableReference};
use datafusion::logical_expr::{Expr, LogicalPlan};
use std::rc::Rc;
use tidalite_sql::ast::NamedWindow;

/// The columns of the FROM clause of one query level.
pub(super) struct Scope<'p> {
    /// The schema of the plan that computes the columns.
    pub schema: DFSchemaRef,
    /// In the order of `*`.
    pub columns: Vec<ScopeColumn>,
    /// The scope of the enclosing query, for correlated names.
    pub outer: Option<&'p Scope<'p>>,
}

/// A column that can be named.
#[derive(Clone, Debug)]
pub(super) struct ScopeColumn {
    /// The table or alias that the column belongs to.
    pub relation: Option<TableReference>,
    pub name: String,
    /// The value over the schema of the scope: a column, or the merged column of a FULL JOIN.
    pub value: Expr,
    pub visibility: Visibility,
}

/// The ways in which a column can be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Visibility {
    /// By its name with and without its table, and by `*`.
    All,
    /// Without a table, and by `*`: a merged column of a join USING.
    Merged,
    /// With its table only: a column of a side of a join USING.
    Side,
}

impl Visibility {
    /// Returns true if the column has a name without a table, and is one of `*`.
    pub fn is_bare(self) -> bool {
        matches!(self, Visibility::All | Visibility::Merged)
    }

    /// Returns true if the column can be named with its table.
    pub fn is_of_table(self) -> bool {
        matches!(self, Visibility::All | Visibility::Side)
    }
}

impl ScopeColumn {
    /// Returns true if the column can be named with a table.
    pub fn is_of(&self, table: &TableReference) -> bool {
        self.visibility.is_of_table() && self.relation.as_ref().is_some_and(|relation| table.resolved_eq(relation))
    }

    /// Returns the value under the name of the column.
    pub fn named_value(&self) -> Expr {
        match &self.value {
            Expr::Column(_) => self.value.clone(),
            value => value.clone().alias_qualified(self.relation.clone(), &self.name),
        }
    }
}

/// The columns that have a name.
pub(super) enum Found<'s> {
    None,
    One(&'s ScopeColumn),
    Several,
}

impl<'p> Scope<'p> {
    /// Returns the scope with the columns of a plan.
    pub fn of_plan(plan: &LogicalPlan, outer: Option<&'p Scope<'p>>) -> Scope<'p> {
        Scope { schema: plan.schema().clone(), columns: columns_of(plan), outer }
    }

    /// Finds the column with a name, without a table.
    pub fn find(&self, name: &str) -> Found<'_> {
        let named = || self.columns.iter().filter(|c| c.visibility.is_bare() && c.name == name);
        match only(named()) {
            // A computed column, which belongs to no table, precedes the columns of tables.
            Found::Several => match only(named().filter(|c| c.relation.is_none())) {
                Found::One(column) => Found::One(column),
                _ => Found::Several,
            },
            found => found,
        }
    }

    /// Finds the column with a name in a table.
    pub fn find_in(&self, table: &TableReference, name: &str) -> Found<'_> {
        only(self.columns.iter().filter(|c| c.is_of(table) && c.name == name))
    }

    pub fn has_table(&self, table: &TableReference) -> bool {
        self.columns.iter().any(|c| c.is_of(table))
    }

    /// Returns this scope and the scopes around it, innermost first.
    pub fn levels(&self) -> impl Iterator<Item = &Scope<'p>> {
        std::iter::successors(Some(self), |scope| scope.outer)
    }
}

fn only<'s>(mut found: impl Iterator<Item = &'s ScopeColumn>) -> Found<'s> {
    match (found.next(), found.next()) {
        (Some(column), None) => Found::One(column),
        (None, _) => Found::None,
        _ => Found::Several,
    }
}

/// Returns the columns of a plan, each visible in every way.
pub(super) fn columns_of(plan: &LogicalPlan) -> Vec<ScopeColumn> {
    let column = |(relation, field): (Option<&TableReference>, &datafusion::arrow::datatypes::FieldRef)| ScopeColumn {
        relation: relation.cloned(),
        name: field.name().clone(),
        value: Expr::Column(Column::new(relation.cloned(), field.name())),
        visibility: Visibility::All,
    };
    plan.schema().iter().map(column).collect()
}

/// A plan of FROM with the columns that can be named.
pub(super) struct Source {
    pub plan: LogicalPlan,
    pub columns: Vec<ScopeColumn>,
}

impl Source {
    pub fn of_plan(plan: LogicalPlan) -> Source {
        let columns = columns_of(&plan);
        Source { plan, columns }
    }

    pub fn scope<'p>(&self, outer: Option<&'p Scope<'p>>) -> Scope<'p> {
        Scope { schema: self.plan.schema().clone(), columns: self.columns.clone(), outer }
    }
}

/// The names around a query: the scope of the enclosing query, and the queries of WITH.
#[derive(Clone, Default)]
pub(super) struct Env<'p> {
    pub outer: Option<&'p Scope<'p>>,
    ctes: Option<Rc<NamedPlan>>,
}

struct NamedPlan {
    name: String,
    plan: LogicalPlan,
    before: Option<Rc<NamedPlan>>,
}

impl<'p> Env<'p> {
    /// Returns the environment of a sub-query of an expression in `scope`.
    pub fn within<'q>(&self, scope: &'q Scope<'q>) -> Env<'q> {
        Env { outer: Some(scope), ctes: self.ctes.clone() }
    }

    /// Names a plan; an older plan of the name is hidden.
    pub fn name_plan(&mut self, name: String, plan: LogicalPlan) {
        self.ctes = Some(Rc::new(NamedPlan { name, plan, before: self.ctes.take() }));
    }

    /// Returns the plan of a query of WITH.
    pub fn plan_named(&self, name: &str) -> Option<&LogicalPlan> {
        let all = std::iter::successors(self.ctes.as_deref(), |cte| cte.before.as_deref());
        all.into_iter().find(|cte| cte.name == name).map(|cte| &cte.plan)
    }
}

/// The place of an expression: the names that it may use.
#[derive(Clone, Copy)]
pub(super) struct Place<'p> {
    pub scope: &'p Scope<'p>,
    pub env: &'p Env<'p>,
    pub aliases: Aliases<'p>,
    pub windows: &'p [NamedWindow],
    /// The `long_sequence` that random values of the place belong to.
    pub sequence: Option<&'p Sequence>,
}

impl<'p> Place<'p> {
    pub fn new(scope: &'p Scope<'p>, env: &'p Env<'p>) -> Place<'p> {
        Place { scope, env, aliases: Aliases { list: &[], come_first: false }, windows: &[], sequence: None }
    }

    /// Returns the place of the arguments of an aggregate or window function: columns precede aliases there.
    pub fn within_call(self) -> Place<'p> {
        Place { aliases: Aliases { come_first: false, ..self.aliases }, ..self }
    }
}

/// The names of the SELECT list, with the expressions that have them.
#[derive(Clone, Copy)]
pub(super) struct Aliases<'p> {
    pub list: &'p [(String, Expr)],
    /// True where an alias precedes a column of the same name.
    pub come_first: bool,
}

impl<'p> Aliases<'p> {
    pub fn find(&self, name: &str) -> Option<&'p Expr> {
        self.list.iter().find(|(alias, _)| alias == name).map(|(_, expr)| expr)
    }
}
