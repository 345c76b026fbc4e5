//! WINDOW JOIN: for each left row aggregates of the right rows whose time is around its own.
//!
//! The node makes a row for every pair, numbered by the left row, and one with nothing from the right for a left row
//! that has no partner; the aggregation over them is an ordinary one, so that every aggregate there is can be used. A
//! faster operator finds the pattern Aggregate(number, …) over the node and can take the place of both.

use super::ordered_aggregates::is_by_time;
use super::output_name;
use super::relations::{left_of, time_of};
use super::time_join::{Pairs, filtered, keys};
use super::time_order::scans_in_time_order;
use crate::calendar::Unit;
use crate::dialect::window_join;
use crate::exec::window_join::WindowJoin;
use crate::{Error, Result, door};
use datafusion::arrow::datatypes::{DataType, Field, TimeUnit as ArrowUnit};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DFSchemaRef, ExprSchema, Result as DFResult, TableReference};
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::logical_expr::utils::{find_aggregate_exprs, find_window_exprs};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, LogicalPlanBuilder, UserDefinedLogicalNodeCore, cast};
use datafusion::sql::sqlparser::ast::{
    self, GroupByExpr, JoinConstraint, JoinOperator, Select, SelectItem, SelectItemQualifiedWildcardKind,
    TableWithJoins,
};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// What the operator has to know besides its columns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WindowJoinSpec {
    /// Nanoseconds of one of the numbers that the bounds are.
    pub units: [i64; 2],
    /// Whether the last row before the window counts, too.
    pub includes_prevailing: bool,
}

/// The columns' places in the two inputs; the bounds are on the left.
#[derive(Clone, Debug)]
pub(crate) struct WindowJoinColumns {
    pub times: (usize, usize),
    pub bounds: [usize; 2],
    pub keys: Vec<(usize, usize)>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct WindowJoinNode {
    left: LogicalPlan,
    right: LogicalPlan,
    times: (Column, Column),
    bounds: [Column; 2],
    keys: Vec<(Column, Column)>,
    spec: WindowJoinSpec,
    /// Tells the columns of one join from those of another.
    number: usize,
    schema: DFSchemaRef,
}

/// One of the joins, understood.
struct Window {
    right: LogicalPlan,
    times: (Column, Column),
    keys: Vec<(Column, Column)>,
    bounds: [Expr; 2],
    spec: WindowJoinSpec,
}

fn row_name(number: usize) -> String {
    format!("__row{number}")
}

fn pair_name(number: usize) -> String {
    format!("__is_pair{number}")
}

fn unqualified(name: String) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

pub(super) fn plan(select: Select, context: &mut dyn RelationPlannerContext) -> Result<LogicalPlan> {
    refuse_other_clauses(&select)?;
    let Select { mut from, projection, selection, .. } = select;
    let Some(mut tables) = from.pop() else { return Err(Error::internal("a WINDOW JOIN of nothing")) };
    let at = tables.joins.iter().position(|join| window_join(join).is_some()).unwrap_or(tables.joins.len());
    let joins = tables.joins.split_off(at);
    let mut windows = WindowJoins::try_new(left_side(tables, selection, context)?)?;
    for join in joins {
        window(join, &mut windows, context)?;
    }
    let both = windows.schema()?;
    let items = items(projection, windows.left.schema(), &both, context)?;
    windows.planned(items)
}

/// Consecutive WINDOW JOINs over one left side.
pub(crate) struct WindowJoins {
    left: LogicalPlan,
    time: Column,
    windows: Vec<Window>,
}

/// A bound of a window: a number of units after the time of the left row.
pub(crate) struct Bound {
    pub length: Expr,
    /// The letter of the unit; empty for the unit of the timestamps.
    pub unit: String,
}

impl WindowJoins {
    pub fn try_new(left: LogicalPlan) -> Result<WindowJoins> {
        let time = time_of(&left, "the left side of WINDOW JOIN")?;
        Ok(WindowJoins { left, time, windows: Vec::new() })
    }

