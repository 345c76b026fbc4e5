//! PostgreSQL's system catalog and `information_schema`, as its clients read them.
//!
//! The tables are data: [`definitions`] reads `tables.txt`, which has every table with its columns and types as in
//! PostgreSQL 15, and `types.txt`, which has the built-in types. A table without a row source is empty. Row sources,
//! one file per subject: [`relations`] tables, views, columns and keys; [`types`] types and functions; [`server`] the
//! database, roles, settings and statements; [`information_schema`]. [`objects`] assigns object numbers, [`rows`]
//! converts a row source to a record batch.
//!
//! Invariants: one scan sees one instant; an object has the same number in all tables, and a table keeps its number for
//! its lifetime.

mod definitions;
mod information_schema;
pub(crate) mod objects;
mod relations;
mod rows;
mod server;
mod types;

pub(crate) use definitions::{
    builtin_type, format_type, is_keyword, keywords, procedure_name, procedure_named, type_named,
};
pub(crate) use objects::Objects;
pub(crate) use relations::{bytes, constraint_definition, index_definition, view_definition};
pub(crate) use rows::{Value, array_of};
pub use server::{Setting, settings};

use crate::Catalog;
use async_trait::async_trait;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::common::Result;
use definitions::Definition;
use rows::Filled;
use std::sync::Arc;

pub(crate) const PG_CATALOG: &str = "pg_catalog";
pub(crate) const INFORMATION_SCHEMA: &str = "information_schema";

/// Returns the rows of one table.
type Source = fn(&Objects) -> Filled;

/// Returns the row source of a table; the other tables of `tables.txt` are empty.
fn source(definition: &Definition) -> Option<Source> {
    let groups: [&[(&str, Source)]; 3] = [relations::SOURCES, types::SOURCES, server::SOURCES];
    let found = match definition.schema {
        INFORMATION_SCHEMA => information_schema::SOURCES.iter().find(|(name, _)| *name == definition.name),
        _ => groups.into_iter().flatten().find(|(name, _)| *name == definition.name),
    };
    found.map(|(_, source)| *source)
}

/// Returns true if the schema has a table of that name.
pub(crate) fn has(schema: &str, name: &str) -> bool {
    definitions::table(schema, name).is_some()
}

/// `pg_catalog` or `information_schema`.
#[derive(Debug)]
pub(crate) struct SystemSchema {
    catalog: Arc<dyn Catalog>,
    name: &'static str,
}

impl SystemSchema {
    pub fn new(catalog: Arc<dyn Catalog>, name: &'static str) -> SystemSchema {
        SystemSchema { catalog, name }
    }
}

#[async_trait]
impl SchemaProvider for SystemSchema {
    fn table_names(&self) -> Vec<String> {
        definitions::tables().iter().filter(|table| table.schema == self.name).map(|t| t.name.to_owned()).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let Some(definition) = definitions::table(self.name, name) else { return Ok(None) };
        let filled = source(definition).map_or_else(Filled::default, |rows| rows(&Objects::new(self.catalog.clone())));
        rows::table(definition, filled).map(Some)
    }

    fn table_exist(&self, name: &str) -> bool {
        has(self.name, name)
    }
}
