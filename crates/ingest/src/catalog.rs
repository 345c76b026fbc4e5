//! Tables as the next commit sees them: after all previous commits, including commits not yet durable or visible.
//!
//! Owned by the commit thread. The version for readers follows later, see [`crate::apply`].

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
    /// Base tables of materialized views.
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

    /// Returns true if a materialized view depends on the table.
    #[must_use]
    pub fn is_base(&self, id: TableId) -> bool {
        self.bases.contains(&id)
    }

    /// Adds a table with its existing dictionaries.
    pub fn adopt(&mut self, id: TableId, schema: Arc<TableSchema>, symbols: SymbolMaps) {
        let next_table = self.next_table;
        self.put(id, schema);
        // The ids of later tables are independent of the other catalog.
        self.next_table = next_table;
        if let Some(entry) = self.tables.get_mut(&id) {
            entry.symbols = symbols;
        }
    }

    /// Returns the id of a table that is added later with [`Catalog::adopt`].
    pub fn take_table_id(&mut self) -> TableId {
        let id = self.next_table;
        self.next_table = TableId(id.0 + 1);
        id
    }

    fn find_bases(&mut self) {
        let followed = self.tables.values().filter_map(|e| Some(e.schema.materialized()?.state.base));
        self.bases = followed.collect();
    }

    /// Creates the table or replaces its schema; dictionaries of remaining columns are kept.
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

    /// Rebuilds the index of table names.
    ///
    /// During replay of a log over a manifest with later versions of some tables, two tables may temporarily have the
    /// same name; at the end no two do.
    pub fn index_names(&mut self) {
        self.names = self.tables.iter().map(|(&id, e)| (fold_name(&e.schema.name), id)).collect();
    }

    #[must_use]
    pub fn symbols(&self, id: TableId) -> SymbolMaps {
        self.tables.get(&id).map(|e| e.symbols.clone()).unwrap_or_default()
    }
}
