//! Tables under names that no column has.
//!
//! Within a sub-query whose table has a column `b`, the planner takes `b.n` for a part of that column, also where `b` is a
//! table outside of it. A statement that is planned so is planned again with every table called otherwise.

use super::laterals::name_of;
use super::using::rename_sides;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, TableAlias, TableFactor,
    TableWithJoins, Visitor, VisitorMut,
};
use std::collections::HashSet;
use std::ops::ControlFlow;

const PREFIX: &str = "__of_";

pub(crate) fn given(query: &mut Query) {
    let mut names = Names::default();
    let _ = super::visit(query, &mut names);
    let _ = super::visit_mut(query, &mut Renamer(names.0));
}

/// What tables are called.
#[derive(Default)]
struct Names(HashSet<String>);

impl Visitor for Names {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        self.0.extend(name_of(factor).map(|name| name.value));
        ControlFlow::Continue(())
    }
}

struct Renamer(HashSet<String>);

impl Renamer {
    fn joins(&self, of: &mut TableWithJoins) {
        rename_sides(of, &|table| self.0.contains(&table.value).then(|| named(table)));
    }
}

impl VisitorMut for Renamer {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
            self.joins(table_with_joins);
        }
        let Some(name) = name_of(factor) else { return ControlFlow::Continue(()) };
        if let TableFactor::Table { alias, .. } | TableFactor::Derived { alias, .. } = factor {
            let own = named(&name);
            match alias {
                Some(alias) => alias.name = own,
                None => *alias = Some(TableAlias { explicit: true, name: own, columns: Vec::new(), at: None }),
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        select.from.iter_mut().for_each(|of| self.joins(of));
        for item in &mut select.projection {
            if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) = item
                && let [only] = name.0.as_slice()
                && let Some(table) = only.as_ident().filter(|table| self.0.contains(&table.value))
            {
                *name = ObjectName::from(vec![named(table)]);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expr
            && let [table, _] = parts.as_mut_slice()
            && self.0.contains(&table.value)
        {
            *table = named(table);
        }
        ControlFlow::Continue(())
    }
}

fn named(table: &Ident) -> Ident {
    Ident { value: format!("{PREFIX}{}", table.value), ..table.clone() }
}
