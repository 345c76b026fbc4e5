//! Stock functions with a guard in front of them.
//!
//! Some make much out of little: `repeat('x', 1000000000)`. What they would give is added up first, and refused when it
//! is more than [`bytes_max`], before the memory is asked for. Others choose among arguments of one type, where text
//! beside timestamps is a timestamp. `nullif` and searches in arrays hold −0 and 0 for equal, as all comparisons do. Lengths are those of bytes,
//! too ([`byte_lengths`](super::byte_lengths)). For some a quicker way is known where their arguments allow it
//! ([`quick_text`](super::quick_text)). Calls that take long see that their statement is cancelled
//! ([`slow_rows`](super::slow_rows)).

use super::array_values::with_empty_nulls;
use super::byte_lengths::{are_bytes, lengths};
use super::floats::{is_float, key_values};
use super::members::has_members;
use super::nested;
use super::quick_text::{Quick, char_lengths_of, groups_of};
use super::regexps::{MatchCounter, with_known_flags, with_template};
use super::slow_rows::{check_trim, in_slices, levenshtein, with_constant_needles};
use super::times;
use super::value_texts;
use crate::engine::current_memory_limit;
use crate::{Error, door};
use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::kernels::cmp::eq;
use datafusion::arrow::compute::{cast, nullif};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_nested::array_has::{array_has_any_udf, array_has_udf};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Bytes of the result of one call, for a batch of rows.
pub(super) const BYTES_MAX: usize = 256 << 20;
/// A result takes at most this part of the memory of its statement.
const STATEMENT_PARTS: usize = 4;

/// Returns the number of bytes that the result of one call may have.
pub(super) fn bytes_max() -> usize {
    BYTES_MAX.min(current_memory_limit() / STATEMENT_PARTS)
}

/// What is worked out once and kept as a constant.
const FOLDED_BYTES_MAX: u128 = 16 << 10;

/// How many bytes a row of the arguments gives.
type Size = fn(&[ColumnarValue], usize) -> u128;

#[derive(Clone, Copy)]
enum Guard {
    Size(Size),
    /// The size of the result of one row; rows of long text may take milliseconds.
    RowSize(Size),
    Types,
    /// As [`Guard::Types`], with [`nested::order`] for arrays and rows. A value with this ordering replaces the result.
    Best(Ordering),
    Nullif,
    /// The second argument is a regular expression, which gets the flags of PostgreSQL ([`takes_pattern`]).
    Pattern,
    /// As [`Guard::Pattern`], with a fast path; the size of the result of one row is limited.
    Replace(Quick),
    /// The function compares elements by their bits; its arguments get one zero, as comparisons have it.
    OneZero,
    /// How many units of the length a byte has, and how those of text are quickly had.
    Length(i32, Option<Quick>),
    /// A row of long text may take milliseconds.
    Slow,
    /// The function reads the values below a NULL array, which may be those of another array.
    EmptyNulls,
    /// As [`Guard::Slow`]; items of an array have the texts of casts.
    ItemTexts,
    /// As these; texts and characters to trim are not both long.
    Trim,
    /// The second argument is searched in the first.
    Needle,
    Levenshtein,
    /// As [`Guard::OneZero`]; all members are wanted, or any.
    Members {
        is_all: bool,
    },
}

impl Guard {
    /// Returns true for functions of arrays that operators stand for.
    fn is_of_operators(self) -> bool {
        matches!(self, Guard::OneZero | Guard::Members { .. } | Guard::EmptyNulls)
    }
}

/// Bytes of a text above which its separators are counted; below, each byte may be one.
const SIZE_COUNTED: usize = 64 << 10;

