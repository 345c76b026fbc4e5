//! Operators of kept plans ([`super::plans`]), chosen once: the next run puts the scan of its table in, and its values.
//!
//! That is sound where operators do not depend on rows: over one table, of which a scan answers filters. Where parameters
//! are elsewhere, too, operators serve those values only. Much is known of all rows of a table, from which what they come
//! to may be planned: without a filter operators are kept of groups by keys, and of rows; what was told without reading
//! any is kept for as long as nothing is written, and of a table without rows nothing else: stock rules leave a LIMIT out
//! of what they know to be empty. How many streams come out of a scan decides what is above it: for each
//! number that was met, and for values that are not in the scan, there are operators of their own. What the last rules
//! ([`super::last_rules`]) do depends on the rows and is done each time.

use super::Engine;
use super::plans::{Plan, Unpinned};
use crate::exec::group;
use crate::exec::latest_on::LatestOn;
use crate::exec::operator::Operation;
use crate::exec::turned::Turned;
use crate::plan::FillSpec;
use crate::scan::exec::ScanExec;
use crate::scan::place::ScanPlace;
use crate::scan::table::NativeTable;
use crate::{Catalog, Result};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tidalite_storage::TableSnapshot;

/// So many operators are kept of a plan, for other numbers of streams or other values; the oldest goes first.
const SHAPES_MAX: usize = 4;

/// Operators that keep nothing of a run in copies of them. Sorts do, and have a reset.
const KNOWN: &[&str] = &[
    "ProjectionExec",
    "FilterExec",
    "CoalescePartitionsExec",
    "SortPreservingMergeExec",
    "RepartitionExec",
    "AggregateExec",
    "WindowAggExec",
    "BoundedWindowAggExec",
    "GlobalLimitExec",
    "LocalLimitExec",
    group::NAME,
    FillSpec::NAME,
    LatestOn::NAME,
    Turned::NAME,
];

/// Of one kept plan.
#[derive(Debug, Default)]
pub(super) struct Operators(Mutex<Kept>);

#[derive(Debug, Default)]
enum Kept {
    #[default]
    Unknown,
    /// Made anew each time.
    None,
    Some {
        scan: Arc<Scan>,
        /// The latest last.
        shapes: Vec<Shape>,
    },
    /// Nothing is read: what the table was known to have is in them, and holds as long as it is the same. Without a table
    /// they always hold.
    Told { of: Option<(Arc<Scan>, Weak<TableSnapshot>)>, plan: Arc<dyn ExecutionPlan> },
}

/// The scan as the plan has it.
#[derive(Debug)]
struct Scan {
    /// The table's place in the plan, see [`Unpinned`].
    table: Arc<dyn datafusion::catalog::TableProvider>,
    filters: Vec<Expr>,
    fetch: Option<usize>,
    /// The parameters that are elsewhere, by number from 0.
    above: Vec<usize>,
}

/// The operators over a scan of which so many streams come out.
#[derive(Clone, Debug)]
struct Shape {
    place: Arc<ScanPlace>,
    plan: Arc<dyn ExecutionPlan>,
    /// The values that are in them.
    above: Vec<ScalarValue>,
}

impl Operators {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps operators as the stock rules leave them, if they serve later runs. `logical` is the plan without its tables,
    /// `pinned` with them and with `values`.
    pub fn keep(
        &self,
        logical: &LogicalPlan,
        pinned: &LogicalPlan,
        values: &[ScalarValue],
        stock: &Arc<dyn ExecutionPlan>,
    ) {
        let mut kept = self.lock();
        if matches!(&*kept, Kept::None) {
            return;
        }
        if is_told(stock) {
            *kept = told(logical, pinned).map_or(Kept::None, |of| Kept::Told { of, plan: stock.clone() });
            return;
        }
        if table_of(pinned).is_some_and(|table| table.row_count() == 0) {
            return;
        }
        let scan = match &*kept {
            Kept::Some { scan, .. } => Some(scan.clone()),
            _ => Scan::of(logical).map(Arc::new),
        };
        let shape = scan.as_ref().and_then(|scan| Shape::of(stock, scan.above_of(values)?));
        match (&mut *kept, scan.zip(shape)) {
            (Kept::Some { shapes, .. }, Some((_, shape))) => {
                if !shapes.iter().any(|known| known.is_for(shape.place.partitions(), &shape.above)) {
                    if shapes.len() == SHAPES_MAX {
                        shapes.remove(0);
                    }
                    shapes.push(shape);
                }
            }
            (Kept::Some { .. }, None) => {}
            (unknown, found) => {
                *unknown = match found {
                    Some((scan, shape)) if !scan.filters.is_empty() || !sums_up(&shape.plan) => {
                        Kept::Some { scan, shapes: vec![shape] }
                    }
                    _ => Kept::None,
                };
            }
        }
    }
}

