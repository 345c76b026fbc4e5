//! Names in expressions: columns of the query's own tables, of outer queries, SELECT aliases, parts of structs, and
//! functions.

use super::scope::{Found, Place, Scope, ScopeColumn};
use super::{BindError, Binder, Result};
use crate::Error;
use crate::dialect::RANGE;
use crate::names::nearest;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{ExprSchema, TableReference};
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::planner::PlannerResult;
use datafusion::logical_expr::{Expr, Volatility, lit};
use tidalite_sql::Span;
use tidalite_sql::ast::{Ident, ObjectName};
use tidalite_types::schema::fold_name;
use tidalite_types::{ErrorKind, SqlState};

/// The function that is called without parentheses and is not a keyword of the syntax tree.
const USER: &str = "user";
/// Parts of a table name: catalog, schema, table.
const TABLE_PARTS_MAX: usize = 3;

/// Columns of each table of PostgreSQL, which are constant here.
const SYSTEM_COLUMNS: &[&str] = &["tableoid", "xmin"];

/// Returns a name in the form in which names are compared.
pub(super) fn folded(name: &Ident) -> String {
    fold_name(&name.value)
}

/// Returns the folded parts of a name.
pub(super) fn folded_parts(name: &ObjectName) -> Vec<String> {
    name.parts.iter().map(folded).collect()
}

/// Returns the table that 1 to 3 parts name; `None` for other numbers of parts.
pub(super) fn table_reference(parts: &[String]) -> Option<TableReference> {
    match parts {
        [table] => Some(TableReference::bare(table.as_str())),
        [schema, table] => Some(TableReference::partial(schema.as_str(), table.as_str())),
        [catalog, schema, table] => Some(TableReference::full(catalog.as_str(), schema.as_str(), table.as_str())),
        _ => None,
    }
}

/// Adds a hint to an error that has none.
pub(super) fn with_hint(error: BindError, hint: &str) -> BindError {
    match error {
        BindError::Invalid(error) if error.hint.is_none() => BindError::Invalid(Box::new(error.with_hint(hint))),
        other => other,
    }
}

fn ambiguous(name: &str, span: Span) -> BindError {
    let error = Error::invalid(format!("column reference \"{name}\" is ambiguous")).about(name);
    error.with_code(SqlState::AMBIGUOUS_COLUMN).at(span.start as usize).into()
}

impl Binder<'_> {
    /// Binds `a`, `t.a`, `s.t.a`, `a.part`, `t.a.part`.
    pub(super) fn column(&self, name: &ObjectName, place: Place) -> Result<Expr> {
        if let [only] = name.parts.as_slice() {
            return self.bare_column(only, place);
        }
        let parts = folded_parts(name);
        // Tables of all levels precede parts of structs.
        for (level, scope) in place.scope.levels().enumerate() {
            if let Some((column, rest)) = of_table(scope, &parts, name.span)? {
                let value = placed(column, scope, level)?;
                return self.parts_of(value, &parts[parts.len() - rest..], place, name.span);
            }
        }
        // A column of the table precedes a system column of the same name.
        if let [table, column] = parts.as_slice()
            && SYSTEM_COLUMNS.contains(&column.as_str())
            && has_table(place.scope, &TableReference::bare(table.as_str()))
        {
            return Ok(lit(0_i64));
        }
        for (level, scope) in place.scope.levels().enumerate() {
            if let Found::One(column) = scope.find(&parts[0]) {
                let value = placed(column, scope, level)?;
                return self.parts_of(value, &parts[1..], place, name.span);
            }
        }
        Err(unknown(&parts, name, place.scope))
    }

    /// Binds a name without a table.
    fn bare_column(&self, name: &Ident, place: Place) -> Result<Expr> {
        let folded = folded(name);
        let alias = place.aliases.find(&folded);
        if place.aliases.come_first
            && let Some(value) = alias
        {
            return Ok(value.clone());
        }
        for (level, scope) in place.scope.levels().enumerate() {
            match scope.find(&folded) {
                Found::One(column) => return placed(column, scope, level),
                Found::Several => return Err(ambiguous(&folded, name.span)),
                Found::None if level == 0 => {
                    if let Some(value) = alias {
                        return Ok(value.clone());
                    }
                }
                Found::None => {}
            }
        }
        // A function without parentheses, as in PostgreSQL.
        if folded == USER && name.quote.is_none() {
            return self.scalar_call(USER, Vec::new());
        }
        Err(unknown_column(&folded, name.span, place.scope))
    }

    /// Binds `value.part.part`, parts of structs.
    fn parts_of(&self, value: Expr, parts: &[String], place: Place, span: Span) -> Result<Expr> {
        if parts.is_empty() {
            return Ok(value);
        }
        let Expr::Column(column) = &value else {
            let part = |value, part: &String| self.scalar_call("get_field", vec![value, lit(part.as_str())]);
            return parts.iter().try_fold(value, part);
        };
        let schema = &place.scope.schema;
        let (relation, field) = (column.relation.as_ref(), schema.field_from_column(column)?);
        for planner in self.state.expr_planners() {
            if let Ok(PlannerResult::Planned(expr)) = planner.plan_compound_identifier(field, relation, parts) {
                return Ok(expr);
            }
        }
        let message = format!("column \"{}\" has no part \"{}\"", column.name, parts.join("."));
        Err(Error::new(ErrorKind::NotFound, message).at(span.start as usize).into())
    }
}

