//! Scalars that clients of PostgreSQL ask of their own accord: who and where they are, how types are called, what
//! they may do. There is one database, one schema, one role.

use datafusion::arrow::array::{ArrayRef, Int64Array, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::cast::{as_int64_array, as_string_view_array};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use std::sync::Arc;
use tidalite_types::pg_type;

/// The role that owns everything.
pub(crate) const OWNER: &str = "tidalite";

pub(super) fn functions() -> Vec<ScalarUDF> {
    let text = |text: &str| ScalarValue::Utf8View(Some(text.to_owned()));
    let no_text = || ScalarValue::Utf8View(None);
    let yes = || ScalarValue::Boolean(Some(true));
    let schemas = ScalarValue::List(ScalarValue::new_list_nullable(&[text("public")], &DataType::Utf8View));
    let mut out: Vec<ScalarUDF> = [
        ("current_database", text(crate::tables::CATALOG)),
        ("current_catalog", text(crate::tables::CATALOG)),
        ("current_schema", text(crate::tables::SCHEMA)),
        ("current_schemas", schemas),
        ("current_user", text(OWNER)),
        ("session_user", text(OWNER)),
        ("pg_get_userbyid", text(OWNER)),
        ("pg_table_is_visible", yes()),
        ("pg_type_is_visible", yes()),
        ("pg_function_is_visible", yes()),
        ("has_table_privilege", yes()),
        ("has_schema_privilege", yes()),
        ("has_database_privilege", yes()),
        ("has_column_privilege", yes()),
        ("has_any_column_privilege", yes()),
        ("pg_is_in_recovery", ScalarValue::Boolean(Some(false))),
        ("pg_encoding_to_char", text("UTF8")),
        ("pg_get_expr", no_text()),
        ("pg_get_constraintdef", no_text()),
        ("pg_get_indexdef", no_text()),
        ("pg_get_viewdef", no_text()),
        ("pg_get_partkeydef", no_text()),
        ("obj_description", no_text()),
        ("col_description", no_text()),
        ("shobj_description", no_text()),
        ("pg_advisory_unlock_all", no_text()),
    ]
    .into_iter()
    .map(|(name, value)| ScalarUDF::new_from_impl(Constant::new(name, value)))
    .collect();
    let mapped = ["format_type", "to_regtype", "to_regclass", "quote_ident"];
    out.extend(mapped.map(|name| ScalarUDF::new_from_impl(Mapped::new(name))));
    out
}

/// The same answer to any arguments.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Constant {
    name: &'static str,
    value: ScalarValue,
    signature: Signature,
}

fn any_arguments() -> Signature {
    Signature::one_of(vec![TypeSignature::Nullary, TypeSignature::VariadicAny], Volatility::Stable)
}

impl Constant {
    fn new(name: &'static str, value: ScalarValue) -> Constant {
        Constant { name, value, signature: any_arguments() }
    }
}

impl ScalarUDFImpl for Constant {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.value.data_type())
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(self.value.clone()))
    }
}

/// A function of its first argument.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Mapped {
    name: &'static str,
    signature: Signature,
}

impl Mapped {
    fn new(name: &'static str) -> Mapped {
        Mapped { name, signature: any_arguments() }
    }
}

impl ScalarUDFImpl for Mapped {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(if self.name.starts_with("to_") { DataType::Int64 } else { DataType::Utf8View })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(first) = args.args.first() else {
            return Err(crate::Error::invalid(format!("{}() takes an argument", self.name)).into());
        };
        let first = first.to_array(args.number_rows)?;
        let (wanted, map): (DataType, fn(&ArrayRef) -> Result<ArrayRef>) = match self.name {
            "format_type" => (DataType::Int64, format_type),
            "to_regtype" => (DataType::Utf8View, to_regtype),
            "to_regclass" => (DataType::Utf8View, to_regclass),
            _ => (DataType::Utf8View, quote_ident),
        };
        Ok(ColumnarValue::Array(map(&cast(&first, &wanted)?)?))
    }
}

fn format_type(oids: &ArrayRef) -> Result<ArrayRef> {
    let name = |oid: i64| u32::try_from(oid).ok().and_then(pg_type::by_oid).map_or("???", |t| t.sql_name);
    Ok(Arc::new(as_int64_array(oids)?.iter().map(|oid| oid.map(name)).collect::<StringViewArray>()))
}

fn to_regtype(names: &ArrayRef) -> Result<ArrayRef> {
    let oid = |name: &str| {
        let found =
            pg_type::TYPES.iter().find(|t| name.eq_ignore_ascii_case(t.name) || name.eq_ignore_ascii_case(t.sql_name));
        found.map(|t| i64::from(t.oid))
    };
    Ok(Arc::new(as_string_view_array(names)?.iter().map(|name| name.and_then(oid)).collect::<Int64Array>()))
}

/// Numbers of the catalog's own tables; a user's table has its number in `pg_class`.
fn to_regclass(names: &ArrayRef) -> Result<ArrayRef> {
    let oid = |name: &str| crate::pg_catalog::oid(name.rsplit('.').next().unwrap_or(name));
    Ok(Arc::new(as_string_view_array(names)?.iter().map(|name| name.and_then(oid)).collect::<Int64Array>()))
}

fn quote_ident(names: &ArrayRef) -> Result<ArrayRef> {
    let quoted = |name: &str| {
        let is_plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if is_plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
    };
    Ok(Arc::new(as_string_view_array(names)?.iter().map(|name| name.map(quoted)).collect::<StringViewArray>()))
}
