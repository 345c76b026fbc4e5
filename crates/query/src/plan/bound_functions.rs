//! Binds session and catalog functions to the session and catalog, and shows object numbers by name.
//!
//! `'t'::regclass` is a number looked up by name, `oid::regclass::text` a name looked up by number; a column of such a
//! type is shown by name. The object type of a number is in its field ([`door::carried_pg_type`]).

use crate::dialect::set_returning::SUBSCRIPTS;
use crate::functions::postgres::{VECTOR_SUBSCRIPTS, bound, class_name, class_number, is_one};
use crate::functions::scalar_named;
use crate::pg_catalog::Objects;
use crate::{Catalog, Result, door};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result as DFResult, ScalarValue};
use datafusion::logical_expr::expr::{Cast, ScalarFunction, TryCast};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, cast, lit};
use std::sync::Arc;
use tidalite_types::pg_type::{self, PgType};

/// Binds the functions of a plan.
///
/// The flag is true if there were any: the rows then depend on more than tables.
pub(crate) fn bound_functions(plan: LogicalPlan, catalog: &Arc<dyn Catalog>) -> Result<(LogicalPlan, bool)> {
    if !concerns_catalog(&plan)? {
        return Ok((plan, false));
    }
    let binder = Binder { objects: Arc::new(Objects::new(catalog.clone())) };
    let plan = plan.transform_up_with_subqueries(|node| binder.node(node))?.data;
    Ok((binder.named(plan)?, true))
}

/// Returns true if a plan uses session functions or object numbers.
fn concerns_catalog(plan: &LogicalPlan) -> DFResult<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            found |= scan.source.schema().fields().iter().any(|field| door::carried_pg_type(field).is_some());
        }
        node.apply_expressions(|expr| {
            expr.apply(|e| {
                found |= match e {
                    Expr::ScalarFunction(function) => is_one(&function.func),
                    Expr::Cast(Cast { field, .. }) | Expr::TryCast(TryCast { field, .. }) => {
                        door::carried_pg_type(field).is_some()
                    }
                    _ => false,
                };
                Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })
        })?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// `pg_typeof`, whose result the planner knows.
const PG_TYPEOF: &str = "pg_typeof";

struct Binder {
    objects: Arc<Objects>,
}

impl Binder {
    fn node(&self, node: LogicalPlan) -> DFResult<Transformed<LogicalPlan>> {
        let inputs = node.inputs();
        let schema = if inputs.is_empty() { node.schema().as_ref().clone() } else { merge_schema(&inputs) };
        let names = NamePreserver::new(&node);
        let node = node.map_expressions(|expr| {
            let name = names.save(&expr);
            let changed = expr.transform_up(|e| self.expr(e, &schema))?;
            Ok(changed.update_data(|e| name.restore(e)))
        })?;
        // The inputs may have other types now.
        Ok(Transformed::yes(node.data.recompute_schema()?))
    }

    fn expr(&self, expr: Expr, schema: &DFSchema) -> DFResult<Transformed<Expr>> {
        match expr {
            Expr::ScalarFunction(function) if function.name() == PG_TYPEOF => self.type_of(function, schema),
            Expr::ScalarFunction(function) => self.function(function, schema),
            Expr::Cast(Cast { expr, field }) => {
                self.cast(*expr, &field, schema, |expr, field| Expr::Cast(Cast::new_from_field(Box::new(expr), field)))
            }
            Expr::TryCast(TryCast { expr, field }) => self.cast(*expr, &field, schema, |expr, field| {
                Expr::TryCast(TryCast::new_from_field(Box::new(expr), field))
            }),
            Expr::BinaryExpr(binary) => self.binary(binary, schema),
            other => Ok(Transformed::no(other)),
        }
    }

    fn call(&self, name: &str, args: Vec<Expr>) -> DFResult<Expr> {
        let function = bound(name, &self.objects)
            .ok_or_else(|| crate::Error::internal(format!("function {name} is not there")))?;
        Ok(Expr::ScalarFunction(ScalarFunction::new_udf(function, args)))
    }

