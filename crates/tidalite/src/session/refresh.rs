//! Refreshes materialized views.
//!
//! Input: a view, and the parts to recompute. Output: commits to its rows. Each commit replaces whole buckets of the
//! view by the result of its query for the base as of one commit, and records the progress of the view. Readers of the
//! view see all of the commit or nothing, and after a crash the next refresh continues from there.
//!
//! Work is done in steps of about [`STEP_ROWS`] rows of the base. The commit thread has recorded the changes since the
//! last refresh; if they are unknown, everything is recomputed.

use super::Session;
use crate::writer::RowChange;
use crate::{Error, ErrorKind, Result};
use futures::StreamExt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tidalite_query::statement::{Query, RefreshScope, Statement};
use tidalite_query::{Bucketing, CancelToken, MaterializedShape, Part, Target, to_batch};
use tidalite_storage::TableSnapshot;
use tidalite_types::schema::same_name;
use tidalite_types::view::{ALWAYS, joined_ranges, ranges_without};
use tidalite_types::{Batch, Command, Materialized, TableId, TimeChange, TimeChangeKind, TimeUnit, Txn, ViewState};

/// Estimated number of base rows that one step reads; at least one bucket.
const STEP_ROWS: f64 = 4e6;
/// Largest number of time ranges of a step; each is a query.
const STEP_RANGES: usize = 32;
/// Largest number of frozen time ranges; beyond it, everything between them is frozen.
const FROZEN_MAX: usize = 256;
/// Largest number of restarts of a step because a merge moved rows of the view; from attempt `HOLD_FROM` on merges are
/// on hold.
const ATTEMPTS: usize = 50;
const HOLD_FROM: usize = 2;

/// State of a refresh that is reported while it runs.
#[derive(Clone, Debug)]
pub(crate) enum RefreshNote {
    /// Started at this time, in microseconds since 1970.
    Started(i64),
    /// Ended, with the error, if any.
    Ended(Option<String>),
}

/// The state of a view at the start of a step.
struct Work {
    view: Arc<TableSnapshot>,
    base: Arc<TableSnapshot>,
    query: Query,
    bucketing: Bucketing,
    targets: Vec<Target>,
    /// State with everything to recompute in `pending`.
    state: ViewState,
    /// The part of `pending` that can be computed now, excluding periods that have not ended.
    ready: Vec<(i64, i64)>,
    /// True if there is news to record even if nothing is recomputed.
    is_changed: bool,
}

/// Refreshes a view and returns the number of written rows.
pub(super) async fn refresh(
    session: &Session,
    view: TableId,
    scope: RefreshScope,
    cancel: &CancelToken,
) -> Result<u64> {
    let _turn = session.shared.changing.turn(view).await;
    session.host.note_refresh(view, RefreshNote::Started(now_micros()));
    let done = steps(session, view, scope, cancel).await;
    let error = done.as_ref().err().map(ToString::to_string);
    session.host.note_refresh(view, RefreshNote::Ended(error));
    session.host.refreshed();
    done
}

pub(super) fn now_micros() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |d| i64::try_from(d.as_micros()).unwrap_or(i64::MAX))
}

async fn steps(session: &Session, view: TableId, mut scope: RefreshScope, cancel: &CancelToken) -> Result<u64> {
    let (mut written, mut todo, mut failed) = (0, None, 0);
    let mut holds = Vec::new();
    loop {
        cancel.check()?;
        let work = match look(session, view, scope, cancel).await {
            Ok(work) => work,
            Err(error) => return Err(blamed(session, view, error).await),
        };
        let todo = todo.get_or_insert_with(|| work.ready.clone());
        if work.ready.is_empty() && !work.is_changed {
            return Ok(written);
        }
        let step = work.step();
        let rest = ranges_without(&work.state.pending, &step);
        let batches = match rows(session, &work, &step, cancel).await {
            Ok(batches) => batches,
            Err(error) => return Err(blamed(session, view, error).await),
        };
        let count: u64 = batches.iter().map(|batch| batch.rows as u64).sum();
        let hit = work.view.rows_within(&step)?;
        let state = ViewState { pending: rest, refreshed: now_micros(), ..work.state };
        let change = RowChange {
            seen: work.view,
            hit,
            rows: batches,
            times: step.clone(),
            is_exact: true,
            added: None,
            view: Some(state),
        };
        if session.host.change(change).await?.is_none() {
            failed += 1;
            if failed == HOLD_FROM {
                holds.push(session.host.hold_merges(view));
            }
            if failed == ATTEMPTS {
                let message = format!("rows of the view moved {ATTEMPTS} times while it was refreshed");
                return Err(Error::new(ErrorKind::Conflict, message));
            }
            continue;
        }
        failed = 0;
        holds.clear();
        written += count;
        // Changes in the meantime are left to the next refresh.
        *todo = ranges_without(todo, &step);
        scope = RefreshScope::Incremental;
        if todo.is_empty() {
            return Ok(written);
        }
    }
}

