//! PIVOT: values of columns become columns, each an aggregate of the rows that have the value. UNPIVOT: columns become
//! rows of a name and a value.

use super::relations::distinct_names;
use super::sample_by::over_groups;
use crate::dialect::{Pivot, Unpivot, text};
use crate::{Error, Result, door};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, ExprSchema, UnnestOptions};
use datafusion::functions_nested::make_array::make_array;
use datafusion::logical_expr::expr_rewriter::normalize_col;
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::logical_expr::type_coercion::binary::type_union_resolution;
use datafusion::logical_expr::utils::find_aggregate_exprs;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, cast, lit};
use datafusion::sql::sqlparser::ast::{self, ExprWithAlias};
use std::collections::HashSet;

/// Columns that one PIVOT may make.
const COLUMNS_MAX: usize = 5_000;

/// Rows that one column of the result is of.
#[derive(Clone)]
struct Cell {
    name: String,
    condition: Option<Expr>,
}

pub(super) fn plan(pivot: Pivot, context: &mut dyn RelationPlannerContext) -> Result<LogicalPlan> {
    let Pivot { table, aggregates, dimensions, group_by, alias: _ } = pivot;
    let input = context.plan(table)?;
    let mut understood =
        |expr: ast::Expr| -> Result<Expr> { Ok(normalize_col(context.sql_to_expr(expr, input.schema())?, &input)?) };
    let has_one = aggregates.len() == 1;
    let mut values = Vec::new();
    for ExprWithAlias { expr, alias } in aggregates {
        let name = alias.map_or_else(|| expr.to_string(), |alias| alias.value);
        let is_named = !has_one || name != expr.to_string();
        let value = understood(expr)?;
        if find_aggregate_exprs([&value]).is_empty() {
            return Err(Error::invalid(format!("PIVOT takes aggregates, and {name} is none")));
        }
        values.push((value, is_named.then_some(name)));
    }
    let mut cells = vec![Cell { name: String::new(), condition: None }];
    let mut columns = Vec::new();
    for (column, list) in dimensions {
        let column = understood(column)?;
        if cells.len() * list.len() * values.len() > COLUMNS_MAX {
            return Err(Error::invalid(format!("PIVOT makes more than {COLUMNS_MAX} columns")));
        }
        let list = list.into_iter().map(|value| named_value(value, &mut understood)).collect::<Result<Vec<_>>>()?;
        let of_cell = |cell: &Cell| list.iter().map(|value| cell.with(&column, value)).collect::<Vec<_>>();
        cells = cells.iter().flat_map(of_cell).collect();
        columns.push(column);
    }
    let groups = match group_by {
        Some(group_by) => group_by.into_iter().map(&mut understood).collect::<Result<Vec<_>>>()?,
        None => rest(&input, values.iter().map(|(value, _)| value).chain(&columns)),
    };
    made(input, groups, &cells, &values)
}

impl Cell {
    fn with(&self, column: &Expr, (value, name): &(Expr, String)) -> Cell {
        let column = column.clone();
        let is_null = matches!(value, Expr::Literal(value, _) if value.is_null());
        let condition = if is_null { column.is_null() } else { column.eq(value.clone()) };
        Cell {
            name: if self.name.is_empty() { name.clone() } else { format!("{}_{name}", self.name) },
            condition: Some(match self.condition.clone() {
                Some(before) => before.and(condition),
                None => condition,
            }),
        }
    }
}

/// A value and the name of its column.
fn named_value(value: ExprWithAlias, understood: &mut dyn FnMut(ast::Expr) -> Result<Expr>) -> Result<(Expr, String)> {
    let ExprWithAlias { expr, alias } = value;
    if matches!(expr, ast::Expr::Subquery(_)) {
        return Err(Error::internal("the values of a PIVOT were not asked for before it was planned"));
    }
    let written = text(&expr).unwrap_or_else(|| expr.to_string());
    let name = alias.map_or(written, |alias| alias.value);
    Ok((understood(expr)?, name))
}

/// Columns that are named nowhere.
fn rest<'a>(input: &LogicalPlan, named: impl Iterator<Item = &'a Expr>) -> Vec<Expr> {
    let named: HashSet<Column> = named.flat_map(|e| e.column_refs().into_iter().cloned().collect::<Vec<_>>()).collect();
    input.schema().columns().into_iter().filter(|c| !named.contains(c)).map(Expr::Column).collect()
}

