//! Functions of our own, one per file: about the database's tables and statements, about time, and what clients of
//! PostgreSQL ask.

mod dateadd;
mod interval_words;
mod now;
mod partitions;
pub(crate) mod pick;
mod postgres;
mod storage;
mod system;
mod times;
pub(crate) mod timestamp_floor;
mod version;
mod views;

pub(crate) use partitions::partitions;
pub(crate) use postgres::OWNER;

use crate::Catalog;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF};
use datafusion::sql::sqlparser::ast::{self, Visit, Visitor};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Scalars, which are the same for every query.
pub(crate) fn scalars() -> Vec<Arc<ScalarUDF>> {
    let intervals = interval_words::IntervalWord::all().map(ScalarUDF::new_from_impl);
    let others = [
        ScalarUDF::new_from_impl(version::Version::new()),
        ScalarUDF::new_from_impl(now::Now::new()),
        ScalarUDF::new_from_impl(dateadd::DateAdd::new()),
        ScalarUDF::new_from_impl(timestamp_floor::TimestampFloor::new(false)),
        ScalarUDF::new_from_impl(timestamp_floor::TimestampFloor::new(true)),
    ];
    intervals.into_iter().chain(others).chain(postgres::functions()).map(Arc::new).collect()
}

/// Aggregates, which are the same for every query.
pub(crate) fn aggregates() -> Vec<Arc<AggregateUDF>> {
    pick::Pick::all().map(AggregateUDF::new_from_impl).map(Arc::new).to_vec()
}

/// Table functions, which look at one query's catalog.
pub(crate) fn register_tables(state: &mut SessionState, catalog: &Arc<dyn Catalog>) {
    for (name, make) in system::FUNCTIONS {
        state.register_udtf(name, Arc::new(system::SystemTable { name, catalog: catalog.clone(), make: *make }));
    }
}

/// Whether the only table functions of a query are ours.
pub(crate) fn is_about_system(query: &ast::Query) -> bool {
    let mut visitor = FindFunctions { ours: 0, others: 0 };
    let _ = Visit::visit(query, &mut visitor);
    visitor.ours > 0 && visitor.others == 0
}

struct FindFunctions {
    ours: usize,
    others: usize,
}

impl Visitor for FindFunctions {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &ast::TableFactor) -> ControlFlow<()> {
        match factor {
            ast::TableFactor::Table { name, args: Some(_), .. } | ast::TableFactor::Function { name, .. } => {
                let name = name.to_string();
                let is_ours = system::FUNCTIONS.iter().any(|(ours, _)| *ours == name);
                *(if is_ours { &mut self.ours } else { &mut self.others }) += 1;
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
