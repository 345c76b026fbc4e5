//! Keys of groups, and of windows ([`super::coded_windows`]), in the form in which a table has them: symbols as codes,
//! texts as dictionaries, buckets of time once a block.
//!
//! Works on the finished plan: a key that is a plain column of a scan, seen through projections and filters that do not
//! look at it, need not be made into text or computed for each row. See [`Form`]. So it is through groups that have it as
//! a key of theirs.

use crate::exec::decoded::Decoded;
use crate::exec::group::GroupExec;
use crate::scan::exec::ScanExec;
use crate::scan::spec::Form;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{Partitioning, PhysicalExpr, projection::ProjectionExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use std::sync::Arc;
use tidalite_operators::group::KeyKind;

#[derive(Debug)]
pub(crate) struct CodedKeys;

type Plan = Arc<dyn ExecutionPlan>;
type Expr = Arc<dyn PhysicalExpr>;

impl PhysicalOptimizerRule for CodedKeys {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        plan.transform_up(|node| {
            let done = match node.downcast_ref::<GroupExec>() {
                Some(group) => coded(group)?.map(|group| Arc::new(group) as Plan),
                None => super::coded_windows::windowed(&node)?,
            };
            Ok(done.map_or_else(|| Transformed::no(node), Transformed::yes))
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "CodedKeys"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// What a key wants of a column.
pub(super) enum Want {
    /// Codes or, once a projection says so, buckets.
    Column,
    /// An expression of [`Form::Rising`].
    Rising(Expr),
}

fn coded(group: &GroupExec) -> Result<Option<GroupExec>> {
    let mut input = group.input().clone();
    let mut keys = group.keys();
    let mut is_coded = false;
    for at in 0..keys.len() {
        let Some((column, want)) = wanted(&keys[at].0) else { continue };
        let others = keys.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, (key, _))| key.clone());
        if others.chain(group.arguments()).any(|other| mentions(&other, column)) {
            continue;
        }
        if let Some((plan, kind)) = with_coded(&input, column, want)? {
            let name = plan.schema().field(column).name().clone();
            keys[at] = (Arc::new(Column::new(&name, column)), kind.unwrap_or(keys[at].1.clone().of_few_times()));
            input = plan;
            is_coded = true;
        }
    }
    if let ([_], Some(scan)) = (&keys[..], input.downcast_ref::<ScanExec>())
        && group.has_only_keys()
        && let Some(once) = scan.with_texts_once()
    {
        input = Arc::new(once);
    }
    Ok(is_coded.then(|| group.coded(input, keys)))
}

pub(super) fn mentions(expr: &Expr, column: usize) -> bool {
    collect_columns(expr).iter().any(|c| c.index() == column)
}

/// The only column of an expression that may be coded.
fn wanted(expr: &Expr) -> Option<(usize, Want)> {
    if let Some(column) = expr.downcast_ref::<Column>() {
        return Some((column.index(), Want::Column));
    }
    let column = bucketed(expr)?;
    Some((column.index(), Want::Rising(over_first(expr, column)?)))
}

/// The column whose buckets an expression is: it never falls while the column rises.
fn bucketed(expr: &Expr) -> Option<&Column> {
    let function = expr.downcast_ref::<ScalarFunctionExpr>()?;
    let is_time = |t: &DataType| matches!(t, DataType::Timestamp(_, None));
    if !["timestamp_floor", "date_trunc", "date_bin"].contains(&function.name()) || !is_time(function.return_type()) {
        return None;
    }
    let mut columns = function.args().iter().filter_map(|arg| arg.downcast_ref::<Column>());
    let column = columns.next()?;
    // Of NULL there are no buckets.
    let is_constant = |arg: &&Expr| arg.downcast_ref::<Literal>().is_some_and(|literal| !literal.value().is_null());
    let constants = function.args().iter().filter(is_constant).count();
    (constants + 1 == function.args().len()).then_some(column)
}

/// The same over column 0.
fn over_first(expr: &Expr, column: &Column) -> Option<Expr> {
    let args = expr.children().into_iter().map(|arg| match arg.downcast_ref::<Column>() {
        Some(_) => Arc::new(Column::new(column.name(), 0)) as Expr,
        None => arg.clone(),
    });
    expr.clone().with_new_children(args.collect()).ok()
}

/// The plan with a column as codes, if that is a symbol of the table below.
pub(super) fn symbol_as_codes(plan: &Plan, column: usize) -> Result<Option<Plan>> {
    match symbol_of(plan, column) {
        Some(_) => Ok(with_coded(plan, column, Want::Column)?.map(|(plan, _)| plan)),
        None => Ok(None),
    }
}

/// The scan, and which of its columns a symbol is.
pub(super) fn symbol_of(plan: &Plan, column: usize) -> Option<(&ScanExec, usize)> {
    column_of_scan(plan, column).filter(|(scan, column)| scan.is_symbol(*column))
}

/// The scan and the column that a column is, as it is.
pub(crate) fn column_of_scan(plan: &Plan, column: usize) -> Option<(&ScanExec, usize)> {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        return Some((scan, column));
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let below = projection.expr()[column].expr.downcast_ref::<Column>()?;
        return column_of_scan(projection.input(), below.index());
    }
    let filter = plan.downcast_ref::<FilterExec>()?;
    let below = filter.projection().as_ref().map_or(column, |columns| columns[column]);
    column_of_scan(filter.input(), below)
}

/// The plan with a column of its output coded, and what the key is then if that is not what it was.
pub(super) fn with_coded(plan: &Plan, column: usize, want: Want) -> Result<Option<(Plan, Option<KeyKind>)>> {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        return of_scan(scan, column, want);
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        return of_projection(projection, column, want);
    }
    if let Some(group) = plan.downcast_ref::<GroupExec>() {
        return Ok(of_groups(group, column, &want));
    }
    if let Some(decoded) = plan.downcast_ref::<Decoded>() {
        let (Want::Column, Some(texts)) = (want, decoded.texts(column)) else { return Ok(None) };
        return Ok(Some((Arc::new(decoded.without(column)?), Some(KeyKind::codes(texts.clone())))));
    }
    // Rows that go on as they are; of codes those are equal whose texts are.
    let dealt = plan.downcast_ref::<RepartitionExec>();
    let dealt = dealt.filter(|dealt| !dealt.preserve_order() && !computes_with(dealt.partitioning(), column));
    let gathered = plan.downcast_ref::<CoalescePartitionsExec>().map(CoalescePartitionsExec::input);
    if let Some(input) = dealt.map(RepartitionExec::input).or(gathered) {
        let Some((input, kind)) = with_coded(input, column, want)? else { return Ok(None) };
        return Ok(Some((replace_children_if_necessary(plan.clone(), vec![input])?, kind)));
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        let below = filter.projection().as_ref().map_or(column, |columns| columns[column]);
        if mentions(filter.predicate(), below) {
            return Ok(None);
        }
        let Some((input, kind)) = with_coded(filter.input(), below, want)? else { return Ok(None) };
        let filter = FilterExecBuilder::from(filter).with_input(input).build()?;
        return Ok(Some((Arc::new(filter), kind)));
    }
    Ok(None)
}

