//! One database on a simulated disk, and the model of its content.
//!
//! Invariant: an acknowledged commit is in the model. A commit that failed because of the disk is in doubt: it may
//! exist after the next open, alone or with previous commits of its group, and must not be visible before.

use super::cells::{pieces, read, to_batch};
use super::model::{Change, Model, Rewrite, Rows, Table};
use super::script::{Action, Fault, Plan};
use super::sql;
use crate::config::Durability;
use crate::load::LoadTable;
use crate::writer::{RowChange, RowsMode, Work};
use crate::{Database, DatabaseConfig, Error, ErrorKind, Isolation};
use futures::executor::block_on;
use std::collections::VecDeque;
use std::sync::Arc;
use tidalite_ingest::wal::log::FOLDER;
use tidalite_query::CancelToken;
use tidalite_storage::fs::Fs;
use tidalite_storage::fs::faulty::{Mood, SimFs};
use tidalite_storage::late::late_of;
use tidalite_storage::{Mask, TableSnapshot};
use tidalite_types::schema::same_name;
use tidalite_types::{Command, PartitionBy, TableId};

pub struct World {
    fs: SimFs,
    /// `None` only during an open.
    db: Option<Database>,
    config: DatabaseConfig,
    pub model: Model,
    /// Groups that failed since the last successful commit.
    in_doubt: Vec<Vec<Change>>,
    /// The state that a power loss cannot destroy, and the commits since.
    durable: Model,
    since: Vec<Change>,
    pins: VecDeque<(Vec<Arc<TableSnapshot>>, Vec<Table>)>,
    mood: Mood,
    /// True if the log may reject commits until the next open.
    is_broken: bool,
    /// True if a read failed in the last call.
    could_not_read: bool,
    pub counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Calls of the database: commits, merges, opens, checks.
    pub calls: u64,
    pub rows: u64,
    pub openings: u64,
    pub power_losses: u64,
    pub failures: u64,
    pub checks: u64,
    /// Number of late segments seen by checks.
    pub late_segments: u64,
}

impl Counts {
    pub fn add(&mut self, other: Counts) {
        self.calls += other.calls;
        self.rows += other.rows;
        self.openings += other.openings;
        self.power_losses += other.power_losses;
        self.failures += other.failures;
        self.checks += other.checks;
        self.late_segments += other.late_segments;
    }
}

/// Later than any row, in nanoseconds: expiry then depends only on the rows.
const NOW: i64 = i64::MAX;

enum End {
    Orderly,
    Kill,
    PowerLoss(u64),
}

impl World {
    pub fn new(plan: &Plan, seed: u64) -> Result<World, String> {
        let config = DatabaseConfig {
            has_background_jobs: false,
            // One sync after the other, so that results do not depend on thread scheduling.
            overlap_syncs_from: None,
            merge_threads: 1,
            late_rows_min: 1,
            query_threads: 1,
            log_file_bytes: plan.log_file_bytes,
            durability: if plan.is_synced { Durability::Sync } else { Durability::Os },
            ..DatabaseConfig::new("")
        };
        let mut world = World {
            fs: SimFs::new(seed),
            db: None,
            config,
            model: Model::default(),
            in_doubt: Vec::new(),
            durable: Model::default(),
            since: Vec::new(),
            pins: VecDeque::new(),
            mood: Mood::Well,
            is_broken: false,
            could_not_read: false,
            counts: Counts::default(),
        };
        world.open(Vec::new(), false)?;
        Ok(world)
    }

    fn find(&self, table: &str) -> Option<TableId> {
        let (_, tables) = self.db().all_tables();
        tables.iter().find(|t| t.schema.name.eq_ignore_ascii_case(table)).map(|t| t.id)
    }