const GUARDS: &[(&str, Guard)] = &[
    ("repeat", Guard::Size(|args, row| bytes(args, 0, row) * count(args, 1, row))),
    ("lpad", Guard::Size(padded)),
    ("rpad", Guard::Size(padded)),
    ("replace", Guard::Size(replaced)),
    ("concat", Guard::Size(|args, row| (0..args.len()).map(|n| bytes(args, n, row)).sum())),
    ("concat_ws", Guard::Size(|args, row| (0..args.len()).map(|n| bytes(args, n, row) + bytes(args, 0, row)).sum())),
    ("array_repeat", Guard::Size(|args, row| item_bytes(args, 0, row) * count(args, 1, row))),
    ("array_resize", Guard::Size(|args, row| item_bytes(args, 2, row) * count(args, 1, row))),
    ("range", Guard::Size(steps)),
    ("generate_series", Guard::Size(steps)),
    ("coalesce", Guard::Types),
    ("nvl", Guard::Types),
    ("greatest", Guard::Best(Ordering::Greater)),
    ("least", Guard::Best(Ordering::Less)),
    ("nullif", Guard::Nullif),
    ("regexp_like", Guard::Pattern),
    ("regexp_match", Guard::Pattern),
    ("regexp_count", Guard::Pattern),
    ("regexp_replace", Guard::Replace(groups_of)),
    ("array_has", Guard::OneZero),
    ("array_has_all", Guard::Members { is_all: true }),
    ("array_has_any", Guard::Members { is_all: false }),
    ("array_position", Guard::OneZero),
    ("array_positions", Guard::OneZero),
    ("array_remove", Guard::OneZero),
    ("array_remove_n", Guard::OneZero),
    ("array_remove_all", Guard::OneZero),
    ("array_replace", Guard::OneZero),
    ("array_replace_n", Guard::OneZero),
    ("array_replace_all", Guard::OneZero),
    ("array_append", Guard::EmptyNulls),
    ("array_prepend", Guard::EmptyNulls),
    ("array_concat", Guard::EmptyNulls),
    ("array_distinct", Guard::OneZero),
    ("array_union", Guard::OneZero),
    ("array_intersect", Guard::OneZero),
    ("array_except", Guard::OneZero),
    ("character_length", Guard::Length(1, Some(char_lengths_of))),
    ("octet_length", Guard::Length(1, None)),
    ("bit_length", Guard::Length(8, None)),
    ("levenshtein", Guard::Levenshtein),
    ("strpos", Guard::Needle),
    ("btrim", Guard::Trim),
    ("ltrim", Guard::Trim),
    ("rtrim", Guard::Trim),
    ("lower", Guard::Slow),
    ("upper", Guard::Slow),
    ("initcap", Guard::Slow),
    ("reverse", Guard::Slow),
    ("translate", Guard::Slow),
    ("split_part", Guard::Slow),
    ("substr_index", Guard::Slow),
    ("overlay", Guard::Slow),
    ("find_in_set", Guard::Slow),
    ("md5", Guard::Slow),
    ("sha224", Guard::Slow),
    ("sha256", Guard::Slow),
    ("sha384", Guard::Slow),
    ("sha512", Guard::Slow),
    ("array_to_string", Guard::ItemTexts),
    ("string_to_array", Guard::RowSize(separated)),
];

pub(super) fn functions() -> Vec<ScalarUDF> {
    let stock = datafusion::functions::all_default_functions();
    let nested = datafusion::functions_nested::all_default_nested_functions();
    let all = stock.into_iter().chain(nested);
    all.filter_map(|inner| with_guard(&inner)).collect()
}

/// Returns a stock function with its guard, if it has one.
pub(super) fn guarded(inner: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    with_guard(&inner).map_or(inner, Arc::new)
}

/// Returns `array_has(array, value)`.
pub(crate) fn array_has(array: Expr, value: Expr) -> Expr {
    call(array_has_udf(), vec![array, value])
}

/// Returns `array_has_any(left, right)`.
pub(crate) fn array_has_any(left: Expr, right: Expr) -> Expr {
    call(array_has_any_udf(), vec![left, right])
}

fn call(stock: Arc<ScalarUDF>, args: Vec<Expr>) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(guarded(stock), args))
}

