//! Tables of a FROM clause that are ours to plan: the clauses that [`crate::dialect`] made relations of.

use super::{latest_on, sample_by, time_join, using, window_join};
use crate::dialect::{Relation, nest, relation};
use crate::{Error, Result, door};
use chrono::{DateTime, Utc};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, ExprSchema, Result as DFResult};
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::{Query, TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins};
use std::collections::{HashMap, HashSet};

/// Made for one statement, which began at `now`.
#[derive(Debug)]
pub(crate) struct TimeRelations {
    pub now: DateTime<Utc>,
}

impl RelationPlanner for TimeRelations {
    fn plan_relation(
        &self,
        factor: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> DFResult<RelationPlanning> {
        let (factor, time) = without_time(factor);
        if let Some(time) = time {
            let plan = context.plan(factor)?;
            return Ok(planned(with_time(plan, &time)?, None));
        }
        Ok(match relation(factor) {
            Ok(Relation::SampleBy(select, arguments)) => {
                planned(sample_by::plan(*select, arguments, self.now, context)?, None)
            }
            Ok(Relation::LatestOn(rows, arguments)) => planned(latest_on::plan(*rows, arguments, context)?, None),
            Ok(Relation::TimeJoin(joins)) => planned(time_join::plan(*joins, context)?, None),
            Ok(Relation::MergedJoin(joins)) => planned(using::plan(*joins, context)?, None),
            Ok(Relation::WindowJoin(select)) => planned(window_join::plan(*select, context)?, None),
            // As in PostgreSQL: `generate_series(1, 3) AS i` has a column `i`.
            Err(TableFactor::Table { name, alias: Some(mut alias), args: Some(args), .. })
                if alias.columns.is_empty() && ["generate_series", "range"].contains(&name.to_string().as_str()) =>
            {
                let column = TableAliasColumnDef { name: alias.name.clone(), data_type: None };
                alias.columns.push(column);
                let factor = TableFactor::Function {
                    lateral: false,
                    name,
                    args: args.args,
                    with_ordinality: false,
                    alias: None,
                };
                planned(context.plan(factor)?, Some(alias))
            }
            Err(TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample })
                if alias.columns.is_empty() =>
            {
                let factor = TableFactor::Derived { lateral: false, subquery, alias: None, sample };
                planned(with_distinct_names(context.plan(factor)?)?, Some(alias))
            }
            Err(TableFactor::NestedJoin { table_with_joins, alias: Some(alias) }) if alias.columns.is_empty() => {
                let joins = context.plan(TableFactor::NestedJoin { table_with_joins, alias: None })?;
                planned(with_distinct_names(joins)?, Some(alias))
            }
            Err(other) => RelationPlanning::Original(Box::new(other)),
        })
    }
}

fn planned(plan: LogicalPlan, alias: Option<TableAlias>) -> RelationPlanning {
    RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias)))
}

pub(super) fn derived(query: Query) -> TableFactor {
    TableFactor::Derived { lateral: false, subquery: Box::new(query), alias: None, sample: None }
}

/// What stands left of a join of ours.
pub(super) fn left_of(mut joins: TableWithJoins, context: &mut dyn RelationPlannerContext) -> DFResult<LogicalPlan> {
    nest(&mut joins);
    if joins.joins.is_empty() {
        return context.plan(joins.relation);
    }
    context.plan(TableFactor::NestedJoin { table_with_joins: Box::new(joins), alias: None })
}

/// `t TIMESTAMP(ts)`, which the stock grammar takes for an alias: the table and the column that is to be its time.
fn without_time(mut factor: TableFactor) -> (TableFactor, Option<String>) {
    let alias = match &mut factor {
        TableFactor::Table { alias, .. } | TableFactor::Derived { alias, .. } | TableFactor::Function { alias, .. } => {
            alias
        }
        _ => return (factor, None),
    };
    if let Some(named) = alias
        && let [mark, time] = &named.columns[..]
        && mark.name.value == crate::dialect::TIMED
    {
        let time = time.name.value.clone();
        named.columns.clear();
        return (factor, Some(time));
    }
    let names_time = alias.as_ref().is_some_and(|a| {
        !a.explicit && a.name.quote_style.is_none() && a.name.value == "timestamp" && a.columns.len() == 1
    });
    let time = if names_time { alias.take() } else { None };
    (factor, time.and_then(|a| a.columns.first().map(|c| c.name.value.clone())))
}

/// Returns the plan with the designated timestamp that `TIMESTAMP(name)` states.
pub(crate) fn with_time(plan: LogicalPlan, name: &str) -> Result<LogicalPlan> {
    let column = time_named(&plan, name)?;
    let columns = plan.schema().columns().into_iter().map(|c| {
        if c != column {
            return Expr::Column(c);
        }
        let (relation, name) = (c.relation.clone(), c.name.clone());
        Expr::Column(c).alias_qualified_with_metadata(relation, name, Some(door::designated_metadata().into()))
    });
    let columns: Vec<Expr> = columns.collect();
    Ok(LogicalPlanBuilder::from(plan).project(columns)?.build()?)
}