    pub fn step(&mut self, action: &Action) -> Result<(), String> {
        match action {
            Action::Commit(changes) => self.commit(changes),
            Action::Load(parts) => self.load(parts),
            Action::Expire => self.expire(),
            Action::Settle => {
                self.expire()?;
                let result = self.db().jobs().merge_all();
                if result.is_ok() {
                    self.all_is_durable();
                }
                self.job(result)
            }
            Action::Merge(name) => {
                let result = self.find(name).map_or(Ok(()), |id| self.db().jobs().merge_now(id));
                self.job(result)
            }
            Action::Compact(name) => {
                let result = self.find(name).map_or(Ok(()), |id| self.db().jobs().compact_now(id));
                self.job(result)
            }
            Action::Seal(name) => {
                let result = self.find(name).map_or(Ok(()), |_| self.db().seal(name));
                self.job(result)
            }
            Action::Checkpoint => {
                let result = self.db().jobs().checkpoint_now();
                self.job(result)
            }
            Action::Pin => {
                let (_, tables) = self.db().all_tables();
                if let Some(found) = self.read(&tables)? {
                    self.pins.push_back((tables, found));
                }
                Ok(())
            }
            Action::Unpin => self.unpin(),
            Action::Check => self.check(),
            Action::CheckSql => self.check_sql(),
            Action::Reopen => self.reopen(End::Orderly),
            Action::Kill => self.reopen(End::Kill),
            Action::PowerLoss { survivor } => self.reopen(End::PowerLoss(*survivor)),
            Action::Mood(mood) => {
                self.mood = *mood;
                self.fs.set_mood(*mood);
                Ok(())
            }
            Action::During { after, fault, action } => self.during(*after, *fault, action),
        }
    }

    fn db(&self) -> &Database {
        self.db.as_ref().expect("it is open between steps")
    }

    fn during(&mut self, after: u64, fault: Fault, action: &Action) -> Result<(), String> {
        let at = self.fs.operations() + after;
        match fault {
            Fault::Fails(kind) => self.fs.fail_at(at, kind),
            Fault::PowerLoss { .. } | Fault::Kill => self.fs.crash_at(at),
        }
        let disk = self.fs.clone();
        self.step(action)?;
        if disk.is_crashed() && self.fs.is_crashed() {
            return match fault {
                Fault::PowerLoss { survivor } => self.reopen(End::PowerLoss(survivor)),
                _ => self.reopen(End::Kill),
            };
        }
        self.fs.calm();
        self.fs.set_mood(self.mood);
        Ok(())
    }

    fn commit(&mut self, changes: &[Change]) -> Result<(), String> {
        let (mut works, mut sent) = (Vec::new(), Vec::new());
        for change in changes {
            if let Some(work) = self.work(change)? {
                works.push(work);
                sent.push(change);
            }
        }
        if works.is_empty() {
            return Ok(());
        }
        let changes = sent;
        let answers: Vec<crate::Result<()>> =
            self.db().submit_together(works).into_iter().map(|a| block_on(a).map(drop)).collect();
        self.counts.calls += changes.len() as u64;
        let may_fail = self.note_failures();
        self.answered(changes, answers, may_fail)
    }

    /// Loads rows, as one commit.
    fn load(&mut self, parts: &[Rows]) -> Result<(), String> {
        let Some(first) = parts.first() else { return Ok(()) };
        let found = self.db().all_tables().1.into_iter().find(|t| same_name(&t.schema.name, &first.table));
        let Some(found) = found.filter(|found| found.schema.dedup.is_empty()) else { return Ok(()) };
        self.counts.calls += 1;
        let loaded = self.db().loader().begin(LoadTable::Existing { id: found.id, schema: found.schema.clone() });
        let loaded = loaded.and_then(|mut load| {
            parts.iter().try_for_each(|part| block_on(load.push(vec![to_batch(part)])))?;
            block_on(load.finish(&CancelToken::new())).map(drop)
        });
        let may_fail = self.note_failures();
        let loaded = loaded.map_err(|mut error| {
            // The merge before the load, and reads of footers by the commit.
            if may_fail && error.kind == ErrorKind::NotFound && self.could_not_read {
                error.kind = ErrorKind::Unavailable;
            }
            error
        });
        let change = Change::Rows { batches: parts.to_vec(), may_create: false };
        self.answered(vec![&change], vec![loaded], may_fail)
    }

