//! What a statement asks for and answers, found without running it: types of its parameters, columns of its rows.
//!
//! A parameter has the type that was given for it, else that of a cast around it, of the column it is written to or
//! compared with, or of its place (LIMIT); else none, and then it is text, whose place decides what it means. Where that
//! is a column of a query within, of which more has to be known, it is text as in PostgreSQL.

use super::planners::Length;
use super::written::{self, assigned, fill};
use super::{Conflicting, Engine, OutputColumn, among, distinct, output_column};
use crate::frame::{Frame, WithFrame, renamed};
use crate::parameters::number;
use crate::scan::table::NativeTable;
use crate::statement::{Compound, Insert, Name, Query, Statement, Step};
use crate::{CancelToken, Catalog, Result, dialect, door};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::logical_expr::LogicalPlan;
use futures::FutureExt;
use futures::future::BoxFuture;
use std::sync::Arc;
use tidalite_types::pg_type::{self, PgType};
use tidalite_types::{ColumnType, TableSchema, TimeUnit};

#[derive(Debug)]
pub struct Described {
    /// The types of `$1`, `$2`, …, as far as they are known.
    pub parameters: Vec<Option<PgType>>,
    /// `None` when it returns no rows.
    pub columns: Option<(Vec<OutputColumn>, SchemaRef)>,
    pub statement: Statement,
}

type Types = Vec<Option<ColumnType>>;

/// Returns the column type of a parameter of a PostgreSQL type; `None` where only the value decides.
fn column_of(of: PgType) -> Option<ColumnType> {
    Some(match of {
        pg_type::BOOL => ColumnType::Boolean,
        pg_type::INT2 => ColumnType::Short,
        pg_type::INT4 => ColumnType::Int,
        pg_type::INT8 | pg_type::OID => ColumnType::Long,
        pg_type::FLOAT4 => ColumnType::Float,
        pg_type::FLOAT8 => ColumnType::Double,
        pg_type::NUMERIC => ColumnType::Decimal { precision: 38, scale: 10 },
        pg_type::TIMESTAMP | pg_type::TIMESTAMPTZ => ColumnType::Timestamp(TimeUnit::Micros),
        pg_type::DATE => ColumnType::Date,
        pg_type::TEXT | pg_type::VARCHAR | pg_type::BPCHAR | pg_type::NAME => ColumnType::Varchar,
        pg_type::BYTEA => ColumnType::Binary,
        pg_type::UUID => ColumnType::Uuid,
        pg_type::JSON => ColumnType::Json,
        pg_type::JSONB => ColumnType::Jsonb,
        pg_type::FLOAT8S => ColumnType::DoubleArray { dims: 1 },
        _ => return None,
    })
}

