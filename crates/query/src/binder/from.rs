//! FROM: tables, sub-queries, table functions, and their aliases.

use super::horizon::is_horizon;
use super::names::{folded, folded_parts, table_reference};
use super::operators::text;
use super::scope::{Env, Place, Scope, ScopeColumn, Source};
use super::select::empty_scope;
use super::with::with_columns;
use super::{Binder, Result};
use crate::dialect::set_returning::{ORDINALITY, ORDINALS};
use crate::functions::{is_system_function, meta, random};
use crate::pg_catalog::{INFORMATION_SCHEMA, PG_CATALOG};
use crate::tables::SCHEMA;
use crate::{Error, plan};
use datafusion::catalog::TableFunctionArgs;
use datafusion::common::{DFSchema, Spans, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::builder::subquery_alias;
use datafusion::logical_expr::expr::Unnest;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Subquery, SubqueryAlias};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use std::sync::Arc;
use tidalite_sql::ast::walk::{self, ExprFinder};
use tidalite_sql::ast::{
    self, Alias, ExprKind, FunctionArg, FunctionCall, Ident, Literal, ObjectName, Relation, RelationKind, TableRef,
};
use tidalite_types::{ErrorKind, SqlState};

/// Table functions whose alias also names their column, as in PostgreSQL.
const SERIES: [&str; 2] = ["generate_series", "range"];

