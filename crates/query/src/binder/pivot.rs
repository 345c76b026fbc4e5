//! PIVOT: values of columns become columns, each an aggregate of the rows that have the value.
//!
//! The values of a sub-query must be known before the columns are: [`super::bind`] returns
//! [`BindError::Values`](super::BindError::Values) with the plan of the sub-query, and is called again with its values.

use super::aggregate::{named_apart, not_grouped};
use super::from::aliased;
use super::scope::{Env, Place, ScopeColumn, Source};
use super::select::{check_no_window, empty_scope};
use super::{BindError, Binder, Parameters, Result};
use crate::{Error, Parameter, door, plan};
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, ScalarValue};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::utils::find_aggregate_exprs;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, SortExpr, lit};
use std::collections::{HashMap, HashSet};
use tidalite_sql::Span;
use tidalite_sql::ast::walk::{self, ExprFinder};
use tidalite_sql::ast::{
    self, Alias, BinaryOperator, ExprKind, Literal, OrderBy, Pivot, PivotColumn, PivotValue, PivotValues, Query,
    Relation, Select,
};

/// The maximum number of columns that one PIVOT creates.
pub(crate) const COLUMNS_MAX: usize = 5_000;

/// The values of sub-queries of PIVOTs, by the place of the sub-query.
pub(crate) type ReadValues = HashMap<Span, Vec<ScalarValue>>;

/// A sub-query whose values become columns.
#[derive(Clone, Debug)]
pub(crate) struct ValuesQuery {
    /// Returns one column and at most one row more than [`COLUMNS_MAX`].
    pub plan: LogicalPlan,
    pub span: Span,
}

/// The rows of one combination of values.
#[derive(Clone)]
struct Cell {
    name: String,
    /// The part of `name` that sub-queries returned; `None` if all values are in the text of the statement.
    read: Option<String>,
    condition: Expr,
}

impl Cell {
    fn with(&self, other: &Cell) -> Cell {
        let read = match (&self.read, &other.read) {
            (Some(own), Some(other)) => Some(format!("{own}_{other}")),
            (own, other) => own.clone().or_else(|| other.clone()),
        };
        Cell {
            read,
            name: format!("{}_{}", self.name, other.name),
            condition: self.condition.clone().and(other.condition.clone()),
        }
    }
}

struct Aggregate {
    value: Expr,
    /// Part of the names of its columns; `None` if the value alone names the column.
    name: Option<String>,
    span: Span,
}

/// A key of GROUP BY and the column that has the key.
struct Group {
    key: Expr,
    name: Option<String>,
}

