//! The tables and files that a query names.

use super::files::{self, FileCall};
use super::names::{folded, folded_parts, table_reference};
use super::{Binder, Result, Tree};
use crate::tables::full_name;
use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::datasource::provider_as_source;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::TableSource;
use std::collections::HashMap;
use std::sync::Arc;
use tidalite_sql::Span;
use tidalite_sql::ast::walk::{self, Visitor};
use tidalite_sql::ast::{CteBody, Query, Relation, RelationKind};

/// The tables and files of one query.
#[derive(Default)]
pub(crate) struct Tables {
    /// By the name that the query has for them.
    named: HashMap<TableReference, Arc<dyn TableSource>>,
    /// By the place of the name of the file, or of the function that reads files.
    files: HashMap<Span, Arc<dyn TableSource>>,
}

impl Tables {
    pub(super) fn get(&self, name: &TableReference) -> Option<&Arc<dyn TableSource>> {
        self.named.get(name)
    }

    pub(super) fn file(&self, place: Span) -> Option<&Arc<dyn TableSource>> {
        self.files.get(&place)
    }

    pub(crate) fn add_file(&mut self, place: Span, table: Arc<dyn TableProvider>) {
        self.files.insert(place, provider_as_source(table));
    }
}

/// Collects the names of relations that are not queries of WITH.
#[derive(Default)]
struct Relations {
    names: Vec<TableReference>,
    /// The names of queries of WITH that are visible.
    ctes: Vec<String>,
    /// The open queries.
    open: Vec<OpenQuery>,
}

struct OpenQuery {
    /// The number of queries of WITH that are visible outside.
    outside: usize,
    /// The queries of its WITH by their addresses in the tree.
    named: HashMap<usize, String>,
}

fn address(query: &Query) -> usize {
    std::ptr::from_ref(query).addr()
}

impl Visitor for Relations {
    fn query(&mut self, query: &Query) {
        let ctes = query.with.iter().flat_map(|with| &with.ctes);
        let named = ctes.filter_map(|cte| match &cte.body {
            CteBody::Query(query) => Some((address(query), folded(&cte.name))),
            _ => None,
        });
        self.open.push(OpenQuery { outside: self.ctes.len(), named: named.collect() });
        if let Some(with) = query.with.as_ref().filter(|with| with.recursive) {
            self.ctes.extend(with.ctes.iter().map(|cte| folded(&cte.name)));
        }
    }

    fn leave_query(&mut self, query: &Query) {
        if let Some(done) = self.open.pop() {
            self.ctes.truncate(done.outside);
        }
        let cte = self.open.last().and_then(|outer| outer.named.get(&address(query)));
        self.ctes.extend(cte.cloned());
    }

    fn relation(&mut self, relation: &Relation) {
        let RelationKind::Table { name } = &relation.kind else { return };
        let parts = folded_parts(name);
        let is_cte = matches!(parts.as_slice(), [only] if self.ctes.contains(only));
        self.names.extend(table_reference(&parts).filter(|_| !is_cte));
    }
}

fn references(query: &Query) -> Vec<TableReference> {
    let mut relations = Relations::default();
    walk::query(query, &mut relations);
    relations.names
}

/// Returns the names of tables and views that a query reads, in the form that the database has for them.
pub(crate) fn table_names(query: &Query) -> Vec<String> {
    references(query).iter().filter_map(|name| full_name(name.schema(), name.table())).collect()
}

/// Looks up the tables of a query in the catalog of a session. A name without a table is left out.
pub(crate) async fn tables(state: &SessionState, query: &Query) -> Tables {
    let mut tables = Tables::default();
    for name in references(query) {
        if tables.named.contains_key(&name) {
            continue;
        }
        if let Ok(schema) = state.schema_for_ref(name.clone())
            && let Ok(Some(table)) = schema.table(name.table()).await
        {
            tables.named.insert(name, provider_as_source(table));
        }
    }
    tables
}

/// Returns the calls of functions that read files, and the names of files, each with its place.
///
/// # Errors
/// The arguments of a call are not paths and options.
pub(crate) fn file_calls(state: &SessionState, tree: &Tree, tables: &Tables) -> Result<Vec<(Span, FileCall)>> {
    struct Finder<'a> {
        binder: Binder<'a>,
        calls: Result<Vec<(Span, FileCall)>>,
    }
    impl Visitor for Finder<'_> {
        fn relation(&mut self, relation: &Relation) {
            let Ok(calls) = &mut self.calls else { return };
            match files::call(&self.binder, relation) {
                Ok(call) => calls.extend(call),
                Err(error) => self.calls = Err(error),
            }
        }
    }
    let values = HashMap::new();
    let binder = Binder { state, tables, text: "", parameters: &tree.parameters, values: &values };
    let mut finder = Finder { binder, calls: Ok(Vec::new()) };
    walk::query(&tree.query, &mut finder);
    finder.calls
}
