//! Functions that clients of PostgreSQL call on their own: session information ([`session`]), catalog objects
//! ([`objects`], [`privileges`]), names and sizes ([`texts`]), and arrays ([`arrays`]).
//!
//! A function is one row of a table: argument types, result type, and a closure over the arguments of one row.
//! Functions of the session or the catalog are bound when a query is planned ([`crate::plan::bound_functions`]);
//! unbound functions see a database without tables.

mod arrays;
mod expand;
mod maintenance;
mod objects;
mod privileges;
mod session;
pub(crate) mod sleep;
mod texts;

pub(crate) use expand::VECTOR_SUBSCRIPTS;
pub(crate) use objects::{class_name, class_number};

use super::value_texts;
use crate::pg_catalog::{Objects, Value, array_of};
use crate::{Catalog, Error, door};
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use tidalite_storage::TableSnapshot;
use tidalite_types::pg_type::PgType;

/// The role that owns everything.
pub(crate) const OWNER: &str = "tidalite";

/// One function.
pub(super) struct Function {
    name: &'static str,
    /// The minimum and maximum number of arguments.
    arguments: (usize, usize),
    gives: PgType,
    /// True if NULL in a required argument gives NULL.
    is_strict: bool,
    volatility: Volatility,
    call: fn(&Objects, &Arguments) -> Result<Value>,
}

/// Creates a function of the session or the catalog: stable within a statement.
const fn function(
    name: &'static str,
    arguments: (usize, usize),
    gives: PgType,
    call: fn(&Objects, &Arguments) -> Result<Value>,
) -> Function {
    Function { name, arguments, gives, is_strict: true, volatility: Volatility::Stable, call }
}

/// Creates a function of its arguments alone. A plan that calls no others can be kept.
const fn immutable(
    name: &'static str,
    arguments: (usize, usize),
    gives: PgType,
    call: fn(&Objects, &Arguments) -> Result<Value>,
) -> Function {
    Function { volatility: Volatility::Immutable, ..function(name, arguments, gives, call) }
}

/// The arguments of one row.
pub(super) struct Arguments<'a> {
    columns: &'a [ArrayRef],
    row: usize,
}

impl Arguments<'_> {
    fn len(&self) -> usize {
        self.columns.len()
    }

    fn is_null(&self, n: usize) -> bool {
        self.columns.get(n).is_none_or(|column| column.is_null(self.row))
    }

    /// Returns an integer, or the integer that a text spells.
    fn int(&self, n: usize) -> Option<i64> {
        if self.is_null(n) {
            return None;
        }
        match self.columns[n].data_type() {
            DataType::Int64 => Some(self.columns[n].as_primitive::<Int64Type>().value(self.row)),
            DataType::Utf8View => self.text(n)?.trim().parse().ok(),
            _ => None,
        }
    }

    fn text(&self, n: usize) -> Option<&str> {
        let column = self.columns.get(n).filter(|column| !column.is_null(self.row))?;
        column.as_string_view_opt().map(|texts| texts.value(self.row))
    }

    fn flag(&self, n: usize) -> Option<bool> {
        let column = self.columns.get(n).filter(|column| !column.is_null(self.row))?;
        column.as_boolean_opt().map(|flags| flags.value(self.row))
    }

    /// Returns the text of a value of another type.
    fn other_text(&self, n: usize) -> Option<String> {
        self.columns.get(n).and_then(|column| value_texts::text_of(column, self.row).ok().flatten())
    }

    /// Returns the items of a list.
    fn list(&self, n: usize) -> Option<ArrayRef> {
        let column = self.columns.get(n).filter(|column| !column.is_null(self.row))?;
        column.as_list_opt::<i32>().map(|lists| lists.value(self.row))
    }
}

/// Converts numbers and texts to one type each; other types stay as they are.
fn canonical(column: &ArrayRef) -> Result<ArrayRef> {
    let wanted = match column.data_type() {
        t if t.is_integer() => DataType::Int64,
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Decimal128(..) | DataType::Float32 | DataType::Float64 => DataType::Utf8View,
        DataType::Dictionary(..) => DataType::Utf8View,
        _ => return Ok(column.clone()),
    };
    Ok(cast(column, &wanted)?)
}