fn with_guard(inner: &Arc<ScalarUDF>) -> Option<ScalarUDF> {
    let (_, guard) = GUARDS.iter().find(|(name, _)| *name == inner.name())?;
    let signature = match guard {
        Guard::Nullif | Guard::Length(..) => Signature::user_defined(Volatility::Immutable),
        _ => inner.signature().clone(),
    };
    Some(ScalarUDF::new_from_impl(Guarded { inner: inner.clone(), guard: *guard, signature }))
}

/// Returns a call that a stock planner made for an operator of arrays (`array @> array`, `array || value`), with its guard.
pub(crate) fn guarded_call(function: &ScalarFunction) -> Option<ScalarFunction> {
    let guarded = with_guard(&function.func)?;
    let guard = guarded.inner().downcast_ref::<Guarded>()?.guard;
    let is_stock = function.func.inner().downcast_ref::<Guarded>().is_none();
    (is_stock && guard.is_of_operators()).then(|| ScalarFunction::new_udf(Arc::new(guarded), function.args.clone()))
}

/// Returns true if the second argument of a stock function is a regular expression.
pub(crate) fn takes_pattern(function: &ScalarUDF) -> bool {
    let guarded = function.inner().downcast_ref::<Guarded>();
    guarded.is_some_and(|guarded| matches!(guarded.guard, Guard::Pattern | Guard::Replace(_)))
}

/// The function to call instead when its arguments are constants that make much: one that is not worked out once, since
/// a constant is written out for each row of a batch without asking whether there is room.
pub(crate) fn unfolded(function: &ScalarFunction) -> Option<ScalarFunction> {
    let guarded = function.func.inner().downcast_ref::<Guarded>()?;
    let Guard::Size(size) = guarded.guard else { return None };
    let literal = |expr: &Expr| match expr {
        Expr::Literal(value, _) => Some(ColumnarValue::Scalar(value.clone())),
        _ => None,
    };
    let values = function.args.iter().map(literal).collect::<Option<Vec<_>>>()?;
    if guarded.signature.volatility == Volatility::Volatile || size(&values, 0) <= FOLDED_BYTES_MAX {
        return None;
    }
    let mut signature = guarded.signature.clone();
    signature.volatility = Volatility::Volatile;
    let twin = Guarded { inner: guarded.inner.clone(), guard: guarded.guard, signature };
    Some(ScalarFunction::new_udf(Arc::new(ScalarUDF::new_from_impl(twin)), function.args.clone()))
}

struct Guarded {
    inner: Arc<ScalarUDF>,
    guard: Guard,
    signature: Signature,
}

impl std::fmt::Debug for Guarded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.inner.name())
    }
}

/// Names are unique, but for twins that are not worked out once.
impl PartialEq for Guarded {
    fn eq(&self, other: &Guarded) -> bool {
        self.inner.name() == other.inner.name() && self.signature.volatility == other.signature.volatility
    }
}

impl Eq for Guarded {}

impl Hash for Guarded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.name().hash(state);
    }
}

/// Returns the error for a call whose result would be larger than [`bytes_max`].
pub(super) fn too_large(name: &str) -> Error {
    Error::invalid(format!("the result of {name} would be larger than {} MiB", bytes_max() >> 20)).about(name)
}

impl Guarded {
    fn quickly(&self, quick: Quick, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match quick(&args, &self.inner)? {
            Some(array) => Ok(ColumnarValue::Array(array)),
            None => self.inner.invoke_with_args(args),
        }
    }

