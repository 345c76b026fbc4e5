//! Plans of statements with parameters that serve all their values: made once, with the values put in each time.
//!
//! That is sound where a value is compared with a column and nothing else is done with it: then the plan is the same for
//! all values, and ranges of time prune as those of a constant. A value has to be of the column's type without loss.
//! Everything else is planned with its values, as if they were written.

use super::Engine;
use super::operators::Operators;
use super::planners::Length;
use super::plans::{Plan, is_lasting, unpinned};
use super::written::placeholder;
use crate::decimal::{self, Decimal};
use crate::parameters::number;
use crate::plan::constant_of;
use crate::scan::table::NativeTable;
use crate::statement::Statement;
use crate::{CancelToken, Catalog, Parameter, Result, dialect, door};
use datafusion::arrow::datatypes::{DataType, FieldRef, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result as DFResult, ScalarValue};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Cast, Expr, LogicalPlan, TryCast};
use datafusion::sql::sqlparser::ast::{self, BinaryOperator, Visitor, VisitorMut};
use futures::FutureExt;
use std::ops::ControlFlow;
use std::sync::Arc;
use tidalite_types::ColumnType;

/// Integers that a double keeps.
const DOUBLE_MAX: u64 = 1 << 53;

/// What values a plan takes.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    /// The columns they are compared with.
    fields: Vec<FieldRef>,
    /// The bounds of a BETWEEN, which may come in either order: the plan has them in this one.
    ordered: Vec<(usize, usize)>,
}

impl Parameters {
    /// The values as constants of their columns' types; `None` when one is none.
    pub fn constants(&self, values: &[Parameter]) -> Option<Vec<ScalarValue>> {
        if values.len() != self.fields.len() {
            return None;
        }
        let constants = self.fields.iter().zip(values).map(|(field, value)| constant(field, value));
        let constants = constants.collect::<Option<Vec<_>>>()?;
        let is_in_order = |(low, high): &(usize, usize)| constants[*low] <= constants[*high];
        self.ordered.iter().all(is_in_order).then_some(constants)
    }
}

fn constant(field: &FieldRef, value: &Parameter) -> Option<ScalarValue> {
    match (value, field.data_type()) {
        (Parameter::Boolean(v), DataType::Boolean) => Some(ScalarValue::Boolean(Some(*v))),
        (Parameter::Long(v), data_type) if data_type.is_signed_integer() => {
            ScalarValue::Int64(Some(*v)).cast_to(data_type).ok().filter(|value| !value.is_null())
        }
        (Parameter::Long(v), DataType::Float64) if v.unsigned_abs() <= DOUBLE_MAX && *v != 0 => {
            Some(ScalarValue::Float64(Some(*v as f64)))
        }
        // Zeros are compared otherwise than other numbers.
        (Parameter::Double(v), DataType::Float64) if v.is_finite() && *v != 0.0 => Some(ScalarValue::Float64(Some(*v))),
        (Parameter::Decimal(digits), DataType::Float64) => {
            digits.parse().ok().filter(|v: &f64| v.is_finite() && *v != 0.0).map(|v| ScalarValue::Float64(Some(v)))
        }
        (_, DataType::Decimal128(precision, scale)) => {
            let number = match value {
                Parameter::Long(v) => Decimal::from_integer((*v).into()),
                // Other decimals are compared as doubles.
                Parameter::Double(v) if u32::from(*precision) <= f64::DIGITS => Decimal::from_double(*v)?,
                Parameter::Decimal(digits) => Decimal::parse(digits)?,
                _ => return None,
            };
            let at = number.rescaled((*scale).into()).filter(|at| at.is_exact)?;
            let digits = decimal::narrow(at.floor, *precision, *scale).ok()?;
            Some(ScalarValue::Decimal128(Some(digits), *precision, *scale))
        }
        (Parameter::Text(text), DataType::Utf8View) if door::column_type(field) != Some(ColumnType::Jsonb) => {
            Some(ScalarValue::Utf8View(Some(text.clone())))
        }
        (Parameter::Text(text) | Parameter::Typed(text, _), data_type) => {
            let constant = constant_of(field, text).ok().flatten()?;
            let is_kept = match value {
                Parameter::Typed(_, given) => door::arrow_type(*given).is_temporal() && data_type.is_temporal(),
                _ => true,
            };
            (is_kept && constant.data_type() == *data_type).then_some(constant)
        }
        _ => None,
    }
}

impl Engine {
    /// Makes a plan for all values of a statement's parameters, if it is run for the second time.
    pub async fn learn(self: &Arc<Self>, catalog: &Arc<dyn Catalog>, sql: &str, key: &str, cancel: &CancelToken) {
        if !self.plans.meet(key) {
            return;
        }
        let (engine, catalog, sql, length) = (self.clone(), catalog.clone(), sql.to_owned(), Length::of_text(sql));
        let state = self.state(&catalog, cancel);
        let work = async move { engine.for_all_values(&state, &catalog, &sql).await };
        // What cannot be planned so is planned with its values.
        let plan = self.planned(length, cancel, work.boxed()).await.ok().flatten();
        self.plans.put(key.to_owned(), plan);
    }

