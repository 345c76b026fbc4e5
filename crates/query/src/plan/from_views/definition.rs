//! What the query of a materialized view is, seen as one aggregation: how it cuts time, its keys, its aggregates, and the
//! columns that have them.

use super::buckets_of;
use super::source::Source;
use crate::calendar::Buckets;
use crate::door;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};
use std::collections::HashMap;
use tidalite_storage::TableSnapshot;
use tidalite_types::ColumnType;
use tidalite_types::schema::fold_name;

/// Expressions are over the base's own columns.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(super) buckets: Buckets,
    /// The base's designated timestamp.
    pub(super) time: String,
    /// The view's.
    bucket: String,
    /// Each with the column of the view that has it.
    pub(super) keys: Vec<(Expr, String)>,
    pub(super) aggregates: Vec<(Expr, String)>,
    pub(super) conditions: Vec<Expr>,
    /// Types of the base's columns.
    pub(super) types: HashMap<String, ColumnType>,
}

impl Definition {
    /// Of the optimised query of `view`, over `base`; `None` when there is more to it, or less to be known.
    pub fn of(plan: &LogicalPlan, base: &TableSnapshot, view: &TableSnapshot) -> Option<Definition> {
        let (aggregate, outputs) = grouped(plan)?;
        let source = Source::of(&aggregate.input).filter(|source| source.table.id == base.id)?;
        let columns = &view.schema.columns;
        if outputs.len() != columns.len() {
            return None;
        }
        // The column of the view that has an output of the aggregation as it is.
        let stored = |at: usize| {
            let (qualifier, field) = aggregate.schema.qualified_field(at);
            let wanted = Expr::Column(Column::from((qualifier, field)));
            let found = outputs.iter().position(|output| *output == wanted)?;
            let is_same = door::arrow_type(columns[found].column_type) == *field.data_type();
            is_same.then(|| fold_name(&columns[found].name))
        };
        let (time, _) = base.schema.timestamp()?;
        let (designated, _) = view.schema.timestamp()?;
        let (mut bucket, mut keys, mut aggregates) = (None, Vec::new(), Vec::new());
        for (at, group) in aggregate.group_expr.iter().enumerate() {
            let group = source.over_table(group)?;
            let name = stored(at)?;
            // Of equal numbers one is kept, and it may be −0.
            if matches!(aggregate.schema.field(at).data_type(), DataType::Float32 | DataType::Float64) {
                return None;
            }
            match buckets_of(&group, base) {
                Some(buckets) if name == fold_name(&designated.name) => bucket = Some((buckets, name)),
                _ => keys.push((group, name)),
            }
        }
        for (at, expr) in aggregate.aggr_expr.iter().enumerate() {
            if let (Some(expr), Some(name)) = (source.over_table(expr), stored(aggregate.group_expr.len() + at)) {
                aggregates.push((expr, name));
            }
        }
        let (buckets, bucket) = bucket?;
        let types = base.schema.columns.iter().map(|c| (fold_name(&c.name), c.column_type)).collect();
        let time = fold_name(&time.name);
        Some(Definition { buckets, time, bucket, keys, aggregates, conditions: source.conditions, types })
    }

    pub(super) fn bucket_column(&self) -> Expr {
        column(&self.bucket)
    }

    /// The buckets that an expression over the base makes of its time.
    pub(super) fn bucket_of(&self, expr: &Expr) -> Option<Buckets> {
        super::conditions::buckets(expr, &self.time, self.buckets.unit)
    }
}

/// A column of the view.
pub(super) fn column(name: &str) -> Expr {
    Expr::Column(Column::new(Some(super::VIEW), name))
}

/// The aggregation of a query that does nothing more but to name and order its rows, and what it gives over the columns of
/// that.
fn grouped(plan: &LogicalPlan) -> Option<(&Aggregate, Vec<Expr>)> {
    let mut outputs: Vec<Expr> = plan.schema().iter().map(|field| Expr::Column(Column::from(field))).collect();
    let mut plan = plan;
    loop {
        match plan {
            LogicalPlan::Aggregate(aggregate) => return Some((aggregate, outputs)),
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => plan = &sort.input,
            LogicalPlan::SubqueryAlias(alias) => {
                let (outer, inner) = (alias.schema.iter(), alias.input.schema().iter());
                let below = outer.zip(inner).map(|(o, i)| (Column::from(o), Expr::Column(Column::from(i))));
                outputs = over(outputs, &below.collect())?;
                plan = &alias.input;
            }
            LogicalPlan::Projection(projection) => {
                let outer = projection.schema.iter().map(Column::from);
                let below = outer.zip(projection.expr.iter().cloned().map(unnamed));
                outputs = over(outputs, &below.collect())?;
                plan = &projection.input;
            }
            _ => return None,
        }
    }
}

/// Also without what a name says beside itself.
fn unnamed(mut expr: Expr) -> Expr {
    while let Expr::Alias(alias) = expr {
        expr = *alias.expr;
    }
    expr
}

fn over(exprs: Vec<Expr>, columns: &HashMap<Column, Expr>) -> Option<Vec<Expr>> {
    let mut is_known = true;
    let mut one = |expr: Expr| {
        let done = expr.transform_up(|e| {
            let Expr::Column(column) = &e else { return Ok(Transformed::no(e)) };
            is_known &= columns.contains_key(column);
            Ok(columns.get(column).map_or_else(|| Transformed::no(e.clone()), |below| Transformed::yes(below.clone())))
        });
        done.ok().map(|done| done.data)
    };
    let done = exprs.into_iter().map(&mut one).collect::<Option<Vec<_>>>()?;
    is_known.then_some(done)
}
