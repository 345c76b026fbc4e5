//! After a commit: what it did becomes the version that readers see.

use crate::catalog::Catalog;
use crate::wal::record::Op;
use tidalite_storage::tables::Versions;
use tidalite_types::Txn;

/// Shows the operations of commit `txn`, which the catalog already has. Those of [`is_plain`] ask nothing of it.
pub fn publish(versions: &mut Versions, catalog: &Catalog, txn: Txn, ops: Vec<Op>) {
    for op in ops {
        match op {
            Op::CreateTable { table, schema } => {
                versions.create(table, schema, catalog.symbols(table), txn, Vec::new());
            }
            Op::DropTable { table } => versions.drop_table(table),
            Op::SetSchema { table, schema } => versions.set_schema(table, schema, catalog.symbols(table), txn),
            Op::Truncate { table } => versions.truncate(table, txn),
            Op::DropPartitions { table, partitions } => versions.drop_partitions(table, &partitions, txn),
            Op::Symbols { .. } | Op::Times { .. } => {}
            Op::Rows { table, run } => versions.append(table, run),
            Op::Delete { table, dead } => versions.kill(table, &dead, txn),
        }
    }
    versions.set_txn(txn);
}

/// Whether an operation only brings rows, and no view follows their table: it can be shown when the catalog has gone on.
#[must_use]
pub fn is_plain(op: &Op, catalog: &Catalog) -> bool {
    match op {
        Op::Rows { table, .. } | Op::Symbols { table, .. } => !catalog.is_base(*table),
        _ => false,
    }
}
