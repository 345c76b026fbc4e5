//! Views: their queries in the place of their names, and what a materialized one computes for a part of its times.
//!
//! A view is expanded when a statement that names it is planned: its text is parsed, the tables it names are pinned
//! together with all others, and its plan stands where its name stood, as a sub-query would.

use super::logical::if_bound;
use super::sampled::{bucketing, sampled};
use super::{Engine, OutputColumn, QueryResult, distinct, output_column};
use crate::binder;
use crate::calendar::{Buckets, Stride, Zone};
use crate::dialect;
use crate::scan::table::NativeTable;
use crate::statement::{Query, Statement};
use crate::tables::{QueryTables, full_name};
use crate::{CancelToken, Catalog, Error, Result, door, plan};
use datafusion::catalog::TableProvider;
use datafusion::datasource::ViewTable;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::parser::Statement as PlannerStatement;
use datafusion::sql::sqlparser::ast;
use futures::FutureExt;
use futures::future::BoxFuture;
use std::collections::HashMap;
use std::sync::Arc;
use tidalite_storage::TableSnapshot;
use tidalite_types::schema::fold_name;
use tidalite_types::{Period, TimeUnit};

/// Views within views.
const DEPTH_MAX: usize = 16;
/// Views of one statement, those within views counted each time.
const VIEWS_MAX: usize = 500;

/// A view that a statement names, or that a view does.
pub(super) struct Expanded {
    name: String,
    query: Query,
    sql: String,
}

/// A query that a materialized view can be kept by.
#[derive(Clone, Debug)]
pub struct MaterializedShape {
    /// The table that its rows come from.
    pub base: String,
    pub columns: Vec<OutputColumn>,
    /// The column that has the start of the bucket.
    pub timestamp: usize,
    pub bucketing: Bucketing,
}

/// How a view cuts time into buckets.
#[derive(Clone, Copy, Debug)]
pub struct Bucketing(Buckets);

/// What of a materialized view is computed: the buckets that `[lo, hi)` of the base are all of.
#[derive(Debug)]
pub struct Part {
    /// How the query calls the base, and the base.
    pub name: String,
    pub base: Arc<TableSnapshot>,
    pub lo: i64,
    pub hi: i64,
}

impl Bucketing {
    pub(crate) fn new(buckets: Buckets) -> Bucketing {
        Bucketing(buckets)
    }

    /// The times of all buckets that the range has a part of.
    #[must_use]
    pub fn whole(&self, (lo, hi): (i64, i64)) -> (i64, i64) {
        let mut from = lo;
        if lo != i64::MIN {
            from = self.0.range(lo).0;
            // Where a zone's standard time changed, buckets can overlap.
            while from > i64::MIN && self.0.range(from - 1).1 > from {
                from = self.0.range(from - 1).0;
            }
        }
        if hi == i64::MAX || hi <= lo {
            return (from, hi.max(from));
        }
        let mut to = self.0.range(hi - 1).1;
        while to < i64::MAX && self.0.range(to).0 < to {
            let next = self.0.range(to).1;
            if next <= to {
                break;
            }
            to = next;
        }
        (from, to)
    }

    /// The end of the last period that has ended when it is `now`, in microseconds since 1970, in the unit of the base:
    /// no bucket from there on is whole.
    #[must_use]
    pub fn period_end(&self, period: &Period, now: i64) -> i64 {
        let at = now.saturating_sub_unsigned(period.delay_s.saturating_mul(1_000_000));
        let in_unit = |micros: i64| {
            let limit = if micros < 0 { i64::MIN } else { i64::MAX };
            TimeUnit::Micros.convert(micros, self.0.unit).unwrap_or(limit)
        };
        let length = period.length.as_deref().and_then(Stride::parse).filter(|s| s.count > 0);
        let zone = period.zone.as_deref().and_then(Zone::parse).unwrap_or(Zone::UTC);
        let end = match length {
            Some(stride) => {
                in_unit(Buckets { stride, zone, offset_s: 0, origin: None, unit: TimeUnit::Micros }.range(at).0)
            }
            None => in_unit(at),
        };
        self.start(end)
    }

