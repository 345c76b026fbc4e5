//! Groups by symbols and buckets of time, and all rows as one group, in the form in which a scan gives them: what
//! stretches of rows come to by groups, instead of the rows, see [`crate::scan::groups`].
//!
//! Works on the finished plan, behind [`super::coded_keys`] and [`super::totals`]: keys have to be codes or buckets of a
//! scan, arguments its columns, as they are or widened; and there are to be many rows for each group that a bucket may
//! have.

use super::totals::{column_of, scan_of};
use crate::exec::group::{GroupExec, Input};
use crate::scan::exec::ScanExec;
use crate::scan::groups::{GroupInput, GroupSpec, Key, is_float};
use crate::scan::prune::Piece;
use crate::scan::read::Reader;
use crate::scan::spec::Form;
use datafusion::arrow::array::Array;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;
use tidalite_kernels::Fold;
use tidalite_operators::group::KeyKind;
use tidalite_storage::Bounds;

/// What is kept of groups should stay near the processor.
const PLACES_MAX: usize = 1 << 16;
/// Rows of a bucket are to be so many times as many as its groups may be.
const ROWS_A_PLACE: usize = 4;
/// Pieces whose times are looked at, and times of each.
const SAMPLED_PIECES: usize = 3;
const SAMPLED_TIMES: i64 = 64;

#[derive(Debug)]
pub(crate) struct GroupsOfBlocks;

type Plan = Arc<dyn ExecutionPlan>;

