//! Refreshes materialized views in the background, on a separate thread.
//!
//! The thread wakes when a base table of a view changed, and periodically for timed views. A refresh is an ordinary
//! statement and never delays a commit. After a refresh, an immediate view rests for the duration of the refresh, so
//! that under a stream of commits each view uses at most half a processor.

use crate::ErrorKind;
use crate::session::{Host, RefreshNote, Sessions};
use crate::shared::Shared;
use futures::executor::block_on;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tidalite_query::statement::RefreshScope;
use tidalite_query::{OverView, ViewMetrics};
use tidalite_storage::TableSnapshot;
use tidalite_types::{Materialized, Refresh, TableId, Txn};

/// The longest rest of a view.
const REST_MAX: Duration = Duration::from_secs(10);
/// Rest after a refresh that failed for a temporary reason.
const RETRY: Duration = Duration::from_secs(1);
/// Interval between checks of views that include only complete periods.
const PERIODS_LOOKED_AT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct ViewJob {
    /// Views that are not refreshed before this time.
    rest: HashMap<TableId, Instant>,
}

impl ViewJob {
    pub fn new() -> ViewJob {
        ViewJob { rest: HashMap::new() }
    }

    /// Returns true if a view is due.
    pub fn has_work(&mut self, shared: &Shared) -> bool {
        !self.due(shared).is_empty()
    }

    /// Returns the time without work unless a table changes, at most `most`: the end of a view's rest must be awaited,
    /// because changes during the rest wake no thread.
    pub fn idle(&self, most: Duration) -> Duration {
        let now = Instant::now();
        self.rest
            .values()
            .map(|until| until.duration_since(now))
            .filter(|rest| !rest.is_zero())
            .fold(most, Duration::min)
    }

    /// Refreshes the due views, base views first.
    pub fn round(&mut self, shared: &Shared, sessions: &Sessions, host: &Arc<dyn Host>) {
        for view in self.due(shared) {
            if shared.is_closing.load(SeqCst) {
                return;
            }
            let started = Instant::now();
            let refreshed = block_on(sessions.refresh(host.clone(), view, RefreshScope::Incremental));
            let rest = match refreshed {
                // The ends of periods are checked periodically.
                Ok(_) if has_period(shared, view) => started.elapsed().clamp(PERIODS_LOOKED_AT, REST_MAX),
                Ok(_) => started.elapsed().min(REST_MAX),
                Err(error) => {
                    let is_closed = shared.is_closing.load(SeqCst);
                    if !is_closed && !matches!(error.kind, ErrorKind::Invalid | ErrorKind::NotFound) {
                        tracing::warn!(view = view.0, %error, "a materialized view was not refreshed; it will be tried again");
                    }
                    RETRY
                }
            };
            self.rest.insert(view, Instant::now() + rest);
        }
    }

    fn due(&mut self, shared: &Shared) -> Vec<TableId> {
        let (_, tables) = shared.tables.all();
        self.rest.retain(|id, _| tables.binary_search_by_key(id, |t| t.id).is_ok());
        let now = Instant::now();
        let is_rested = |id: TableId| self.rest.get(&id).is_none_or(|until| *until <= now);
        let due = tables.iter().filter(|t| t.schema.materialized().is_some_and(|kept| is_due(shared, &tables, kept)));
        due.map(|t| t.id).filter(|id| is_rested(*id)).collect()
    }
}

fn is_due(shared: &Shared, tables: &[Arc<TableSnapshot>], kept: &Materialized) -> bool {
    if kept.state.invalid.is_some() {
        return false;
    }
    let schedule = &kept.schedule;
    match schedule.refresh {
        Refresh::Manual => false,
        Refresh::Immediate => has_news(shared, tables, kept),
        Refresh::Every { seconds, start } => {
            let now = micros_now();
            let local = |at: i64| tidalite_query::local_micros(schedule.zone.as_deref(), at);
            let since_start = |at: i64| local(at).saturating_sub(local(start));
            let slot = |at: i64| since_start(at).div_euclid((seconds.max(1) as i64).saturating_mul(1_000_000));
            now >= start
                && (kept.state.refreshed < start || slot(kept.state.refreshed) < slot(now))
                && has_news(shared, tables, kept)
        }
    }
}