    async fn for_all_values(
        self: &Arc<Self>,
        state: &datafusion::execution::context::SessionState,
        catalog: &Arc<dyn Catalog>,
        sql: &str,
    ) -> Result<Option<Plan>> {
        let mut types = Vec::new();
        let (untyped, _) = dialect::parse_unbound(sql, &mut types, &[])?;
        let Statement::Query(mut query) = untyped else { return Ok(None) };
        // `$1` is a parameter. Another `$` begins a word of time, as in '$today', which is one of those also without it.
        let without = sql.split('$').map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()));
        if !is_lasting(&without.collect::<Vec<_>>().join("?")) {
            return Ok(None);
        }
        let mut places = Places { ordered: Vec::new(), all: 0, compared: 0 };
        let Some(parsed) = query.ast.as_deref_mut() else { return Ok(None) };
        let _ = dialect::visit_mut(parsed, &mut places);
        let _ = dialect::visit(&*parsed, &mut Count { places: &mut places });
        if places.all != places.compared || types.is_empty() {
            return Ok(None);
        }
        let (logical, with_tables, about) = self.logical(state, catalog, &query, &[]).await?;
        if !about.names_any || !about.names_only_tables {
            return Ok(None);
        }
        let found = logical.get_parameter_fields()?;
        let field = |n: usize| found.get(&format!("${n}")).cloned().flatten();
        let Some(fields) = (1..=types.len()).map(field).collect::<Option<Vec<_>>>() else { return Ok(None) };
        let schema: SchemaRef = Arc::new(logical.schema().as_arrow().clone());
        let optimized = with_tables.optimize(&logical)?;
        if schema.fields().iter().any(|field| field.name().contains('$')) || converts(&optimized)? {
            return Ok(None);
        }
        let parameters = Parameters { fields, ordered: places.ordered };
        let operators = Operators::default();
        Ok(unpinned(&optimized)?.map(|logical| Plan { query, logical, schema, parameters, operators }))
    }
}

/// Whether a parameter is converted rather than its column's.
fn converts(plan: &LogicalPlan) -> DFResult<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|e| {
                found |= match e {
                    Expr::Cast(Cast { expr, .. }) | Expr::TryCast(TryCast { expr, .. }) => is_parameter(expr),
                    Expr::ScalarFunction(function) => function.args.iter().any(is_parameter),
                    _ => false,
                };
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(found)
}

fn is_parameter(expr: &Expr) -> bool {
    matches!(expr, Expr::Placeholder(_))
}

/// The number of a parameter, from 0.
pub(super) fn parameter_of(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Placeholder(of) => number(&of.id)?.checked_sub(1),
        _ => None,
    }
}

/// Puts the values into a node. Its columns keep their names, by which nodes above it know them.
pub(super) fn with_values(node: LogicalPlan, values: &[ScalarValue]) -> DFResult<LogicalPlan> {
    let names = NamePreserver::new(&node);
    let done = node.map_expressions(|expr| {
        let name = names.save(&expr);
        Ok(Transformed::yes(name.restore(with_values_in(expr, values)?)))
    })?;
    Ok(done.data)
}

pub(super) fn with_values_in(expr: Expr, values: &[ScalarValue]) -> DFResult<Expr> {
    let done = expr.transform_up(|e| {
        let value = parameter_of(&e).and_then(|n| values.get(n));
        Ok(match value {
            Some(value) => Transformed::yes(Expr::Literal(value.clone(), None)),
            None => Transformed::no(e),
        })
    })?;
    Ok(done.data)
}

/// Whether the scans answer their filters, as was taken for granted when the plan was made.
pub(super) fn is_understood(plan: &LogicalPlan) -> bool {
    let mut is_understood = true;
    let walked = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(table) = source_as_provider(&scan.source)?.downcast_ref::<NativeTable>()
        {
            is_understood &= table.answers(&scan.filters);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.is_ok() && is_understood
}

/// Finds parameters that are compared with a column.
struct Places {
    ordered: Vec<(usize, usize)>,
    all: usize,
    compared: usize,
}

fn is_column(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_))
}

/// The number of a parameter, from 0.
fn parameter(expr: &ast::Expr) -> Option<usize> {
    placeholder(expr).map(|n| n - 1)
}

fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

impl VisitorMut for Places {
    type Break = ();

    /// BETWEEN becomes two comparisons here, whose bounds are then put in order.
    fn post_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        if let ast::Expr::Between { expr: of, negated: false, low, high } = expr
            && let (true, Some(from), Some(to)) = (is_column(of), parameter(low), parameter(high))
        {
            self.ordered.push((from, to));
            let compared = |op, bound: &ast::Expr| {
                Box::new(ast::Expr::BinaryOp { left: of.clone(), op, right: Box::new(bound.clone()) })
            };
            let (left, right) = (compared(BinaryOperator::GtEq, low), compared(BinaryOperator::LtEq, high));
            *expr = ast::Expr::Nested(Box::new(ast::Expr::BinaryOp { left, op: BinaryOperator::And, right }));
        }
        ControlFlow::Continue(())
    }
}

struct Count<'a> {
    places: &'a mut Places,
}

impl Visitor for Count<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &ast::Expr) -> ControlFlow<()> {
        // One in parentheses is counted within them.
        self.places.all += usize::from(matches!(expr, ast::Expr::Value(_)) && parameter(expr).is_some());
        self.places.compared += match expr {
            ast::Expr::BinaryOp { left, op, right } if is_comparison(op) => {
                let is_one =
                    (is_column(left) && parameter(right).is_some()) || (parameter(left).is_some() && is_column(right));
                usize::from(is_one)
            }
            ast::Expr::InList { expr, list, .. } if is_column(expr) => {
                list.iter().filter(|item| parameter(item).is_some()).count()
            }
            _ => 0,
        };
        ControlFlow::Continue(())
    }
}