    /// Adds a join; `of_right` is a condition of the right rows alone.
    pub fn add(
        &mut self,
        right: LogicalPlan,
        (keys, of_right): (Pairs, Option<Expr>),
        bounds: [Bound; 2],
        includes_prevailing: bool,
    ) -> Result<()> {
        let right_time = time_of(&right, "the right side of WINDOW JOIN")?;
        let right = filtered(right, of_right)?;
        let native = match self.left.schema().field_from_column(&self.time)?.data_type() {
            DataType::Timestamp(ArrowUnit::Millisecond, _) => 1_000_000,
            DataType::Timestamp(ArrowUnit::Microsecond, _) => 1_000,
            _ => 1,
        };
        let length = |bound: &Bound| Unit::of(&bound.unit).and_then(Unit::nanos);
        let nanos = |bound: &Bound| length(bound).map_or(native, |nanos| i64::try_from(nanos).unwrap_or(i64::MAX));
        let units = bounds.each_ref().map(nanos);
        let bounds = bounds.map(|bound| cast(bound.length, DataType::Int64));
        let right = scans_in_time_order(right)?;
        let spec = WindowJoinSpec { units, includes_prevailing };
        self.windows.push(Window { right, times: (self.time.clone(), right_time), keys, bounds, spec });
        Ok(())
    }

    /// Returns the columns of all sides.
    pub fn schema(&self) -> Result<DFSchema> {
        let mut both = self.left.schema().as_ref().clone();
        for window in &self.windows {
            both = both.join(window.right.schema())?;
        }
        Ok(both)
    }