impl Binder<'_> {
    /// Binds `relation PIVOT (…)`.
    pub(super) fn pivoted_relation(
        &self,
        relation: &Relation,
        pivot: &Pivot,
        alias: Option<&Alias>,
        env: &Env,
    ) -> Result<Source> {
        let source = self.relation(relation, env, None)?;
        let plan = self.pivoted(source, pivot, env)?;
        Ok(Source::of_plan(aliased(plan, alias)?))
    }

    /// Binds the rows of `SELECT … FROM … WHERE … PIVOT (…)`, over which the SELECT list is computed.
    pub(super) fn pivoted_select(&self, select: &Select, pivot: &Pivot, env: &Env) -> Result<Source> {
        if select.group_by.is_some() || select.sample_by.is_some() {
            let error = Error::invalid("GROUP BY and SAMPLE BY go around PIVOT or into a sub-query");
            let error = error.with_hint("put it in parentheses: SELECT … FROM (SELECT … GROUP BY …) PIVOT (…)");
            return Err(error.at(pivot.span.start as usize).into());
        }
        let source = self.from(&select.from, env)?;
        let plan = {
            let scope = source.scope(env.outer);
            self.chosen_rows(source.plan, select, Place::new(&scope, env))?
        };
        let plan = self.pivoted(Source { plan, columns: source.columns }, pivot, env)?;
        Ok(Source::of_plan(plan))
    }

    fn pivoted(&self, source: Source, pivot: &Pivot, env: &Env) -> Result<LogicalPlan> {
        let scope = source.scope(env.outer);
        let place = Place::new(&scope, env);
        let aggregates = self.pivot_aggregates(pivot, place)?;
        let columns =
            pivot.columns.iter().map(|column| self.expr(&column.column, place)).collect::<Result<Vec<_>>>()?;
        let groups = match &pivot.group_by {
            Some(keys) => keys.iter().map(|key| self.pivot_group(key, place)).collect::<Result<Vec<_>>>()?,
            None if pivot.is_statement => {
                rest(&source.columns, aggregates.iter().map(|aggregate| &aggregate.value).chain(&columns))
            }
            None => Vec::new(),
        };
        let mut cells: Vec<Cell> = Vec::new();
        for (column, bound) in pivot.columns.iter().zip(&columns) {
            let own = self.cells(column, bound, &source, place)?;
            let count = cells.len().max(1).saturating_mul(own.len()).saturating_mul(aggregates.len());
            if count > COLUMNS_MAX {
                return Err(too_many(pivot.span).into());
            }
            cells = match cells.is_empty() {
                true => own,
                false => cells.iter().flat_map(|cell| own.iter().map(|other| cell.with(other))).collect(),
            };
        }
        planned(source.plan.clone(), groups, &cells, &aggregates)
    }

    fn pivot_aggregates(&self, pivot: &Pivot, place: Place) -> Result<Vec<Aggregate>> {
        if pivot.aggregates.is_empty() {
            let value = self.aggregate_of("count", vec![lit(1_i64)], None, Vec::new())?;
            return Ok(vec![Aggregate { value, name: None, span: pivot.span }]);
        }
        let is_single = pivot.aggregates.len() == 1;
        let aggregate = |PivotValue { expr, alias }: &PivotValue| {
            let value = self.expr(expr, place)?;
            check_no_window(&value, "PIVOT", expr)?;
            if find_aggregate_exprs([&value]).is_empty() {
                let message = format!("PIVOT takes aggregates, and {} is none", self.written(expr.span));
                return Err(Error::invalid(message).at(expr.span.start as usize).into());
            }
            let name = match alias {
                Some(alias) => Some(alias.value.clone()),
                None => (!is_single).then(|| self.written(expr.span)),
            };
            Ok(Aggregate { value, name, span: expr.span })
        };
        pivot.aggregates.iter().map(aggregate).collect()
    }

    fn pivot_group(&self, key: &ast::Expr, place: Place) -> Result<Group> {
        let bound = self.expr(key, place)?;
        let name = (!matches!(bound, Expr::Column(_))).then(|| self.label(key));
        Ok(Group { key: bound, name })
    }

    /// Returns the values of a column, each with the name that the value gives to columns.
    fn cells(&self, column: &PivotColumn, bound: &Expr, source: &Source, place: Place) -> Result<Vec<Cell>> {
        let span = column.column.span;
        let values = match &column.values {
            PivotValues::List(list) => {
                return list.iter().map(|value| self.listed_cell(value, bound, place)).collect();
            }
            PivotValues::Query(query) => self.values_at(query.span, || self.values_query(query, place.env))?,
            PivotValues::All => self.values_at(span, || distinct_values(source, bound, span))?,
        };
        let texts = texts(values)?;
        let cell = |(value, name): (&ScalarValue, String)| {
            let value = Expr::Literal(value.clone(), None);
            Ok(Cell { read: Some(name.clone()), name, condition: self.has_value(bound, value, place, span)? })
        };
        values.iter().zip(texts).map(cell).collect()
    }

    /// Returns the values of a sub-query. Without them the binder stops with [`BindError::Values`].
    fn values_at(&self, span: Span, query: impl FnOnce() -> Result<LogicalPlan>) -> Result<&[ScalarValue]> {
        match self.values.get(&span) {
            Some(values) => Ok(values),
            None => Err(BindError::Values(Box::new(ValuesQuery { plan: query()?, span }))),
        }
    }

    /// Returns the condition of the rows that have a value.
    fn has_value(&self, column: &Expr, value: Expr, place: Place, span: Span) -> Result<Expr> {
        match &value {
            Expr::Literal(constant, _) if constant.is_null() => Ok(column.clone().is_null()),
            _ => self.operator(BinaryOperator::Equal, column.clone(), value, &place.scope.schema, span),
        }
    }

    fn listed_cell(&self, listed: &PivotValue, column: &Expr, place: Place) -> Result<Cell> {
        let PivotValue { expr, alias } = listed;
        let scope = empty_scope(None);
        let value = self.expr(expr, Place::new(&scope, place.env))?;
        let is_constant = |expr: &Expr| {
            !matches!(
                expr,
                Expr::ScalarSubquery(_)
                    | Expr::Exists(_)
                    | Expr::InSubquery(_)
                    | Expr::SetComparison(_)
                    | Expr::AggregateFunction(_)
                    | Expr::WindowFunction(_)
                    | Expr::Unnest(_)
            )
        };
        if value.exists(|expr| Ok(!is_constant(expr)))? {
            let error = Error::invalid("the values of a PIVOT are constants, or those of one query: IN (SELECT …)");
            return Err(error.at(expr.span.start as usize).into());
        }
        let name = match (alias, &expr.kind) {
            (Some(alias), _) => alias.value.clone(),
            (None, ExprKind::Literal(Literal::Text(text))) => text.clone(),
            (None, ExprKind::Parameter(number)) => match self.parameters {
                Parameters::Values(_) => match self.value_of(*number, expr.span)? {
                    Parameter::Text(text) | Parameter::Typed(text, _) => text.clone(),
                    _ => self.written(expr.span),
                },
                Parameters::Types(_) => return Err(depends_on_parameters(expr.span).into()),
            },
            (None, _) => self.written(expr.span),
        };
        Ok(Cell { name, read: None, condition: self.has_value(column, value, place, expr.span)? })
    }

    /// Binds `IN (SELECT …)`. Without ORDER BY the values are in ascending order, NULL last.
    fn values_query(&self, query: &Query, env: &Env) -> Result<LogicalPlan> {
        if matches!(self.parameters, Parameters::Types(_)) && has_parameters(query) {
            return Err(depends_on_parameters(query.span).into());
        }
        let plan = self.query(query, env)?;
        if plan.schema().fields().len() != 1 {
            let error = Error::invalid("the query for the values of a PIVOT gives one column");
            return Err(error.at(query.span.start as usize).into());
        }
        check_independent(&plan, query.span)?;
        let is_ordered = matches!(&query.order_by, Some(OrderBy::Items(_) | OrderBy::All { .. }));
        if is_ordered {
            return Ok(LogicalPlanBuilder::from(plan).limit(0, Some(COLUMNS_MAX + 1))?.build()?);
        }
        in_order(LogicalPlanBuilder::from(plan).distinct()?.build()?)
    }
}