    fn function(&self, mut function: ScalarFunction, schema: &DFSchema) -> DFResult<Transformed<Expr>> {
        let is_vector = function.args.first().is_some_and(|of| is_vector(carried(of, schema)));
        match function.name() {
            // Vectors count from 0.
            "array_lower" if is_vector => return Ok(Transformed::yes(self.call("__vector_lower", function.args)?)),
            "array_upper" if is_vector => return Ok(Transformed::yes(self.call("__vector_upper", function.args)?)),
            SUBSCRIPTS if is_vector => {
                let subscripts = scalar_named(VECTOR_SUBSCRIPTS)
                    .ok_or_else(|| crate::Error::internal(format!("function {VECTOR_SUBSCRIPTS} is not there")))?;
                function.func = subscripts;
                return Ok(Transformed::yes(Expr::ScalarFunction(function)));
            }
            "array_element" if is_vector && function.args.len() == 2 => {
                let index = function.args.pop().unwrap_or_default() + lit(1_i64);
                function.args.push(index);
                return Ok(Transformed::yes(Expr::ScalarFunction(function)));
            }
            name if is_one(&function.func) => {
                let name = name.to_owned();
                return Ok(Transformed::yes(self.call(&name, function.args)?));
            }
            _ => {}
        }
        Ok(Transformed::no(Expr::ScalarFunction(function)))
    }

    /// Returns the type number of an expression, which does not depend on rows.
    fn type_of(&self, function: ScalarFunction, schema: &DFSchema) -> DFResult<Transformed<Expr>> {
        let of = match function.args.first() {
            Some(Expr::Literal(ScalarValue::Null, _)) | None => pg_type::UNKNOWN,
            // A string literal has no type of its own yet.
            Some(Expr::Literal(ScalarValue::Utf8(_) | ScalarValue::Utf8View(_), None)) => pg_type::UNKNOWN,
            Some(expr) => door::pg_type(&expr.to_field(schema)?.1),
        };
        let metadata = FieldMetadata::from(door::pg_field("", pg_type::REGTYPE).metadata());
        let number = ScalarValue::Int64(Some(i64::from(of.oid)));
        Ok(Transformed::yes(Expr::Literal(number, Some(metadata))))
    }

    fn cast(
        &self,
        expr: Expr,
        field: &Arc<Field>,
        schema: &DFSchema,
        make: fn(Expr, Arc<Field>) -> Expr,
    ) -> DFResult<Transformed<Expr>> {
        let (from, to) = (carried(&expr, schema), door::carried_pg_type(field));
        if let Some(read) = to.and_then(class_number)
            && is_text(&expr, schema)
        {
            return Ok(Transformed::yes(self.call(read, vec![expr])?));
        }
        if is_text_type(field.data_type()) {
            if let Some(write) = from.and_then(class_name) {
                return Ok(Transformed::yes(self.call(write, vec![expr])?));
            }
            if is_vector(from) {
                return Ok(Transformed::yes(self.call("__vector_out", vec![expr])?));
            }
        }
        // A cast that adds no type information keeps the metadata of its argument.
        if from.is_some() && to.is_none() && field.metadata().is_empty() {
            let plain = Field::new("", field.data_type().clone(), true);
            let of = door::pg_type(&plain);
            return Ok(Transformed::yes(make(expr, Arc::new(door::with_pg_type(plain, of)))));
        }
        Ok(Transformed::no(make(expr, field.clone())))
    }