    /// The start of the bucket of a timestamp.
    #[must_use]
    pub fn start(&self, ts: i64) -> i64 {
        self.0.range(ts).0
    }

    /// How long a bucket about is.
    #[must_use]
    pub fn seconds(&self) -> i64 {
        let (lo, hi) = self.0.range(0);
        (hi.saturating_sub(lo) / self.0.unit.per_second()).max(0)
    }
}

/// What the clock of a zone shows at an instant, both in microseconds since 1970; UTC for `None` or a zone that is
/// none.
#[must_use]
pub fn local_micros(zone: Option<&str>, at: i64) -> i64 {
    let zone = zone.and_then(Zone::parse).unwrap_or(Zone::UTC);
    at.saturating_add(zone.offset(at.div_euclid(1_000_000)) * 1_000_000)
}

impl Engine {
    /// Pins the tables named and those that the views among them name, all at one instant; gives these views, each
    /// behind those that it names.
    pub(super) fn pin_with_views(
        &self,
        state: &SessionState,
        tables: &QueryTables,
        names: &[&str],
    ) -> Result<Vec<Expanded>> {
        let mut found = Vec::new();
        let mut all: Vec<String> = Vec::new();
        let mut within = Vec::new();
        for name in names {
            self.expand(state, tables, name, &mut within, &mut found, &mut all)?;
        }
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        tables.pin(&all);
        Ok(found)
    }

    /// Returns the tables and views that a query names.
    pub(super) fn references(&self, state: &SessionState, query: &Query) -> Result<Vec<String>> {
        match self.tree_of(query) {
            Some(tree) => Ok(binder::tables::table_names(&tree.query)),
            None => references(state, query),
        }
    }

    /// Checks that a query and the views that it names can be planned in bearable time.
    pub(super) fn check_size(&self, query: &Query, views: &[Expanded]) -> Result<()> {
        let size = |query: &Query, sizes: &HashMap<_, _>| match self.tree_of(query) {
            Some(tree) => plan::size_of_tree(&tree.query, sizes).bearable(),
            None => plan::size(query.stock_ast()?, sizes).bearable(),
        };
        let mut sizes = HashMap::new();
        for view in views {
            let own = size(&view.query, &sizes).map_err(|error| in_view(error, &view.name))?;
            sizes.insert(fold_name(&view.name), own);
        }
        size(query, &sizes).map(drop)
    }

    /// Puts the plan of each view in the place of its name.
    pub(super) async fn put_views(
        self: &Arc<Self>,
        state: &SessionState,
        tables: &QueryTables,
        views: Vec<Expanded>,
    ) -> Result<()> {
        for Expanded { name, query, sql } in views {
            let plan = self.view_plan(state, tables, &query).await.map_err(|error| in_view(error, &name))?;
            tables.put(&name, Arc::new(ViewTable::new(plan, Some(sql))));
        }
        Ok(())
    }

    /// Returns the plan of a view's query, with the column names of the text.
    async fn view_plan(
        self: &Arc<Self>,
        state: &SessionState,
        tables: &QueryTables,
        query: &Query,
    ) -> Result<LogicalPlan> {
        let bound = match self.tree_of(query) {
            Some(tree) => if_bound(self.bind(state, tables.catalog(), &query.words, tree).await, query)?,
            None => None,
        };
        let plan = match bound {
            Some((plan, _)) => plan,
            None => self.rewritten(state, query).await?,
        };
        let plan = match query.tail {
            Some(rows) => plan::last_rows(plan, rows)?,
            None => plan,
        };
        with_written_names(plan, query)
    }