fn has_period(shared: &Shared, view: TableId) -> bool {
    let versions = shared.tables.read();
    versions.get(view).and_then(|t| t.schema.materialized()).is_some_and(|kept| kept.schedule.period.is_some())
}

/// Returns true if a refresh would find changes or an error.
fn has_news(shared: &Shared, tables: &[Arc<TableSnapshot>], kept: &Materialized) -> bool {
    let state = &kept.state;
    if !state.pending.is_empty() {
        return true;
    }
    let base = tables.binary_search_by_key(&state.base, |t| t.id).ok().map(|at| &tables[at]);
    let is_there = base.is_some_and(|base| tidalite_types::schema::same_name(&base.schema.name, &kept.base));
    !is_there || shared.lock_times().after(state.base, state.seen).is_none_or(|changes| !changes.is_empty())
}

fn micros_now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |d| i64::try_from(d.as_micros()).unwrap_or(i64::MAX))
}

/// Forgets the changes that all views of a table have processed.
pub(crate) fn forget_seen(shared: &Shared) {
    let mut seen: HashMap<TableId, Txn> = HashMap::new();
    for table in shared.tables.all().1 {
        let Some(kept) = table.schema.materialized() else { continue };
        // An invalid view is recomputed completely, if at all.
        let upto = if kept.state.invalid.is_some() { Txn(u64::MAX) } else { kept.state.seen };
        seen.entry(kept.state.base).and_modify(|least| *least = upto.min(*least)).or_insert(upto);
    }
    shared.lock_times().forget(|table| seen.get(&table).copied().map(|txn| txn.min(shared.tables.read().txn())));
}

/// See [`tidalite_query::Catalog::views_over`]. Changes are recorded before they are visible, so none in a snapshot is
/// missed.
pub(crate) fn over(shared: &Shared, base: &TableSnapshot) -> Vec<OverView> {
    let (_, tables) = shared.tables.all();
    let now = tables.binary_search_by_key(&base.id, |t| t.id).ok().map(|at| &tables[at]);
    if now.is_none_or(|now| now.txn != base.txn || now.removals != base.removals) {
        return Vec::new();
    }
    let times = shared.lock_times();
    let of = |table: Arc<TableSnapshot>| {
        let kept = table.schema.materialized().filter(|kept| kept.state.base == base.id)?;
        let changes = times.after(base.id, kept.state.seen)?;
        let behind = changes.iter().map(|change| (change.lo, change.hi)).collect();
        Some((table, behind))
    };
    tables.into_iter().filter_map(of).collect()
}

pub(crate) fn metrics(shared: &Shared) -> Vec<ViewMetrics> {
    let (_, tables) = shared.tables.all();
    let times = shared.lock_times();
    let of = |table: &Arc<TableSnapshot>| {
        let kept = table.schema.materialized()?;
        let known = shared.refresh_note(table.id);
        let state = &kept.state;
        let base = tables.binary_search_by_key(&state.base, |t| t.id).ok().map(|at| tables[at].txn.0);
        let changes = times.after(state.base, state.seen).map_or(1, |changes| changes.len());
        Some(ViewMetrics {
            view: table.id,
            started: known.started,
            is_running: known.is_running,
            error: known.error,
            base_txn: base.unwrap_or(0),
            lag_commits: times.commits_after(state.base, state.seen),
            pending_ranges: (state.pending.len() + changes) as u64,
        })
    };
    tables.iter().filter_map(of).collect()
}

pub(crate) fn note(shared: &Shared, view: TableId, note: RefreshNote) {
    shared.note_refresh(view, |known| match note {
        RefreshNote::Started(at) => (known.started, known.is_running) = (Some(at), true),
        RefreshNote::Ended(error) => (known.error, known.is_running) = (error, false),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_left_alone_is_looked_at_when_that_is_over() {
        let (mut views, most) = (ViewJob::new(), Duration::from_secs(60));
        assert_eq!(views.idle(most), most);
        views.rest.insert(TableId(1), Instant::now());
        assert_eq!(views.idle(most), most);
        views.rest.insert(TableId(2), Instant::now() + Duration::from_secs(30));
        assert!(views.idle(most) <= Duration::from_secs(30));
    }
}