impl Engine {
    /// Describes a statement. `given` are the known parameter types. Runs on the engine's threads.
    pub fn describe<'a>(
        self: &'a Arc<Self>,
        catalog: Arc<dyn Catalog>,
        sql: &'a str,
        given: Vec<Option<PgType>>,
        cancel: &'a CancelToken,
    ) -> BoxFuture<'a, Result<Described>> {
        async move {
            let mut types: Types = given.iter().map(|of| of.and_then(column_of)).collect();
            let parse = |types: &mut Types| dialect::parse_unbound(sql, types, &given);
            let (mut untyped, mut typed) = parse(&mut types)?;
            let casts = written::casts(&untyped, types.len());
            let mut lists = written::lists(&mut untyped);
            if let Some(query) = asked(&untyped)
                && written::types(query, &mut types)
            {
                // Some functions are planned only when the types of their arguments are known.
                typed = parse(&mut types)?.1;
            }
            lists.extend(written::lists(&mut typed));
            lists.sort_unstable();
            lists.dedup();
            let columns = match &typed {
                Statement::Query(query) => {
                    let untyped = asked(&untyped);
                    let mut described = self.describe_query(&catalog, query, untyped, &mut types, cancel).await;
                    let is_more_known = match &described {
                        Ok((is_more_known, _)) => *is_more_known,
                        Err(_) => untyped.is_some_and(|query| written::columns(query, &mut types)),
                    };
                    if is_more_known && let (_, Statement::Query(typed)) = parse(&mut types)? {
                        let again = self.describe_query(&catalog, &typed, untyped, &mut types, cancel).await;
                        described = again.or(described);
                    }
                    Some(described?.1)
                }
                Statement::Explain { query, .. } => {
                    self.describe_query(&catalog, query, asked(&untyped), &mut types, cancel).await?;
                    Some(plan_columns())
                }
                Statement::Compound(compound) => {
                    self.describe_compound(catalog, compound, &untyped, &mut types, cancel).await?
                }
                other => {
                    self.describe_change(&catalog, other, &untyped, &mut types, cancel).await?;
                    match returning(other) {
                        Some(query) => {
                            let untyped = returning(&untyped);
                            Some(self.describe_query(&catalog, query, untyped, &mut types, cancel).await?.1)
                        }
                        None => None,
                    }
                }
            };
            let found = |(n, of): (usize, &Option<ColumnType>)| {
                let of = of.map(pg_type::of);
                // For a list, only the client or the item type determines the parameter type.
                let of = if lists.contains(&n) { pg_type::by_oid(of.unwrap_or(pg_type::TEXT).array) } else { of };
                given.get(n).copied().flatten().or(casts[n]).or(of)
            };
            let parameters = types.iter().enumerate().map(found).collect();
            Ok(Described { parameters, columns, statement: untyped })
        }
        .boxed()
    }

    /// Describes the result of a compound statement; rows of earlier steps are tables of later steps.
    async fn describe_compound(
        self: &Arc<Self>,
        catalog: Arc<dyn Catalog>,
        typed: &Compound,
        untyped: &Statement,
        types: &mut Types,
        cancel: &CancelToken,
    ) -> Result<Option<(Vec<OutputColumn>, SchemaRef)>> {
        let Statement::Compound(untyped) = untyped else { return Ok(None) };
        let (mut catalog, mut answer) = (catalog, None);
        for (typed, untyped) in typed.steps.iter().zip(&untyped.steps) {
            match (typed, untyped) {
                (Step::Named { name, columns, statement }, Step::Named { statement: untyped, .. }) => {
                    let found = self.describe_step(&catalog, statement, untyped, types, cancel).await?;
                    let Some((_, schema)) = found else { continue };
                    let frame = Frame::new(name, &renamed(&schema, columns), &[], None)?;
                    catalog = Arc::new(WithFrame { catalog, frame });
                }
                (Step::Counted(statement), Step::Counted(untyped)) => {
                    self.describe_step(&catalog, statement, untyped, types, cancel).await?;
                }
                (Step::Answer(statement), Step::Answer(untyped)) => {
                    answer = self.describe_step(&catalog, statement, untyped, types, cancel).await?;
                }
                _ => {}
            }
        }
        Ok(answer)
    }

    async fn describe_step(
        self: &Arc<Self>,
        catalog: &Arc<dyn Catalog>,
        typed: &Statement,
        untyped: &Statement,
        types: &mut Types,
        cancel: &CancelToken,
    ) -> Result<Option<(Vec<OutputColumn>, SchemaRef)>> {
        if let Statement::Query(query) = typed {
            return Ok(Some(self.describe_query(catalog, query, asked(untyped), types, cancel).await?.1));
        }
        self.describe_change(catalog, typed, untyped, types, cancel).await?;
        match returning(typed) {
            Some(query) => Ok(Some(self.describe_query(catalog, query, returning(untyped), types, cancel).await?.1)),
            None => Ok(None),
        }
    }

    /// Whether more is known of types than was when the query was planned, and the columns of its rows.
    async fn describe_query(
        self: &Arc<Self>,
        catalog: &Arc<dyn Catalog>,
        query: &Query,
        untyped: Option<&Query>,
        types: &mut Types,
        cancel: &CancelToken,
    ) -> Result<(bool, (Vec<OutputColumn>, SchemaRef))> {
        if let Some(untyped) = untyped {
            written::types(untyped, types);
        }
        let logical = self.planned_query(catalog, query, &[], cancel).await?;
        let is_more_known = planned_types(&logical, types);
        let state = self.state(catalog, cancel);
        // Where parameters have no types there are none to settle.
        let settled = state.analyzer().execute_and_check(logical.clone(), state.config_options(), |_, _| {});
        let settled = settled.map_or_else(|_| logical.schema().clone(), |plan| plan.schema().clone());
        let schema: SchemaRef = Arc::new(super::settled_schema(logical.schema().as_arrow(), settled.as_arrow()));
        let columns = distinct(schema.fields().iter().map(|field| output_column(field, &query.words)).collect());
        let schema = super::named_schema(&schema, &columns);
        Ok((is_more_known, (columns, schema)))
    }

    async fn describe_change(
        self: &Arc<Self>,
        catalog: &Arc<dyn Catalog>,
        typed: &Statement,
        untyped: &Statement,
        types: &mut Types,
        cancel: &CancelToken,
    ) -> Result<()> {
        match (typed, untyped) {
            (Statement::Insert(insert), Statement::Insert(untyped)) => {
                written::types(&untyped.query, types);
                if let Some(table) = catalog.snapshots(&[&insert.table]).pop().flatten() {
                    assigned(&inserted(untyped, &table.schema), &untyped.query, 0, types);
                }
                // A list of values is planned only with its values.
                if types.iter().any(Option::is_none) && !insert.query.is_values() {
                    planned_types(&self.planned_query(catalog, &insert.query, &[], cancel).await?, types);
                }
                self.describe_conflict(catalog, insert, untyped, types, cancel).await?;
            }
            (Statement::CreateTableAs(create), Statement::CreateTableAs(untyped)) => {
                written::types(&untyped.query, types);
                planned_types(&self.planned_query(catalog, &create.query, &[], cancel).await?, types);
            }
            (Statement::Delete(delete), Statement::Delete(untyped)) => {
                if let (Some(query), Some(untyped)) = (&delete.query, &untyped.query) {
                    self.describe_addressed(catalog, &delete.table, query, untyped, &[], types, cancel).await?;
                }
            }
            (Statement::Update(update), Statement::Update(untyped)) => {
                self.describe_addressed(
                    catalog,
                    &update.table,
                    &update.query,
                    &untyped.query,
                    &update.columns,
                    types,
                    cancel,
                )
                .await?;
            }
            _ => {}
        }
        Ok(())
    }

    /// What ON CONFLICT DO UPDATE says of its parameters.
    async fn describe_conflict(
        self: &Arc<Self>,
        catalog: &Arc<dyn Catalog>,
        insert: &Insert,
        untyped: &Insert,
        types: &mut Types,
        cancel: &CancelToken,
    ) -> Result<()> {
        let given = |insert: &Insert| insert.conflict.as_ref().and_then(|conflict| conflict.update.clone());
        let (Some(conflict), Some(update)) = (&insert.conflict, given(untyped)) else { return Ok(()) };
        let Some(table) = catalog.snapshots(&[&insert.table]).pop().flatten() else { return Ok(()) };
        written::types(&update.query, types);
        let targets: Vec<_> =
            update.columns.iter().map(|name| table.schema.column(&name.text).map(|c| c.column_type)).collect();
        assigned(&targets, &update.query, 0, types);
        if types.iter().any(Option::is_none) {
            let rows = Conflicting { brought: table.clone(), alias: insert.alias.clone(), table, times: None };
            let (query, own) = rows.becoming(conflict, self.fast_operators)?;
            let own: Vec<_> = own.iter().map(|(name, table)| (name.as_str(), table.clone())).collect();
            planned_types(&self.planned_query(catalog, &query, &own, cancel).await?, types);
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "a change of rows, where it is and what is learnt of it")]
    async fn describe_addressed(
        self: &Arc<Self>,
        catalog: &Arc<dyn Catalog>,
        table: &Name,
        query: &Query,
        untyped: &Query,
        columns: &[Name],
        types: &mut Types,
        cancel: &CancelToken,
    ) -> Result<()> {
        written::types(untyped, types);
        let Some(snapshot) = catalog.snapshots(&[&table.text]).pop().flatten() else { return Ok(()) };
        let of = |name: &Name| snapshot.schema.column(&name.text).map(|c| c.column_type);
        let targets: Vec<_> = columns.iter().map(of).collect();
        assigned(&targets, untyped, 1, types);
        if types.iter().any(Option::is_none) {
            let own: Arc<dyn TableProvider> = Arc::new(NativeTable::addressed(snapshot));
            planned_types(&self.planned_query(catalog, query, &[(&table.text, own)], cancel).await?, types);
        }
        Ok(())
    }

    /// The plan before it is optimised, made on the threads for that.
    pub(super) fn planned_query<'a>(
        self: &Arc<Self>,
        catalog: &Arc<dyn Catalog>,
        query: &Query,
        own: &[(&str, Arc<dyn TableProvider>)],
        cancel: &'a CancelToken,
    ) -> BoxFuture<'a, Result<LogicalPlan>> {
        let (engine, catalog, query, length) = (self.clone(), catalog.clone(), query.clone(), Length::of(query));
        let state = self.state(&catalog, cancel);
        let own: Vec<(String, Arc<dyn TableProvider>)> =
            own.iter().map(|(name, table)| ((*name).to_owned(), table.clone())).collect();
        let work = async move {
            let own: Vec<_> = own.iter().map(|(name, table)| (name.as_str(), table.clone())).collect();
            let planned = engine.logical(&state, &catalog, &query, &own).await;
            Ok(planned.map_err(|error| super::placed(error, &query.words, &catalog))?.0)
        };
        self.planned(length, cancel, work.boxed())
    }
}

