//! Decides the requests of loads: the conversion of their rows, and the commit of their segments.

use super::changes::{Views, dropped};
use super::{Accepted, COMMAND_ROOM, Writer, column_room, not_serializable};
use crate::load::{AttachRequest, CreatedTable, PartOfLoad};
use crate::{Error, Result};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use tidalite_ingest::commit::command::{already_exists, commit_command, is_view};
use tidalite_ingest::commit::commit_batches;
use tidalite_ingest::wal::record::Op;
use tidalite_storage::Run;
use tidalite_storage::late::{is_outnumbered, mark_late};
use tidalite_storage::symbol_file::pending;
use tidalite_storage::tables::SymbolMaps;
use tidalite_types::{Command, TableId, TableSchema, Txn};

impl Writer {
    /// Returns the operations of the new strings, and the rows.
    pub(super) fn decide_part(&mut self, part: PartOfLoad, txn: Txn) -> Result<(Vec<Op>, Vec<Run>)> {
        self.check_target(part.table, &part.schema)?;
        let ops = commit_batches(&mut self.catalog, part.batches, false, txn).map_err(|(error, _)| error)?;
        let (mut symbols, mut runs) = (Vec::new(), Vec::new());
        for op in ops {
            match op {
                Op::Rows { run, .. } => runs.push(run),
                op => symbols.push(op),
            }
        }
        Ok((symbols, runs))
    }

    /// Returns the operations that make the segments of a load part of their table. From here on the segments belong to
    /// the table.
    pub(super) fn decide_attach(
        &mut self,
        request: AttachRequest,
        txn: Txn,
        views: &mut Views<'_>,
        accepted: &[Accepted],
    ) -> Result<Vec<Op>> {
        let AttachRequest { table, mut segments, schema, created, decision } = request;
        let mut ops = Vec::new();
        let existing = match created {
            None => {
                self.check_target(table, &schema)?;
                let now = views.table(table, &self.catalog, accepted).ok_or_else(|| dropped(&schema.name))?;
                now.segments.clone()
            }
            Some(CreatedTable { symbols, replaces }) => {
                if replaces {
                    let drop = Command::DropTable { table: schema.name.clone(), if_exists: true };
                    ops.extend(commit_command(&mut self.catalog, drop)?);
                } else if let Some(known) = self.catalog.id_of(&schema.name).and_then(|id| self.catalog.get(id)) {
                    return Err(already_exists(&known.schema, &schema.name).into());
                }
                ops.push(Op::CreateTable { table, schema: schema.clone() });
                let entries = pending(&symbols, &HashMap::new()).into_iter();
                ops.extend(entries.map(|entries| Op::Symbols { table, entries: Arc::new(entries) }));
                self.catalog.adopt(table, schema, symbols);
                Arc::default()
            }
        };
        if is_outnumbered(&existing, &segments) {
            decision.is_outnumbered.store(true, SeqCst);
            return Err(not_serializable("concurrent merges"));
        }
        mark_late(&existing, &mut segments);
        decision.is_accepted.store(true, SeqCst);
        tracing::debug!(txn = txn.0, segments = segments.len(), "attached a load");
        ops.push(Op::Attach { table, segments: Arc::new(segments) });
        Ok(ops)
    }

    /// Checks that rows with the columns of `schema` still fit their table. Columns may have been added to it.
    fn check_target(&self, table: TableId, schema: &TableSchema) -> Result<()> {
        let now = &self.catalog.get(table).ok_or_else(|| dropped(&schema.name))?.schema;
        if let Some(view) = &now.view {
            return Err(is_view(&now.name, view).into());
        }
        let is_same = now.name == schema.name
            && schema.columns.iter().all(|column| now.columns.contains(column))
            && now.designated == schema.designated
            && now.partition_by == schema.partition_by
            && now.dedup == schema.dedup;
        if is_same { Ok(()) } else { Err(concurrent_alter()) }
    }
}

fn concurrent_alter() -> Error {
    not_serializable("concurrent ALTER TABLE")
}

/// Returns the maximum log size of the new strings of a part, in bytes.
pub(super) fn room_of_part(part: &PartOfLoad) -> u64 {
    let dictionaries = part.batches.iter().flat_map(|batch| &batch.columns).map(|column| &column.dictionary);
    let strings: usize = dictionaries.map(string_bytes).sum();
    (strings + column_room(&part.batches) + 4096) as u64
}

/// Returns the maximum log size of the commit of a load, in bytes.
pub(super) fn room_of_attach(request: &AttachRequest) -> u64 {
    let created = request.created.as_ref().map_or(0, |created| COMMAND_ROOM + symbol_bytes(&created.symbols));
    (created + 64 * request.segments.len() + 4096) as u64
}

/// Returns an upper bound of the bytes of strings in the log.
pub(crate) fn symbol_bytes(symbols: &SymbolMaps) -> usize {
    symbols.values().map(|map| string_bytes(&map.strings())).sum()
}

/// Returns an upper bound of the bytes of strings with their lengths and ids in the log.
fn string_bytes(strings: &tidalite_types::Views) -> usize {
    strings.data().len() + 24 * strings.len()
}
