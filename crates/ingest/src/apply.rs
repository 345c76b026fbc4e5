//! Publishes a commit: its effects become the version that readers see.

use crate::catalog::Catalog;
use crate::wal::record::Op;
use tidalite_storage::tables::Versions;
use tidalite_types::Txn;

/// Publishes the operations of commit `txn`, which the catalog already contains. Operations of [`is_plain`] ignore the
/// catalog.
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
            Op::Attach { table, segments } => versions.attach(table, &segments, txn),
        }
    }
    versions.set_txn(txn);
}

/// Returns true if an operation only adds rows to a table without dependent views, so that the catalog may be newer.
#[must_use]
pub fn is_plain(op: &Op, catalog: &Catalog) -> bool {
    match op {
        Op::Rows { table, .. } | Op::Symbols { table, .. } => !catalog.is_base(*table),
        _ => false,
    }
}
