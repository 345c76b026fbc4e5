//! A scalar function as a row of a table: what it takes, what it gives, and a loop over columns.
//!
//! What all of them have in common stands here: how many arguments there may be and of what kind, the words for
//! others, and that constants are worked out once.

use super::slow_rows::in_slices;
use super::times;
use crate::Error;
use datafusion::arrow::array::{Array, ArrayRef, Int64Array};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit, TimeUnit};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use tidalite_types::ColumnType;

/// What an argument is taken as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Long,
    Double,
    Time,
    /// Doubles in a list, or in lists of lists.
    Array,
    /// A number, or a list of them.
    DoubleOrArray,
    /// An integer, or doubles in a list.
    LongOrArray,
    /// A list of any items.
    List,
    /// Text or bytes.
    TextOrBytes,
    /// A timestamp, or an integer that counts its microseconds.
    TimeOrMicros,
    /// A timestamp, or an integer that counts its nanoseconds.
    TimeOrNanos,
    /// A decimal as it is; another number as a double.
    DoubleOrDecimal,
    /// An interval or a difference of times.
    Interval,
    /// An IPv4 address, or the text of one or of a network.
    Address,
    /// As it comes.
    Any,
}

/// What comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gives {
    Text,
    Bytes,
    Boolean,
    /// A JSON text.
    Json,
    /// A JSONB text.
    Jsonb,
    /// JSONB if the first argument is JSONB, else JSON.
    PartOfJson,
    Int,
    Long,
    Double,
    Address,
    Uuid,
    Micros,
    Nanos,
    /// The type of the only argument, marked as an instant.
    Instant,
    /// Nanoseconds of a time or interval, as a DECIMAL.
    Nanoseconds,
    Date,
    Interval,
    Time,
    Doubles,
    /// The type of this argument.
    Like(usize),
    /// The type of the argument with the most dimensions.
    Deeper,
}

pub(super) struct Scalar {
    pub name: &'static str,
    /// Behind "takes" when something else was given.
    pub takes: &'static str,
    pub kinds: &'static [Kind],
    /// How many of the kinds have to be there.
    pub least: usize,
    /// The last kind may come any number of times.
    pub is_variadic: bool,
    pub gives: Gives,
    /// Gives another value each time, so that it is asked for every row.
    pub is_volatile: bool,
    /// Computes a result type that depends on the values of constants; `gives` does not apply then.
    pub returns: Option<Returns>,
    pub call: fn(&Call) -> Result<ArrayRef>,
}

/// Computes a result type from argument types and the values of constants.
pub(super) type Returns = fn(&[DataType], &[Option<&ScalarValue>]) -> Result<DataType>;

/// What most functions are, to be changed where one is not.
pub(super) const PLAIN: Scalar = Scalar {
    name: "",
    takes: "",
    kinds: &[],
    least: usize::MAX,
    is_variadic: false,
    gives: Gives::Double,
    is_volatile: false,
    returns: None,
    call: |_| Ok(Arc::new(Int64Array::from(Vec::<i64>::new()))),
};

/// The arguments, columns of one length.
pub(super) struct Call<'a> {
    pub columns: &'a [ArrayRef],
    /// The fields of the columns, whose metadata names types such as JSON.
    pub fields: &'a [FieldRef],
    pub rows: usize,
    pub data_type: &'a DataType,
    pub name: &'static str,
}

pub(super) fn udf(of: &'static Scalar) -> ScalarUDF {
    let volatility = if of.is_volatile { Volatility::Volatile } else { Volatility::Immutable };
    let signature = Signature::user_defined(volatility);
    ScalarUDF::new_from_impl(Function { of, signature })
}

struct Function {
    of: &'static Scalar,
    signature: Signature,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.of.name)
    }
}

/// Names are unique.
impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        self.of.name == other.of.name
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.of.name.hash(state);
    }
}

impl Function {
    fn refused(&self) -> datafusion::common::DataFusionError {
        let mut error = Error::invalid(format!("{} takes {}", self.of.name, self.of.takes));
        error.subject = Some(self.of.name.to_owned());
        error.into()
    }

    fn coerced(&self, kind: Kind, given: &DataType) -> Result<DataType> {
        let is_text = matches!(given, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null);
        Ok(match kind {
            Kind::Any => given.clone(),
            Kind::Text if is_text => DataType::Utf8View,
            Kind::Long if given.is_integer() || *given == DataType::Null => DataType::Int64,
            Kind::Double | Kind::DoubleOrArray if double(given).is_some() => DataType::Float64,
            Kind::Time => times::timestamp_type(given, self.of.name)?,
            Kind::Array | Kind::DoubleOrArray => doubles(given).ok_or_else(|| self.refused())?,
            Kind::Interval if matches!(given, DataType::Interval(_) | DataType::Duration(_)) => given.clone(),
            Kind::Interval if is_text => DataType::Interval(IntervalUnit::MonthDayNano),
            Kind::Address if is_text => DataType::Utf8View,
            Kind::Address if given.is_integer() => DataType::UInt32,
            Kind::LongOrArray if given.is_integer() || *given == DataType::Null => DataType::Int64,
            Kind::LongOrArray => doubles(given).ok_or_else(|| self.refused())?,
            Kind::List => list(given).ok_or_else(|| self.refused())?,
            Kind::TextOrBytes if super::byte_lengths::are_bytes(given) => DataType::BinaryView,
            Kind::TextOrBytes if is_text => DataType::Utf8View,
            Kind::TimeOrMicros if given.is_integer() => MICROS,
            Kind::TimeOrNanos if given.is_integer() => NANOS,
            Kind::TimeOrMicros | Kind::TimeOrNanos => times::timestamp_type(given, self.of.name)?,
            Kind::DoubleOrDecimal if given.is_decimal() => given.clone(),
            Kind::DoubleOrDecimal if double(given).is_some() => DataType::Float64,
            _ => return Err(self.refused()),
        })
    }
}