    /// Refuses a call that would make too much.
    fn check_size(&self, size: impl Fn(&[ColumnarValue], usize) -> u128, args: &ScalarFunctionArgs) -> Result<()> {
        let bytes_max = bytes_max() as u128;
        let is_constant = args.args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_)));
        let (rows, times) = if is_constant { (1, args.number_rows) } else { (args.number_rows, 1) };
        let mut bytes = 0_u128;
        for row in 0..rows {
            bytes = bytes.saturating_add(size(&args.args, row).saturating_mul(times as u128));
            if bytes > bytes_max {
                return Err(too_large(self.inner.name()).into());
            }
        }
        Ok(())
    }

    /// Refuses a call with a row whose result would be too large; the rows of a batch are computed in slices.
    fn check_rows(
        &self,
        args: &ScalarFunctionArgs,
        size: impl Fn(&[ColumnarValue], usize) -> Result<u128>,
    ) -> Result<()> {
        let bytes_max = bytes_max() as u128;
        let is_constant = args.args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_)));
        for row in 0..if is_constant { args.number_rows.min(1) } else { args.number_rows } {
            if size(&args.args, row)? > bytes_max {
                return Err(too_large(self.inner.name()).into());
            }
        }
        Ok(())
    }

    /// Computes some rows.
    fn call(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match self.guard {
            Guard::Best(better) if nested::is_nested(args.return_field.data_type()) => {
                Ok(ColumnarValue::Array(nested::best(&args.args, args.number_rows, better)?))
            }
            Guard::Size(_) | Guard::RowSize(_) | Guard::Types | Guard::Best(_) | Guard::Slow => {
                self.inner.invoke_with_args(args)
            }
            Guard::EmptyNulls => self.inner.invoke_with_args(with_empty_nulls(args)?),
            Guard::ItemTexts => self.inner.invoke_with_args(value_texts::with_item_texts(args)?),
            Guard::Pattern => with_known_flags(args, self.name(), |args| self.inner.invoke_with_args(args)),
            Guard::OneZero => self.inner.invoke_with_args(with_one_zero(args)?),
            Guard::Members { is_all } => has_members(with_one_zero(args)?, &self.inner, is_all),
            Guard::Levenshtein => levenshtein(args, &self.inner),
            Guard::Needle => with_constant_needles(args, &self.inner),
            Guard::Trim => {
                check_trim(&args, self.inner.name())?;
                self.inner.invoke_with_args(args)
            }
            Guard::Nullif => nullif_of(&args),
            Guard::Replace(quick) => match quick(&args, &self.inner)? {
                Some(array) => Ok(ColumnarValue::Array(array)),
                None => with_known_flags(args, self.name(), |args| self.inner.invoke_with_args(with_template(args)?)),
            },
            Guard::Length(units, quick) => match (args.args.first(), quick) {
                (Some(value), _) if are_bytes(&value.data_type()) => {
                    Ok(ColumnarValue::Array(lengths(&value.to_array(args.number_rows)?, units)?))
                }
                (_, Some(quick)) => self.quickly(quick, args),
                _ => self.inner.invoke_with_args(args),
            },
        }
    }
}

fn with_one_zero(args: ScalarFunctionArgs) -> Result<ScalarFunctionArgs> {
    Ok(ScalarFunctionArgs { args: args.args.iter().map(one_zero).collect::<Result<_>>()?, ..args })
}