    /// Returns the plan; `items` are the selected expressions with their output columns.
    pub fn planned(self, items: Vec<(Expr, Column)>) -> Result<LogicalPlan> {
        let WindowJoins { left, time, windows } = self;
        let (items, names): (Vec<Expr>, Vec<Column>) = items.into_iter().unzip();
        if !find_window_exprs(&items).is_empty() {
            let message = "window functions go around WINDOW JOIN: SELECT … OVER () FROM (… WINDOW JOIN …)";
            return Err(Error::invalid(message));
        }
        let aggregates = find_aggregate_exprs(&items);
        let mut of = vec![Vec::new(); windows.len()];
        for aggregate in &aggregates {
            of[window_of(aggregate, &windows)?].push(aggregate.clone());
        }
        let mut needed: Vec<Column> = left.schema().columns();
        needed.retain(|column| {
            *column == time
                || items.iter().any(|e| e.column_refs().contains(column))
                || windows.iter().any(|w| w.needs(column))
        });
        let (mut plan, mut known) = (scans_in_time_order(left)?, Vec::new());
        for (number, (window, own)) in windows.into_iter().zip(of).enumerate() {
            (plan, known) = joined(plan, window, number, own, &needed, known)?;
        }
        let outputs = items.into_iter().zip(names).map(|(item, name)| output(item, name, &known, &plan));
        let outputs = outputs.collect::<Result<Vec<_>>>()?;
        Ok(LogicalPlanBuilder::from(plan).project(outputs)?.build()?)
    }
}

fn refuse_other_clauses(select: &Select) -> Result<()> {
    let is_grouped = !matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    if is_grouped || select.having.is_some() || select.distinct.is_some() || select.qualify.is_some() {
        return Err(Error::invalid("GROUP BY, HAVING, DISTINCT and QUALIFY go around WINDOW JOIN")
            .with_hint("put it in parentheses: SELECT … FROM (SELECT … WINDOW JOIN …) GROUP BY …"));
    }
    if select.from.len() != 1 {
        return Err(Error::invalid("WINDOW JOIN takes one table on its left side"));
    }
    Ok(())
}

/// What stands before the joins, and what WHERE leaves of it.
fn left_side(
    tables: TableWithJoins,
    selection: Option<ast::Expr>,
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    let left = left_of(tables, context)?;
    let Some(selection) = selection else { return Ok(left) };
    let condition = context.sql_to_expr(selection, left.schema()).map_err(|error| {
        let error = Error::from(error);
        if error.hint.is_some() {
            return error;
        }
        error.with_hint("WHERE of a WINDOW JOIN is about its left side; filter the right one in a sub-query")
    })?;
    Ok(LogicalPlanBuilder::from(left).filter(condition)?.build()?)
}

fn window(join: ast::Join, windows: &mut WindowJoins, context: &mut dyn RelationPlannerContext) -> Result<()> {
    let Some((bounds, includes_prevailing)) = window_join(&join) else { return Err(behind()) };
    let right = context.plan(join.relation)?;
    time_of(&right, "the right side of WINDOW JOIN")?;
    let constraint = match join.join_operator {
        JoinOperator::AsOf { constraint, .. } => constraint,
        _ => JoinConstraint::None,
    };
    let keys = keys(constraint, &windows.left, &right, "WINDOW JOIN", context)?.without_null("WINDOW JOIN")?;
    let left = windows.left.schema().clone();
    let [lower, upper] = bounds.map(|(length, unit)| {
        let length = context.sql_to_expr(length, &left)?;
        Ok::<_, Error>(Bound { length, unit })
    });
    windows.add(right, keys, [lower?, upper?], includes_prevailing)
}

/// Returns the error for another join after a WINDOW JOIN.
pub(crate) fn behind() -> Error {
    Error::invalid("another join behind WINDOW JOIN is not supported")
        .with_hint("put the WINDOW JOIN in parentheses, or the other join before it")
}

impl Window {
    fn needs(&self, column: &Column) -> bool {
        self.keys.iter().any(|(l, _)| l == column) || self.bounds.iter().any(|b| b.column_refs().contains(column))
    }
}

/// What is selected, with `*` and `t.*` as the columns of the left side, and the names it goes by.
fn items(
    projection: Vec<SelectItem>,
    left: &DFSchema,
    both: &DFSchema,
    context: &mut dyn RelationPlannerContext,
) -> Result<Vec<(Expr, Column)>> {
    let mut items = Vec::new();
    for item in projection {
        let (expr, alias) = match item {
            SelectItem::UnnamedExpr(expr) => (expr, None),
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias.value)),
            wildcard => {
                let table = match &wildcard {
                    SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                        name.0.last().and_then(|part| part.as_ident()).map(|ident| ident.value.clone())
                    }
                    _ => None,
                };
                let is_of =
                    |c: &Column| table.is_none() || c.relation.as_ref().map(TableReference::table) == table.as_deref();
                let columns: Vec<Column> = left.columns().into_iter().filter(is_of).collect();
                if columns.is_empty() {
                    return Err(Error::invalid("only aggregates of the right side of a WINDOW JOIN can be selected"));
                }
                items.extend(columns.into_iter().map(|column| (Expr::Column(column.clone()), column)));
                continue;
            }
        };
        let expr = context.sql_to_expr(expr, both)?;
        let name = output_name(&expr, alias);
        items.push((expr, name));
    }
    Ok(items)
}

/// The join that an aggregate is over.
fn window_of(aggregate: &Expr, windows: &[Window]) -> Result<usize> {
    let columns = aggregate.column_refs();
    let is_of = |window: &Window| columns.iter().any(|c| window.right.schema().maybe_index_of_column(c).is_some());
    let mut found = windows.iter().enumerate().filter(|(_, window)| is_of(window)).map(|(number, _)| number);
    match (found.next(), found.next(), windows.len()) {
        (Some(number), None, _) => Ok(number),
        (None, _, 1) => Ok(0),
        (None, ..) => Err(Error::invalid(format!("{aggregate} could be over any of the WINDOW JOINs"))
            .with_hint("name a column of the one that is meant")),
        (Some(_), Some(_), _) => Err(Error::invalid(format!("{aggregate} is over two WINDOW JOINs"))),
    }
}

