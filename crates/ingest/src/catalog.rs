//! Tables as the next commit sees them: every commit before it, also those not yet durable or visible.
//!
//! Owned by whoever commits. What readers see follows behind, see [`crate::apply`].

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tidalite_storage::tables::{SymbolMaps, symbol_maps};
use tidalite_types::schema::fold_name;
use tidalite_types::{TableId, TableSchema};

#[derive(Clone, Debug, Default)]
pub struct Catalog {
    names: HashMap<String, TableId>,
    tables: HashMap<TableId, Entry>,
    pub next_table: TableId,
    /// Tables that materialized views follow.
    bases: HashSet<TableId>,
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub schema: Arc<TableSchema>,
    pub symbols: SymbolMaps,
}

impl Catalog {
    #[must_use]
    pub fn id_of(&self, name: &str) -> Option<TableId> {
        self.names.get(&fold_name(name)).copied()
    }

    #[must_use]
    pub fn get(&self, id: TableId) -> Option<&Entry> {
        self.tables.get(&id)
    }

    /// Whether a materialized view follows the table.
    #[must_use]
    pub fn is_base(&self, id: TableId) -> bool {
        self.bases.contains(&id)
    }

    /// Adds a table together with its existing dictionaries.
    pub fn adopt(&mut self, id: TableId, schema: Arc<TableSchema>, symbols: SymbolMaps) {
        let next_table = self.next_table;
        self.put(id, schema);
        // The ids of later tables are independent of the other catalog.
        self.next_table = next_table;
        if let Some(entry) = self.tables.get_mut(&id) {
            entry.symbols = symbols;
        }
    }

    fn find_bases(&mut self) {
        let followed = self.tables.values().filter_map(|e| Some(e.schema.materialized()?.state.base));
        self.bases = followed.collect();
    }

    /// Creates the table or gives it another schema; dictionaries of columns that stay are kept.
    pub fn put(&mut self, id: TableId, schema: Arc<TableSchema>) {
        let base = |schema: &TableSchema| schema.materialized().map(|view| view.state.base);
        let has_other_base = self.tables.get(&id).and_then(|e| base(&e.schema)) != base(&schema);
        let symbols = match self.tables.get(&id) {
            Some(entry) => {
                let name = fold_name(&entry.schema.name);
                if self.names.get(&name) == Some(&id) {
                    self.names.remove(&name);
                }
                symbol_maps(&schema, &entry.symbols)
            }
            None => symbol_maps(&schema, &HashMap::new()),
        };
        self.names.insert(fold_name(&schema.name), id);
        self.next_table = self.next_table.max(TableId(id.0 + 1));
        self.tables.insert(id, Entry { schema, symbols });
        if has_other_base {
            self.find_bases();
        }
    }

    pub fn remove(&mut self, id: TableId) {
        if let Some(entry) = self.tables.remove(&id) {
            let name = fold_name(&entry.schema.name);
            if self.names.get(&name) == Some(&id) {
                self.names.remove(&name);
            }
            if entry.schema.materialized().is_some() {
                self.find_bases();
            }
        }
    }

    /// Finds every table by its name again. While a log is replayed over a manifest that knows some tables as they
    /// were later, two can have one name for a while; in the end none do.
    pub fn index_names(&mut self) {
        self.names = self.tables.iter().map(|(&id, e)| (fold_name(&e.schema.name), id)).collect();
    }

    #[must_use]
    pub fn symbols(&self, id: TableId) -> SymbolMaps {
        self.tables.get(&id).map(|e| e.symbols.clone()).unwrap_or_default()
    }
}