impl Binder<'_> {
    /// Binds the items of FROM; no items are one row without columns.
    pub(super) fn from(&self, from: &[TableRef], env: &Env) -> Result<Source> {
        let Some((first, rest)) = from.split_first() else {
            return Ok(Source { plan: LogicalPlanBuilder::empty(true).build()?, columns: Vec::new() });
        };
        let mut left = self.table_ref(first, env, None)?;
        for table in rest {
            let right = self.table_ref(table, env, Some(&left))?;
            left = self.cross_joined(left, right)?;
        }
        Ok(left)
    }

    /// Binds a relation and its joins; `before` are the items of FROM that LATERAL relations see, too.
    pub(super) fn table_ref(&self, table: &TableRef, env: &Env, before: Option<&Source>) -> Result<Source> {
        let mut left = self.relation(&table.relation, env, before)?;
        for (at, join) in table.joins.iter().enumerate() {
            if is_horizon(join) {
                return self.horizon_joins(left, &table.joins[at..], env);
            }
            let visible = if is_lateral(&join.relation) { Some(visible(before, &left)?) } else { None };
            let right = self.relation(&join.relation, env, visible.as_ref())?;
            left = self.joined(left, right, join, env)?;
        }
        Ok(left)
    }

    /// Binds one relation; a LATERAL relation sees the columns of `before`.
    pub(super) fn relation(&self, relation: &Relation, env: &Env, before: Option<&Source>) -> Result<Source> {
        if let Some(sample) = &relation.sample {
            return Err(Error::invalid("TABLESAMPLE is not supported").at(sample.method.span.start as usize).into());
        }
        let before = before.filter(|_| is_lateral(relation));
        let source = match before {
            Some(before) => {
                let scope = before.scope(env.outer);
                self.lateral(relation, &env.within(&scope))?
            }
            None => self.plain(relation, env)?,
        };
        match &relation.timestamp {
            Some(time) => {
                let plan = plan::with_time(source.plan, &folded(time));
                let plan = plan.map_err(|error| error.at(time.span.start as usize))?;
                Ok(Source { plan, columns: source.columns })
            }
            None => Ok(source),
        }
    }

    /// Binds a relation that sees columns of relations before it: they are outer columns within it.
    fn lateral(&self, relation: &Relation, env: &Env) -> Result<Source> {
        let source = self.plain(relation, env)?;
        let outer_ref_columns = source.plan.all_out_ref_exprs();
        if outer_ref_columns.is_empty() {
            return Ok(source);
        }
        let wrapped = |subquery| LogicalPlan::Subquery(Subquery { subquery, outer_ref_columns, spans: Spans::new() });
        let plan = match source.plan {
            LogicalPlan::SubqueryAlias(SubqueryAlias { input, alias, .. }) => subquery_alias(wrapped(input), alias)?,
            plan => wrapped(Arc::new(plan)),
        };
        Ok(Source { plan, columns: source.columns })
    }

    fn plain(&self, relation: &Relation, env: &Env) -> Result<Source> {
        let alias = relation.alias.as_ref();
        match &relation.kind {
            RelationKind::Table { name } => self.named_table(name, alias, env),
            RelationKind::Query { query, .. } => {
                let plan = self.query(query, env)?;
                let is_named = alias.is_some_and(|alias| alias.columns.is_empty());
                let plan = if is_named { plan::with_distinct_names(plan)? } else { plan };
                Ok(Source::of_plan(aliased(plan, alias)?))
            }
            RelationKind::Nested(inner) => {
                let source = self.table_ref(inner, env, None)?;
                match alias {
                    None => Ok(source),
                    Some(_) => named_join(source, alias),
                }
            }
            RelationKind::Function { call, with_ordinality, .. } => {
                self.table_function(call, *with_ordinality, alias, env)
            }
            RelationKind::Variable(name) => Err(super::declare::unknown(name).into()),
            RelationKind::Pivot { relation, pivot } => self.pivoted_relation(relation, pivot, alias, env),
            RelationKind::Unpivot { relation, unpivot } => self.unpivoted_relation(relation, unpivot, alias, env),
        }
    }

    /// Binds the name of a WITH query, a table or a view.
    fn named_table(&self, name: &ObjectName, alias: Option<&Alias>, env: &Env) -> Result<Source> {
        let parts = folded_parts(name);
        if let Some(file) = self.file(name.span, &parts.concat(), alias)? {
            return Ok(file);
        }
        let Some(reference) = table_reference(&parts) else {
            let message = format!("improper qualified name (too many dotted names): {}", parts.join("."));
            return Err(Error::invalid(message).at(name.span.start as usize).into());
        };
        let plan = match (env.plan_named(&parts[0]), self.tables.get(&reference)) {
            (Some(cte), _) if parts.len() == 1 => cte.clone(),
            (_, Some(source)) => LogicalPlanBuilder::scan(reference, source.clone(), None)?.build()?,
            _ => return Err(self.unknown_table(name, &reference).into()),
        };
        Ok(Source::of_plan(aliased(plan, alias)?))
    }

    fn unknown_table(&self, name: &ObjectName, reference: &TableReference) -> Error {
        let span = name.span.start as usize;
        let is_own = |schema: &str| ![SCHEMA, PG_CATALOG, INFORMATION_SCHEMA].contains(&schema);
        match reference.schema().filter(|schema| is_own(schema)) {
            Some(schema) if self.state.schema_for_ref(reference.clone()).is_err() => {
                let error = Error::new(ErrorKind::NotFound, format!("schema \"{schema}\" does not exist"));
                error.about(schema).at(span)
            }
            Some(schema) => Error::table_not_found(&format!("{schema}.{}", reference.table())).at(span),
            None => Error::table_not_found(reference.table()).at(span),
        }
    }

    /// Binds a call of a table function, whose arguments are constants.
    fn table_function(
        &self,
        call: &FunctionCall,
        with_ordinality: bool,
        alias: Option<&Alias>,
        env: &Env,
    ) -> Result<Source> {
        let parts = folded_parts(&call.name);
        let name = match parts.as_slice() {
            [name] => name,
            [schema, name] if schema == PG_CATALOG => name,
            parts => {
                let message = format!("table function {} does not exist", parts.join("."));
                return Err(Error::new(ErrorKind::NotFound, message).at(call.name.span.start as usize).into());
            }
        };
        if let Some(file) = self.file(call.name.span, name, alias)? {
            return Ok(file);
        }
        let args = arguments(call)?;
        let has_columns = args.iter().any(|arg| has_columns(arg));
        // Functions about the database take the names of objects also without quotes.
        let names = match has_columns && is_system_function(name) {
            true => args.iter().map(|arg| object_name(arg)).collect::<Option<Vec<_>>>(),
            false => None,
        };
        let has_columns = has_columns && names.is_none();
        if has_columns && !is_of_rows(name) {
            let error = Error::invalid(format!("the arguments of table function {name} are constants")).about(name);
            return Err(error.at(call.name.span.start as usize).into());
        }
        let scope = empty_scope(env.outer.filter(|_| has_columns));
        let bound = match names {
            Some(names) => names.into_iter().map(text).collect(),
            None => args.iter().map(|arg| self.expr(arg, Place::new(&scope, env))).collect::<Result<Vec<_>>>()?,
        };
        if name == "unnest" {
            return self.unnested_rows(bound, with_ordinality, alias, "unnest");
        }
        if has_columns || with_ordinality && name == SERIES[0] {
            return self.unnested_rows(vec![self.scalar_call(name, bound)?], with_ordinality, alias, name);
        }
        if with_ordinality {
            let error = Error::invalid(format!("WITH ORDINALITY is not supported for {name}")).about(name);
            return Err(error.at(call.name.span.start as usize).into());
        }
        let Some(function) = self.state.table_functions().get(name) else {
            return self.scalar_in_from(call, name, bound, alias);
        };
        let bound = self.simplified(bound)?;
        let table = function.create_table_provider_with_args(TableFunctionArgs::new(&bound, self.state))?;
        let scan = LogicalPlanBuilder::scan(TableReference::bare(format!("{name}()")), provider_as_source(table), None);
        let plan = scan?.build()?;
        if let Some(alias) = alias.filter(|alias| alias.columns.is_empty() && SERIES.contains(&name.as_str())) {
            let plan = with_columns(plan, std::slice::from_ref(&alias.name))?;
            return Ok(Source::of_plan(LogicalPlanBuilder::from(plan).alias(folded(&alias.name))?.build()?));
        }
        let mut source = Source::of_plan(aliased(plan, alias)?);
        if alias.is_none() {
            source.columns.iter_mut().for_each(|c| c.relation = Some(TableReference::bare(name.as_str())));
        }
        Ok(source)
    }

    /// Binds a scalar function in FROM: one row of one column.
    fn scalar_in_from(
        &self,
        call: &FunctionCall,
        name: &str,
        args: Vec<Expr>,
        alias: Option<&Alias>,
    ) -> Result<Source> {
        let is_scalar = self.state.scalar_functions().contains_key(name) && meta::names().any(|known| known == name);
        if !is_scalar || random::NAMES.contains(&name) {
            let error = Error::new(ErrorKind::NotFound, format!("table function {name} does not exist")).about(name);
            let error = error.at(call.name.span.start as usize);
            return Err(match crate::names::nearest(name, meta::table_names()) {
                Some(near) => error.with_hint(format!("perhaps you meant {near}")).into(),
                None => error.into(),
            });
        }
        let value = self.scalar_call(name, args)?;
        let table = alias.map_or_else(|| name.to_owned(), |alias| folded(&alias.name));
        let column = alias.and_then(|alias| alias.columns.first()).map_or_else(|| table.clone(), |c| folded(&c.name));
        let row = LogicalPlanBuilder::empty(true).project(vec![value.alias(column)])?;
        Ok(Source::of_plan(row.alias(table)?.build()?))
    }

    /// Returns the rows of arrays, side by side, and their numbers.
    fn unnested_rows(
        &self,
        mut arrays: Vec<Expr>,
        with_ordinality: bool,
        alias: Option<&Alias>,
        name: &str,
    ) -> Result<Source> {
        let input = LogicalPlanBuilder::empty(true).build()?;
        let table = alias.map_or_else(|| name.to_owned(), |alias| folded(&alias.name));
        let lists = arrays.len();
        if with_ordinality {
            arrays.push(self.scalar_call(ORDINALS, arrays.clone())?);
        }
        let columns = arrays.into_iter().enumerate().map(|(at, array)| {
            let name = match at {
                0 => table.clone(),
                at if at == lists => ORDINALITY.to_owned(),
                at => format!("{table}{at}"),
            };
            Expr::Unnest(Unnest::new(array)).alias(name)
        });
        let (input, columns) = super::distinct::unnested(input, columns.collect())?;
        let plan = LogicalPlanBuilder::from(input).project(columns)?.build()?;
        match alias {
            Some(_) => Ok(Source::of_plan(aliased(plan, alias)?)),
            None => Ok(Source::of_plan(LogicalPlanBuilder::from(plan).alias(table)?.build()?)),
        }
    }

    /// Evaluates constant arguments of a table function.
    pub(super) fn simplified(&self, args: Vec<Expr>) -> Result<Vec<Expr>> {
        let context = SimplifyContext::builder()
            .with_config_options(Arc::clone(self.state.config_options()))
            .with_query_execution_start_time(self.state.execution_props().query_execution_start_time)
            .build();
        let simplifier = ExprSimplifier::new(context);
        let schema = DFSchema::empty();
        let one = |arg| Ok(simplifier.simplify(simplifier.coerce(arg, &schema)?)?);
        args.into_iter().map(one).collect()
    }
}

