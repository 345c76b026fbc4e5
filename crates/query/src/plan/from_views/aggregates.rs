//! Aggregates of rows, put together from those of buckets.

use super::conditions::OverView;
use super::definition::{Definition, column};
use crate::functions::{adjusted, pick};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, ScalarValue};
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{AggregateUDF, BinaryExpr, Cast, Expr, Operator, cast, lit};
use std::sync::Arc;
use tidalite_types::ColumnType;

/// Aggregates of which that of all is that of the parts.
const OF_PARTS: &[&str] = &["sum", "min", "max", "bool_and", "bool_or", "bit_and", "bit_or"];
/// Those that do not ask how often a value is there.
const OF_VALUES: &[&str] = &["min", "max", "bool_and", "bool_or"];

/// One aggregate from a view's rows.
pub(super) struct Merged {
    /// The column that has it, where a group is one row.
    pub of_row: Option<Expr>,
    /// Aggregates over the rows of a group, and what is made of them; `None` when it cannot be had so.
    pub parts: Option<Vec<Expr>>,
    pub finish: Finish,
}

#[derive(Clone, Copy)]
pub(super) enum Finish {
    Same,
    /// A sum of counts, which is 0 where there are none.
    Count,
    /// A sum and a count.
    Mean,
}

impl Finish {
    pub fn of(self, mut parts: Vec<Expr>) -> Expr {
        let mut next = || if parts.is_empty() { lit(ScalarValue::Null) } else { parts.remove(0) };
        match self {
            Finish::Same => next(),
            Finish::Count => coalesce(vec![next(), lit(0_i64)]),
            Finish::Mean => {
                let [sum, count] = [next(), next()].map(|part| Box::new(cast(part, DataType::Float64)));
                Expr::BinaryExpr(BinaryExpr::new(sum, Operator::Divide, count))
            }
        }
    }
}

impl Merged {
    /// `has_keys`: rows of a group are of different buckets; `is_row`: a group is one row.
    pub fn of(
        expr: &Expr,
        definition: &Definition,
        over: &OverView<'_>,
        has_keys: bool,
        is_row: bool,
    ) -> Option<Merged> {
        let Expr::AggregateFunction(function) = expr else { return None };
        let stored = stored(function, definition);
        let mean = || mean(function, definition).map(|columns| Finish::Mean.of(columns.to_vec()));
        let of_row = if is_row { stored.clone().or_else(mean) } else { None };
        let (parts, finish) = match merged(function, stored, definition, has_keys) {
            Some((parts, finish)) => (Some(parts), finish),
            None => (of_values(function, over).map(|part| vec![part]), Finish::Same),
        };
        (of_row.is_some() || parts.is_some()).then_some(Merged { of_row, parts, finish })
    }
}

/// The column of the view that has an aggregate.
fn stored(function: &AggregateFunction, definition: &Definition) -> Option<Expr> {
    let wanted = counted(function, definition);
    let is_it = |known: &Expr| match known {
        Expr::AggregateFunction(known) => counted(known, definition) == wanted,
        _ => false,
    };
    definition.aggregates.iter().find(|(known, _)| is_it(known)).map(|(_, name)| column(name))
}

/// With rows counted by one constant: the time is never NULL.
fn counted(function: &AggregateFunction, definition: &Definition) -> AggregateFunction {
    let mut function = function.clone();
    let is_of_rows = |arg: &Expr| match arg {
        Expr::Literal(value, _) => !value.is_null(),
        Expr::Column(column) => column.name == definition.time,
        _ => false,
    };
    let params = &mut function.params;
    if function.func.name() == "count" && !params.distinct && params.args.len() == 1 && is_of_rows(&params.args[0]) {
        params.args = vec![lit(1_i64)];
    }
    function
}

