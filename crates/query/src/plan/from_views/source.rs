//! What an aggregation reads, when it is one table and nothing is done to its rows but choosing among them.

use crate::scan::table::NativeTable;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, LogicalPlan};
use std::collections::HashMap;
use std::sync::Arc;
use tidalite_storage::TableSnapshot;

pub(super) struct Source {
    pub table: Arc<TableSnapshot>,
    /// What rows have to satisfy, over the table's own columns.
    pub conditions: Vec<Expr>,
    /// The columns of the plan over the table's own.
    columns: HashMap<Column, Expr>,
}

impl Source {
    pub fn of(plan: &LogicalPlan) -> Option<Source> {
        match plan {
            LogicalPlan::TableScan(scan) => {
                let provider = source_as_provider(&scan.source).ok()?;
                let table = provider.downcast_ref::<NativeTable>().filter(|table| table.is_plain())?;
                if scan.fetch.is_some() {
                    return None;
                }
                let columns = columns(&scan.projected_schema);
                let columns = columns.map(|column| (column.clone(), own(&column.name))).collect();
                let mut source = Source { table: table.snapshot.clone(), conditions: Vec::new(), columns };
                for filter in &scan.filters {
                    // Filters may be about columns that are not read.
                    let filter = filter.clone().transform_up(|e| {
                        Ok(match e {
                            Expr::Column(column) => Transformed::yes(own(&column.name)),
                            other => Transformed::no(other),
                        })
                    });
                    source.add(&simple(filter.ok()?.data)?);
                }
                Some(source)
            }
            LogicalPlan::Filter(filter) => {
                let mut source = Source::of(&filter.input)?;
                let condition = source.over_table(&filter.predicate)?;
                source.add(&condition);
                Some(source)
            }
            LogicalPlan::Projection(projection) => {
                let mut source = Source::of(&projection.input)?;
                let computed = projection.expr.iter().map(|expr| source.over_table(expr));
                let computed = computed.collect::<Option<Vec<_>>>()?;
                source.columns = columns(&projection.schema).zip(computed).collect();
                Some(source)
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let mut source = Source::of(&alias.input)?;
                let inner = columns(alias.input.schema()).map(|column| source.columns.get(&column).cloned());
                let inner = inner.collect::<Option<Vec<_>>>()?;
                source.columns = columns(&alias.schema).zip(inner).collect();
                Some(source)
            }
            _ => None,
        }
    }

    fn add(&mut self, condition: &Expr) {
        for part in split_conjunction(condition) {
            if !self.conditions.contains(part) {
                self.conditions.push(part.clone());
            }
        }
    }

    /// An expression over the plan's columns, over the table's own; `None` when it says something that depends on more
    /// than the row.
    pub fn over_table(&self, expr: &Expr) -> Option<Expr> {
        let mut is_known = true;
        let done = expr.clone().transform_down(|e| {
            let Expr::Column(column) = &e else { return Ok(Transformed::no(e)) };
            let Some(own) = self.columns.get(column) else {
                is_known = false;
                return Ok(Transformed::no(e));
            };
            let jump = datafusion::common::tree_node::TreeNodeRecursion::Jump;
            Ok(Transformed::new(own.clone(), true, jump))
        });
        let done = done.ok()?.data;
        if is_known { simple(done) } else { None }
    }
}

fn columns(schema: &DFSchema) -> impl Iterator<Item = Column> + '_ {
    schema.iter().map(Column::from)
}

fn own(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

/// Without names and notes, so that two that say the same are the same.
fn simple(expr: Expr) -> Option<Expr> {
    let is_more = |e: &Expr| {
        matches!(
            e,
            Expr::Placeholder(_)
                | Expr::OuterReferenceColumn(..)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
                | Expr::ScalarSubquery(_)
                | Expr::GroupingSet(_)
                | Expr::WindowFunction(_)
                | Expr::Unnest(_)
        )
    };
    if expr.is_volatile() || expr.exists(|e| Ok(is_more(e))).unwrap_or(true) {
        return None;
    }
    let done = expr.transform_up(|e| {
        Ok(match e {
            Expr::Alias(alias) => Transformed::yes(*alias.expr),
            Expr::Literal(value, Some(_)) => Transformed::yes(Expr::Literal(value, None)),
            other => Transformed::no(other),
        })
    });
    done.ok().map(|done| done.data)
}