/// Returns true if a relation may see relations before it.
fn is_lateral(relation: &Relation) -> bool {
    match &relation.kind {
        RelationKind::Query { lateral, .. } => *lateral,
        RelationKind::Function { lateral, call, .. } => {
            let is_named = matches!(folded_parts(&call.name).as_slice(), [name] if is_of_rows(name));
            let of_columns = |arg: &FunctionArg| matches!(arg, FunctionArg::Expr(expr) if has_columns(expr));
            *lateral || is_named && call.args.iter().any(of_columns)
        }
        _ => false,
    }
}

/// Returns true for a function that makes rows of each row before it.
fn is_of_rows(name: &str) -> bool {
    name == "unnest" || SERIES.contains(&name)
}

/// Returns the columns that a LATERAL relation sees: of `left`, and of the items of FROM before.
fn visible(before: Option<&Source>, left: &Source) -> Result<Source> {
    let columns = before.iter().flat_map(|before| &before.columns).chain(&left.columns).cloned().collect();
    let plan = match before {
        Some(before) => LogicalPlanBuilder::from(before.plan.clone()).cross_join(left.plan.clone())?.build()?,
        None => left.plan.clone(),
    };
    Ok(Source { plan, columns })
}

/// Gives a plan its alias, and its columns theirs.
pub(super) fn aliased(plan: LogicalPlan, alias: Option<&Alias>) -> Result<LogicalPlan> {
    let Some(alias) = alias else { return Ok(plan) };
    if let Some(typed) = alias.columns.iter().find(|column| column.data_type.is_some()) {
        let error = Error::invalid("a column definition list is only allowed for functions returning \"record\"");
        return Err(error.with_code(SqlState::SYNTAX_ERROR).at(typed.name.span.start as usize).into());
    }
    let names: Vec<Ident> = alias.columns.iter().map(|column| column.name.clone()).collect();
    let plan = with_columns(plan, &names)?;
    Ok(LogicalPlanBuilder::from(plan).alias(folded(&alias.name))?.build()?)
}