/// Returns the plan of the values that a column has, without NULL.
fn distinct_values(source: &Source, column: &Expr, span: Span) -> Result<LogicalPlan> {
    check_independent(&source.plan, span)?;
    let rows = LogicalPlanBuilder::from(source.plan.clone()).filter(column.clone().is_not_null())?;
    in_order(rows.project([column.clone().alias("value")])?.distinct()?.build()?)
}

/// Sorts the values, and bounds their number.
fn in_order(values: LogicalPlan) -> Result<LogicalPlan> {
    let keys: Vec<SortExpr> =
        values.schema().columns().into_iter().map(|column| Expr::Column(column).sort(true, false)).collect();
    Ok(LogicalPlanBuilder::from(values).sort(keys)?.limit(0, Some(COLUMNS_MAX + 1))?.build()?)
}

/// Refuses values that depend on rows around the PIVOT: all rows have the same columns.
fn check_independent(plan: &LogicalPlan, span: Span) -> Result<()> {
    if !plan.all_out_ref_exprs().is_empty() {
        let error = Error::invalid("the values of a PIVOT cannot depend on columns of an outer query");
        return Err(error.at(span.start as usize).into());
    }
    let mut is_recursive = false;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Ok(table) = source_as_provider(&scan.source)
            && table.downcast_ref::<CteWorkTable>().is_some()
        {
            is_recursive = true;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    if !is_recursive {
        return Ok(());
    }
    let error = Error::invalid("the values of a PIVOT cannot depend on the recursive query around it");
    Err(error.at(span.start as usize).into())
}

fn has_parameters(query: &Query) -> bool {
    let mut finder = ExprFinder::new(|expr| matches!(expr.kind, ExprKind::Parameter(_)));
    walk::query(query, &mut finder);
    finder.is_found
}

/// The columns of a prepared statement are described before its parameters have values.
fn depends_on_parameters(span: Span) -> Error {
    let error = Error::invalid("the columns of a PIVOT cannot depend on parameters of a prepared statement");
    error.with_hint("give the value a name: IN ($1 AS name)").at(span.start as usize)
}

pub(crate) fn too_many(span: Span) -> Error {
    Error::invalid(format!("PIVOT makes more than {COLUMNS_MAX} columns")).at(span.start as usize)
}

/// Returns the texts of values.
fn texts(values: &[ScalarValue]) -> Result<Vec<String>> {
    if values.is_empty() {
        return Ok(Vec::new());
    }
    let array: ArrayRef = ScalarValue::iter_to_array(values.iter().cloned())?;
    let options = FormatOptions::default().with_null("NULL");
    let formatter = ArrayFormatter::try_new(&array, &options).map_err(|error| Error::internal(error.to_string()))?;
    Ok((0..values.len()).map(|row| formatter.value(row).to_string()).collect())
}

/// Returns the columns that no expression names.
fn rest<'a>(columns: &[ScopeColumn], named: impl Iterator<Item = &'a Expr>) -> Vec<Group> {
    let named: Vec<&Expr> = named.collect();
    let named: HashSet<&Column> = named.iter().flat_map(|expr| expr.column_refs()).collect();
    let is_named = |column: &&ScopeColumn| column.value.column_refs().iter().any(|own| named.contains(own));
    let group = |column: &ScopeColumn| Group {
        key: column.value.clone(),
        name: (!matches!(column.value, Expr::Column(_))).then(|| column.name.clone()),
    };
    columns.iter().filter(|column| column.visibility.is_bare() && !is_named(column)).map(group).collect()
}