    /// Handles the answers of commits that reached the log together.
    fn answered(
        &mut self,
        changes: Vec<&Change>,
        answers: Vec<crate::Result<()>>,
        may_fail: bool,
    ) -> Result<(), String> {
        // The model if the whole group had succeeded, used only if it did not.
        let mut if_well: Option<Model> = None;
        let mut doubtful = Vec::new();
        // The model if the disk was full: then only commits that free space were tried, and the others were rejected
        // without a trace.
        let mut if_full: Option<Model> = None;
        let mut freeing = Vec::new();
        let mut is_full = false;
        for (change, answer) in changes.into_iter().zip(answers) {
            match answer {
                Ok(()) if !doubtful.is_empty() && !may_free_space(change) && !self.could_not_read => {
                    return Err(format!("{change:?} was taken after one that failed"));
                }
                Err(error) if error.kind == ErrorKind::Unavailable && may_fail => {
                    if may_free_space(change) {
                        let model = if_full.get_or_insert_with(|| self.model.clone());
                        // An UPDATE is rejected if it finds a row, and changes nothing otherwise.
                        if !is_update(change) && model.apply(change).is_ok() {
                            freeing.push(change.clone());
                        }
                    } else if is_full {
                        continue;
                    }
                    let model = if_well.get_or_insert_with(|| self.model.clone());
                    match model.apply(change) {
                        Ok(()) => doubtful.push(change.clone()),
                        Err(ErrorKind::Internal) => return Err("a shortened story without an answer".to_owned()),
                        Err(_) => {}
                    }
                }
                answer => {
                    let got = answer.as_ref().map(drop).map_err(|e: &Error| e.kind);
                    let differs = |model: &Model| answer.is_ok() || model.clone().apply(change) != got;
                    if self.could_not_read
                        && if_well.as_ref().is_some_and(differs)
                        && let Some((rest, model)) = self.without_refused(&doubtful, change, got)
                    {
                        let frees = |change: &&Change| may_free_space(change) && !is_update(change);
                        freeing = rest.iter().filter(frees).cloned().collect();
                        if_full = (!freeing.is_empty()).then(|| applied(&self.model, &freeing)).flatten();
                        if_well = (!rest.is_empty()).then_some(model);
                        doubtful = rest;
                    }
                    // On a full disk, commits that free space succeed, also among rejected ones.
                    let is_beside = may_free_space(change) && if_well.as_ref().is_some_and(differs);
                    if is_beside {
                        is_full = true;
                        if answer.is_ok() {
                            freeing.clear();
                            if_full = None;
                        }
                        (doubtful, if_well) = (freeing.clone(), if_full.clone());
                    }
                    let model = if_well.as_mut().unwrap_or(&mut self.model);
                    let expected = model.apply(change);
                    if expected == Err(ErrorKind::Internal) {
                        return Err("a shortened story that the model has no answer to".to_owned());
                    }
                    if expected != got {
                        return Err(format!("{change:?}: expected {expected:?}, got {answer:?}"));
                    }
                    if expected.is_ok() {
                        self.counts.rows += rows_of(change);
                        // A later successful commit shows that the commits in doubt do not exist.
                        self.in_doubt.clear();
                        if self.config.durability != Durability::Sync {
                            self.since.push(change.clone());
                        }
                    }
                }
            }
        }
        if self.could_not_read {
            self.in_doubt.extend(subsets(&doubtful).skip(1).filter(|rest| !rest.is_empty()));
        }
        if !freeing.is_empty() && freeing.len() < doubtful.len() {
            self.in_doubt.push(freeing);
        }
        if !doubtful.is_empty() {
            self.in_doubt.push(doubtful);
        }
        Ok(())
    }

