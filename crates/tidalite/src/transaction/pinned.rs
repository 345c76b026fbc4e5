//! The tables in the state of one commit.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tidalite_storage::TableSnapshot;
use tidalite_types::schema::fold_name;
use tidalite_types::{TableId, Txn};

#[derive(Debug)]
pub(super) struct Pinned {
    pub txn: Txn,
    tables: BTreeMap<TableId, Arc<TableSnapshot>>,
    names: HashMap<String, TableId>,
}

impl Pinned {
    pub fn new((txn, tables): (Txn, Vec<Arc<TableSnapshot>>)) -> Pinned {
        let names = tables.iter().map(|table| (fold_name(&table.schema.name), table.id)).collect();
        Pinned { txn, tables: tables.into_iter().map(|table| (table.id, table)).collect(), names }
    }

    pub fn by_name(&self, name: &str) -> Option<&Arc<TableSnapshot>> {
        self.get(*self.names.get(&fold_name(name))?)
    }

    pub fn get(&self, id: TableId) -> Option<&Arc<TableSnapshot>> {
        self.tables.get(&id)
    }

    /// Returns the tables in order of creation.
    pub fn all(&self) -> impl Iterator<Item = &Arc<TableSnapshot>> {
        self.tables.values()
    }
}