    /// Looks for views from a name on, in depth.
    fn expand(
        &self,
        state: &SessionState,
        tables: &QueryTables,
        name: &str,
        within: &mut Vec<String>,
        found: &mut Vec<Expanded>,
        all: &mut Vec<String>,
    ) -> Result<()> {
        let folded = fold_name(name);
        if let Some(outer) = within.last().filter(|_| within.contains(&folded)) {
            let message = if *outer == folded {
                format!("view \"{name}\" cannot name itself")
            } else {
                format!("view \"{name}\" cannot name itself, as it would through \"{outer}\"")
            };
            return Err(Error::invalid(message));
        }
        if all.contains(&folded) {
            return Ok(());
        }
        let Some(schema) = tables.view(name) else {
            all.push(folded);
            return Ok(());
        };
        if within.len() >= DEPTH_MAX || found.len() >= VIEWS_MAX {
            return Err(Error::invalid(format!(
                "views are nested more than {DEPTH_MAX} levels deep at \"{}\"",
                schema.name
            )));
        }
        let sql = schema.view.as_ref().map_or_else(String::new, |view| view.sql.clone());
        let query = match dialect::parse(&sql) {
            Ok(Statement::Query(query)) => query,
            Ok(_) => return Err(Error::internal("the text of a view is no query")),
            Err(error) => return Err(in_view(error, &schema.name)),
        };
        within.push(folded.clone());
        for reference in self.references(state, &query)? {
            self.expand(state, tables, &reference, within, found, all)?;
        }
        within.pop();
        all.push(folded);
        found.push(Expanded { name: schema.name.clone(), query, sql });
        Ok(())
    }

    /// The columns of a view that is to be created. It may not name itself, also not through others.
    pub fn view_columns<'a>(
        self: &'a Arc<Self>,
        catalog: &'a Arc<dyn Catalog>,
        name: &'a str,
        query: &'a Query,
        cancel: &'a CancelToken,
    ) -> BoxFuture<'a, Result<Vec<OutputColumn>>> {
        async move {
            let state = self.state(catalog, cancel);
            let tables = QueryTables::new(catalog.clone(), self.fast_operators);
            let (mut found, mut all) = (Vec::new(), Vec::new());
            let mut within = vec![fold_name(name)];
            for reference in self.references(&state, query)? {
                self.expand(&state, &tables, &reference, &mut within, &mut found, &mut all)?;
            }
            Ok(columns_of(&self.planned_query(catalog, query, &[], cancel).await?, query))
        }
        .boxed()
    }

    /// What a materialized view of a query would be; an error says why there can be none. `base` is the table that the
    /// statement names, if it does.
    pub fn materialized_shape<'a>(
        self: &'a Arc<Self>,
        catalog: &'a Arc<dyn Catalog>,
        query: &'a Query,
        base: Option<&'a str>,
        cancel: &'a CancelToken,
    ) -> BoxFuture<'a, Result<MaterializedShape>> {
        async move {
            let (name, clause) = sampled(&self.state(catalog, cancel), query)?;
            if base.is_some_and(|base| fold_name(base) != name) {
                return Err(Error::invalid(format!("WITH BASE has to name the first table of the query, \"{name}\"")));
            }
            let snapshot = catalog
                .snapshots(&[&name])
                .pop()
                .flatten()
                .ok_or_else(|| super::placed(Error::table_not_found(&name), &query.words, catalog))?;
            let Some((_, unit)) = snapshot.schema.timestamp() else {
                let what = snapshot.schema.view.as_ref().map_or("table", |view| view.kind());
                return Err(Error::invalid(format!(
                    "{what} \"{}\" has no designated timestamp, which a materialized view follows",
                    snapshot.schema.name
                )));
            };
            let bucketing = bucketing(clause, unit)?;
            let logical = self.planned_query(catalog, query, &[], cancel).await?;
            let timestamp = logical.schema().fields().iter().position(|field| door::is_designated(field));
            let Some(timestamp) = timestamp else {
                return Err(Error::invalid("a materialized view has to select the timestamp that it samples by"));
            };
            let columns = columns_of(&logical, query);
            Ok(MaterializedShape { base: snapshot.schema.name.clone(), columns, timestamp, bucketing })
        }
        .boxed()
    }

    /// Whether a query can be planned.
    pub fn check<'a>(
        self: &'a Arc<Self>,
        catalog: &'a Arc<dyn Catalog>,
        query: &'a Query,
        cancel: &'a CancelToken,
    ) -> BoxFuture<'a, Result<()>> {
        async move { self.planned_query(catalog, query, &[], cancel).await.map(drop) }.boxed()
    }

    /// A query over a table with the rows of `snapshot` in its place.
    pub fn over<'a>(
        self: &'a Arc<Self>,
        catalog: Arc<dyn Catalog>,
        query: &'a Query,
        name: &'a str,
        snapshot: Arc<TableSnapshot>,
        cancel: CancelToken,
    ) -> BoxFuture<'a, Result<QueryResult>> {
        async move {
            let table: Arc<dyn TableProvider> = Arc::new(NativeTable::new(snapshot).fast(self.fast_operators));
            let planned = self.plan(&catalog, query, &[(name, table)], "", &cancel).await?;
            self.start(planned, &query.words, cancel)
        }
        .boxed()
    }

    /// The rows of a materialized view's query for a part of its times.
    pub fn part<'a>(
        self: &'a Arc<Self>,
        catalog: Arc<dyn Catalog>,
        query: &'a Query,
        part: Part,
        cancel: CancelToken,
    ) -> BoxFuture<'a, Result<QueryResult>> {
        async move {
            let table: Arc<dyn TableProvider> =
                Arc::new(NativeTable::within(part.base, part.lo, part.hi).fast(self.fast_operators));
            let planned = self.plan(&catalog, query, &[(&part.name, table)], "", &cancel).await?;
            self.start(planned, &query.words, cancel)
        }
        .boxed()
    }
}