impl PhysicalOptimizerRule for GroupsOfBlocks {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        plan.transform_up(|node| {
            let grouped = node.downcast_ref::<GroupExec>().and_then(grouped);
            Ok(grouped.map_or_else(|| Transformed::no(node), |group| Transformed::yes(Arc::new(group) as Plan)))
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "GroupsOfBlocks"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn grouped(group: &GroupExec) -> Option<GroupExec> {
    let keys = group.keys();
    if keys.is_empty() && group.folds().is_empty() {
        return None;
    }
    let folds = group.folds().iter().enumerate().map(|(at, fold)| joined(at, *fold)).collect::<Option<_>>()?;
    let scan = scan_of(group.input())?;
    if scan.reader().totals().is_some() {
        return None;
    }
    // Where some of the rows will do, pieces have more.
    let pieces = scan.pieces()?;
    let of_keys = keys.iter().map(|(expr, kind)| key(expr, kind, group.input(), scan)).collect::<Option<Vec<_>>>()?;
    if of_keys.iter().filter(|key| matches!(key, Key::Bucket { .. })).count() > 1 {
        return None;
    }
    let inputs = group.inputs().iter().map(|own| input(own, group.input(), scan)).collect::<Option<_>>()?;
    let spec = GroupSpec::new(&scan.schema(), of_keys, inputs, group.folds().to_vec())?;
    let is_worth_it = |spec: &GroupSpec| spec.places_expected() <= PLACES_MAX && is_worth_it(spec, scan, &pieces);
    let spec = if is_worth_it(&spec) { spec } else { spec.numbered().filter(is_worth_it)? };
    let schema = spec.schema().clone();
    let column = |at: usize| Arc::new(Column::new(schema.field(at).name(), at)) as Arc<dyn PhysicalExpr>;
    let of_fold = |(at, fold): (usize, &Fold)| Input {
        argument: Some(column(keys.len() + at)),
        filter: None,
        is_float: Some(is_float(*fold)),
    };
    let inputs = group.folds().iter().enumerate().map(of_fold).collect();
    let own_keys = (0..keys.len()).map(column).collect();
    Some(group.totalled(Arc::new(scan.with_groups(spec)), own_keys, inputs, folds))
}

/// What joins the words of a fold that come as column `at`; `None` where a word by itself is not enough.
fn joined(at: usize, fold: Fold) -> Option<Fold> {
    Some(match fold {
        Fold::Rows | Fold::Present(_) | Fold::SumInt(_) => Fold::SumInt(at),
        Fold::SumFloat(_) => Fold::SumFloat(at),
        Fold::MinInt(_) => Fold::MinInt(at),
        Fold::MaxInt(_) => Fold::MaxInt(at),
        Fold::MinFloat(_) => Fold::MinFloat(at),
        Fold::MaxFloat(_) => Fold::MaxFloat(at),
        Fold::PickedTime(_) | Fold::PickedValue(_) | Fold::PickedPresent(_) => return None,
    })
}

fn key(expr: &Arc<dyn PhysicalExpr>, kind: &KeyKind, plan: &Plan, scan: &ScanExec) -> Option<Key> {
    let (column, None) = column_of(expr, plan)? else { return None };
    match scan.reader().form(column) {
        Form::Codes => Some(Key::Codes { column, count: kind.dictionary()?.len() }),
        Form::Rising(_) => Some(Key::Bucket { column }),
        _ => None,
    }
}

fn input(input: &Input, plan: &Plan, scan: &ScanExec) -> Option<GroupInput> {
    let argument = input.argument.as_ref().filter(|_| input.filter.is_none())?;
    let (column, wide) = column_of(argument, plan)?;
    if !matches!(scan.reader().form(column), Form::Values) {
        return None;
    }
    let data_type = scan.schema().field(column).data_type().clone();
    let is_int = matches!(data_type, DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64);
    let is_real = matches!(data_type, DataType::Float32 | DataType::Float64);
    let is_time = matches!(data_type, DataType::Timestamp(_, None));
    let is_folded = match (input.is_float, wide) {
        (None, None) => true,
        (Some(true), None) => is_real,
        (Some(true), Some(DataType::Float64)) => is_real || is_int,
        (Some(false), None) => is_int || is_time,
        (Some(false), Some(DataType::Int64)) => is_int,
        _ => false,
    };
    is_folded.then_some(GroupInput { column, is_float: input.is_float })
}

/// Whether rows are many for the groups that a bucket may have, by some of the pieces.
fn is_worth_it(spec: &GroupSpec, scan: &ScanExec, pieces: &[Piece]) -> bool {
    let reader = scan.reader();
    let rows: usize = pieces.iter().map(|piece| reader.rows_of(*piece)).sum();
    if rows < ROWS_A_PLACE * spec.places_expected() {
        return false;
    }
    let Some(column) = spec.bucket() else { return true };
    let step = pieces.len().div_ceil(SAMPLED_PIECES).max(1);
    let sampled = pieces.iter().step_by(step);
    let rows: usize = sampled.clone().map(|piece| reader.rows_of(*piece)).sum();
    let runs = sampled.map(|piece| runs(reader, column, *piece)).sum::<Option<usize>>();
    runs.is_some_and(|runs| rows >= ROWS_A_PLACE * spec.places_expected() * runs)
}

/// How many buckets a piece has, by some times between its first and its last; `None` of any number.
fn runs(reader: &Reader, column: usize, piece: Piece) -> Option<usize> {
    let (first, last) = match piece {
        Piece::Run { run, .. } => reader.snapshot.runs[run].time_range,
        Piece::Block { segment, block } => {
            let zone = reader.snapshot.segments[segment].zone(reader.column(column).id, block).ok()??;
            let Bounds::Int(first, last) = zone.bounds else { return None };
            (first, last)
        }
    };
    let width = (i128::from(last) - i128::from(first)).max(0);
    let time = |i: i64| (i128::from(first) + width * i128::from(i) / i128::from(SAMPLED_TIMES)) as i64;
    let buckets = reader.bucketed(column, (0..=SAMPLED_TIMES).map(time).collect()).ok()?;
    let changes = (1..buckets.len()).filter(|row| buckets.value(*row) != buckets.value(row - 1)).count();
    // Where all differ there may be any number of them between.
    ((changes as i64) < SAMPLED_TIMES).then_some(changes + 1)
}