/// One join and its aggregation: the columns needed of the left side, and one for each aggregate so far.
fn joined(
    left: LogicalPlan,
    window: Window,
    number: usize,
    aggregates: Vec<Expr>,
    needed: &[Column],
    mut known: Vec<(Expr, Column)>,
) -> Result<(LogicalPlan, Vec<(Expr, Column)>)> {
    let Window { right, times, keys, bounds, spec } = window;
    let names = [format!("__lo{number}"), format!("__hi{number}")];
    let lengths = bounds.into_iter().zip(&names).map(|(bound, name)| bound.alias(name));
    let columns = left.schema().columns().into_iter().map(Expr::Column).chain(lengths);
    let left = LogicalPlanBuilder::from(left).project(columns.collect::<Vec<_>>())?.build()?;
    let right_time = times.1.clone();
    let node = WindowJoinNode::new(left, right, times, names.map(Column::new_unqualified), keys, spec, number)?;
    let plan = LogicalPlan::Extension(Extension { node: Arc::new(node) });
    let row = unqualified(row_name(number));
    let kept: Vec<Expr> =
        needed.iter().chain(known.iter().map(|(_, column)| column)).cloned().map(Expr::Column).collect();
    let groups: Vec<Expr> = std::iter::once(row.clone()).chain(kept.iter().cloned()).collect();
    let own = aggregates.iter().map(|e| over_pairs(e, &right_time, number)).collect::<Result<Vec<_>>>()?;
    let plan = LogicalPlanBuilder::from(plan).aggregate(groups, own.clone())?.sort([row.sort(true, false)])?;
    let mut outputs = kept;
    for (place, (aggregate, own)) in aggregates.into_iter().zip(own).enumerate() {
        let name = format!("__aggregate{number}_{place}");
        outputs.push(unqualified(own.schema_name().to_string()).alias(&name));
        known.push((aggregate, Column::new_unqualified(name)));
    }
    Ok((plan.project(outputs)?.build()?, known))
}

/// The aggregate over pairs only: a left row without a partner has a row, too.
fn over_pairs(aggregate: &Expr, right_time: &Column, number: usize) -> Result<Expr> {
    let done = aggregate.clone().transform_down(|e| {
        let Expr::AggregateFunction(mut f) = e else { return Ok(Transformed::no(e)) };
        if is_by_time(&f) {
            f.params.args.push(Expr::Column(right_time.clone()));
        }
        let is_pair = unqualified(pair_name(number));
        f.params.filter = Some(Box::new(match f.params.filter.take() {
            Some(filter) => is_pair.and(*filter),
            None => is_pair,
        }));
        Ok(Transformed::new(Expr::AggregateFunction(f), true, TreeNodeRecursion::Jump))
    });
    Ok(done.data()?)
}

fn output(item: Expr, name: Column, known: &[(Expr, Column)], plan: &LogicalPlan) -> Result<Expr> {
    let done = item.transform_down(|e| match known.iter().find(|(aggregate, _)| *aggregate == e) {
        Some((_, column)) => Ok(Transformed::new(Expr::Column(column.clone()), true, TreeNodeRecursion::Jump)),
        None => Ok(Transformed::no(e)),
    });
    let done = done.data()?;
    if let Some(column) = done.column_refs().into_iter().find(|c| plan.schema().maybe_index_of_column(c).is_none()) {
        let mut error = Error::invalid(format!("column \"{}\" must be used in an aggregate function", column.name))
            .with_hint("a WINDOW JOIN gives aggregates of its right side");
        error.subject = Some(column.name.clone());
        return Err(error);
    }
    Ok(done.alias_qualified(name.relation, name.name))
}

impl WindowJoinNode {
    fn new(
        left: LogicalPlan,
        right: LogicalPlan,
        times: (Column, Column),
        bounds: [Column; 2],
        keys: Vec<(Column, Column)>,
        spec: WindowJoinSpec,
        number: usize,
    ) -> DFResult<WindowJoinNode> {
        let mut fields: Vec<(Option<TableReference>, _)> =
            left.schema().iter().map(|(qualifier, field)| (qualifier.cloned(), field.clone())).collect();
        fields.extend(right.schema().iter().map(|(qualifier, field)| {
            let field = door::undesignated(field.as_ref().clone().with_nullable(true));
            (qualifier.cloned(), Arc::new(field))
        }));
        fields.push((None, Arc::new(Field::new(row_name(number), DataType::Int64, false))));
        fields.push((None, Arc::new(Field::new(pair_name(number), DataType::Boolean, false))));
        let schema = Arc::new(DFSchema::new_with_metadata(fields, HashMap::new())?);
        Ok(WindowJoinNode { left, right, times, bounds, keys, spec, number, schema })
    }