fn made(
    input: LogicalPlan,
    groups: Vec<Expr>,
    cells: &[Cell],
    values: &[(Expr, Option<String>)],
) -> Result<LogicalPlan> {
    let mut outputs = Vec::new();
    for cell in cells {
        for (value, name) in values {
            let name = match (name, cell.name.is_empty()) {
                (Some(name), false) => format!("{}_{name}", cell.name),
                (Some(name), true) => name.clone(),
                (None, _) => cell.name.clone(),
            };
            outputs.push((of_cell(value, cell)?, name));
        }
    }
    let aggregates = find_aggregate_exprs(outputs.iter().map(|(expr, _)| expr));
    let plan = LogicalPlanBuilder::from(input).aggregate(groups.clone(), aggregates.clone())?.build()?;
    let known: Vec<Expr> = groups.iter().chain(&aggregates).cloned().collect();
    let mut columns = groups.iter().map(|group| over_groups(group, &known, &plan)).collect::<Result<Vec<_>>>()?;
    let group_names: Vec<String> = groups.iter().map(|group| group.schema_name().to_string()).collect();
    let folded: Vec<String> = outputs.iter().map(|(_, name)| tidalite_types::schema::fold_name(name)).collect();
    let names = distinct_names(group_names.iter().chain(&folded).map(String::as_str));
    for ((expr, written), name) in outputs.iter().zip(&names[groups.len()..]) {
        let metadata = Some(door::spelled_metadata(written).into());
        columns.push(over_groups(expr, &known, &plan)?.alias_with_metadata(name, metadata));
    }
    Ok(LogicalPlanBuilder::from(plan).project(columns)?.build()?)
}

/// An aggregate over the rows of a cell.
fn of_cell(value: &Expr, cell: &Cell) -> Result<Expr> {
    let Some(condition) = &cell.condition else { return Ok(value.clone()) };
    let done = value.clone().transform_up(|e| {
        let Expr::AggregateFunction(mut f) = e else { return Ok(Transformed::no(e)) };
        f.params.filter = Some(Box::new(match f.params.filter.take() {
            Some(filter) => condition.clone().and(*filter),
            None => condition.clone(),
        }));
        Ok(Transformed::yes(Expr::AggregateFunction(f)))
    });
    Ok(done.data()?)
}

pub(super) fn unpivoted(unpivot: Unpivot, context: &mut dyn RelationPlannerContext) -> Result<LogicalPlan> {
    let Unpivot { table, name, value, keeps_nulls, columns, alias: _ } = unpivot;
    let ast::Expr::Identifier(value) = value else {
        return Err(Error::invalid("UNPIVOT of several values at a time is not supported"));
    };
    let input = context.plan(table)?;
    let (mut names, mut values, mut types) = (Vec::new(), Vec::new(), Vec::new());
    for ExprWithAlias { expr, alias } in columns {
        let expr = normalize_col(context.sql_to_expr(expr, input.schema())?, &input)?;
        let Expr::Column(column) = &expr else { return Err(Error::invalid("UNPIVOT takes names of columns")) };
        let field = input.schema().field_from_column(column)?;
        let spelled = door::spelling(field).unwrap_or(field.name()).to_owned();
        names.push(lit(alias.map_or(spelled, |alias| alias.value)));
        types.push(expr.get_type(input.schema())?);
        values.push(expr);
    }
    let Some(common) = common_type(&types) else {
        return Err(Error::invalid("the columns of an UNPIVOT have types that have none in common")
            .with_hint("cast them in a sub-query"));
    };
    let kept = rest(&input, values.iter());
    let values: Vec<Expr> = values.into_iter().map(|value| cast(value, common.clone())).collect();
    let lists = [make_array(names).alias(&name), make_array(values).alias(&value.value)];
    let plan = LogicalPlanBuilder::from(input).project(kept.into_iter().chain(lists))?;
    let unnested = [&name, &value.value].map(Column::new_unqualified).to_vec();
    let plan = plan.unnest_columns_with_options(unnested, UnnestOptions::default())?;
    if keeps_nulls {
        return Ok(plan.build()?);
    }
    Ok(plan.filter(Expr::Column(Column::new_unqualified(&value.value)).is_not_null())?.build()?)
}

fn common_type(types: &[DataType]) -> Option<DataType> {
    match types {
        [one, rest @ ..] if rest.iter().all(|t| t == one) => Some(one.clone()),
        types => type_union_resolution(types),
    }
}
