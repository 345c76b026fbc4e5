//! PIVOT whose values are asked for: `FOR symbol IN (SELECT DISTINCT symbol FROM trades)`.
//!
//! The names of the columns of a query must be known when it is planned, so that what is asked for is asked before, of
//! the tables as they are then.

use super::Engine;
use crate::dialect;
use crate::names::Words;
use crate::statement::Query;
use crate::{CancelToken, Catalog, Error, Result};
use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::compute::{SortOptions, concat_batches, sort_to_indices, take_record_batch};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::catalog::TableProvider;
use datafusion::common::Result as DFResult;
use datafusion::execution::context::SessionState;
use datafusion::sql::sqlparser::ast::{
    self, Cte, Expr, ExprWithAlias, PivotValueSource, TableFactor, Value, VisitorMut, With,
};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Values that the sub-query of one PIVOT may return.
const VALUES_MAX: usize = 5_000;

/// What sub-queries of PIVOTs are planned with.
#[derive(Clone, Copy)]
struct Scope<'a> {
    state: &'a SessionState,
    catalog: &'a Arc<dyn Catalog>,
    words: &'a Arc<Words>,
    own: &'a [(&'a str, Arc<dyn TableProvider>)],
}

impl Engine {
    /// Replaces each `IN (SELECT …)` of a PIVOT by the values that the sub-query returns now.
    ///
    /// # Errors
    /// When a sub-query fails, or returns no value or more than `VALUES_MAX`.
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
        let scope = Scope { state, catalog, words: &query.words, own };
        self.resolve_pivots(scope, query.ast.as_mut(), None).await
    }

    /// Resolves the PIVOTs of a query: those of each CTE with the CTEs before it in scope, then those of the body.
    ///
    /// A sub-query never sees the CTE that contains it: it would be planned again within its own planning, for ever.
    /// Boxed, because it calls itself.
    fn resolve_pivots<'a>(
        self: &'a Arc<Self>,
        scope: Scope<'a>,
        ast: &'a mut ast::Query,
        outer: Option<With>,
    ) -> BoxFuture<'a, Result<()>> {
        async move {
            let mut in_scope = outer;
            let Some(mut with) = ast.with.take() else {
                return self.resolve_body(scope, ast, in_scope.as_ref()).await;
            };
            let mut resolved = Vec::with_capacity(with.cte_tables.len());
            for mut cte in std::mem::take(&mut with.cte_tables) {
                self.resolve_pivots(scope, &mut cte.query, in_scope.clone()).await?;
                in_scope = joined(in_scope, With { cte_tables: vec![cte.clone()], ..with.clone() });
                resolved.push(cte);
            }
            self.resolve_body(scope, ast, in_scope.as_ref()).await?;
            ast.with = Some(With { cte_tables: resolved, ..with });
            Ok(())
        }
        .boxed()
    }

    /// Resolves the PIVOTs of a query without its WITH.
    async fn resolve_body(
        self: &Arc<Self>,
        scope: Scope<'_>,
        ast: &mut ast::Query,
        in_scope: Option<&With>,
    ) -> Result<()> {
        let mut finder = Finder { queries: Vec::new(), answers: None };
        let _ = dialect::visit_mut(ast, &mut finder);
        let mut answers = Vec::with_capacity(finder.queries.len());
        for mut query in finder.queries {
            query.with = match query.with.take() {
                Some(own) => joined(in_scope.cloned(), own),
                None => in_scope.cloned(),
            };
            let query = Query { ast: query, tail: None, words: scope.words.clone(), tree: None };
            answers.push(self.values(scope.state, scope.catalog, &query, scope.own).await?);
        }
        answers.reverse();
        let mut finder = Finder { queries: Vec::new(), answers: Some(answers) };
        let _ = dialect::visit_mut(ast, &mut finder);
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
            let (mut batches, mut rows) = (Vec::new(), 0);
            while let Some(batch) = stream.next().await {
                let batch = batch?;
                rows += batch.num_rows();
                if rows > VALUES_MAX {
                    return Err(Error::invalid(format!("PIVOT makes more than {VALUES_MAX} columns")));
                }
                batches.push(batch);
            }
            let is_ordered = query.ast.order_by.is_some();
            let mut values = Vec::with_capacity(rows);
            if let Some(batch) = in_order(batches, is_ordered)? {
                add(&batch, &mut values)?;
            }
            if values.is_empty() {
                return Err(Error::invalid("the query for the values of a PIVOT gives none"));
            }
            Ok(values)
        }
        .boxed()
    }
}

/// One batch with the rows of all. The columns of a PIVOT have one order: that of the sub-query's ORDER BY, else
/// ascending by value with NULL last.
fn in_order(batches: Vec<RecordBatch>, is_ordered: bool) -> DFResult<Option<RecordBatch>> {
    let Some(first) = batches.first() else { return Ok(None) };
    let all = concat_batches(&first.schema(), &batches)?;
    let [column] = all.columns() else { return Ok(Some(all)) };
    if is_ordered {
        return Ok(Some(all));
    }
    let order = sort_to_indices(column, Some(SortOptions { descending: false, nulls_first: false }), None)?;
    Ok(Some(take_record_batch(&all, &order)?))
}

/// The CTEs of both; a name of `inner` hides the same name of `outer`.
fn joined(outer: Option<With>, inner: With) -> Option<With> {
    let Some(outer) = outer else { return Some(inner) };
    let is_hidden = |cte: &Cte| inner.cte_tables.iter().any(|own| own.alias.name.value == cte.alias.name.value);
    let visible = outer.cte_tables.into_iter().filter(|cte| !is_hidden(cte));
    let cte_tables = visible.chain(inner.cte_tables.iter().cloned()).collect();
    Some(With { cte_tables, recursive: outer.recursive || inner.recursive, ..inner })
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