    /// Returns the doubtful changes that may be in the log if `change` got this answer after them, and the resulting
    /// model.
    ///
    /// Each of the others failed to look up the rows that it replaces, and was rejected alone and without a trace. An
    /// accepted change shows that this holds for all of them.
    fn without_refused(
        &self,
        doubtful: &[Change],
        change: &Change,
        got: Result<(), ErrorKind>,
    ) -> Option<(Vec<Change>, Model)> {
        subsets(doubtful).filter(|rest| got.is_err() || rest.is_empty()).find_map(|rest| {
            let model = applied(&self.model, &rest)?;
            (model.clone().apply(change) == got).then_some((rest, model))
        })
    }

    /// Drops only partitions older than a TTL.
    fn expire(&mut self) -> Result<(), String> {
        let done = self.db().jobs().expire(NOW);
        self.counts.calls += 1;
        let may_fail = self.note_failures();
        for (command, answer) in done {
            self.drops_only_what_expired(&command)?;
            self.answered(vec![&Change::Command(command)], vec![answer], may_fail)?;
        }
        match self.model.tables.iter().find(|table| !table.expired().is_empty()) {
            Some(table) if !may_fail => Err(format!("{} keeps rows older than its TTL", table.schema.name)),
            _ => Ok(()),
        }
    }

    fn drops_only_what_expired(&self, command: &Command) -> Result<(), String> {
        let Command::DropPartitions { table, partitions } = command else {
            return Err(format!("{command:?} is not what a TTL does"));
        };
        let table = &self.model.tables[self.model.find(table).ok_or("a TTL drops from a table that is not there")?];
        let (by, expired) = (table.schema.partition_by, table.expired());
        let Some((at, unit)) = table.schema.designated().filter(|_| by != PartitionBy::None) else {
            return Err(format!("{} has no partitions to drop", table.schema.name));
        };
        let starts = table.rows.iter().map(|row| by.interval(super::model::time(&row[at]), unit).0);
        match starts.filter(|start| partitions.contains(start)).find(|start| !expired.contains(start)) {
            Some(start) => Err(format!("{} drops the partition of {start}, which is not too old", table.schema.name)),
            None => Ok(()),
        }
    }

    /// Returns the request of a client; `None` for a statement without an effect.
    fn work(&mut self, change: &Change) -> Result<Option<Work>, String> {
        Ok(Some(match change {
            Change::Rows { batches, may_create } => {
                let mode = if *may_create { RowsMode::Create } else { RowsMode::Insert };
                Work::Rows { batches: batches.iter().map(to_batch).collect(), mode }
            }
            Change::Command(command) => Work::Command(command.clone()),
            Change::Rewrite(rewrite) => {
                let tables = self.db().all_tables().1;
                return Ok(self.rewrite(rewrite, &tables)?.map(Work::Change));
            }
            Change::Transaction(changes) => return self.transaction(change, changes),
        }))
    }

    /// Executes a transaction up to its commit.
    ///
    /// Does nothing if the transaction is rejected before the commit; the model must predict the rejection.
    fn transaction(&mut self, all: &Change, changes: &[Change]) -> Result<Option<Work>, String> {
        let transaction = self.db().begin(Isolation::RepeatableRead);
        let mut done = Ok(());
        for change in changes {
            done = match change {
                Change::Rows { batches, .. } => transaction.insert(batches.iter().map(to_batch).collect()),
                Change::Command(command) => transaction.command(command.clone()),
                Change::Rewrite(rewrite) => {
                    let tables = transaction.tables();
                    let is_there = |t: &Arc<TableSnapshot>| {
                        t.schema.name.eq_ignore_ascii_case(&rewrite.table)
                            && t.schema.columns.iter().any(|c| c.name == rewrite.column)
                    };
                    if !tables.iter().any(is_there) {
                        return Ok(None);
                    }
                    self.could_not_read = false;
                    let found = self.rewrite(rewrite, &tables)?;
                    if self.could_not_read {
                        // The statement fails, and with it the transaction.
                        return Ok(None);
                    }
                    found.map_or(Ok(()), |change| transaction.change(change))
                }
                Change::Transaction(_) => Ok(()),
            };
            if done.is_err() {
                break;
            }
        }
        let attempt = done.and_then(|()| transaction.first_attempt());
        if !self.fs.take_failed().is_empty() || self.fs.is_crashed() {
            return Ok(None);
        }
        match attempt {
            Ok(attempt) => Ok(attempt.map(Work::Transaction)),
            Err(error) if self.model.clone().apply(all) == Err(error.kind) => Ok(None),
            Err(error) => Err(format!("{all:?} is refused: {error}")),
        }
    }