    /// Over other inputs that have the columns of these, with `more` keys.
    pub fn with_keys(
        &self,
        left: LogicalPlan,
        right: LogicalPlan,
        more: Vec<(Column, Column)>,
    ) -> DFResult<WindowJoinNode> {
        let keys = self.keys.iter().cloned().chain(more).collect();
        let (times, bounds) = (self.times.clone(), self.bounds.clone());
        WindowJoinNode::new(left, right, times, bounds, keys, self.spec.clone(), self.number)
    }

    fn indexes(&self, left: &DFSchema, right: &DFSchema) -> DFResult<WindowJoinColumns> {
        let keys = self.keys.iter().map(|(l, r)| Ok((left.index_of_column(l)?, right.index_of_column(r)?)));
        Ok(WindowJoinColumns {
            times: (left.index_of_column(&self.times.0)?, right.index_of_column(&self.times.1)?),
            bounds: [left.index_of_column(&self.bounds[0])?, left.index_of_column(&self.bounds[1])?],
            keys: keys.collect::<DFResult<_>>()?,
        })
    }

    pub fn operation(&self, left: &DFSchema, right: &DFSchema) -> DFResult<WindowJoin> {
        let schema = Arc::new(self.schema.as_arrow().clone());
        Ok(WindowJoin { spec: self.spec.clone(), columns: self.indexes(left, right)?, schema })
    }
}

impl fmt::Debug for WindowJoinNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_for_explain(f)
    }
}

impl PartialOrd for WindowJoinNode {
    fn partial_cmp(&self, _: &WindowJoinNode) -> Option<Ordering> {
        None
    }
}

impl UserDefinedLogicalNodeCore for WindowJoinNode {
    fn name(&self) -> &'static str {
        "WindowJoin"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.left, &self.right]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    /// The bounds, then left and right in turns: the times, then each pair of keys.
    fn expressions(&self) -> Vec<Expr> {
        let pairs = std::iter::once(&self.times).chain(&self.keys);
        let pairs = pairs.flat_map(|(l, r)| [l.clone(), r.clone()]);
        self.bounds.iter().cloned().chain(pairs).map(Expr::Column).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<String> =
            self.keys.iter().map(|(l, r)| format!("{} = {}", l.flat_name(), r.flat_name())).collect();
        write!(f, "WindowJoin: keys=[{}]", keys.join(", "))
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> DFResult<WindowJoinNode> {
        let columns = super::columns_of(exprs)?;
        let refused = || Error::internal("a WINDOW JOIN without its parts");
        let (Some((bounds, pairs)), Some(right), Some(left)) =
            (columns.split_at_checked(2), inputs.pop(), inputs.pop())
        else {
            return Err(refused().into());
        };
        let mut pairs = pairs.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone()));
        let times = pairs.next().ok_or_else(refused)?;
        let bounds = <[Column; 2]>::try_from(bounds.to_vec()).map_err(|_| refused())?;
        WindowJoinNode::new(left, right, times, bounds, pairs.collect(), self.spec.clone(), self.number)
    }

    fn necessary_children_exprs(&self, output: &[usize]) -> Option<Vec<Vec<usize>>> {
        let columns = self.indexes(self.left.schema(), self.right.schema()).ok()?;
        let split = self.left.schema().fields().len();
        let end = split + self.right.schema().fields().len();
        let mut left: Vec<usize> = output.iter().copied().filter(|i| *i < split).collect();
        let mut right: Vec<usize> = output.iter().filter(|i| (split..end).contains(i)).map(|i| i - split).collect();
        left.extend(columns.bounds.into_iter().chain([columns.times.0]));
        right.push(columns.times.1);
        Some(super::needed_of_both(left, right, columns.keys))
    }
}