/// Names joins in parentheses: their columns are those that can be named without a table.
fn named_join(source: Source, alias: Option<&Alias>) -> Result<Source> {
    let columns = source.columns.iter().filter(|column| column.visibility.is_bare());
    let columns: Vec<Expr> = columns.map(ScopeColumn::named_value).collect();
    let plan = LogicalPlanBuilder::from(source.plan).project(columns)?.build()?;
    Ok(Source::of_plan(aliased(plan::with_distinct_names(plan)?, alias)?))
}

fn arguments(call: &FunctionCall) -> Result<Vec<&ast::Expr>> {
    let arg = |arg| match arg {
        &FunctionArg::Expr(ref expr) => Ok(expr),
        _ => {
            let error = Error::invalid("table functions take positional arguments");
            Err(error.at(call.name.span.start as usize).into())
        }
    };
    call.args.iter().map(arg).collect()
}

/// Returns the name of an object that an expression writes, as a name or as a string.
fn object_name(expr: &ast::Expr) -> Option<String> {
    match &expr.kind {
        ExprKind::Column(name) => Some(name.parts.iter().map(|part| part.value.as_str()).collect::<Vec<_>>().join(".")),
        ExprKind::Literal(Literal::Text(text)) => Some(text.clone()),
        _ => None,
    }
}

fn has_columns(expr: &ast::Expr) -> bool {
    let mut finder = ExprFinder::new(|expr| matches!(expr.kind, ExprKind::Column(_)));
    walk::expr(expr, &mut finder);
    finder.is_found
}

/// Returns the scope of ON: the columns of both sides.
pub(super) fn scope_of_both<'p>(left: &Source, right: &Source, env: &Env<'p>) -> Result<Scope<'p>> {
    let schema = Arc::new(left.plan.schema().join(right.plan.schema())?);
    let columns = left.columns.iter().chain(&right.columns).cloned().collect();
    Ok(Scope { schema, columns, outer: env.outer })
}