fn asked(statement: &Statement) -> Option<&Query> {
    match statement {
        Statement::Query(query) | Statement::Explain { query, .. } => Some(query),
        _ => None,
    }
}

/// What a statement that changes rows returns of them.
fn returning(statement: &Statement) -> Option<&Query> {
    match statement {
        Statement::Insert(insert) => insert.returning.as_ref(),
        Statement::Delete(delete) => delete.returning.as_ref(),
        Statement::Update(update) => update.returning.as_ref(),
        _ => None,
    }
}

fn plan_columns() -> (Vec<OutputColumn>, SchemaRef) {
    let column = OutputColumn {
        pg: super::PgColumn::default(),
        name: "QUERY PLAN".to_owned(),
        type_name: "VARCHAR".to_owned(),
        column_type: Some(ColumnType::Varchar),
        pivot_values: None,
    };
    (vec![column], Arc::new(Schema::new(vec![Field::new("QUERY PLAN", DataType::Utf8View, true)])))
}

/// The types of the columns that an INSERT writes, in its order.
fn inserted(insert: &Insert, schema: &TableSchema) -> Types {
    if insert.columns.is_empty() {
        return schema.columns.iter().map(|c| Some(c.column_type)).collect();
    }
    insert.columns.iter().map(|name| schema.column(&name.text).map(|c| c.column_type)).collect()
}

/// What the planner found by comparing; whether more was found than it knew.
fn planned_types(plan: &LogicalPlan, types: &mut Types) -> bool {
    for (name, field) in plan.get_parameter_fields().into_iter().flatten() {
        if let (Some(n), Some(field)) = (number(&name), field) {
            fill(types, n, door::column_type(&field));
        }
    }
    among::types(plan, types)
}