/// A column that has to be a timestamp.
pub(super) fn time_named(plan: &LogicalPlan, name: &str) -> Result<Column> {
    let found = plan.schema().columns_with_unqualified_name(name);
    let Some(column) = found.first() else {
        let mut error = Error::new(tidalite_types::ErrorKind::NotFound, format!("column \"{name}\" does not exist"));
        error.subject = Some(name.to_owned());
        return Err(error);
    };
    let field = plan.schema().field_from_column(column)?;
    if !matches!(field.data_type(), DataType::Timestamp(..)) {
        let mut error = Error::invalid(format!("column \"{name}\" is not a timestamp"));
        error.subject = Some(name.to_owned());
        return Err(error);
    }
    Ok(column.clone())
}

/// The column that rows of a plan are in the time of: the one named by `TIMESTAMP(…)`, the one a sub-query is ordered
/// by, the designated timestamp of its first table, or the only timestamp there is.
pub(crate) fn time_of(plan: &LogicalPlan, clause: &str) -> Result<Column> {
    let schema = plan.schema();
    let find = |is: &dyn Fn(&datafusion::arrow::datatypes::FieldRef) -> bool| {
        schema.iter().find(|(_, field)| is(field)).map(Column::from)
    };
    if let Some(column) = find(&|field| door::is_named_designated(field)) {
        return Ok(column);
    }
    if let Some(column) = ordered_by(plan) {
        return Ok(column);
    }
    if let Some(column) = find(&|field| door::is_designated(field)) {
        return Ok(column);
    }
    let is_time = |field: &datafusion::arrow::datatypes::FieldRef| matches!(field.data_type(), DataType::Timestamp(..));
    if schema.fields().iter().filter(|f| is_time(f)).count() == 1
        && let Some(column) = find(&is_time)
    {
        return Ok(column);
    }
    Err(Error::invalid(format!("{clause} needs a designated timestamp, and its rows have none"))
        .with_hint("name the column: FROM (…) TIMESTAMP(column)"))
}

/// The timestamp by which a sub-query orders its rows.
fn ordered_by(plan: &LogicalPlan) -> Option<Column> {
    match plan {
        LogicalPlan::Sort(sort) => {
            let first = sort.expr.first().filter(|e| e.asc)?;
            let Expr::Column(column) = &first.expr else { return None };
            let field = plan.schema().field_from_column(column).ok()?;
            matches!(field.data_type(), DataType::Timestamp(..)).then(|| column.clone())
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let inner = ordered_by(&alias.input)?;
            let index = alias.input.schema().index_of_column(&inner).ok()?;
            Some(Column::from(plan.schema().qualified_field(index)))
        }
        LogicalPlan::Projection(projection) => {
            let inner = ordered_by(&projection.input)?;
            let index = projection.expr.iter().position(|e| matches!(e, Expr::Column(c) if *c == inner))?;
            Some(Column::from(plan.schema().qualified_field(index)))
        }
        LogicalPlan::Filter(filter) => ordered_by(&filter.input),
        LogicalPlan::Limit(limit) => ordered_by(&limit.input),
        _ => None,
    }
}

/// A sub-query, or joins in parentheses, with a name have each column once: the second `ts` of a join is `ts1`.
pub(crate) fn with_distinct_names(plan: LogicalPlan) -> Result<LogicalPlan> {
    let columns = plan.schema().columns();
    let distinct: HashSet<&str> = columns.iter().map(|c| c.name.as_str()).collect();
    if distinct.len() == columns.len() {
        return Ok(plan);
    }
    let names = distinct_names(columns.iter().map(|c| c.name.as_str()));
    let named = columns.iter().cloned().zip(names).map(|(column, name)| {
        if column.name == name { Expr::Column(column) } else { Expr::Column(column).alias(name) }
    });
    let named: Vec<Expr> = named.collect();
    Ok(LogicalPlanBuilder::from(plan).project(named)?.build()?)
}

/// Names with a number behind those that came before.
pub(crate) fn distinct_names<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let mut taken: HashSet<String> = names.clone().map(str::to_owned).collect();
    let mut seen: HashMap<&str, usize> = HashMap::new();
    names
        .map(|name| {
            let count = seen.entry(name).or_insert(0);
            *count += 1;
            if *count == 1 {
                return name.to_owned();
            }
            let mut number = *count - 1;
            while !taken.insert(format!("{name}{number}")) {
                number += 1;
            }
            format!("{name}{number}")
        })
        .collect()
}
