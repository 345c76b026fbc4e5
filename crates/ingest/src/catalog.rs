//! Tables as the next commit sees them: every commit before it, also those not yet durable or visible.
//!
//! Owned by whoever commits. What readers see follows behind, see [`crate::apply`].

use std::collections::HashMap;
use std::sync::Arc;
use tidalite_storage::tables::{SymbolMaps, symbol_maps};
use tidalite_types::schema::fold_name;
use tidalite_types::{TableId, TableSchema};

#[derive(Debug, Default)]
pub struct Catalog {
    names: HashMap<String, TableId>,
    tables: HashMap<TableId, Entry>,
    pub next_table: TableId,
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

    /// Creates the table or gives it another schema; dictionaries of columns that stay are kept.
    pub fn put(&mut self, id: TableId, schema: Arc<TableSchema>) {
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
    }

    pub fn remove(&mut self, id: TableId) {
        if let Some(entry) = self.tables.remove(&id) {
            let name = fold_name(&entry.schema.name);
            if self.names.get(&name) == Some(&id) {
                self.names.remove(&name);
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
