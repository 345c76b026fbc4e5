//! Aggregations over a table, answered from a materialized view of it.
//!
//! In: an optimised plan and the views over its tables, each with what it is known by ([`Definition`]) and the times of
//! the table that it does not show as they are. Out: the plan with such an aggregation over the view's rows in the place of
//! the one over the table's, where the answer is the same; otherwise the plan as it was. In doubt it stays.
//!
//! Both queries are seen as one aggregation over one table: [`source`] says what its expressions are over the table's own
//! columns. [`conditions`] are then asked of buckets and keys, [`aggregates`] put together from those of the view.

mod aggregates;
mod conditions;
mod definition;
mod source;

pub(crate) use definition::Definition;

use super::group;
use crate::calendar::Buckets;
use crate::engine::Bucketing;
use crate::scan::table::NativeTable;
use aggregates::Merged;
use conditions::OverView;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Column, Result as DFResult, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, LogicalPlanBuilder, cast};
use source::Source;
use std::sync::Arc;
use tidalite_storage::TableSnapshot;
use tidalite_types::schema::fold_name;
use tidalite_types::view::{joined_ranges, ranges_without};

/// What the view's rows are called in a plan.
const VIEW: &str = "__view";

/// A view that may answer.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub base: Arc<TableSnapshot>,
    pub view: Arc<TableSnapshot>,
    pub definition: Arc<Definition>,
    /// Times of the base that changed since the view was refreshed.
    pub behind: Vec<(i64, i64)>,
    /// Whether scans answer conditions on several columns.
    pub is_fast: bool,
}

/// The tables that a view of could be of use, each once.
pub(crate) fn aggregated_tables(plan: &LogicalPlan) -> DFResult<Vec<Arc<TableSnapshot>>> {
    let mut tables: Vec<Arc<TableSnapshot>> = Vec::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Aggregate(aggregate) = node
            && !group::is_answered_without_reading(aggregate)
            && let Some(source) = Source::of(&aggregate.input)
            && tables.iter().all(|known| known.id != source.table.id)
            && source.table.schema.timestamp().is_some()
        {
            tables.push(source.table);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(tables)
}

/// The plan with what the views answer taken from them; of several the one with the fewest rows is asked.
pub(crate) fn from_views(
    plan: LogicalPlan,
    candidates: &[Candidate],
    state: &SessionState,
) -> DFResult<Transformed<LogicalPlan>> {
    plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::Aggregate(aggregate) = &node else { return Ok(Transformed::no(node)) };
        if group::is_answered_without_reading(aggregate) {
            return Ok(Transformed::no(node));
        }
        let Some(source) = Source::of(&aggregate.input) else { return Ok(Transformed::no(node)) };
        let over_it = candidates.iter().filter(|candidate| candidate.base.id == source.table.id);
        let mut answers: Vec<(u64, LogicalPlan)> = Vec::new();
        for candidate in over_it {
            if let Some(answer) = answer(aggregate, &source, candidate)? {
                answers.push((candidate.view.row_count(), answer));
            }
        }
        let Some((_, answer)) = answers.into_iter().min_by_key(|(rows, _)| *rows) else {
            return Ok(Transformed::no(node));
        };
        let answer = state.optimize(&answer)?;
        let (old, new) = (aggregate.schema.fields().iter(), answer.schema().fields().iter());
        let fits = old.map(|field| field.data_type()).eq(new.map(|field| field.data_type()));
        Ok(if fits { Transformed::yes(answer) } else { Transformed::no(node) })
    })
}

/// What an aggregation gives, from the rows of a view; `None` when they do not say.
fn answer(aggregate: &Aggregate, source: &Source, candidate: &Candidate) -> DFResult<Option<LogicalPlan>> {
    let definition = &candidate.definition;
    let Some(times) = times(source, candidate) else { return Ok(None) };
    let over = OverView::new(definition);
    // What the view's query asks of rows has to be asked here, too; the rest is asked of its buckets and keys.
    if !definition.conditions.iter().all(|condition| source.conditions.contains(condition)) {
        return Ok(None);
    }
    let asked = source.conditions.iter().filter(|condition| !definition.conditions.contains(condition));
    let Some(mut filters) = asked.clone().map(|condition| over.expr(condition)).collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    filters.extend(times);
    let pinned: Vec<&Expr> = asked.filter_map(conditions::pinned).collect();
    let mut groups = Vec::new();
    let mut given: Vec<Expr> = Vec::new();
    let mut has_bucket = false;
    for group in &aggregate.group_expr {
        let Some(group) = source.over_table(group) else { return Ok(None) };
        has_bucket |= definition.bucket_of(&group).is_some_and(|buckets| buckets == definition.buckets);
        let Some(mapped) = over.expr(&group) else { return Ok(None) };
        groups.push(mapped);
        given.push(group);
    }
    let has_keys = definition.keys.iter().all(|(key, _)| given.contains(key) || pinned.contains(&key));
    let mut merged = Vec::new();
    for expr in &aggregate.aggr_expr {
        let Some(expr) = source.over_table(expr) else { return Ok(None) };
        let Some(one) = Merged::of(&expr, definition, &over, has_keys, has_keys && has_bucket) else { return Ok(None) };
        merged.push(one);
    }
    let is_row_each = !merged.is_empty() && merged.iter().all(|one| one.of_row.is_some());
    if !is_row_each && merged.iter().any(|one| one.parts.is_none()) {
        return Ok(None);
    }
    let table = Arc::new(NativeTable::new(candidate.view.clone()).fast(candidate.is_fast));
    let mut rows = LogicalPlanBuilder::scan(TableReference::bare(VIEW), provider_as_source(table), None)?;
    if let Some(filter) = filters.into_iter().reduce(Expr::and) {
        rows = rows.filter(filter)?;
    }
    Ok(Some(put_together(rows, groups, &merged, is_row_each, aggregate)?))
}