/// The aggregates of all cells, each once.
#[derive(Default)]
struct Calls {
    places: HashMap<Expr, usize>,
    named: Vec<Expr>,
    names: HashMap<String, Expr>,
}

impl Calls {
    fn place(&mut self, call: Expr) -> usize {
        if let Some(place) = self.places.get(&call) {
            return *place;
        }
        self.named.push(named_apart(call.clone(), &mut self.names));
        self.places.insert(call, self.named.len() - 1);
        self.named.len() - 1
    }
}

fn planned(input: LogicalPlan, groups: Vec<Group>, cells: &[Cell], aggregates: &[Aggregate]) -> Result<LogicalPlan> {
    let (mut keys, mut key_places): (Vec<Expr>, Vec<usize>) = (Vec::new(), Vec::new());
    for group in &groups {
        let known = keys.iter().position(|key| *key == group.key);
        key_places.push(known.unwrap_or(keys.len()));
        if known.is_none() {
            keys.push(group.key.clone());
        }
    }
    let own = find_aggregate_exprs(aggregates.iter().map(|aggregate| &aggregate.value));
    let mut calls = Calls::default();
    for column in keys.iter().filter(|key| matches!(key, Expr::Column(_))) {
        calls.names.insert(column.schema_name().to_string(), column.clone());
    }
    let mut of_cells = Vec::with_capacity(cells.len());
    for cell in cells {
        of_cells.push(own.iter().map(|call| calls.place(of_cell(call, cell))).collect::<Vec<_>>());
    }
    let plan = LogicalPlanBuilder::from(input).aggregate(keys.clone(), calls.named)?.build()?;
    let columns: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
    let mut outputs = Vec::new();
    for (cell, places) in cells.iter().zip(of_cells) {
        let known: Vec<(&Expr, &Expr)> = own
            .iter()
            .zip(places.iter().map(|place| &columns[keys.len() + place]))
            .chain(keys.iter().zip(&columns))
            .collect();
        for aggregate in aggregates {
            outputs.push(CellColumn {
                value: over_groups(aggregate, &known)?,
                name: output_name(cell, aggregate),
                read: cell.read.clone(),
            });
        }
    }
    let groups = groups.iter().zip(key_places).map(|(group, place)| match &group.name {
        Some(name) => columns[place].clone().alias(name),
        None => columns[place].clone(),
    });
    with_names(plan, groups.collect(), outputs)
}

/// Returns an aggregate over the rows of a cell.
fn of_cell(call: &Expr, cell: &Cell) -> Expr {
    let Expr::AggregateFunction(function) = call else { return call.clone() };
    let mut function = function.clone();
    let condition = cell.condition.clone();
    function.params.filter = Some(Box::new(match function.params.filter.take() {
        Some(filter) => condition.and(*filter),
        None => condition,
    }));
    Expr::AggregateFunction(function)
}

/// Returns the value of an aggregate over the columns that have its calls and groups.
fn over_groups(aggregate: &Aggregate, known: &[(&Expr, &Expr)]) -> Result<Expr> {
    let done = aggregate.value.clone().transform_down(|expr| {
        if let Some((_, column)) = known.iter().find(|(own, _)| **own == expr) {
            return Ok(Transformed::new((*column).clone(), true, TreeNodeRecursion::Jump));
        }
        match &expr {
            Expr::Column(column) => Err(not_grouped(column).at(aggregate.span.start as usize).into()),
            _ => Ok(Transformed::no(expr)),
        }
    });
    Ok(done.data()?)
}

fn output_name(cell: &Cell, aggregate: &Aggregate) -> String {
    match &aggregate.name {
        Some(name) => format!("{}_{name}", cell.name),
        None => cell.name.clone(),
    }
}

/// A column of the result: an aggregate over the rows of a cell.
struct CellColumn {
    value: Expr,
    name: String,
    /// See [`Cell::read`].
    read: Option<String>,
}

/// Projects the groups and the columns of the cells. A name that occurs again gets a number.
fn with_names(plan: LogicalPlan, groups: Vec<Expr>, outputs: Vec<CellColumn>) -> Result<LogicalPlan> {
    let group_names: Vec<String> = groups.iter().map(|group| group.qualified_name().1).collect();
    let output_names: Vec<String> =
        outputs.iter().map(|output| tidalite_types::schema::fold_name(&output.name)).collect();
    let names = plan::distinct_names(group_names.iter().chain(&output_names).map(String::as_str));
    let count = groups.len();
    let outputs = outputs.into_iter().zip(&names[count..]).map(|(output, name)| {
        let metadata = door::pivot_metadata(&output.name, output.read);
        output.value.alias_with_metadata(name, Some(metadata.into()))
    });
    Ok(LogicalPlanBuilder::from(plan).project(groups.into_iter().chain(outputs))?.build()?)
}