    /// Like the statement, finds the rows in the current version.
    fn rewrite(&mut self, rewrite: &Rewrite, tables: &[Arc<TableSnapshot>]) -> Result<Option<RowChange>, String> {
        let Some(seen) = tables.iter().find(|t| t.schema.name.eq_ignore_ascii_case(&rewrite.table)) else {
            return Ok(None);
        };
        let Some(at) = seen.schema.columns.iter().position(|c| c.name == rewrite.column) else { return Ok(None) };
        let Some(pieces) = self.tried(pieces(seen))? else { return Ok(None) };
        let (mut hit, mut cells) = (Vec::new(), Vec::new());
        for piece in pieces {
            let mut mask = Mask::default();
            for (number, mut row) in piece.rows.into_iter().enumerate() {
                if !piece.is_dead[number] && rewrite.hits(&row[at]) {
                    mask.kill(number);
                    row[at] = rewrite.becomes.clone().unwrap_or(row[at].clone());
                    cells.push(Arc::new(row));
                }
            }
            hit.push(mask);
        }
        if cells.is_empty() {
            return Ok(None);
        }
        let columns = seen.schema.columns.iter().map(|c| (c.name.clone(), c.column_type)).collect();
        let changed = Rows { table: seen.schema.name.clone(), columns, cells, timestamps: None };
        let rows = rewrite.becomes.iter().map(|_| to_batch(&changed)).collect();
        Ok(Some(RowChange {
            seen: seen.clone(),
            hit,
            rows,
            times: Vec::new(),
            is_exact: false,
            added: None,
            view: None,
        }))
    }

    /// Returns true if a request may be rejected because the disk failed.
    fn note_failures(&mut self) -> bool {
        let failed = self.fs.take_failed();
        self.counts.failures += failed.len() as u64;
        let breaks = |what: &str| ["write", "sync"].contains(&what);
        self.could_not_read = failed.iter().any(|op| ["open", "list", "len", "read"].contains(&op.what));
        self.is_broken |= failed.iter().any(|op| op.path.starts_with(FOLDER) && breaks(op.what));
        !failed.is_empty() || self.is_broken || self.fs.is_crashed()
    }

    /// Handles the result of a merge or checkpoint.
    fn job(&mut self, result: crate::Result<()>) -> Result<(), String> {
        self.counts.calls += 1;
        // Like the jobs thread every second; a failed write is retried.
        let _ = self.db.as_ref().map(|db| db.shared().log_mark.write());
        let may_fail = self.note_failures();
        match result {
            Err(error) if !may_fail || error.kind != ErrorKind::Unavailable && error.kind != ErrorKind::NotFound => {
                Err(format!("a merge or checkpoint failed without a reason: {error:?}"))
            }
            _ => Ok(()),
        }
    }

    fn all_is_durable(&mut self) {
        if self.config.durability != Durability::Sync {
            self.durable = self.model.clone();
            self.since.clear();
        }
    }

    fn reopen(&mut self, end: End) -> Result<(), String> {
        let in_doubt = std::mem::take(&mut self.in_doubt);
        let db = self.db.take().expect("it is open between steps");
        self.pins.clear();
        let mut power_went = false;
        match end {
            End::Orderly => {
                let result = db.close();
                let is_closed = result.is_ok();
                self.job(result)?;
                if self.fs.is_crashed() {
                    // Equivalent to the end of the process; a power loss is a separate step.
                    self.fs = self.fs.killed();
                } else if is_closed {
                    self.all_is_durable();
                }
            }
            End::Kill => self.fs = self.fs.killed(),
            End::PowerLoss(survivor) => {
                self.fs.crash();
                self.fs = self.fs.survivor(survivor);
                self.counts.power_losses += 1;
                power_went = true;
            }
        }
        drop(db);
        self.fs.set_mood(self.mood);
        self.open(in_doubt, power_went)
    }

