//! Repairs a damaged checkpoint: writes the rows of its intact chunks to a new one.
//!
//! Strings of lost chunks are replaced as in [`super::symbols`], so that rows and commits with their ids remain valid.

use super::quarantine::Quarantine;
use super::report::{Lost, RepairReport};
use super::symbols::placeholder;
use crate::Result;
use std::collections::HashMap;
use std::sync::Arc;
use tidalite_ingest::wal::checkpoint::{self, CheckpointWriter};
use tidalite_ingest::wal::inspect::inspect;
use tidalite_ingest::wal::record::{Op, decode_op};
use tidalite_storage::codec::Decoder;
use tidalite_storage::fs::Fs;
use tidalite_storage::manifest::{Change, Checkpoint, Manifest, State};
use tidalite_storage::symbol_file::{self, Entries};
use tidalite_types::{ColumnId, ColumnType, TableId, Values, Views};

pub(super) fn repair(fs: &Arc<dyn Fs>, state: &State, aside: &Quarantine, report: &mut RepairReport) -> Result<()> {
    let number = state.checkpoint.file;
    if number == 0 {
        return Ok(());
    }
    let Err(error) = checkpoint::read(&**fs, number, |_| Ok(())) else { return Ok(()) };
    let path = checkpoint::path_of(number);
    let (ops, gaps) = whole_ops(&**fs, &path);
    let mut mender = Mender::new(&**fs, state)?;
    let mut all = Vec::new();
    for op in ops {
        mender.before(&op, &mut all);
        all.push(op);
    }
    // The log continues with ids after the lost ones.
    let mut deletes_staged = false;
    let _ = inspect(&**fs, state.checkpoint.txn, &mut |_, ops| {
        ops.iter().for_each(|op| mender.before(op, &mut all));
        deletes_staged |= ops.iter().any(is_delete_of_staged);
        Ok(())
    });
    if deletes_staged && !gaps.is_empty() {
        // Deletions count rows, some of which are lost: other rows would be deleted instead.
        let message = format!("{error}, and the log deletes rows that were staged before");
        return Err(super::report::beyond_repair(&message));
    }
    let mut why = format!("{} was written anew: {error}\n", path.display());
    for (from, to) in &gaps {
        why.push_str(&format!("gone: what was in bytes {from} to {to}\n"));
        let of = format!(
            "rows and deletions of commits up to {} that were in bytes {from} to {to} of {}, of which nothing can be made out",
            state.checkpoint.txn,
            path.display()
        );
        report.lost.push(Lost { of, ..Lost::default() });
    }
    aside.keep(&path, &why, report)?;
    let mut writer = CheckpointWriter::create(&**fs, number + 1)?;
    all.iter().try_for_each(|op| writer.write(op))?;
    writer.finish(&**fs)?;
    let (mut manifest, _) = Manifest::open(fs.clone())?;
    manifest.edit(&[Change::Checkpoint(Checkpoint { txn: state.checkpoint.txn, file: number + 1 })])?;
    let _ = fs.remove(&path);
    report.done.push(why.lines().next().unwrap_or_default().to_owned());
    Ok(())
}

/// Returns the operations of the intact chunks, and the byte ranges between them.
fn whole_ops(fs: &dyn Fs, path: &std::path::Path) -> (Vec<Op>, Vec<(usize, usize)>) {
    let Ok(file) = fs.open(path) else { return (Vec::new(), vec![(0, 0)]) };
    let mut bytes = vec![0; file.len().unwrap_or(0) as usize];
    if file.read_exact_at(&mut bytes, 0).is_err() {
        return (Vec::new(), vec![(0, bytes.len())]);
    }
    let (mut all, mut gaps, mut at) = (Vec::new(), Vec::<(usize, usize)>::new(), 0);
    while at < bytes.len() && !(at + super::chunk::CHUNK_HEADER == bytes.len() && bytes[at..].iter().all(|b| *b == 0)) {
        match super::chunk::chunk_at(&bytes, at).and_then(ops_of) {
            Some((ops, len)) => {
                // Deleted rows follow their run and are counted from its end: without the run they would refer to
                // another one.
                let is_orphan =
                    gaps.last().is_some_and(|(_, to)| *to == at) && ops.first().is_some_and(is_delete_of_staged);
                match (is_orphan, gaps.last_mut()) {
                    (true, Some((_, to))) => *to = at + len,
                    _ => all.extend(ops),
                }
                at += len;
            }
            None => {
                at += 1;
                match gaps.last_mut() {
                    Some((_, to)) if *to == at - 1 => *to = at,
                    _ => gaps.push((at - 1, at)),
                }
            }
        }
    }
    (all, gaps)
}

fn is_delete_of_staged(op: &Op) -> bool {
    matches!(op, Op::Delete { dead, .. } if !dead.staged.is_empty())
}

fn ops_of(payload: &[u8]) -> Option<(Vec<Op>, usize)> {
    let mut d = Decoder::new(payload);
    let count = d.u32().ok()?;
    let ops = (0..count).map(|_| decode_op(&mut d)).collect::<Result<Vec<_>, _>>().ok()?;
    Some((ops, payload.len() + super::chunk::CHUNK_HEADER))
}

/// The number of known strings of each symbol column, while operations are read in order.
struct Mender {
    known: HashMap<(TableId, ColumnId), usize>,
}

impl Mender {
    fn new(fs: &dyn Fs, state: &State) -> Result<Mender> {
        let mut known = HashMap::new();
        for (&id, table) in &state.tables {
            let symbols = table.schema.columns.iter().filter(|c| c.column_type == ColumnType::Symbol);
            known.extend(symbols.map(|c| ((id, c.id), 0)));
            for entries in symbol_file::read(fs, id, table.symbol_bytes)? {
                let count = entries.first as usize + entries.strings.len();
                known.entry((id, entries.column)).and_modify(|n| *n = count.max(*n));
            }
        }
        Ok(Mender { known })
    }

    /// Adds the operations before `op` that define every id that it expects.
    fn before(&mut self, op: &Op, out: &mut Vec<Op>) {
        match op {
            Op::Symbols { table, entries } => {
                self.reach(*table, entries.column, entries.first as usize, out);
                let count = entries.first as usize + entries.strings.len();
                self.known.entry((*table, entries.column)).and_modify(|n| *n = count.max(*n)).or_insert(count);
            }
            Op::Rows { table, run } => {
                for (id, column) in &run.columns {
                    let Values::U32(codes) = &column.values else { continue };
                    if !self.known.contains_key(&(*table, *id)) {
                        continue;
                    }
                    let valid = codes.iter().enumerate().filter(|(row, _)| column.is_valid(*row));
                    let needed = valid.map(|(_, code)| *code as usize + 1).max().unwrap_or(0);
                    self.reach(*table, *id, needed, out);
                }
            }
            _ => {}
        }
    }

    fn reach(&mut self, table: TableId, column: ColumnId, needed: usize, out: &mut Vec<Op>) {
        let known = self.known.entry((table, column)).or_insert(needed);
        if *known >= needed {
            return;
        }
        let mut strings = Views::new();
        (*known..needed).for_each(|id| strings.push(&placeholder(id)));
        let entries = Entries { column, first: *known as u32, strings };
        *known = needed;
        out.push(Op::Symbols { table, entries: Arc::new(entries) });
    }
}
