//! The commit of a transaction: its net effect as one request to the writer.
//!
//! The first attempt identifies rows by the positions at which the transaction read them. If a merge has moved rows,
//! the next attempt locates the rows by their values. If another transaction has changed rows, the commit fails
//! (SQLSTATE 40001). Only merges can move the rows again; attempts from `HOLD_FROM` on block merges.

use super::net::{self, NetChange, renumbered};
use super::overlay::Overlay;
use crate::session::{ATTEMPTS, Changing, HOLD_FROM, Host};
use crate::writer::{RowChange, TransactionChange, not_serializable};
use crate::{Error, ErrorKind, Result, SqlState};
use tidalite_ingest::dedup::has_keys_of;
use tidalite_ingest::relocate::relocate;
use tidalite_storage::{Mask, TableSnapshot};
use tidalite_types::{TableId, Txn};

/// Commits the content of `overlay`; `reads` are tables that must not have changed since.
pub(super) async fn commit(
    host: &dyn Host,
    changing: &Changing,
    overlay: &Overlay,
    reads: &[(TableId, Txn)],
) -> Result<Option<Txn>> {
    let changes = net::changes(overlay);
    let batches = net::batches(overlay);
    let is_plain = changes.is_empty() && overlay.commands().is_empty() && reads.is_empty();
    if is_plain && batches.is_empty() {
        return Ok(None);
    }
    if is_plain {
        return host.insert(batches).await.map(Some);
    }
    let ids: Vec<TableId> = changes.iter().map(|change| change.base.id).collect();
    // Lock order: by table id, the same in every transaction.
    let mut turns = Vec::with_capacity(ids.len());
    for &id in &ids {
        turns.push(changing.turn(id).await);
    }
    let (mut holds, mut batches) = (Vec::new(), Some(batches));
    for attempt in 0..ATTEMPTS {
        if attempt == HOLD_FROM {
            holds.extend(ids.iter().map(|id| host.hold_merges(*id)));
        }
        let now = host.snapshots_at(&ids).1;
        let made = changes.iter().zip(now).map(|(change, now)| row_change(host, change, now.as_deref(), attempt == 0));
        let change = TransactionChange {
            changes: made.collect::<Result<_>>()?,
            commands: overlay.commands().to_vec(),
            rows: batches.take().unwrap_or_else(|| net::batches(overlay)),
            unchanged: reads.to_vec(),
        };
        if let Some(txn) = host.transaction(change).await? {
            return Ok(Some(txn));
        }
    }
    Err(Error::new(ErrorKind::Conflict, format!("the rows of a transaction moved {ATTEMPTS} times during its commit"))
        .with_code(SqlState::SERIALIZATION_FAILURE))
}

/// Returns the first attempt, for the simulation.
#[cfg(test)]
pub(super) fn first_attempt(host: &dyn Host, overlay: &Overlay) -> Result<TransactionChange> {
    let changes = net::changes(overlay);
    let ids: Vec<TableId> = changes.iter().map(|change| change.base.id).collect();
    let now = host.snapshots_at(&ids).1;
    let made = changes.iter().zip(now).map(|(change, now)| row_change(host, change, now.as_deref(), true));
    let (commands, rows) = (overlay.commands().to_vec(), net::batches(overlay));
    Ok(TransactionChange { changes: made.collect::<Result<_>>()?, commands, rows, unchanged: Vec::new() })
}

fn row_change(host: &dyn Host, change: &NetChange, now: Option<&TableSnapshot>, is_first: bool) -> Result<RowChange> {
    let base = &change.base;
    let Some(now) = now.filter(|now| now.schema.columns == base.schema.columns) else {
        return Err(not_serializable("concurrent update")
            .with_hint(format!("table \"{}\" was altered or dropped since the transaction began", change.name)));
    };
    let (seen, hit) = match is_first {
        true => (base.clone(), union(&change.changed, &change.replaced)),
        false => (std::sync::Arc::new(now.clone()), moved(change, now)?),
    };
    let times = if host.is_followed(base.id) { seen.times_of(&hit)? } else { Vec::new() };
    let designated = base.schema.designated;
    let times_of_new = change.new_only.iter().flat_map(|run| designated.map(|id| run.timestamps(id).to_vec()));
    let added = (!change.new_only.is_empty()).then(|| times_of_new.flatten().collect());
    Ok(RowChange { seen, hit, rows: Vec::new(), times, is_exact: true, added, view: None })
}

/// Returns the rows of a change in a later version.
fn moved(change: &NetChange, now: &TableSnapshot) -> Result<Vec<Mask>> {
    let conflict = || {
        let hint = format!(
            "rows of table \"{}\" were changed since the transaction began; it has to be tried again",
            change.name
        );
        not_serializable("concurrent update").with_hint(hint)
    };
    let changed = relocate(&change.base, &change.changed, now)?;
    if changed.missing > 0 {
        return Err(conflict());
    }
    // Rows that other transactions have already replaced may be missing: this is not a conflict.
    let replaced = relocate(&change.base, &change.replaced, now)?;
    let hit = union(&changed.hit, &replaced.hit);
    if !change.new_only.is_empty() {
        let mut without = now.clone();
        if let Some(dead) = now.locate(now, &hit) {
            without.kill(&dead);
        }
        for run in &change.new_only {
            if has_keys_of(&without, &renumbered(run, &change.version, now))? {
                return Err(conflict());
            }
        }
    }
    Ok(hit)
}

fn union(a: &[Mask], b: &[Mask]) -> Vec<Mask> {
    let both = |(a, b): (&Mask, &Mask)| a.ranges().into_iter().chain(b.ranges()).collect();
    a.iter().zip(b).map(both).collect()
}