/// Marks the view invalid if the error is permanent, so that it is not found again and again.
async fn blamed(session: &Session, view: TableId, error: Error) -> Error {
    if !matches!(error.kind, ErrorKind::Invalid | ErrorKind::NotFound) {
        return error;
    }
    let found = session.host.snapshots_at(&[view]).1.pop().flatten();
    if let Some(kept) = found.as_ref().and_then(|table| table.schema.materialized())
        && kept.state.invalid.is_none()
    {
        let state = ViewState { invalid: Some(error.message.clone()), ..kept.state.clone() };
        // If it cannot be recorded now, the error is found again later.
        let _ = session.host.command(Command::SetViewState { view, state }).await;
    }
    error
}

/// Returns the view and its base at one instant, with the work of the refresh.
async fn look(session: &Session, id: TableId, scope: RefreshScope, cancel: &CancelToken) -> Result<Work> {
    let gone = || Error::new(ErrorKind::Unavailable, "the materialized view was dropped");
    let view = session.host.snapshots_at(&[id]).1.pop().flatten().ok_or_else(gone)?;
    let kept = view.schema.materialized().cloned().ok_or_else(gone)?;
    if let (Some(why), false) = (&kept.state.invalid, scope == RefreshScope::Full) {
        let mut error =
            Error::new(ErrorKind::Conflict, format!("materialized view \"{}\" is invalid: {why}", view.schema.name));
        error.hint = Some(format!("REFRESH MATERIALIZED VIEW {} FULL computes all of it again", view.schema.name));
        return Err(error);
    }
    let base = base_of(session, &view, &kept, scope)?;
    let sql = view.schema.view.as_ref().map_or("", |view| view.sql.as_str());
    let Statement::Query(query) = tidalite_query::parse(sql)? else {
        return Err(Error::new(ErrorKind::Internal, "the text of a view is no query"));
    };
    let shape = session.engine()?.materialized_shape(&session.catalog(), &query, Some(&kept.base), cancel).await?;
    let targets = targets(&view, &shape)?;
    let (txn, found) = session.host.snapshots_at(&[id, base]);
    let [Some(view), Some(base)] = <[_; 2]>::try_from(found).map_err(|_| gone())? else { return Err(gone()) };
    let before = view.schema.materialized().cloned().ok_or_else(gone)?.state;
    let unit = base.schema.timestamp().map_or(TimeUnit::Micros, |(_, unit)| unit);
    let clip = Clip::of(&kept, &base, unit, &shape.bucketing);
    let state = brought_up(session, &before, base.id, txn, in_unit(scope, unit), (&shape.bucketing, clip));
    let ready = ranges_without(&state.pending, &[(clip.end, i64::MAX)]);
    // Ranges that only wait for the end of their period are found again.
    let is_changed = !ready.is_empty() || state.frozen != before.frozen || state.invalid != before.invalid;
    Ok(Work { view, base, query, bucketing: shape.bucketing, targets, state, ready, is_changed })
}