impl ScalarUDFImpl for Guarded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let chooses = matches!(self.guard, Guard::Types | Guard::Best(_) | Guard::Nullif);
        if let Some(time) = times_beside_text(types).filter(|_| chooses) {
            return Ok(vec![time; types.len()]);
        }
        if matches!(self.guard, Guard::Nullif) {
            let [first, second] = types else {
                return Err(Error::invalid("nullif takes two values").into());
            };
            let both = comparison_coercion(first, second);
            let name = |of: &DataType| door::type_name(&Field::new("", of.clone(), true));
            let refused = || Error::invalid(format!("nullif cannot compare {} and {}", name(first), name(second)));
            let both = both.ok_or_else(refused)?;
            return Ok(vec![both; 2]);
        }
        if matches!(self.guard, Guard::Length(..)) {
            if matches!(types, [only] if are_bytes(only)) {
                return Ok(types.to_vec());
            }
            let fields: Vec<FieldRef> = types.iter().map(|t| Arc::new(Field::new("", t.clone(), true))).collect();
            let coerced = fields_with_udf(&fields, self.inner.as_ref())?;
            return Ok(coerced.iter().map(|field| field.data_type().clone()).collect());
        }
        self.inner.coerce_types(types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match self.guard {
            Guard::Length(..) if types.first().is_some_and(are_bytes) => Ok(DataType::Int32),
            _ => self.inner.return_type(types),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        match (self.guard, args.arg_fields.first()) {
            (Guard::Length(..), Some(field)) if are_bytes(field.data_type()) => {
                Ok(Arc::new(Field::new(self.name(), DataType::Int32, true)))
            }
            _ => self.inner.return_field_from_args(args),
        }
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn short_circuits(&self) -> bool {
        self.inner.short_circuits()
    }

    fn conditional_arguments<'a>(&self, args: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.inner.conditional_arguments(args)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        match self.guard {
            // What the stock function would make of itself has no guard.
            Guard::Size(_) => Ok(ExprSimplifyResult::Original(args)),
            _ => self.inner.simplify(args, info),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match self.guard {
            Guard::Size(size) => self.check_size(size, &args)?,
            Guard::RowSize(size) => self.check_rows(&args, |args, row| Ok(size(args, row)))?,
            // The matches of a row are counted only if their number decides.
            Guard::Replace(_) if self.check_rows(&args, |args, row| Ok(replaced_at_most(args, row))).is_err() => {
                let matches = MatchCounter::default();
                self.check_rows(&args, |args, row| replaced_bytes(&matches, args, row))?;
            }
            _ => {}
        }
        match self.guard {
            Guard::Types | Guard::Best(_) | Guard::Nullif | Guard::Length(..) => self.call(args),
            _ => in_slices(args, |args| self.call(args)),
        }
    }
}

/// The type of timestamps, when that and text is all there is.
fn times_beside_text(types: &[DataType]) -> Option<DataType> {
    let is_text = |t: &DataType| matches!(t, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let is_time = |t: &DataType| matches!(t, DataType::Timestamp(_, None));
    let is_all = types.iter().all(|t| is_text(t) || is_time(t) || *t == DataType::Null);
    let times = types.iter().filter(|t| is_time(t));
    let finest = times.max_by_key(|t| times::unit(t).map_or(0, |unit| unit.per_second()))?;
    (is_all && types.iter().any(is_text)).then(|| finest.clone())
}

fn nullif_of(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let arrays = ColumnarValue::values_to_arrays(&args.args)?;
    let [first, second] = &arrays[..] else { return Err(Error::internal("nullif of other than two").into()) };
    let is_equal = match nested::is_nested(first.data_type()) {
        true => nested::equal(first, second)?,
        false => eq(&key_values(first), &key_values(second))?,
    };
    let out = nullif(first, &is_equal)?;
    if args.args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_))) {
        return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&out, 0)?));
    }
    Ok(ColumnarValue::Array(out))
}

/// Returns a value with one zero and one NaN, also within arrays.
fn one_zero(value: &ColumnarValue) -> Result<ColumnarValue> {
    if !is_float(&value.data_type()) {
        return Ok(value.clone());
    }
    Ok(match value {
        ColumnarValue::Array(array) => ColumnarValue::Array(key_values(array)),
        ColumnarValue::Scalar(value) => {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&key_values(&value.to_array()?), 0)?)
        }
    })
}

/// The bytes of a text; 32 for what becomes one.
fn bytes(args: &[ColumnarValue], n: usize, row: usize) -> u128 {
    let length = match args.get(n) {
        Some(ColumnarValue::Scalar(
            ScalarValue::Utf8(Some(text)) | ScalarValue::LargeUtf8(Some(text)) | ScalarValue::Utf8View(Some(text)),
        )) => text.len(),
        Some(ColumnarValue::Scalar(value)) if value.is_null() => 0,
        Some(ColumnarValue::Array(array)) if array.is_null(row) => 0,
        Some(ColumnarValue::Array(array)) => match array.data_type() {
            DataType::Utf8 => array.as_string::<i32>().value(row).len(),
            DataType::LargeUtf8 => array.as_string::<i64>().value(row).len(),
            DataType::Utf8View => array.as_string_view().value(row).len(),
            _ => 32,
        },
        Some(_) => 32,
        None => 0,
    };
    length as u128
}