/// Whether rows are dealt out by more than what a column is.
fn computes_with(dealt: &Partitioning, column: usize) -> bool {
    let computes = |expr: &Expr| expr.downcast_ref::<Column>().is_none() && mentions(expr, column);
    matches!(dealt, Partitioning::Hash(exprs, _) if exprs.iter().any(computes))
}

/// A key of groups is what the rows had.
fn of_groups(group: &GroupExec, column: usize, want: &Want) -> Option<(Plan, Option<KeyKind>)> {
    let Want::Column = want else { return None };
    let (group, texts) = group.giving_codes(column)?;
    Some((Arc::new(group), Some(KeyKind::codes(texts))))
}

fn of_scan(scan: &ScanExec, column: usize, want: Want) -> Result<Option<(Plan, Option<KeyKind>)>> {
    Ok(match want {
        Want::Column if scan.is_symbol(column) => {
            let kind = KeyKind::codes(scan.symbols(column)?);
            Some((Arc::new(scan.with_form(column, Form::Codes, DataType::UInt32)), Some(kind)))
        }
        Want::Column if scan.is_text(column) => {
            let dictionary = DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8View));
            Some((Arc::new(scan.with_form(column, Form::Texts, dictionary)), None))
        }
        Want::Rising(expr) if scan.is_designated(column) => {
            let data_type = expr.data_type(&scan.schema())?;
            Some((Arc::new(scan.with_form(column, Form::Rising(expr), data_type)), None))
        }
        _ => None,
    })
}

fn of_projection(projection: &ProjectionExec, column: usize, want: Want) -> Result<Option<(Plan, Option<KeyKind>)>> {
    let exprs = projection.expr();
    let (below, want) = match (wanted(&exprs[column].expr), want) {
        (Some((below, Want::Column)), want) => (below, want),
        (Some((below, rising)), Want::Column) => (below, rising),
        _ => return Ok(None),
    };
    let mut others = exprs.iter().enumerate().filter(|(at, _)| *at != column);
    if others.any(|(_, other)| mentions(&other.expr, below)) {
        return Ok(None);
    }
    let Some((input, kind)) = with_coded(projection.input(), below, want)? else { return Ok(None) };
    let name = input.schema().field(below).name().clone();
    let exprs = exprs.iter().enumerate().map(|(at, own)| match at == column {
        true => ProjectionExpr { expr: Arc::new(Column::new(&name, below)), alias: own.alias.clone() },
        false => own.clone(),
    });
    Ok(Some((Arc::new(ProjectionExec::try_new(exprs.collect::<Vec<_>>(), input)?), kind)))
}
