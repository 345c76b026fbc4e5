//! What INSERT … ON CONFLICT makes of the rows it brings and of those that are there.

use super::Engine;
use crate::dialect::{self, EXCLUDED};
use crate::scan::read::ADDRESS;
use crate::scan::table::NativeTable;
use crate::statement::{OnConflict, Query};
use crate::{CancelToken, Catalog, Error, QueryResult, Result};
use datafusion::catalog::TableProvider;
use datafusion::sql::sqlparser::ast;
use futures::FutureExt;
use futures::future::BoxFuture;
use std::sync::Arc;
use tidalite_storage::TableSnapshot;
use tidalite_types::schema::{fold_name, same_name};

/// What the rows that are there are called in the FROM of our queries.
const THERE: &str = "__there";

/// The rows that meet.
#[derive(Clone, Debug)]
pub struct Conflicting {
    pub table: Arc<TableSnapshot>,
    /// What expressions call the table.
    pub alias: String,
    /// A table of the same schema with the rows that are brought, whose times are within this.
    pub brought: Arc<TableSnapshot>,
    pub times: Option<(i64, i64)>,
}

/// Tables by the names that a query of ours calls them.
type Own = Vec<(String, Arc<dyn TableProvider>)>;

impl Conflicting {
    fn tables(&self, is_fast: bool) -> Own {
        let table = NativeTable::addressed(self.table.clone()).fast(is_fast);
        let table = match self.times {
            Some((lo, hi)) => table.bounded(lo, hi),
            None => table,
        };
        let brought = NativeTable::addressed(self.brought.clone()).fast(is_fast);
        // Sub-queries see all of it.
        let whole = NativeTable::new(self.table.clone()).fast(is_fast);
        let name = self.table.schema.name.clone();
        vec![(EXCLUDED.to_owned(), Arc::new(brought)), (THERE.to_owned(), Arc::new(table)), (name, Arc::new(whole))]
    }

    /// The query of what becomes of the rows that are there, and its tables.
    pub(super) fn becoming(&self, conflict: &OnConflict, is_fast: bool) -> Result<(Query, Own)> {
        Ok((becoming(self, conflict)?, self.tables(is_fast)))
    }
}

impl Engine {
    /// The rows whose keys are not there, in their order, or (`is_there`) what becomes of those that are: first the
    /// address of the row that is there, if any, then how many rows have the same keys, then all columns of the table.
    pub fn conflicting<'a>(
        self: &'a Arc<Self>,
        catalog: Arc<dyn Catalog>,
        rows: &'a Conflicting,
        conflict: &'a OnConflict,
        is_there: bool,
        cancel: CancelToken,
    ) -> BoxFuture<'a, Result<QueryResult>> {
        async move {
            let query = if is_there { becoming(rows, conflict)? } else { new_rows(rows, conflict)? };
            let own = rows.tables(self.fast_operators);
            let own: Vec<_> = own.iter().map(|(name, table)| (name.as_str(), table.clone())).collect();
            let planned = self.plan(&catalog, &query, &own, "", &cancel).await?;
            self.start(planned, &query.words, cancel)
        }
        .boxed()
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", fold_name(name).replace('"', "\"\""))
}

fn keys(rows: &Conflicting) -> Vec<String> {
    let schema = &rows.table.schema;
    schema.dedup.iter().filter_map(|id| schema.column_by_id(*id)).map(|c| quoted(&c.name)).collect()
}

/// Keys are equal as GROUP BY has it.
fn on(rows: &Conflicting) -> String {
    let alias = quoted(&rows.alias);
    let equal = |key: String| format!("{alias}.{key} IS NOT DISTINCT FROM {EXCLUDED}.{key}");
    keys(rows).into_iter().map(equal).collect::<Vec<_>>().join(" AND ")
}

fn of_excluded(names: Vec<String>) -> String {
    names.into_iter().map(|name| format!("{EXCLUDED}.{name}")).collect::<Vec<_>>().join(", ")
}

fn new_rows(rows: &Conflicting, conflict: &OnConflict) -> Result<Query> {
    let (alias, on, keys) = (quoted(&rows.alias), on(rows), of_excluded(keys(rows)));
    let columns = of_excluded(rows.table.schema.columns.iter().map(|c| quoted(&c.name)).collect());
    // Of new rows with the same keys the first one is there when the others come.
    let first = match &conflict.update {
        None => format!("QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY {EXCLUDED}.\"{ADDRESS}\") = 1"),
        Some(_) => String::new(),
    };
    parsed(&format!(
        "SELECT {alias}.\"{ADDRESS}\", count(*) OVER (PARTITION BY {keys}) AS \"{ADDRESS}s\", {columns} \
         FROM {EXCLUDED} LEFT JOIN {THERE} AS {alias} ON {on} WHERE {alias}.\"{ADDRESS}\" IS NULL {first} ORDER BY {EXCLUDED}.\"{ADDRESS}\""
    ))
}

fn becoming(rows: &Conflicting, conflict: &OnConflict) -> Result<Query> {
    let Some(update) = &conflict.update else { return Err(Error::internal("rows that stay become nothing")) };
    let (alias, on) = (quoted(&rows.alias), on(rows));
    let mut query = parsed(&format!(
        "SELECT {alias}.\"{ADDRESS}\", count(*) OVER (PARTITION BY {alias}.\"{ADDRESS}\") AS \"{ADDRESS}s\" \
         FROM {EXCLUDED} JOIN {THERE} AS {alias} ON {on}"
    ))?;
    query.words = update.query.words.clone();
    let ast::SetExpr::Select(given) = update.query.ast.body.as_ref() else {
        return Err(Error::internal("expressions that are no query"));
    };
    let ast::SetExpr::Select(select) = query.ast.body.as_mut() else {
        return Err(Error::internal("a query of our own is no query"));
    };
    select.selection.clone_from(&given.selection);
    for (number, column) in rows.table.schema.columns.iter().enumerate() {
        let at = update.columns.iter().position(|name| same_name(&name.text, &column.name));
        let expr = match at.and_then(|at| given.projection.get(at)) {
            Some(ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. }) => expr.clone(),
            _ => ast::Expr::CompoundIdentifier(
                [&rows.alias, &column.name].map(|name| ast::Ident::with_quote('"', fold_name(name))).to_vec(),
            ),
        };
        let alias = ast::Ident::with_quote('"', format!("{ADDRESS}{number}"));
        select.projection.push(ast::SelectItem::ExprWithAlias { expr, alias });
    }
    Ok(query)
}

fn parsed(sql: &str) -> Result<Query> {
    dialect::parse_template(sql)
}
