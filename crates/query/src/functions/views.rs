//! Table functions about views: `views()` and `materialized_views()`. Names of columns are QuestDB's where it has them.

use super::system::{Columns, all, long, optional_text, text};
use crate::catalog::ViewMetrics;
use crate::{Catalog, Result};
use datafusion::arrow::array::{ArrayRef, TimestampMicrosecondArray};
use std::sync::Arc;
use tidalite_storage::TableSnapshot;
use tidalite_types::{Materialized, Period, Refresh, View};

pub(super) fn views(catalog: &dyn Catalog, _: &[String]) -> Result<Columns> {
    let tables: Vec<_> = all(catalog).into_iter().filter(|t| t.schema.is_plain_view()).collect();
    let sql = |t: &Arc<TableSnapshot>| t.schema.view.as_ref().map(|view| view.sql.clone());
    Ok(vec![
        ("view_name", text(tables.iter().map(|t| t.schema.name.as_str()))),
        ("view_sql", optional_text(tables.iter().map(sql))),
    ])
}

/// One materialized view with what is known of its work.
struct Kept<'a> {
    table: &'a TableSnapshot,
    view: &'a View,
    kept: &'a Materialized,
    metrics: ViewMetrics,
}

pub(super) fn materialized_views(catalog: &dyn Catalog, _: &[String]) -> Result<Columns> {
    let metrics = catalog.view_metrics();
    let tables = all(catalog);
    let views: Vec<Kept<'_>> = tables
        .iter()
        .filter_map(|table| {
            let view = table.schema.view.as_deref()?;
            let metrics = metrics.iter().find(|m| m.view == table.id).cloned().unwrap_or_default();
            Some(Kept { table, view, kept: view.materialized.as_ref()?, metrics })
        })
        .collect();
    let times = |value: fn(&Kept<'_>) -> Option<i64>| -> ArrayRef {
        Arc::new(views.iter().map(value).collect::<TimestampMicrosecondArray>())
    };
    Ok(vec![
        ("view_name", text(views.iter().map(|v| v.table.schema.name.as_str()))),
        ("refresh_type", text(views.iter().map(|v| refresh_type(v.kept.schedule.refresh)))),
        ("base_table_name", text(views.iter().map(|v| v.kept.base.as_str()))),
        ("last_refresh_start_timestamp", times(|v| v.metrics.started)),
        ("last_refresh_finish_timestamp", times(|v| Some(v.kept.state.refreshed).filter(|at| *at != 0))),
        ("view_sql", text(views.iter().map(|v| v.view.sql.as_str()))),
        ("view_status", text(views.iter().map(status))),
        ("invalidation_reason", optional_text(views.iter().map(|v| v.kept.state.invalid.as_deref()))),
        ("last_error", optional_text(views.iter().map(|v| v.metrics.error.as_deref()))),
        ("refresh_base_table_txn", long(views.iter().map(|v| v.kept.state.seen.0 as i64))),
        ("base_table_txn", long(views.iter().map(|v| v.metrics.base_txn as i64))),
        ("lag_commits", long(views.iter().map(|v| v.metrics.lag_commits as i64))),
        ("pending_ranges", long(views.iter().map(|v| v.metrics.pending_ranges as i64))),
        ("timer_interval_seconds", optional_long(views.iter().map(|v| timer(v.kept.schedule.refresh).map(|t| t.0)))),
        ("timer_start", times(|v| timer(v.kept.schedule.refresh).map(|t| t.1))),
        ("timer_time_zone", optional_text(views.iter().map(|v| v.kept.schedule.zone.as_deref()))),
        (
            "period_length",
            optional_text(views.iter().map(|v| period(v).map(|p| p.length.as_deref().unwrap_or("SAMPLE BY")))),
        ),
        ("period_time_zone", optional_text(views.iter().map(|v| period(v).and_then(|p| p.zone.as_deref())))),
        ("period_delay_seconds", optional_long(views.iter().map(|v| period(v).map(|p| p.delay_s as i64)))),
        ("refresh_limit", optional_text(views.iter().map(|v| v.kept.limit.map(|limit| limit.to_string())))),
    ])
}

fn optional_long(values: impl IntoIterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<datafusion::arrow::array::Int64Array>())
}

fn refresh_type(refresh: Refresh) -> &'static str {
    match refresh {
        Refresh::Immediate => "immediate",
        Refresh::Manual => "manual",
        Refresh::Every { .. } => "timer",
    }
}

fn period<'a>(view: &Kept<'a>) -> Option<&'a Period> {
    view.kept.schedule.period.as_ref()
}

fn timer(refresh: Refresh) -> Option<(i64, i64)> {
    match refresh {
        Refresh::Every { seconds, start } => Some((i64::try_from(seconds).unwrap_or(i64::MAX), start)),
        _ => None,
    }
}

fn status(view: &Kept<'_>) -> &'static str {
    match (&view.kept.state.invalid, view.metrics.is_running) {
        (Some(_), _) => "invalid",
        (None, true) => "refreshing",
        (None, false) => "valid",
    }
}

/// What follows `AS (…)` in the statement that makes a view anew, and what comes before it.
pub(super) fn ddl(table: &TableSnapshot, view: &View, word: impl Fn(&str) -> String) -> String {
    let name = word(&table.schema.name);
    let Some(kept) = &view.materialized else { return format!("CREATE VIEW {name} AS (\n{}\n);", view.sql) };
    let schedule = &kept.schedule;
    let zone = schedule.zone.as_deref();
    let mut refresh = match schedule.refresh {
        Refresh::Immediate => "IMMEDIATE".to_owned(),
        Refresh::Manual => "MANUAL".to_owned(),
        Refresh::Every { seconds, start } => {
            let start = crate::engine::local_micros(zone, start);
            let start = tidalite_types::time::format_timestamp(start, tidalite_types::TimeUnit::Micros);
            format!("EVERY {seconds}s START '{start}'{}", in_zone(zone))
        }
    };
    if let Some(Period { length, zone, delay_s }) = &schedule.period {
        let delay = if *delay_s == 0 { String::new() } else { format!(" DELAY {delay_s}s") };
        refresh += &match length {
            Some(length) => format!(" PERIOD (LENGTH {length}{}{delay})", in_zone(zone.as_deref())),
            None => " PERIOD (SAMPLE BY INTERVAL)".to_owned(),
        };
    }
    let ttl = table.schema.ttl.map_or_else(String::new, |ttl| format!(" TTL {ttl}"));
    format!(
        "CREATE MATERIALIZED VIEW {name} WITH BASE {} REFRESH {refresh} AS (\n{}\n) PARTITION BY {}{ttl};",
        word(&kept.base),
        view.sql,
        table.schema.partition_by
    )
}

fn in_zone(zone: Option<&str>) -> String {
    zone.map_or_else(String::new, |zone| format!(" TIME ZONE '{zone}'"))
}