    /// Compares an object number and a text by the number that the text names.
    fn binary(&self, binary: BinaryExpr, schema: &DFSchema) -> DFResult<Transformed<Expr>> {
        let BinaryExpr { left, op, right } = binary;
        let (of_left, of_right) = (carried(&left, schema), carried(&right, schema));
        let made = |left, right| Expr::BinaryExpr(BinaryExpr::new(left, op, right));
        if op == Operator::StringConcat {
            let (left, right) = (self.text(*left, of_left)?, self.text(*right, of_right)?);
            return Ok(Transformed::yes(made(Box::new(left), Box::new(right))));
        }
        if is_comparison(op) {
            if let Some(right) = constant_like(&left, &right, schema) {
                return Ok(Transformed::yes(made(left, Box::new(right))));
            }
            if let Some(left) = constant_like(&right, &left, schema) {
                return Ok(Transformed::yes(made(Box::new(left), right)));
            }
        }
        Ok(match (of_left, of_right) {
            (Some(of), _) if is_comparison(op) && is_text(&right, schema) => {
                let right = self.number(*right, of)?;
                Transformed::yes(made(left, Box::new(right)))
            }
            (_, Some(of)) if is_comparison(op) && is_text(&left, schema) => {
                let left = self.number(*left, of)?;
                Transformed::yes(made(Box::new(left), right))
            }
            _ => Transformed::no(made(left, right)),
        })
    }

    fn text(&self, expr: Expr, of: Option<PgType>) -> DFResult<Expr> {
        match of.and_then(class_name) {
            Some(write) => self.call(write, vec![expr]),
            None => Ok(expr),
        }
    }

    fn number(&self, expr: Expr, of: PgType) -> DFResult<Expr> {
        match class_number(of) {
            Some(read) => self.call(read, vec![expr]),
            None if of.is_object() => Ok(cast(expr, DataType::Int64)),
            None => Ok(expr),
        }
    }

    /// Returns the plan with object numbers shown by name.
    fn named(&self, plan: LogicalPlan) -> DFResult<LogicalPlan> {
        let write = |field: &Field| door::carried_pg_type(field).and_then(class_name);
        if !plan.schema().fields().iter().any(|field| write(field).is_some()) {
            return Ok(plan);
        }
        let columns = plan.schema().iter().map(|(relation, field)| {
            let column = Expr::Column((relation, field).into());
            match (write(field.as_ref()), door::carried_pg_type(field)) {
                (Some(write), Some(of)) => {
                    let mut metadata = field.metadata().clone();
                    metadata.extend(door::shown_as(of));
                    let metadata = FieldMetadata::from(metadata);
                    let name = self.call(write, vec![column])?;
                    Ok(name.alias_qualified_with_metadata(relation.cloned(), field.name().clone(), Some(metadata)))
                }
                _ => Ok(column),
            }
        });
        let columns = columns.collect::<DFResult<Vec<_>>>()?;
        LogicalPlanBuilder::from(plan).project(columns)?.build()
    }
}

/// Converts a string literal to the type of the other operand, if that is an array or a boolean.
fn constant_like(like: &Expr, value: &Expr, schema: &DFSchema) -> Option<Expr> {
    let Expr::Literal(value, _) = value else { return None };
    let text = value.try_as_str().flatten()?;
    match like.get_type(schema).ok()? {
        DataType::Boolean => Some(lit(match text {
            "t" | "true" => true,
            "f" | "false" => false,
            _ => return None,
        })),
        DataType::List(item) => {
            let items = text.trim().strip_prefix('{')?.strip_suffix('}')?;
            let items = items.split(',').map(str::trim).filter(|text| !text.is_empty());
            let items = items.map(|text| ScalarValue::try_from_string(text.to_owned(), item.data_type()).ok());
            let items = items.collect::<Option<Vec<_>>>()?;
            let list = ScalarValue::new_list_nullable(&items, item.data_type());
            Some(Expr::Literal(ScalarValue::List(list), None))
        }
        _ => None,
    }
}

/// Returns the type in the metadata of an expression's field.
fn carried(expr: &Expr, schema: &DFSchema) -> Option<PgType> {
    door::carried_pg_type(&expr.to_field(schema).ok()?.1)
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

fn is_vector(of: Option<PgType>) -> bool {
    matches!(of, Some(pg_type::INT2VECTOR | pg_type::OIDVECTOR))
}

fn is_text(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|of| is_text_type(&of))
}

fn is_text_type(of: &DataType) -> bool {
    matches!(of, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}