    /// Returns the possible states after an open: a model, and later commits of which a prefix may exist.
    fn possible(&mut self, in_doubt: Vec<Vec<Change>>, power_went: bool) -> (Model, Vec<Vec<Change>>) {
        if !power_went || self.config.durability == Durability::Sync {
            return (self.model.clone(), in_doubt);
        }
        let since = std::mem::take(&mut self.since);
        let groups = in_doubt.into_iter().map(|group| since.iter().cloned().chain(group).collect());
        let groups = [since.clone()].into_iter().chain(groups).collect();
        (self.durable.clone(), groups)
    }

    /// Opens the disk, after a power loss or not, and checks its content.
    fn open(&mut self, in_doubt: Vec<Vec<Change>>, mut power_went: bool) -> Result<(), String> {
        self.counts.calls += 1;
        self.counts.openings += 1;
        let _ = self.fs.take_failed();
        let open = |fs: &SimFs| Database::open_on(Arc::new(fs.clone()) as Arc<dyn Fs>, self.config.clone(), None);
        let db = match open(&self.fs) {
            Ok(db) => db,
            Err(error) if self.fs.take_failed().is_empty() && !self.fs.is_crashed() => {
                return Err(format!("it does not open: {error}"));
            }
            Err(_) => {
                if self.fs.is_crashed() {
                    // An additional power loss may destroy content that a kill or a failed close left unsynced.
                    self.fs = self.fs.survivor(self.counts.calls);
                    power_went = true;
                }
                self.fs.calm();
                self.mood = Mood::Well;
                open(&self.fs).map_err(|error| format!("it does not open after a failure at opening: {error}"))?
            }
        };
        // Failures before a successful open do not poison the log.
        self.is_broken = false;
        let _ = self.fs.take_failed();
        self.fs.set_mood(Mood::Well);
        let tables = db.all_tables().1;
        let found = Model { tables: tables.iter().map(|t| read(t)).collect::<Result<_, _>>()? };
        self.fs.set_mood(self.mood);
        self.db = Some(db);
        self.counts.checks += 1;
        let (base, doubts) = self.possible(in_doubt, power_went);
        self.model = choose(&found, &base, &doubts)?;
        self.all_is_durable();
        Ok(())
    }

    /// Returns the content of these tables for a reader; `None` if a read failed and may fail.
    fn read(&mut self, tables: &[Arc<TableSnapshot>]) -> Result<Option<Vec<Table>>, String> {
        self.tried(tables.iter().map(|t| read(t)).collect())
    }

