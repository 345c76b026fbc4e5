//! The values of `PIVOT … IN (SELECT …)`, read before the query is planned.
//!
//! The columns of a query are known when it is planned, so a sub-query that names columns runs during planning, over
//! the same versions of the tables. A prepared statement whose columns are others when it runs is rejected by the
//! protocol.

use super::logical::refined;
use super::{Engine, Planned};
use crate::binder::{self, COLUMNS_MAX, ValuesQuery};
use crate::names::Words;
use crate::{CancelToken, Catalog, Error, Result};
use datafusion::common::ScalarValue;
use datafusion::execution::context::SessionState;
use futures::StreamExt;
use std::collections::HashSet;
use std::sync::Arc;

/// The maximum number of sub-queries of PIVOTs in a statement: after each, the statement is bound again.
const QUERIES_MAX: usize = 100;

impl Engine {
    /// Returns the distinct values of a sub-query in the order in which they occur first; `read` is the number of
    /// sub-queries before.
    ///
    /// # Errors
    /// The sub-query fails, is cancelled, or returns no value or more than [`COLUMNS_MAX`].
    pub(super) async fn pivot_values(
        &self,
        state: &SessionState,
        catalog: &Arc<dyn Catalog>,
        words: &Arc<Words>,
        query: &ValuesQuery,
        read: usize,
    ) -> Result<Vec<ScalarValue>> {
        let place = query.span.start as usize;
        if read >= QUERIES_MAX {
            let message = format!("a statement can read the values of at most {QUERIES_MAX} PIVOTs");
            return Err(Error::invalid(message).at(place));
        }
        let cancel = state.config().get_extension::<CancelToken>().map(|token| token.as_ref().clone());
        let cancel = cancel.unwrap_or_default();
        let planned = self.planned_values(state, catalog, query).await?;
        let mut rows = self.start(planned, words, cancel)?.stream;
        let (mut values, mut known, mut count) = (Vec::new(), HashSet::new(), 0);
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            count += batch.num_rows();
            for row in 0..batch.num_rows() {
                let value = plain(ScalarValue::try_from_array(batch.column(0), row)?);
                if known.insert(value.clone()) {
                    values.push(value);
                }
            }
        }
        if count > COLUMNS_MAX {
            return Err(binder::too_many(query.span));
        }
        if values.is_empty() {
            return Err(Error::invalid("the query for the values of a PIVOT gives none").at(place));
        }
        Ok(values)
    }

    async fn planned_values(
        &self,
        state: &SessionState,
        catalog: &Arc<dyn Catalog>,
        query: &ValuesQuery,
    ) -> Result<Planned> {
        let now = state.execution_props().query_execution_start_time.unwrap_or_default();
        let (logical, _) = refined(query.plan.clone(), catalog, now, None)?;
        let logical_schema = Arc::new(logical.schema().as_arrow().clone());
        let stock = self.physical(&state.optimize(&logical)?, state).await?;
        let physical = self.finished(stock, state.config_options())?;
        Ok(Planned { config: state.config().clone(), logical_schema, is_about_system: false, physical })
    }
}

/// Returns a string of a dictionary as a string.
fn plain(value: ScalarValue) -> ScalarValue {
    match value {
        ScalarValue::Dictionary(_, value) => *value,
        value => value,
    }
}