fn all() -> impl Iterator<Item = &'static Function> {
    let groups: [&'static [Function]; 6] = [
        session::FUNCTIONS,
        objects::FUNCTIONS,
        privileges::FUNCTIONS,
        texts::FUNCTIONS,
        arrays::FUNCTIONS,
        maintenance::FUNCTIONS,
    ];
    groups.into_iter().flatten()
}

pub(super) fn functions() -> Vec<ScalarUDF> {
    let nothing = Arc::new(Objects::new(Arc::new(NoTables)));
    let own = all().map(|of| ScalarUDF::new_from_impl(Bound::new(of, nothing.clone())));
    own.chain(expand::functions()).chain(sleep::functions()).collect()
}

/// Returns the function with that name, bound to a database and a session.
pub(crate) fn bound(name: &str, objects: &Arc<Objects>) -> Option<Arc<ScalarUDF>> {
    let of = all().find(|function| function.name == name)?;
    Some(Arc::new(ScalarUDF::new_from_impl(Bound::new(of, objects.clone()))))
}

/// Returns true if a function is in this table and depends on the session or the catalog.
pub(crate) fn is_one(function: &ScalarUDF) -> bool {
    let bound = function.inner().downcast_ref::<Bound>();
    bound.is_some_and(|bound| bound.of.volatility != Volatility::Immutable)
}

#[derive(Debug)]
struct NoTables;

impl Catalog for NoTables {
    fn table_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn snapshots(&self, names: &[&str]) -> Vec<Option<Arc<TableSnapshot>>> {
        vec![None; names.len()]
    }
}

struct Bound {
    of: &'static Function,
    objects: Arc<Objects>,
    signature: Signature,
}

impl Bound {
    fn new(of: &'static Function, objects: Arc<Objects>) -> Bound {
        let signature = Signature::one_of(vec![TypeSignature::Nullary, TypeSignature::VariadicAny], of.volatility);
        Bound { of, objects, signature }
    }

    fn refused(&self) -> Error {
        let (least, most) = self.of.arguments;
        let count = if least == most { least.to_string() } else { format!("{least} to {most}") };
        Error::invalid(format!("function {} takes {count} arguments", self.of.name)).about(self.of.name)
    }
}

impl std::fmt::Debug for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.of.name)
    }
}

impl PartialEq for Bound {
    fn eq(&self, other: &Bound) -> bool {
        self.of.name == other.of.name && Arc::ptr_eq(&self.objects, &other.objects)
    }
}

impl Eq for Bound {}

impl Hash for Bound {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.of.name.hash(state);
    }
}

impl ScalarUDFImpl for Bound {
    fn name(&self) -> &str {
        self.of.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let (least, most) = self.of.arguments;
        if types.len() < least || types.len() > most {
            return Err(self.refused().into());
        }
        Ok(door::pg_field("", self.of.gives).data_type().clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|f| f.data_type().clone()).collect();
        self.return_type(&types)?;
        Ok(Arc::new(door::pg_field(self.of.name, self.of.gives)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = self.of.volatility != Volatility::Volatile
            && args.args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { args.number_rows };
        let columns = args.args.iter().map(|a| canonical(&a.to_array(rows)?)).collect::<Result<Vec<_>>>()?;
        let value = |row: usize| {
            let arguments = Arguments { columns: &columns, row };
            let is_null = self.of.is_strict && (0..self.of.arguments.0).any(|n| arguments.is_null(n));
            if is_null { Ok(Value::Null) } else { (self.of.call)(&self.objects, &arguments) }
        };
        let values = (0..rows).map(value).collect::<Result<Vec<_>>>()?;
        let array = array_of(&values, args.return_field.data_type())?;
        if is_constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?));
        }
        Ok(ColumnarValue::Array(array))
    }
}