fn columns_of(logical: &LogicalPlan, query: &Query) -> Vec<OutputColumn> {
    distinct(logical.schema().fields().iter().map(|field| output_column(field, &query.words)).collect())
}

/// The tables a query names.
fn references(state: &SessionState, query: &Query) -> Result<Vec<String>> {
    let parsed = Box::new(query.stock_ast()?.clone());
    let statement = PlannerStatement::Statement(Box::new(ast::Statement::Query(parsed)));
    let references = state.resolve_table_references(&statement)?;
    Ok(references.iter().filter_map(|r| full_name(r.schema(), r.table())).collect())
}

/// Names columns as the text of the view does.
fn with_written_names(logical: LogicalPlan, query: &Query) -> Result<LogicalPlan> {
    let columns = columns_of(&logical, query);
    let named = logical.schema().iter().zip(&columns).map(|((qualifier, field), column)| {
        let named = door::named(field, &column.name);
        let expr = Expr::Column(datafusion::common::Column::new(qualifier.cloned(), field.name()));
        let metadata = named.metadata().clone();
        expr.alias_with_metadata(named.name(), Some(metadata.into()))
    });
    let named: Vec<Expr> = named.collect();
    Ok(LogicalPlanBuilder::from(logical).project(named)?.build()?)
}

/// An error in the text of a view, which the statement's text knows nothing of.
fn in_view(error: Error, view: &str) -> Error {
    let message = error.to_string();
    let message = match message.strip_suffix(" does not exist") {
        Some(missing) if missing.starts_with("table ") => format!("{message}, which view \"{view}\" reads"),
        _ => format!("view \"{view}\": {message}"),
    };
    let mut named = Error::new(error.kind(), message);
    named.hint = error.hint;
    named.subject = Some(fold_name(view));
    named
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::{Stride, Zone};

    #[test]
    fn a_range_becomes_whole_buckets_of_the_zone() {
        let buckets = |stride, zone| {
            let (stride, zone) = (Stride::parse(stride).expect("a stride"), Zone::parse(zone).expect("a zone"));
            Bucketing(Buckets { stride, zone, offset_s: 0, origin: None, unit: TimeUnit::Millis })
        };
        let hour = 3_600_000;
        assert_eq!(buckets("1h", "UTC").whole((hour + 1, hour + 2)), (hour, 2 * hour));
        assert_eq!(buckets("1h", "UTC").whole((hour, 2 * hour)), (hour, 2 * hour));
        assert_eq!(buckets("1h", "UTC").whole((hour, 2 * hour + 1)), (hour, 3 * hour));
        let always = (i64::MIN, i64::MAX);
        assert_eq!(buckets("1M", "UTC").whole(always), always);
        // The day in London on which clocks went back has 25 hours.
        let day = (1_635_634_800_000, 1_635_634_800_000 + 25 * hour);
        assert_eq!(buckets("1d", "Europe/London").whole((day.0 + 24 * hour, day.0 + 24 * hour + 1)), day);
    }
}