/// The bytes of any one value.
fn item_bytes(args: &[ColumnarValue], n: usize, row: usize) -> u128 {
    let nested = match args.get(n) {
        Some(ColumnarValue::Scalar(ScalarValue::List(list))) => list.values().get_array_memory_size(),
        Some(ColumnarValue::Array(array)) if matches!(array.data_type(), DataType::List(_)) => {
            array.as_list::<i32>().value(row).get_array_memory_size()
        }
        _ => 0,
    };
    (bytes(args, n, row) + nested as u128).max(8)
}

fn integer(args: &[ColumnarValue], n: usize, row: usize) -> Option<i64> {
    match args.get(n)? {
        ColumnarValue::Scalar(value) => match value.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(value)) => value,
            _ => None,
        },
        ColumnarValue::Array(array) => {
            let one = cast(&array.slice(row, 1), &DataType::Int64).ok()?;
            let one = one.as_primitive::<Int64Type>();
            one.is_valid(0).then(|| one.value(0))
        }
    }
}

fn count(args: &[ColumnarValue], n: usize, row: usize) -> u128 {
    integer(args, n, row).and_then(|count| u128::try_from(count).ok()).unwrap_or(0)
}

fn padded(args: &[ColumnarValue], row: usize) -> u128 {
    // Of a text to fill with, one character may have four bytes.
    count(args, 1, row) * if args.len() > 2 { 4 } else { 1 }
}

/// As if all of the text were what is replaced.
fn replaced(args: &[ColumnarValue], row: usize) -> u128 {
    let (text, from, to) = (bytes(args, 0, row), bytes(args, 1, row), bytes(args, 2, row));
    if to <= from { text } else { text / from.max(1) * to + text }
}

/// The text and a view for each item. The items of a long text are counted.
fn separated(args: &[ColumnarValue], row: usize) -> u128 {
    const VIEW_BYTES: u128 = 16;
    let (text, separator) = (bytes(args, 0, row), bytes(args, 1, row));
    let items = match (text_of(args, 0, row), text_of(args, 1, row)) {
        (Some(text), Some(separator)) if text.len() > SIZE_COUNTED && !separator.is_empty() => {
            text.matches(separator).count() as u128
        }
        _ => text / separator.max(1),
    };
    text + VIEW_BYTES * (items + 1)
}

/// A text; `None` for NULL and other types.
fn text_of(args: &[ColumnarValue], n: usize, row: usize) -> Option<&str> {
    match args.get(n)? {
        ColumnarValue::Scalar(ScalarValue::Utf8(text) | ScalarValue::LargeUtf8(text) | ScalarValue::Utf8View(text)) => {
            text.as_deref()
        }
        ColumnarValue::Scalar(_) => None,
        ColumnarValue::Array(array) if array.is_null(row) => None,
        ColumnarValue::Array(array) => match array.data_type() {
            DataType::Utf8 => Some(array.as_string::<i32>().value(row)),
            DataType::LargeUtf8 => Some(array.as_string::<i64>().value(row)),
            DataType::Utf8View => Some(array.as_string_view().value(row)),
            _ => None,
        },
    }
}

/// An upper bound of the result of `regexp_replace`: each character may match.
fn replaced_at_most(args: &[ColumnarValue], row: usize) -> u128 {
    let (text, with) = (bytes(args, 0, row), bytes(args, 2, row));
    match is_global(args, row) {
        true => replaced_with(args, row, text + 1),
        false => text + with + text * references(args, row),
    }
}

