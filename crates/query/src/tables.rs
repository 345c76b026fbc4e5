//! The tables of one query as DataFusion's catalog: `tidalite.public.*`, pinned together before planning.

use crate::Catalog;
use crate::pg_catalog::{self, PgCatalog};
use crate::scan::table::NativeTable;
use crate::scan::view::ViewColumns;
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
    /// By folded name.
    tables: Mutex<HashMap<String, Arc<dyn TableProvider>>>,
}

impl QueryTables {
    pub fn new(catalog: Arc<dyn Catalog>) -> QueryTables {
        QueryTables(Arc::new(Inner { catalog, tables: Mutex::default() }))
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
                    false => Arc::new(NativeTable::new(snapshot)),
                };
                tables.insert(fold_name(name), table);
            }
        }
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

impl CatalogProvider for QueryTables {
    fn schema_names(&self) -> Vec<String> {
        vec![SCHEMA.to_owned()]
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        match name {
            SCHEMA => Some(Arc::new(self.clone())),
            pg_catalog::SCHEMA => Some(Arc::new(PgCatalog::new(self.0.catalog.clone()))),
            _ => None,
        }
    }
}

#[async_trait]
impl SchemaProvider for QueryTables {
    fn table_names(&self) -> Vec<String> {
        self.0.catalog.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let pinned = |tables: &HashMap<String, Arc<dyn TableProvider>>| tables.get(&fold_name(name)).cloned();
        if let Some(table) = pinned(&self.0.tables.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(Some(table));
        }
        self.pin(&[name]);
        if let Some(table) = pinned(&self.0.tables.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(Some(table));
        }
        // As in PostgreSQL, whose search path always has its catalog.
        PgCatalog::new(self.0.catalog.clone()).table(name).await
    }

    fn table_exist(&self, name: &str) -> bool {
        self.0.catalog.frame(name).is_some()
            || self.0.catalog.snapshots(&[name]).first().is_some_and(Option::is_some)
            || pg_catalog::has(name)
    }
}