/// The groups of a view's rows, under the names of those of the aggregation that they stand for.
fn put_together(
    rows: LogicalPlanBuilder,
    groups: Vec<Expr>,
    merged: &[Merged],
    is_row_each: bool,
    aggregate: &Aggregate,
) -> DFResult<LogicalPlan> {
    let of_row = merged.iter().filter_map(|one| one.of_row.clone());
    let (rows, outputs) = if is_row_each {
        (rows, groups.into_iter().chain(of_row).collect::<Vec<_>>())
    } else {
        let named = |prefix: &str, n: usize| format!("__{prefix}{n}");
        let keys = groups.into_iter().enumerate().map(|(n, group)| group.alias(named("group", n)));
        let keys: Vec<Expr> = keys.collect();
        let mut outputs: Vec<Expr> = (0..keys.len()).map(|n| column(&named("group", n))).collect();
        let mut parts: Vec<Expr> = Vec::new();
        for one in merged {
            let own = one.parts.iter().flatten().map(|part| {
                let known = parts.iter().position(|known| known == part);
                let at = known.unwrap_or_else(|| {
                    parts.push(part.clone());
                    parts.len() - 1
                });
                column(&named("part", at))
            });
            outputs.push(one.finish.of(own.collect()));
        }
        let parts: Vec<Expr> = parts.into_iter().enumerate().map(|(n, part)| part.alias(named("part", n))).collect();
        (rows.aggregate(keys, parts)?, outputs)
    };
    let outputs = outputs.into_iter().zip(aggregate.schema.iter()).map(|(expr, (qualifier, field))| {
        // A sum of sums of decimals has more digits than a sum of the values.
        let is_decimal = field.data_type().is_decimal();
        let expr = if is_decimal { cast(expr, field.data_type().clone()) } else { expr };
        expr.alias_qualified(qualifier.cloned(), field.name().clone())
    });
    rows.project(outputs.collect::<Vec<_>>())?.build()
}

fn column(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

/// The condition on the view's time that leaves only buckets that are what the query gives now; `None` when rows are asked
/// for of which some are not.
fn times(source: &Source, candidate: &Candidate) -> Option<Vec<Expr>> {
    let Candidate { base, view, definition, behind, .. } = candidate;
    let kept = view.schema.materialized()?;
    if kept.state.invalid.is_some() || kept.state.base != base.id {
        return None;
    }
    let lost = (i64::MIN, kept.lost_before);
    let stale = kept.state.pending.iter().chain(&kept.state.frozen).chain(behind).chain([&lost]);
    let stale = joined_ranges(stale.copied().collect());
    if stale.is_empty() {
        return Some(Vec::new());
    }
    let bucketing = Bucketing::new(definition.buckets);
    let whole = joined_ranges(stale.into_iter().map(|range| bucketing.whole(range)).collect());
    let (first, last) = base.time_range()?;
    let (lo, hi) = conditions::asked_times(&source.conditions, definition);
    let (lo, hi) = bucketing.whole((lo.max(first), hi.min(last.saturating_add(1))));
    let needed = [(lo, hi)];
    if lo >= hi || ranges_without(&needed, &whole) != needed {
        return None;
    }
    let time = definition.bucket_column();
    let at = |ts: i64| Expr::Literal(super::intervals::scalar(ts, definition.buckets.unit), None);
    Some(vec![time.clone().gt_eq(at(lo)), time.lt(at(hi))])
}

/// How a table's time is cut into buckets by an expression over it; `None` when it is something else.
fn buckets_of(expr: &Expr, table: &TableSnapshot) -> Option<Buckets> {
    let (time, unit) = table.schema.timestamp()?;
    conditions::buckets(expr, &fold_name(&time.name), unit)
}