impl Scan {
    /// The only one of a plan.
    fn of(plan: &LogicalPlan) -> Option<Scan> {
        let (mut scans, above) = scans_of(plan)?;
        let scan = scans.pop().filter(|_| scans.is_empty())?;
        let table = source_as_provider(&scan.source).ok()?;
        table.downcast_ref::<Unpinned>()?;
        Some(Scan { table, filters: scan.filters, fetch: scan.fetch, above })
    }

    /// The values of those parameters that are elsewhere.
    fn above_of(&self, values: &[ScalarValue]) -> Option<Vec<ScalarValue>> {
        self.above.iter().map(|number| values.get(*number).cloned()).collect()
    }

    /// The table as it is now, if it is the one that was planned for.
    fn table_now(&self, catalog: &Arc<dyn Catalog>) -> Option<Arc<TableSnapshot>> {
        let table = self.table.downcast_ref::<Unpinned>()?;
        let now = catalog.snapshots(&[table.name()]).pop().flatten()?;
        table.is_of(&now).then_some(now)
    }
}

/// The scans of a plan, and which parameters are elsewhere, by number from 0.
fn scans_of(plan: &LogicalPlan) -> Option<(Vec<TableScan>, Vec<usize>)> {
    let (mut scans, mut above) = (Vec::new(), Vec::new());
    let walked = plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::TableScan(scan) => scans.push(scan.clone()),
            other => other
                .apply_expressions(|expr| {
                    expr.apply(|e| {
                        above.extend(super::bound::parameter_of(e));
                        Ok(TreeNodeRecursion::Continue)
                    })
                })
                .map(|_| ())?,
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.ok()?;
    above.sort_unstable();
    above.dedup();
    Some((scans, above))
}

/// What operators that read nothing hold for; `None` when only once.
fn told(logical: &LogicalPlan, pinned: &LogicalPlan) -> Option<Option<(Arc<Scan>, Weak<TableSnapshot>)>> {
    let (scans, above) = scans_of(logical)?;
    if scans.is_empty() {
        return above.is_empty().then_some(None);
    }
    let scan = Scan::of(logical).filter(|scan| scan.filters.is_empty() && scan.above.is_empty())?;
    Some(Some((Arc::new(scan), Arc::downgrade(&table_of(pinned)?))))
}

/// The first table of a plan.
fn table_of(plan: &LogicalPlan) -> Option<Arc<TableSnapshot>> {
    let mut found = None;
    let walked = plan.apply_with_subqueries(|node| {
        let LogicalPlan::TableScan(scan) = node else { return Ok(TreeNodeRecursion::Continue) };
        let table = source_as_provider(&scan.source)?;
        found = table.downcast_ref::<NativeTable>().map(|table| table.snapshot.clone());
        Ok(TreeNodeRecursion::Stop)
    });
    walked.ok()?;
    found
}

/// Whether values are all there is to operators.
fn is_told(plan: &Arc<dyn ExecutionPlan>) -> bool {
    match plan.downcast_ref::<ProjectionExec>() {
        Some(projection) => is_told(projection.input()),
        None => plan.downcast_ref::<PlaceholderRowExec>().is_some(),
    }
}

/// Fresh operators: each run counts what it does in its own, and counts are kept as long as they.
fn told_again(plan: &Arc<dyn ExecutionPlan>) -> datafusion::common::Result<Arc<dyn ExecutionPlan>> {
    match plan.downcast_ref::<ProjectionExec>() {
        Some(projection) => replace_children_if_necessary(plan.clone(), vec![told_again(projection.input())?]),
        None => Ok(Arc::new(PlaceholderRowExec::new(plan.schema()))),
    }
}

impl Shape {
    /// Takes the scan out; `None` when there is more to it.
    fn of(stock: &Arc<dyn ExecutionPlan>, above: Vec<ScalarValue>) -> Option<Shape> {
        let mut place = None;
        let plan = without_scan(stock, &mut place)?;
        Some(Shape { place: place?, plan, above })
    }

    fn is_for(&self, partitions: usize, above: &[ScalarValue]) -> bool {
        self.place.partitions() == partitions && self.above == above
    }
}