/// The result of `regexp_replace`, with its matches counted.
///
/// # Errors
/// The statement is cancelled.
fn replaced_bytes(matches: &MatchCounter, args: &[ColumnarValue], row: usize) -> Result<u128> {
    match (text_of(args, 0, row), text_of(args, 1, row)) {
        (Some(text), Some(pattern)) if is_global(args, row) => {
            let count = matches.count(text, pattern, text_of(args, 3, row).unwrap_or_default())?;
            Ok(replaced_with(args, row, count))
        }
        _ => Ok(replaced_at_most(args, row)),
    }
}

/// The text, a replacement for each match, and the text again for each group that a replacement names.
fn replaced_with(args: &[ColumnarValue], row: usize, matches: u128) -> u128 {
    let (text, with) = (bytes(args, 0, row), bytes(args, 2, row));
    text + matches * with + text * references(args, row)
}

/// Groups that the replacement may name, such as `\\1` or `$1`.
fn references(args: &[ColumnarValue], row: usize) -> u128 {
    text_of(args, 2, row).map_or(0, |text| text.bytes().filter(|byte| matches!(byte, b'\\' | b'$')).count() as u128)
}

fn is_global(args: &[ColumnarValue], row: usize) -> bool {
    text_of(args, 3, row).is_some_and(|flags| flags.contains('g'))
}

fn steps(args: &[ColumnarValue], row: usize) -> u128 {
    let is_time = |value: &ColumnarValue| !value.data_type().is_integer();
    if args.first().is_some_and(is_time) {
        return 8;
    }
    let (start, end) = match args.len() {
        1 => (Some(0), integer(args, 0, row)),
        _ => (integer(args, 0, row), integer(args, 1, row)),
    };
    let step = if args.len() > 2 { integer(args, 2, row) } else { Some(1) };
    match (start, end, step) {
        (Some(start), Some(end), Some(step)) if step != 0 => {
            8 * (u128::from(start.abs_diff(end)) / u128::from(step.unsigned_abs()) + 1)
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long_x() -> String {
        "x".repeat(1_000)
    }

    fn long(value: i64) -> ColumnarValue {
        ColumnarValue::Scalar(ScalarValue::Int64(Some(value)))
    }

    #[test]
    fn what_a_call_gives_is_known_before_it_is_made() {
        let text = ColumnarValue::Scalar(ScalarValue::from("abc"));
        assert_eq!(bytes(std::slice::from_ref(&text), 0, 0) * count(&[text.clone(), long(4)], 1, 0), 12);
        assert_eq!(count(&[text.clone(), long(-4)], 1, 0), 0);
        assert_eq!(steps(&[long(i64::MIN), long(i64::MAX)], 0), 8 << 64);
        assert_eq!(steps(&[long(1), long(10), long(-3)], 0), 32);
        assert_eq!(replaced(&[text.clone(), text.clone(), text], 0), 3);
        let list = |text: &str| ColumnarValue::Scalar(ScalarValue::Utf8(Some(text.to_owned())));
        let flags = |flags: &str| [list(&long_x()), list("x"), list("yyyy"), list(flags)];
        assert_eq!(replaced_at_most(&flags(""), 0), 1_004);
        assert_eq!(replaced_at_most(&flags("g"), 0), 1_000 + 4 * 1_001);
        let matches = MatchCounter::default();
        let counted = |args: &[ColumnarValue]| replaced_bytes(&matches, args, 0).unwrap();
        assert_eq!(counted(&flags("gi")), 1_000 + 4 * 1_000);
        let none = [list(&long_x()), list("z"), list("yyyy"), list("g")];
        assert_eq!(counted(&none), 1_000);
        let broken = [list(&long_x()), list("("), list("yyyy"), list("g")];
        assert_eq!(counted(&broken), 1_000, "the function reports the pattern");
        assert_eq!(separated(&[list("a,b,c"), list(",")], 0), 5 + 16 * 6, "at most");
        let long = "ab,".repeat(100_000);
        assert_eq!(separated(&[list(&long), list(",")], 0), 300_000 + 16 * 100_001, "counted");
    }
}