fn merged(
    function: &AggregateFunction,
    stored: Option<Expr>,
    definition: &Definition,
    has_keys: bool,
) -> Option<(Vec<Expr>, Finish)> {
    let params = &function.params;
    if params.distinct || !params.order_by.is_empty() || params.null_treatment.is_some() {
        return None;
    }
    let name = function.func.name();
    let time = Expr::Column(Column::new_unqualified(&definition.time));
    match name {
        "count" => Some((vec![call(&adjusted::sum(), vec![stored?])], Finish::Count)),
        "avg" => {
            let parts = mean(function, definition)?.map(|column| call(&adjusted::sum(), vec![column]));
            Some((parts.to_vec(), Finish::Mean))
        }
        _ if OF_PARTS.contains(&name) && params.args.len() == 1 => {
            Some((vec![call(&function.func, vec![stored?])], Finish::Same))
        }
        // Of several rows of one bucket nobody knows which was first.
        _ if pick::BY_TIME.contains(&name) && has_keys && params.args.get(1) == Some(&time) => {
            Some((vec![call(&function.func, vec![stored?, definition.bucket_column()])], Finish::Same))
        }
        _ => None,
    }
}

/// The columns with the sum and the count of which an average is.
fn mean(function: &AggregateFunction, definition: &Definition) -> Option<[Expr; 2]> {
    let [wanted] = function.params.args.as_slice() else { return None };
    if function.func.name() != "avg" || function.params.distinct {
        return None;
    }
    let wanted = unwidened(wanted, definition);
    if !is_summed_exactly(wanted, definition) {
        return None;
    }
    let found = |name: &str| {
        let is_it = |known: &Expr| match known {
            Expr::AggregateFunction(known) => {
                let params = &known.params;
                known.func.name() == name
                    && !params.distinct
                    && params.filter == function.params.filter
                    && matches!(params.args.as_slice(), [arg] if unwidened(arg, definition) == wanted)
            }
            _ => false,
        };
        definition.aggregates.iter().find(|(known, _)| is_it(known)).map(|(_, name)| column(name))
    };
    Some([found("sum")?, found("count")?])
}

/// Returns true if the mean equals the stored sum divided by the count.
///
/// A sum of LONG may overflow where the mean does not. The mean of decimals is such a quotient.
fn is_summed_exactly(of: &Expr, definition: &Definition) -> bool {
    let is_float = |t: ColumnType| matches!(t, ColumnType::Float | ColumnType::Double);
    let types: Option<Vec<ColumnType>> =
        of.column_refs().iter().map(|column| definition.types.get(&column.name).copied()).collect();
    match (of, types) {
        (Expr::Column(_), Some(types)) => {
            !types.iter().any(|t| matches!(t, ColumnType::Long | ColumnType::Decimal { .. }))
        }
        (_, Some(types)) => types.iter().any(|t| is_float(*t)),
        (_, None) => false,
    }
}

/// A number without the cast that makes room for its sum.
fn unwidened<'a>(expr: &'a Expr, definition: &Definition) -> &'a Expr {
    let Expr::Cast(Cast { expr: inner, field }) = expr else { return expr };
    let Expr::Column(column) = inner.as_ref() else { return expr };
    let is_int = |t: ColumnType| matches!(t, ColumnType::Byte | ColumnType::Short | ColumnType::Int | ColumnType::Long);
    let widens = definition.types.get(&column.name).is_some_and(|from| match field.data_type() {
        DataType::Float64 => is_int(*from) || *from == ColumnType::Float,
        DataType::Int64 => is_int(*from),
        _ => false,
    });
    if widens { inner } else { expr }
}

/// An aggregate of the values of keys and buckets.
fn of_values(function: &AggregateFunction, over: &OverView<'_>) -> Option<Expr> {
    let params = &function.params;
    let asks_values_only = params.distinct || OF_VALUES.contains(&function.func.name());
    if !asks_values_only || params.filter.is_some() || !params.order_by.is_empty() || params.null_treatment.is_some() {
        return None;
    }
    let mut mapped = function.clone();
    mapped.params.args = params.args.iter().map(|arg| over.expr(arg)).collect::<Option<_>>()?;
    Some(Expr::AggregateFunction(mapped))
}

fn call(function: &Arc<AggregateUDF>, args: Vec<Expr>) -> Expr {
    Expr::AggregateFunction(AggregateFunction::new_udf(function.clone(), args, false, None, Vec::new(), None))
}
