//! PIVOT whose values are asked for: `FOR symbol IN (SELECT DISTINCT symbol FROM trades)`.
//!
//! The names of the columns of a query must be known when it is planned, so that what is asked for is asked before, of
//! the tables as they are then.

use super::Engine;
use crate::dialect;
use crate::statement::Query;
use crate::{CancelToken, Catalog, Error, Result};
use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::catalog::TableProvider;
use datafusion::execution::context::SessionState;
use datafusion::sql::sqlparser::ast::{self, Expr, ExprWithAlias, PivotValueSource, TableFactor, Value, VisitorMut};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Values that one of them may give.
const VALUES_MAX: usize = 5_000;

impl Engine {
    pub(super) async fn pivots(
        self: &Arc<Self>,
        state: &SessionState,
        catalog: &Arc<dyn Catalog>,
        query: &mut Query,
        own: &[(&str, Arc<dyn TableProvider>)],
    ) -> Result<()> {
        let mut finder = Finder { queries: Vec::new(), answers: None };
        let _ = dialect::visit_mut(query.ast.as_mut(), &mut finder);
        if finder.queries.is_empty() {
            return Ok(());
        }
        let mut answers = Vec::with_capacity(finder.queries.len());
        for mut asked in finder.queries {
            if asked.with.is_none() {
                asked.with.clone_from(&query.ast.with);
            }
            let asked = Query { ast: asked, tail: None, words: query.words.clone() };
            answers.push(self.values(state, catalog, &asked, own).await?);
        }
        answers.reverse();
        let mut finder = Finder { queries: Vec::new(), answers: Some(answers) };
        let _ = dialect::visit_mut(query.ast.as_mut(), &mut finder);
        Ok(())
    }

    /// Boxed, as planning asks for it and it plans.
    fn values<'a>(
        self: &'a Arc<Self>,
        state: &'a SessionState,
        catalog: &'a Arc<dyn Catalog>,
        query: &'a Query,
        own: &'a [(&'a str, Arc<dyn TableProvider>)],
    ) -> BoxFuture<'a, Result<Vec<Expr>>> {
        async move {
            let cancel =
                state.config().get_extension::<CancelToken>().map(|token| token.as_ref().clone()).unwrap_or_default();
            let planned = self.plan(catalog, query, own, "", &cancel).await?;
            let mut stream = self.start(planned, &query.words, cancel.clone())?.stream;
            let mut values = Vec::new();
            while let Some(batch) = stream.next().await {
                add(&batch?, &mut values)?;
                if values.len() > VALUES_MAX {
                    return Err(Error::invalid(format!("PIVOT makes more than {VALUES_MAX} columns")));
                }
            }
            if values.is_empty() {
                return Err(Error::invalid("the query for the values of a PIVOT gives none"));
            }
            Ok(values)
        }
        .boxed()
    }
}

/// Values as they would be written.
fn add(batch: &RecordBatch, values: &mut Vec<Expr>) -> Result<()> {
    let [column] = batch.columns() else {
        return Err(Error::invalid("the query for the values of a PIVOT gives one column"));
    };
    let options = FormatOptions::default();
    let texts = ArrayFormatter::try_new(column.as_ref(), &options).map_err(|e| Error::internal(e.to_string()))?;
    values.extend((0..column.len()).map(|row| {
        let text = texts.value(row).to_string();
        let value = match column.data_type() {
            _ if column.is_null(row) => Value::Null,
            DataType::Boolean => Value::Boolean(text == "true"),
            data_type if data_type.is_numeric() => Value::Number(text, false),
            _ => Value::SingleQuotedString(text),
        };
        Expr::Value(value.into())
    }));
    Ok(())
}

/// Finds the queries, and once there are answers, puts these into their places; the first answer is the last.
struct Finder {
    #[expect(clippy::vec_box, reason = "as trees of queries are held everywhere")]
    queries: Vec<Box<ast::Query>>,
    answers: Option<Vec<Vec<Expr>>>,
}

impl VisitorMut for Finder {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let TableFactor::Pivot { value_source: PivotValueSource::List(list), .. } = factor else {
            return ControlFlow::Continue(());
        };
        let items = std::mem::take(list);
        for item in items {
            match (&item.expr, &mut self.answers) {
                (Expr::Subquery(_), Some(answers)) => {
                    let values = answers.pop().unwrap_or_default();
                    list.extend(values.into_iter().map(|expr| ExprWithAlias { expr, alias: None }));
                }
                (Expr::Subquery(query), None) => {
                    self.queries.push(query.clone());
                    list.push(item);
                }
                _ => list.push(item),
            }
        }
        ControlFlow::Continue(())
    }
}
