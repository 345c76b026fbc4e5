//! The tables of one query as DataFusion's catalog: `tidalite.public.*`, pinned together before planning.

use crate::pg_catalog::{self, INFORMATION_SCHEMA, PG_CATALOG, SystemSchema};
use crate::scan::table::NativeTable;
use crate::scan::view::ViewColumns;
use crate::{Catalog, Error};
use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::common::Result;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tidalite_types::TableSchema;
use tidalite_types::schema::fold_name;

pub(crate) const CATALOG: &str = "tidalite";
pub(crate) const SCHEMA: &str = "public";

/// Catalog list, catalog and schema in one: there is one of each.
#[derive(Clone, Debug)]
pub(crate) struct QueryTables(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    catalog: Arc<dyn Catalog>,
    /// Whether scans answer conditions on several columns.
    is_fast: bool,
    /// By folded name.
    tables: Mutex<HashMap<String, Arc<dyn TableProvider>>>,
}

impl QueryTables {
    pub fn new(catalog: Arc<dyn Catalog>, is_fast: bool) -> QueryTables {
        QueryTables(Arc::new(Inner { catalog, is_fast, tables: Mutex::default() }))
    }

    pub fn catalog(&self) -> &Arc<dyn Catalog> {
        &self.0.catalog
    }

    /// The query of a view; `None` when the name is not one of a view that holds no rows.
    pub fn view(&self, name: &str) -> Option<Arc<TableSchema>> {
        if self.0.catalog.frame(name).is_some() {
            return None;
        }
        let found = self.0.catalog.snapshots(&[name]).pop().flatten()?;
        found.schema.is_plain_view().then(|| found.schema.clone())
    }

    /// Pins the tables named that exist, at one instant.
    pub fn pin(&self, names: &[&str]) {
        let found = self.0.catalog.snapshots(names);
        let mut tables = self.0.tables.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, snapshot) in names.iter().zip(found) {
            if let Some(frame) = self.0.catalog.frame(name) {
                tables.insert(fold_name(name), frame.table());
            } else if let Some(snapshot) = snapshot {
                let table: Arc<dyn TableProvider> = match snapshot.schema.is_plain_view() {
                    // What it shows is put in its place before a query is planned that names it.
                    true => Arc::new(ViewColumns::new(snapshot.schema.clone())),
                    false => Arc::new(NativeTable::new(snapshot).fast(self.0.is_fast)),
                };
                tables.insert(fold_name(name), table);
            }
        }
    }

    fn pinned(&self, name: &str) -> Option<Arc<dyn TableProvider>> {
        self.0.tables.lock().unwrap_or_else(PoisonError::into_inner).get(&fold_name(name)).cloned()
    }

    /// Returns true if a pinned table has the name. Tables of the system catalog are not pinned.
    pub fn is_pinned(&self, name: &str) -> bool {
        self.pinned(name).is_some()
    }

    /// Puts a table of our own making in place of whatever has the name.
    pub fn put(&self, name: &str, table: Arc<dyn TableProvider>) {
        self.0.tables.lock().unwrap_or_else(PoisonError::into_inner).insert(fold_name(name), table);
    }
}

impl CatalogProviderList for QueryTables {
    fn register_catalog(&self, _: String, _: Arc<dyn CatalogProvider>) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        vec![CATALOG.to_owned()]
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        (name == CATALOG).then(|| Arc::new(self.clone()) as Arc<dyn CatalogProvider>)
    }
}

/// A schema of the user's: the tables whose names begin with its name and a dot.
#[derive(Debug)]
struct Prefixed {
    tables: QueryTables,
    schema: String,
}

#[async_trait]
impl SchemaProvider for Prefixed {
    fn table_names(&self) -> Vec<String> {
        let names = self.tables.0.catalog.table_names();
        names.iter().filter_map(|name| in_schema(name, &self.schema).map(str::to_owned)).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let full = format!("{}.{name}", self.schema);
        if let Some(table) = self.tables.pinned(&full) {
            return Ok(Some(table));
        }
        self.tables.pin(&[&full]);
        match self.tables.pinned(&full) {
            Some(table) => Ok(Some(table)),
            None => Err(Error::table_not_found(&full).into()),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.table_names().iter().any(|known| fold_name(known) == fold_name(name))
    }
}

/// The name of a table within a schema: of `s.t` in `s` it is `t`.
#[must_use]
pub fn in_schema<'a>(table: &'a str, schema: &str) -> Option<&'a str> {
    let (first, rest) = table.split_once('.')?;
    (fold_name(first) == fold_name(schema)).then_some(rest)
}

/// What a table is called in the database that a query names; `None` when it is not one of ours.
pub(crate) fn full_name(schema: Option<&str>, table: &str) -> Option<String> {
    match schema {
        None | Some(SCHEMA) => Some(table.to_owned()),
        Some(PG_CATALOG | INFORMATION_SCHEMA) => None,
        Some(schema) => Some(format!("{schema}.{table}")),
    }
}

impl CatalogProvider for QueryTables {
    fn schema_names(&self) -> Vec<String> {
        let names = self.0.catalog.table_names();
        let prefixes = names.iter().filter_map(|name| name.split_once('.')).map(|(schema, _)| fold_name(schema));
        let mut all: Vec<String> = prefixes.chain([SCHEMA.to_owned()]).collect();
        all.sort();
        all.dedup();
        all
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        match name {
            SCHEMA => Some(Arc::new(self.clone())),
            PG_CATALOG => Some(Arc::new(SystemSchema::new(self.0.catalog.clone(), PG_CATALOG))),
            INFORMATION_SCHEMA => Some(Arc::new(SystemSchema::new(self.0.catalog.clone(), INFORMATION_SCHEMA))),
            other => {
                let schema = Prefixed { tables: self.clone(), schema: other.to_owned() };
                let has_any = self.0.catalog.table_names().iter().any(|name| in_schema(name, other).is_some());
                has_any.then(|| Arc::new(schema) as Arc<dyn SchemaProvider>)
            }
        }
    }
}

#[async_trait]
impl SchemaProvider for QueryTables {
    fn table_names(&self) -> Vec<String> {
        let names = self.0.catalog.table_names();
        names.into_iter().filter(|name| !name.contains('.')).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Some(table) = self.pinned(name) {
            return Ok(Some(table));
        }
        self.pin(&[name]);
        if let Some(table) = self.pinned(name) {
            return Ok(Some(table));
        }
        // As in PostgreSQL, whose search path always has its catalog.
        SystemSchema::new(self.0.catalog.clone(), PG_CATALOG).table(name).await
    }

    fn table_exist(&self, name: &str) -> bool {
        self.0.catalog.frame(name).is_some()
            || self.0.catalog.snapshots(&[name]).first().is_some_and(Option::is_some)
            || pg_catalog::has(PG_CATALOG, name)
    }
}
