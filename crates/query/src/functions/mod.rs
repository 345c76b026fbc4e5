//! Functions of our own: about the database's tables and statements, and few scalars.

mod partitions;
mod system;
mod version;

pub(crate) use partitions::partitions;

use crate::Catalog;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::ScalarUDF;
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