/// Returns the base for which the view was created; a full refresh uses the current table of that name.
fn base_of(session: &Session, view: &TableSnapshot, kept: &Materialized, scope: RefreshScope) -> Result<TableId> {
    let named = session.host.snapshots(&[&kept.base]).pop().flatten();
    let message = match named {
        None => {
            format!("table \"{}\" does not exist, which materialized view \"{}\" follows", kept.base, view.schema.name)
        }
        Some(base) if base.id == kept.state.base || scope == RefreshScope::Full => return Ok(base.id),
        Some(_) => format!(
            "table \"{}\" is not the one that materialized view \"{}\" was created over",
            kept.base, view.schema.name
        ),
    };
    Err(Error::new(ErrorKind::NotFound, message))
}

/// Returns the view's columns in the order of the query's, after checking the types.
fn targets(view: &TableSnapshot, shape: &MaterializedShape) -> Result<Vec<Target>> {
    let schema = &view.schema;
    let changed = |what: String| Error::new(ErrorKind::Invalid, what);
    if schema.columns.len() != shape.columns.len() {
        return Err(changed(format!("the query of materialized view \"{}\" has other columns now", schema.name)));
    }
    let target = |(at, (column, given)): (usize, (&tidalite_types::ColumnSchema, &tidalite_query::OutputColumn))| {
        if !same_name(&column.name, &given.name) || given.column_type != Some(column.column_type) {
            return Err(changed(format!(
                "column {} of materialized view \"{}\" was \"{}\" of type {} and would be \"{}\" of type {}",
                at + 1,
                schema.name,
                column.name,
                column.column_type,
                given.name,
                given.type_name
            )));
        }
        let is_designated = Some(column.id) == schema.designated;
        Ok(Target { name: column.name.clone(), column_type: column.column_type, is_designated })
    };
    schema.columns.iter().zip(&shape.columns).enumerate().map(target).collect()
}

/// Converts the bounds of a range to the unit of the base.
fn in_unit(scope: RefreshScope, unit: TimeUnit) -> RefreshScope {
    let bound = |micros: i64| {
        let limit = if micros < 0 { i64::MIN } else { i64::MAX };
        TimeUnit::Micros.convert(micros, unit).unwrap_or(limit)
    };
    match scope {
        RefreshScope::Range(lo, hi) => RefreshScope::Range(bound(lo), bound(hi)),
        other => other,
    }
}

/// The base times that a refresh includes.
#[derive(Clone, Copy)]
struct Clip {
    /// Changes of earlier times are ignored.
    start: i64,
    /// Later times must wait; `i64::MAX` for none.
    end: i64,
}

impl Clip {
    fn of(kept: &Materialized, base: &TableSnapshot, unit: TimeUnit, bucketing: &Bucketing) -> Clip {
        let now = now_micros();
        let end = kept.schedule.period.as_ref().map_or(i64::MAX, |period| bucketing.period_end(period, now));
        let start = kept.limit.map_or(i64::MIN, |limit| {
            let now = TimeUnit::Micros.convert(now, unit).unwrap_or(i64::MAX);
            let newest = base.time_range().map_or(now, |(_, newest)| newest.min(now));
            bucketing.start(limit.cutoff(newest, unit))
        });
        Clip { start, end }
    }
}

/// Returns the progress of the view after `pending` is computed from the base as of `txn`.
fn brought_up(
    session: &Session,
    before: &ViewState,
    base: TableId,
    txn: Txn,
    scope: RefreshScope,
    (bucketing, clip): (&Bucketing, Clip),
) -> ViewState {
    let mut state = ViewState { base, seen: txn, ..before.clone() };
    match session.host.changed_times(base, before.seen).filter(|_| base == before.base) {
        Some(changes) => changes.iter().for_each(|change| take_in(&mut state, change, clip.start)),
        None => state.pending = vec![ALWAYS],
    }
    state.frozen = joined_ranges(state.frozen);
    let late = state.frozen.partition_point(|(_, hi)| *hi <= clip.start);
    if late > FROZEN_MAX {
        let all = (state.frozen[0].0, state.frozen[late - 1].1);
        state.frozen.splice(..late, [all]);
    }
    match scope {
        RefreshScope::Incremental => {}
        RefreshScope::Full => {
            (state.pending, state.frozen, state.invalid) = (vec![ALWAYS], Vec::new(), None);
        }
        RefreshScope::Range(lo, hi) => {
            let asked = bucketing.whole((lo, hi));
            state.pending.push(asked);
            state.frozen = ranges_without(&state.frozen, &[asked]);
        }
    }
    let whole = |ranges: &[(i64, i64)]| joined_ranges(ranges.iter().map(|range| bucketing.whole(*range)).collect());
    state.pending = ranges_without(&whole(&state.pending), &whole(&state.frozen));
    state
}