    /// Returns the result of a read; `None` if it failed because of the disk.
    fn tried<T>(&mut self, found: Result<T, String>) -> Result<Option<T>, String> {
        let failed = self.fs.take_failed();
        self.is_broken |= failed.iter().any(|op| op.path.starts_with(FOLDER));
        match found {
            Ok(found) => Ok(Some(found)),
            Err(_) if !failed.is_empty() || self.fs.is_crashed() => {
                self.could_not_read = true;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn check(&mut self) -> Result<(), String> {
        self.counts.calls += 1;
        self.counts.checks += 1;
        let tables = self.db().all_tables().1;
        let late = tables.iter().flat_map(|t| late_of(&t.segments));
        self.counts.late_segments += late.count() as u64;
        match self.read(&tables)? {
            Some(found) => compare(&found, &self.model),
            None => Ok(()),
        }
    }

    fn check_sql(&mut self) -> Result<(), String> {
        self.counts.calls += 1;
        self.fs.set_mood(Mood::Well);
        let result = if self.fs.is_crashed() { Ok(()) } else { sql::check(self.db(), &self.model) };
        self.fs.set_mood(self.mood);
        result
    }

    fn unpin(&mut self) -> Result<(), String> {
        let Some((tables, before)) = self.pins.pop_front() else { return Ok(()) };
        self.counts.calls += 1;
        match self.read(&tables)? {
            Some(now) if now != before => Err("a snapshot changed under its reader".to_owned()),
            _ => Ok(()),
        }
    }
}

/// Largest number of changes whose subsets are enumerated.
const SUBSETS_OF_MAX: usize = 6;

/// Returns the subsets of changes in order, the complete set first; of many changes only the complete and the empty
/// set.
fn subsets(changes: &[Change]) -> impl Iterator<Item = Vec<Change>> {
    let whole = (1_usize << changes.len().min(SUBSETS_OF_MAX)) - 1;
    let masks: Vec<usize> = if changes.len() > SUBSETS_OF_MAX { vec![whole, 0] } else { (0..=whole).rev().collect() };
    masks.into_iter().map(move |mask| {
        let is_in = |at: usize| mask == whole || mask & (1 << at) != 0;
        changes.iter().enumerate().filter(|(at, _)| is_in(*at)).map(|(_, change)| change.clone()).collect()
    })
}

/// Returns the model after changes; `None` if one of them is rejected.
fn applied(model: &Model, changes: &[Change]) -> Option<Model> {
    let mut model = model.clone();
    changes.iter().all(|change| model.apply(change).is_ok()).then_some(model)
}

fn rows_of(change: &Change) -> u64 {
    match change {
        Change::Rows { batches, .. } => batches.iter().map(|b| b.cells.len() as u64).sum(),
        Change::Command(_) | Change::Rewrite(_) => 0,
        Change::Transaction(changes) => changes.iter().map(rows_of).sum(),
    }
}

/// Returns the possible model that matches the found content.
fn choose(found: &Model, base: &Model, doubts: &[Vec<Change>]) -> Result<Model, String> {
    let Err(difference) = compare(&found.tables, base) else { return Ok(base.clone()) };
    for group in doubts {
        let mut model = base.clone();
        for change in group {
            let _ = model.apply(change);
            if compare(&found.tables, &model).is_ok() {
                return Ok(model);
            }
        }
    }
    let commits: Vec<usize> = doubts.iter().map(Vec::len).collect();
    Err(format!("after opening, with commits in doubt {commits:?}: {difference}"))
}

/// Returns true if the reserved end of the log file is available; an UPDATE without rows is treated like a DELETE.
fn may_free_space(change: &Change) -> bool {
    match change {
        Change::Rows { .. } => false,
        Change::Transaction(changes) => {
            changes.iter().all(|change| matches!(change, Change::Command(_)) && may_free_space(change))
        }
        Change::Rewrite(_) => true,
        Change::Command(command) => {
            matches!(command, Command::DropTable { .. } | Command::Truncate { .. } | Command::DropPartitions { .. })
        }
    }
}

fn is_update(change: &Change) -> bool {
    matches!(change, Change::Rewrite(Rewrite { becomes: Some(_), .. }))
}

/// Compares `found`, in order of creation and with rows in the order of queries, with the model.
fn compare(found: &[Table], model: &Model) -> Result<(), String> {
    let names = |tables: &[Table]| tables.iter().map(|t| t.schema.name.clone()).collect::<Vec<_>>();
    if names(found) != names(&model.tables) {
        return Err(format!("tables are {:?} instead of {:?}", names(found), names(&model.tables)));
    }
    for (found, expected) in found.iter().zip(&model.tables) {
        let name = &found.schema.name;
        if found.schema != expected.schema {
            return Err(format!("the schema is {:#?} instead of {:#?}", found.schema, expected.schema));
        }
        if found.rows.len() != expected.rows.len() {
            return Err(format!("{name} has {} rows instead of {}", found.rows.len(), expected.rows.len()));
        }
        let expected = expected.ordered();
        if let Some(row) = found.rows.iter().zip(&expected).position(|(a, b)| a != b) {
            let (found, expected) = (&found.rows[row], &expected[row]);
            return Err(format!("row {row} of {name} is {found:?} instead of {expected:?}"));
        }
    }
    Ok(())
}
