//! Binds parameters: a value as a constant, a known type as NULL of the type.

use super::operators::text;
use super::{Binder, Parameters, Result, unsupported};
use crate::{Error, Parameter, door};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{Cast, Placeholder};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan, cast, lit};
use tidalite_sql::Span;
use tidalite_sql::ast::{self, Ident, ObjectName, TypeName};
use tidalite_types::ErrorKind;

impl Binder<'_> {
    /// Returns the value of `$number`.
    pub(super) fn value_of(&self, number: u32, span: Span) -> Result<&Parameter> {
        let Parameters::Values(values) = self.parameters else { return unsupported("value of a parameter", span) };
        let at = (number as usize).checked_sub(1);
        at.and_then(|at| values.get(at)).ok_or_else(|| {
            let error = Error::new(ErrorKind::NotFound, format!("there is no parameter ${number}"));
            error.at(span.start as usize).into()
        })
    }

    pub(super) fn parameter(&self, number: u32, span: Span) -> Result<Expr> {
        let Parameters::Types(types) = self.parameters else {
            return self.constant(self.value_of(number, span)?, span);
        };
        let known = (number as usize).checked_sub(1).and_then(|at| types.get(at)).cloned().flatten();
        let null = || Box::new(Expr::Literal(ScalarValue::Null, None));
        Ok(match known {
            Some(field) => Expr::Cast(Cast::new_from_field(null(), field)),
            None => Expr::Placeholder(Placeholder::new_with_field(format!("${number}"), None)),
        })
    }

    /// Returns true for a parameter whose value and type are unknown.
    pub(super) fn is_untyped(&self, expr: &ast::Expr) -> bool {
        let (ast::ExprKind::Parameter(number), Parameters::Types(types)) = (&expr.kind, self.parameters) else {
            return false;
        };
        (*number as usize).checked_sub(1).and_then(|at| types.get(at)).is_none_or(Option::is_none)
    }

    /// Returns a parameter as items of IN: a list stands for its items.
    pub(super) fn parameter_items(&self, number: u32, span: Span) -> Result<Vec<Expr>> {
        match self.parameters {
            Parameters::Values(_) => match self.value_of(number, span)? {
                Parameter::List(items) => items.iter().map(|item| self.constant(item, span)).collect(),
                value => Ok(vec![self.constant(value, span)?]),
            },
            Parameters::Types(_) => Ok(vec![self.parameter(number, span)?]),
        }
    }

    pub(super) fn constant(&self, value: &Parameter, span: Span) -> Result<Expr> {
        Ok(match value {
            Parameter::Null => Expr::Literal(ScalarValue::Null, None),
            Parameter::Boolean(value) => lit(*value),
            Parameter::Long(value) => lit(*value),
            // A value of type DOUBLE, also beside a DECIMAL, unlike a literal.
            Parameter::Double(value) => cast(lit(*value), DataType::Float64),
            Parameter::Decimal(digits) => return self.decimal_parameter(digits, span),
            Parameter::Text(value) => text(value.as_str()),
            Parameter::Bytes(value) => lit(value.clone()),
            Parameter::Typed(value, column_type) => {
                let field = door::field("", *column_type, true);
                Expr::Cast(Cast::new_from_field(Box::new(text(value.as_str())), field))
            }
            Parameter::Of(value, of) => {
                let name = Ident { value: of.name.to_owned(), quote: None, span };
                let name = ObjectName { parts: vec![name], span };
                let of = TypeName { name, args: Vec::new(), dimensions: Vec::new(), with_time_zone: None, span };
                Expr::Cast(Cast::new_from_field(Box::new(text(value.as_str())), self.type_field(&of)?))
            }
            Parameter::List(items) => {
                let items = items.iter().map(|item| self.constant(item, span)).collect::<Result<Vec<_>>>()?;
                return self.array_of(items, &DFSchema::empty());
            }
        })
    }

    /// Returns a decimal with as many digits as it has, or a double that keeps them.
    fn decimal_parameter(&self, digits: &str, span: Span) -> Result<Expr> {
        const DOUBLE_DIGITS: usize = 15;
        const DECIMAL_DIGITS: usize = 38;
        let unsigned = digits.trim_start_matches(['-', '+']);
        if let Some((whole, fraction)) = unsigned.split_once('.') {
            let count = whole.len() + fraction.len();
            if (DOUBLE_DIGITS + 1..=DECIMAL_DIGITS).contains(&count)
                && let (Ok(precision), Ok(scale)) = (u8::try_from(count), i8::try_from(fraction.len()))
            {
                let decimal = DataType::Decimal128(precision, scale);
                return Ok(Expr::Cast(Cast::new(Box::new(text(digits)), decimal)));
            }
        }
        self.number(unsigned, digits.starts_with('-'), span)
    }
}

/// Gives each parameter without a type the type of the expression that it is compared with.
pub(super) fn with_inferred_types(plan: LogicalPlan) -> datafusion::common::Result<LogicalPlan> {
    let inferred = plan.transform_up_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        let inferred = node.map_expressions(|expr| {
            let (expr, has_parameters) = expr.infer_placeholder_types(&schema)?;
            Ok(if has_parameters { Transformed::yes(expr) } else { Transformed::no(expr) })
        })?;
        if inferred.transformed { inferred.map_data(LogicalPlan::recompute_schema) } else { Ok(inferred) }
    });
    Ok(inferred?.data)
}