/// Returns true for NULL; a column of the type NULL has no validity bitmap.
pub(super) fn is_null(column: &ArrayRef, row: usize) -> bool {
    column.data_type().is_null() || column.is_null(row)
}

const MICROS: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);
const NANOS: DataType = DataType::Timestamp(TimeUnit::Nanosecond, None);

/// Returns the plain list type of a list; NULL is an empty list of doubles.
fn list(given: &DataType) -> Option<DataType> {
    match given {
        DataType::Null => Some(crate::door::arrow_type(ColumnType::DoubleArray { dims: 1 })),
        DataType::List(_) => Some(given.clone()),
        DataType::LargeList(item) | DataType::FixedSizeList(item, _) => Some(DataType::List(item.clone())),
        _ => None,
    }
}

/// A number is taken as a double.
pub(super) fn double(given: &DataType) -> Option<DataType> {
    (given.is_numeric() || *given == DataType::Null).then_some(DataType::Float64)
}

/// The list, of any depth, with doubles in it.
pub(super) fn doubles(given: &DataType) -> Option<DataType> {
    let inner = match given {
        DataType::Null => return Some(crate::door::arrow_type(ColumnType::DoubleArray { dims: 1 })),
        DataType::List(inner) | DataType::LargeList(inner) | DataType::FixedSizeList(inner, _) => inner.data_type(),
        _ => return None,
    };
    let inner = if inner.is_numeric() || *inner == DataType::Null { DataType::Float64 } else { doubles(inner)? };
    Some(DataType::List(crate::door::item(inner)))
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.of.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let most = if self.of.is_variadic { usize::MAX } else { self.of.kinds.len() };
        if types.len() < self.of.least.min(self.of.kinds.len()) || types.len() > most {
            return Err(self.refused());
        }
        let last = self.of.kinds.len().saturating_sub(1);
        types.iter().enumerate().map(|(n, given)| self.coerced(self.of.kinds[n.min(last)], given)).collect()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(match self.of.gives {
            Gives::Text | Gives::Json | Gives::Jsonb | Gives::PartOfJson => DataType::Utf8View,
            Gives::Bytes => crate::door::arrow_type(ColumnType::Binary),
            Gives::Boolean => DataType::Boolean,
            Gives::Int => DataType::Int32,
            Gives::Long => DataType::Int64,
            Gives::Double => DataType::Float64,
            Gives::Address => DataType::UInt32,
            Gives::Uuid => crate::door::arrow_type(ColumnType::Uuid),
            Gives::Micros => crate::door::arrow_type(ColumnType::Timestamp(tidalite_types::TimeUnit::Micros)),
            Gives::Nanos => crate::door::arrow_type(ColumnType::Timestamp(tidalite_types::TimeUnit::Nanos)),
            Gives::Nanoseconds => super::time_casts::NANOS_TYPE,
            Gives::Date => DataType::Date32,
            Gives::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
            Gives::Time => DataType::Time64(TimeUnit::Nanosecond),
            Gives::Doubles => crate::door::arrow_type(ColumnType::DoubleArray { dims: 1 }),
            Gives::Deeper => {
                let depth = |t: &&DataType| super::element_wise::dimensions(t);
                types.iter().rev().max_by_key(depth).cloned().unwrap_or(DataType::Null)
            }
            Gives::Instant => types.first().cloned().unwrap_or(DataType::Null),
            Gives::Like(n) => types.get(n).cloned().unwrap_or(DataType::Null),
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|f| f.data_type().clone()).collect();
        if let Some(returns) = self.of.returns {
            return Ok(Arc::new(Field::new(self.of.name, returns(&types, args.scalar_arguments)?, true)));
        }
        if self.of.gives == Gives::Address {
            return Ok(crate::door::field(self.of.name, ColumnType::Ipv4, true));
        }
        let is_jsonb = |field: &FieldRef| crate::door::column_type(field) == Some(ColumnType::Jsonb);
        let json = match self.of.gives {
            Gives::Jsonb => Some(ColumnType::Jsonb),
            Gives::PartOfJson if args.arg_fields.first().is_some_and(is_jsonb) => Some(ColumnType::Jsonb),
            Gives::Json | Gives::PartOfJson => Some(ColumnType::Json),
            _ => None,
        };
        if let Some(json) = json {
            return Ok(crate::door::field(self.of.name, json, true));
        }
        if self.of.gives == Gives::Uuid {
            return Ok(crate::door::field(self.of.name, ColumnType::Uuid, true));
        }
        let field = Field::new(self.of.name, self.return_type(&types)?, true);
        Ok(Arc::new(if self.of.gives == Gives::Instant { crate::door::of_instants(field) } else { field }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        // A volatile function is called once for each row.
        if self.of.is_volatile { self.call(args) } else { in_slices(args, |args| self.call(args)) }
    }
}

impl Function {
    fn call(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = !self.of.is_volatile && args.args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { args.number_rows };
        let columns = args.args.iter().map(|a| a.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let (fields, data_type) = (&args.arg_fields[..], args.return_field.data_type());
        let call = Call { columns: &columns, fields, rows, data_type, name: self.of.name };
        let out = (self.of.call)(&call)?;
        if is_constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&out, 0)?));
        }
        Ok(ColumnarValue::Array(out))
    }
}