fn without_scan(node: &Arc<dyn ExecutionPlan>, place: &mut Option<Arc<ScanPlace>>) -> Option<Arc<dyn ExecutionPlan>> {
    if let Some(scan) = node.downcast_ref::<ScanExec>() {
        let own = Arc::new(ScanPlace::of(scan)?);
        return place.replace(own.clone()).is_none().then_some(own as Arc<dyn ExecutionPlan>);
    }
    let is_known = || KNOWN.contains(&node.name()) && node.dynamic_expressions_produced().is_empty();
    let children = node.children();
    if children.is_empty() || !(is_sort(node) || is_known()) {
        return None;
    }
    let children = children.into_iter().map(|child| without_scan(child, place)).collect::<Option<Vec<_>>>()?;
    replace_children_if_necessary(node.clone(), children).ok()
}

/// Whether all rows may become one.
fn sums_up(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let is_whole = match (plan.downcast_ref::<AggregateExec>(), plan.downcast_ref::<group::GroupExec>()) {
        (Some(aggregate), _) => aggregate.group_expr().is_empty(),
        (_, Some(group)) => group.is_of_all_rows(),
        _ => false,
    };
    is_whole || plan.children().into_iter().any(sums_up)
}

/// Of all rows or of the first.
fn is_sort(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.downcast_ref::<SortExec>().is_some()
}

/// Fresh operators with the scan in its place.
fn with_scan(
    node: &Arc<dyn ExecutionPlan>,
    scan: &Arc<dyn ExecutionPlan>,
) -> datafusion::common::Result<Arc<dyn ExecutionPlan>> {
    let children = node.children();
    if children.is_empty() {
        return Ok(scan.clone());
    }
    let children = children.into_iter().map(|child| with_scan(child, scan)).collect::<Result<Vec<_>, _>>()?;
    let fresh = replace_children_if_necessary(node.clone(), children)?;
    // What it has seen of a run is in a filter and in counts, which it shares with its copies.
    if is_sort(&fresh) { fresh.reset_state() } else { Ok(fresh) }
}

impl Engine {
    /// The operators of a kept plan over its table as it is now; `None` when they have to be chosen.
    pub(super) fn operators(
        &self,
        plan: &Plan,
        catalog: &Arc<dyn Catalog>,
        values: &[ScalarValue],
    ) -> Option<Result<Arc<dyn ExecutionPlan>>> {
        let (scan, first) = match &*plan.operators.lock() {
            Kept::Some { scan, shapes } => (scan.clone(), shapes.first()?.place.clone()),
            Kept::Told { of, plan } => {
                if let Some((scan, table)) = of {
                    let (now, before) = (scan.table_now(catalog)?, table.upgrade()?);
                    Arc::ptr_eq(&now, &before).then_some(())?;
                }
                return Some(told_again(plan).map_err(Into::into));
            }
            _ => return None,
        };
        let table = scan.table_now(catalog)?;
        let with_values = |filter: &Expr| super::bound::with_values_in(filter.clone(), values).ok();
        let filters = match values.is_empty() {
            true => scan.filters.clone(),
            false => scan.filters.iter().map(with_values).collect::<Option<_>>()?,
        };
        let leaf = match first.scan(&table, &filters, scan.fetch, self.base.config()) {
            Ok(leaf) => leaf?,
            Err(error) => return Some(Err(error.into())),
        };
        let above = scan.above_of(values)?;
        let shape = match &*plan.operators.lock() {
            Kept::Some { shapes, .. } => shapes.iter().find(|s| s.is_for(leaf.partitions(), &above))?.clone(),
            _ => return None,
        };
        let leaf: Arc<dyn ExecutionPlan> = Arc::new(shape.place.known(leaf));
        let whole = with_scan(&shape.plan, &leaf).map_err(Into::into);
        Some(whole.and_then(|whole| self.finished(whole, self.base.config_options())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::datatypes::Schema;
    use datafusion::execution::TaskContext;
    use datafusion::physical_plan::common::collect;
    use datafusion::physical_plan::expressions::lit;
    use datafusion::physical_plan::projection::ProjectionExpr;

    #[test]
    fn what_is_told_a_thousand_times_keeps_no_counts() {
        let one: Arc<dyn ExecutionPlan> = Arc::new(PlaceholderRowExec::new(Arc::new(Schema::empty())));
        let value = ProjectionExpr { expr: lit(3_i64), alias: "count".to_owned() };
        let plan: Arc<dyn ExecutionPlan> = Arc::new(ProjectionExec::try_new(vec![value], one).expect("a plan"));
        assert!(is_told(&plan));
        for _ in 0..1_000 {
            let again = told_again(&plan).expect("it is told again");
            let stream = again.execute(0, Arc::new(TaskContext::default())).expect("it runs");
            assert_eq!(futures::executor::block_on(collect(stream)).expect("a row")[0].num_rows(), 1);
        }
        assert_eq!(plan.metrics().map_or(0, |counts| counts.iter().count()), 0);
    }
}