/// Finds the column that the longest table name in `parts` gives, and the number of parts after the column.
fn of_table<'s>(scope: &'s Scope, parts: &[String], span: Span) -> Result<Option<(&'s ScopeColumn, usize)>> {
    for tables in (1..parts.len().min(TABLE_PARTS_MAX + 1)).rev() {
        let Some(table) = table_reference(&parts[..tables]) else { continue };
        match scope.find_in(&table, &parts[tables]) {
            Found::One(column) => return Ok(Some((column, parts.len() - tables - 1))),
            Found::Several => return Err(ambiguous(&parts[tables], span)),
            Found::None => {}
        }
    }
    Ok(None)
}

/// Returns the value of a column that was found `level` queries further out.
fn placed(column: &ScopeColumn, scope: &Scope, level: usize) -> Result<Expr> {
    if level == 0 {
        return Ok(column.value.clone());
    }
    let outer = column.value.clone().transform_up(|expr| {
        let Expr::Column(column) = expr else { return Ok(Transformed::no(expr)) };
        let field = scope.schema.field_from_column(&column)?.clone();
        Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
    });
    Ok(outer.data()?)
}

/// Returns true if a scope or a scope around it has a table.
fn has_table(scope: &Scope, table: &TableReference) -> bool {
    scope.levels().any(|scope| scope.has_table(table))
}

fn unknown(parts: &[String], name: &ObjectName, scope: &Scope) -> BindError {
    let (column, tables) = (parts.len() - 1, &parts[..parts.len() - 1]);
    let is_known = table_reference(tables).is_some_and(|table| has_table(scope, &table));
    if is_known || tables.len() > TABLE_PARTS_MAX {
        return unknown_column(&parts[column], name.parts[column].span, scope);
    }
    let table = &parts[column - 1];
    let error = Error::new(ErrorKind::NotFound, format!("missing FROM-clause entry for table \"{table}\""));
    let error = error.about(table.as_str()).with_code(SqlState::UNDEFINED_TABLE).at(name.span.start as usize);
    let relations = scope.levels().flat_map(|scope| &scope.columns).filter_map(|c| c.relation.as_ref());
    match nearest(table, relations.map(TableReference::table)) {
        Some(near) => error.with_hint(format!("perhaps you meant \"{near}\"")).into(),
        None => error.into(),
    }
}

/// Returns the error for a column that no scope has.
pub(super) fn unknown_column(name: &str, span: Span, scope: &Scope) -> BindError {
    let columns = scope.levels().flat_map(|scope| &scope.columns);
    Error::column_not_found(name, columns.map(|column| column.name.as_str())).at(span.start as usize).into()
}

/// Returns the function that a name stands for, and whether its arguments are distinct.
pub(super) fn synonym(name: &str, is_distinct: bool) -> (&str, bool) {
    let own = match name {
        "count_distinct" => return ("count", true),
        "string_distinct_agg" => return ("string_agg", true),
        "approx_count_distinct" => "approx_distinct",
        "variance" => "var_samp",
        "every" => "bool_and",
        "approx_percentile" => "approx_percentile_cont",
        "to_lowercase" => "lower",
        "to_uppercase" => "upper",
        "ceiling" => "ceil",
        "clock_timestamp" | "statement_timestamp" | "transaction_timestamp" | "localtimestamp" => "now",
        "gen_random_uuid" => "uuid",
        "regexp_matches" => "regexp_match",
        "min_by" => "arg_min",
        "max_by" => "arg_max",
        "interval" => RANGE,
        other => other,
    };
    (own, is_distinct)
}

/// Returns false for a scalar function of the clock, of the session or of chance.
pub(crate) fn is_immutable(state: &SessionState, name: &str) -> bool {
    let (name, _) = synonym(name, false);
    // `interval` is computed from its arguments.
    let function = state.scalar_functions().get(name).filter(|_| name != RANGE);
    function.is_none_or(|function| function.signature().volatility == Volatility::Immutable)
}