fn take_in(state: &mut ViewState, change: &TimeChange, start: i64) {
    let range = (change.lo, change.hi);
    match change.kind {
        TimeChangeKind::Changed => {
            if change.lo < start {
                // Too late for the view, which stays unchanged there, unless it is still pending.
                let known = joined_ranges(state.pending.clone());
                state.frozen.extend(ranges_without(&[(change.lo, change.hi.min(start))], &known));
            }
            state.pending.push((change.lo.max(start), change.hi));
        }
        TimeChangeKind::Dropped => state.frozen.push(range),
        TimeChangeKind::Truncated => {
            state.frozen.clear();
            state.pending.push(range);
        }
    }
}

/// Returns the result of the view's query for the times of a step.
async fn rows(session: &Session, work: &Work, step: &[(i64, i64)], cancel: &CancelToken) -> Result<Vec<Batch>> {
    let (engine, mut batches) = (session.engine()?, Vec::new());
    for &(lo, hi) in step {
        let part = Part { name: work.base.schema.name.clone(), base: work.base.clone(), lo, hi };
        let mut stream = engine.part(session.catalog(), &work.query, part, cancel.clone()).await?.stream;
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            if batch.num_rows() > 0 {
                batches.push(to_batch(&batch, &work.view.schema.name, &work.targets, 0)?);
            }
        }
    }
    Ok(batches)
}

impl Work {
    /// Returns the next times to compute.
    fn step(&self) -> Vec<(i64, i64)> {
        let (mut step, mut room) = (Vec::new(), STEP_ROWS);
        for &(lo, hi) in &self.ready {
            if step.len() == STEP_RANGES {
                break;
            }
            let rows = estimated_rows(&self.base, lo, hi);
            if rows <= room {
                room -= rows;
                step.push((lo, hi));
                continue;
            }
            // At least one bucket, to make progress.
            if step.is_empty() || room > STEP_ROWS / 2.0 {
                step.push((lo, self.cut(lo, hi, room)));
            }
            break;
        }
        step
    }

    /// Returns the end of a part of `[lo, hi)` with about `room` rows, at a bucket bound.
    fn cut(&self, lo: i64, hi: i64, room: f64) -> i64 {
        let Some((first, last)) = self.base.time_range() else { return hi };
        let (first, last) = (first.max(lo), last.min(hi.saturating_sub(1)));
        let (mut from, mut to) = (i128::from(first), i128::from(last));
        while from < to {
            let middle = (from + to + 1) / 2;
            if estimated_rows(&self.base, lo, middle as i64) <= room { from = middle } else { to = middle - 1 }
        }
        let at = (from as i64).max(first);
        let (start, end) = self.bucketing.whole((at, at.saturating_add(1)));
        // The bucket that exceeds the limit is left to the next step, unless it is the only one.
        let cut = if start > first && start > lo { start } else { end };
        cut.clamp(lo.saturating_add(1), hi)
    }
}

/// Estimates the rows of a table in `[lo, hi)`, assuming that the rows of a segment are evenly distributed in time.
fn estimated_rows(table: &TableSnapshot, lo: i64, hi: i64) -> f64 {
    let share = |(first, last): (i64, i64)| {
        let (from, to) = (first.max(lo) as f64, (last as f64 + 1.0).min(hi as f64));
        ((to - from) / (last as f64 + 1.0 - first as f64).max(1.0)).clamp(0.0, 1.0)
    };
    let segments = table.segments.iter().map(|s| s.rows() as f64 * share(s.time_range()));
    let runs = table.runs.iter().map(|r| r.rows as f64 * share(r.time_range));
    segments.sum::<f64>() + runs.sum::<f64>()
}
