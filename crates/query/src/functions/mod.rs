//! Functions of our own: about the database's tables and statements, and few scalars.

mod partitions;
mod storage;
mod system;
mod version;

pub(crate) use partitions::partitions;

use crate::Catalog;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::ScalarUDF;
use datafusion::sql::sqlparser::ast::{self, Visit, Visitor};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Scalars, which are the same for every query.
pub(crate) fn scalars() -> Vec<Arc<ScalarUDF>> {
    vec![Arc::new(ScalarUDF::new_from_impl(version::Version::new()))]
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
