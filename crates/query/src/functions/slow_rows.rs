//! Functions whose calls can take long: a cancelled statement stops within a call.
//!
//! A stock function computes a whole batch: 8,192 rows of a millisecond each take eight seconds. [`in_slices`] evaluates a
//! call of much text for some rows at a time, by the measured time, and checks the statement between them. Functions that
//! take more than linear time for one row have loops of their own here, or a limit: [`levenshtein`], [`search_members`],
//! [`with_constant_needles`], [`check_trim`].
//!
//! Always: the results are those of the stock functions. A single search of a regular expression in one text is not
//! interrupted.

use crate::Error;
use crate::engine::check_current;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, ListArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{cast, concat};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of the arguments of a call that is evaluated at once: 25 ms at 100 ns a byte.
const SLICE_BYTES: usize = 256 << 10;
/// Time of a slice.
const SLICE_TIME: Duration = Duration::from_millis(20);
/// A slice has at most so many times the rows and bytes of the one before.
const GROWTH: usize = 4;
/// Steps of a row, lengths multiplied, above which a function is not left to the stock loop. About ten milliseconds.
const STEPS_MAX: usize = 1 << 22;
/// Steps between two checks.
const STEPS_CHECKED: usize = 1 << 20;
/// Characters of a text times those that are trimmed; about two seconds.
const TRIM_STEPS_MAX: u128 = 1 << 32;

/// Evaluates a call that has no side effects in slices of rows.
pub(super) fn in_slices(
    args: ScalarFunctionArgs,
    invoke: impl Fn(ScalarFunctionArgs) -> Result<ColumnarValue>,
) -> Result<ColumnarValue> {
    check_current()?;
    let (rows, bytes) = (args.number_rows, bytes_of(&args.args, args.number_rows));
    if rows < 2 || bytes <= SLICE_BYTES {
        return invoke(args);
    }
    let (mut slices, mut from, mut count, mut budget) = (Vec::<ArrayRef>::new(), 0, rows, SLICE_BYTES);
    while from < rows {
        check_current()?;
        count = count.min(rows - from);
        let mut slice = sliced(&args, from, count);
        let mut own = bytes_of(&slice.args, count);
        while count > 1 && own > budget {
            count = count.div_ceil(2);
            slice = sliced(&args, from, count);
            own = bytes_of(&slice.args, count);
        }
        let begun = Instant::now();
        let out = invoke(slice)?.into_array(count)?;
        let took = begun.elapsed().as_nanos().max(1);
        let within =
            |amount: usize| usize::try_from(amount as u128 * SLICE_TIME.as_nanos() / took).unwrap_or(usize::MAX);
        if from == 0 && within(own.max(1)) >= bytes {
            // Results of two calls would have to be copied together.
            return invoke(args);
        }
        slices.push(out);
        from += count;
        budget = within(own.max(1)).clamp(1, own.max(SLICE_BYTES).saturating_mul(GROWTH));
        count = within(count).clamp(1, count.saturating_mul(GROWTH));
    }
    let slices: Vec<&dyn Array> = slices.iter().map(AsRef::as_ref).collect();
    Ok(ColumnarValue::Array(concat(&slices)?))
}

/// Bytes of texts and lists in the arguments; a constant counts for each row. 0 if all are constants.
fn bytes_of(args: &[ColumnarValue], rows: usize) -> usize {
    if !args.iter().any(|arg| matches!(arg, ColumnarValue::Array(_))) {
        return 0;
    }
    let bytes = |arg: &ColumnarValue| match arg {
        ColumnarValue::Array(array) => bytes_of_values(array),
        ColumnarValue::Scalar(
            ScalarValue::Utf8(Some(text)) | ScalarValue::LargeUtf8(Some(text)) | ScalarValue::Utf8View(Some(text)),
        ) => text.len().saturating_mul(rows),
        ColumnarValue::Scalar(ScalarValue::List(list)) => {
            (bytes_of_values(list.values()) + 8 * list.values().len()).saturating_mul(rows)
        }
        ColumnarValue::Scalar(_) => 0,
    };
    args.iter().map(bytes).fold(0, usize::saturating_add)
}

fn bytes_of_values(array: &ArrayRef) -> usize {
    let range = |offsets: &[i32]| (offsets[offsets.len() - 1] - offsets[0]) as usize;
    match array.data_type() {
        DataType::Utf8 => range(array.as_string::<i32>().value_offsets()),
        DataType::LargeUtf8 => {
            let offsets = array.as_string::<i64>().value_offsets();
            (offsets[offsets.len() - 1] - offsets[0]) as usize
        }
        DataType::Utf8View => array.as_string_view().total_buffer_bytes_used(),
        DataType::BinaryView => array.as_binary_view().total_buffer_bytes_used(),
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let (from, items) = (list.value_offsets()[0] as usize, range(list.value_offsets()));
            8 * items + bytes_of_values(&list.values().slice(from, items))
        }
        _ => 0,
    }
}

/// Some rows of a call.
fn sliced(args: &ScalarFunctionArgs, from: usize, rows: usize) -> ScalarFunctionArgs {
    let slice = |arg: &ColumnarValue| match arg {
        ColumnarValue::Array(array) => ColumnarValue::Array(array.slice(from, rows)),
        constant => constant.clone(),
    };
    ScalarFunctionArgs { args: args.args.iter().map(slice).collect(), number_rows: rows, ..args.clone() }
}

/// Rows of a call: one if all arguments are constants.
fn rows_of(args: &ScalarFunctionArgs) -> usize {
    let is_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
    if is_constant { 1 } else { args.number_rows }
}

/// Evaluates a call row by row if some row takes more than [`STEPS_MAX`] steps; `steps` gives those of a row, and `one`
/// evaluates a call of one row.
fn row_by_row(
    args: ScalarFunctionArgs,
    steps: impl Fn(&[ColumnarValue], usize) -> usize,
    invoke: impl Fn(ScalarFunctionArgs) -> Result<ColumnarValue>,
    one: impl Fn(ScalarFunctionArgs) -> Result<ColumnarValue>,
) -> Result<ColumnarValue> {
    let rows = rows_of(&args);
    let is_heavy = |row: usize| steps(&args.args, row) > STEPS_MAX;
    if !(0..rows).any(is_heavy) {
        return invoke(args);
    }
    let mut out = Vec::with_capacity(rows);
    for row in 0..rows {
        check_current()?;
        let own = sliced(&args, row, 1);
        out.push(if is_heavy(row) { one(own) } else { invoke(own) }?.into_array(1)?);
    }
    let out: Vec<&dyn Array> = out.iter().map(AsRef::as_ref).collect();
    let out = concat(&out)?;
    let is_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
    Ok(if is_constant {
        ColumnarValue::Scalar(ScalarValue::try_from_array(&out, 0)?)
    } else {
        ColumnarValue::Array(out)
    })
}

/// Bytes of a text argument in a row.
fn text_bytes(args: &[ColumnarValue], at: usize, row: usize) -> usize {
    match args.get(at) {
        Some(ColumnarValue::Array(array)) if array.is_null(row) => 0,
        Some(ColumnarValue::Array(array)) => match array.data_type() {
            DataType::Utf8 => array.as_string::<i32>().value_length(row) as usize,
            DataType::LargeUtf8 => array.as_string::<i64>().value_length(row) as usize,
            DataType::Utf8View => array.as_string_view().views()[row] as u32 as usize,
            _ => 0,
        },
        Some(ColumnarValue::Scalar(
            ScalarValue::Utf8(Some(text)) | ScalarValue::LargeUtf8(Some(text)) | ScalarValue::Utf8View(Some(text)),
        )) => text.len(),
        _ => 0,
    }
}

fn text_steps(args: &[ColumnarValue], row: usize) -> usize {
    text_bytes(args, 0, row).saturating_mul(text_bytes(args, 1, row))
}

/// `levenshtein(a, b)`: quadratic, with checks.
pub(super) fn levenshtein(args: ScalarFunctionArgs, stock: &ScalarUDF) -> Result<ColumnarValue> {
    let one = |args: ScalarFunctionArgs| {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let texts = arrays.iter().map(|array| cast(array, &DataType::Utf8View)).collect::<Result<Vec<_>, _>>()?;
        let [a, b] = &texts[..] else { return Err(Error::internal("levenshtein of other than two").into()) };
        let distance = distance(a.as_string_view().value(0), b.as_string_view().value(0))?;
        let distance = Int64Array::from(vec![distance as i64]);
        Ok(ColumnarValue::Array(cast(&distance, args.return_field.data_type())?))
    };
    row_by_row(args, text_steps, |args| stock.invoke_with_args(args), one)
}

/// Insertions, deletions and replacements of characters that turn one text into another.
fn distance(a: &str, b: &str) -> Result<usize> {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<u32> = (1..=b.len() as u32).collect();
    let mut steps = 0;
    let mut result = b.len();
    for (above, a) in a.chars().enumerate() {
        let (mut left, mut diagonal) = (above as u32 + 1, above as u32);
        for (cell, b) in row.iter_mut().zip(&b) {
            let replaced = diagonal + u32::from(a != *b);
            diagonal = *cell;
            left = (left + 1).min(diagonal + 1).min(replaced);
            *cell = left;
        }
        result = left as usize;
        steps += b.len();
        if steps > STEPS_CHECKED {
            steps = 0;
            check_current()?;
        }
    }
    Ok(result)
}

/// `strpos(text, needle)`: the stock function takes quadratic time unless the needle is a constant.
pub(super) fn with_constant_needles(args: ScalarFunctionArgs, stock: &ScalarUDF) -> Result<ColumnarValue> {
    let one = |mut args: ScalarFunctionArgs| {
        if let Some(ColumnarValue::Scalar(text)) = args.args.first() {
            args.args[0] = ColumnarValue::Array(text.to_array()?);
        }
        if let Some(ColumnarValue::Array(needle)) = args.args.get(1) {
            args.args[1] = ColumnarValue::Scalar(ScalarValue::try_from_array(needle, 0)?);
        }
        stock.invoke_with_args(args)
    };
    row_by_row(args, text_steps, |args| stock.invoke_with_args(args), one)
}

/// Refuses to trim very many characters of a very long text: each character of the text is compared with all of them.
pub(super) fn check_trim(args: &ScalarFunctionArgs, name: &str) -> Result<()> {
    if args.args.len() < 2 {
        return Ok(());
    }
    for row in 0..rows_of(args) {
        let (text, characters) = (text_bytes(&args.args, 0, row), text_bytes(&args.args, 1, row));
        if text as u128 * characters as u128 > TRIM_STEPS_MAX {
            let message = format!("{name} of {text} bytes of text and {characters} bytes of characters takes too long");
            let mut error = Error::invalid(message);
            error.subject = Some(name.to_owned());
            return Err(error.into());
        }
    }
    Ok(())
}

/// `array_has_all(array, items)` and `array_has_any(array, items)`: quadratic; evaluated for some items at a time.
pub(super) fn search_members(args: ScalarFunctionArgs, stock: &ScalarUDF, is_all: bool) -> Result<ColumnarValue> {
    let steps = |args: &[ColumnarValue], row: usize| items(args, 0, row).saturating_mul(items(args, 1, row));
    let one = |args: ScalarFunctionArgs| {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [array, wanted] = &arrays[..] else { return Err(Error::internal("members of other than two").into()) };
        let (wanted, mut found) = (wanted.as_list::<i32>().value(0), is_all);
        let step = (STEPS_CHECKED / items(&args.args, 0, 0).max(1)).max(1);
        for from in (0..wanted.len()).step_by(step) {
            check_current()?;
            let some = wanted.slice(from, step.min(wanted.len() - from));
            let field = Arc::new(Field::new_list_field(some.data_type().clone(), true));
            let some = ListArray::try_new(field, OffsetBuffer::from_lengths([some.len()]), some, None)?;
            let own = vec![ColumnarValue::Array(array.clone()), ColumnarValue::Array(Arc::new(some))];
            let own = ScalarFunctionArgs { args: own, number_rows: 1, ..args.clone() };
            found = stock.invoke_with_args(own)?.into_array(1)?.as_boolean().value(0);
            if found != is_all {
                break;
            }
        }
        Ok(ColumnarValue::Array(Arc::new(BooleanArray::from(vec![found])) as ArrayRef))
    };
    row_by_row(args, steps, |args| stock.invoke_with_args(args), one)
}

/// Items of a list argument in a row; 0 of other types.
fn items(args: &[ColumnarValue], at: usize, row: usize) -> usize {
    match args.get(at) {
        Some(ColumnarValue::Array(array)) if matches!(array.data_type(), DataType::List(_)) && array.is_valid(row) => {
            array.as_list::<i32>().value_length(row) as usize
        }
        Some(ColumnarValue::Scalar(ScalarValue::List(list))) => list.values().len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CancelToken;
    use crate::engine::accounted;
    use crate::functions::guarded::guarded;
    use datafusion::arrow::array::StringViewArray;
    use datafusion::arrow::datatypes::{Int32Type, Int64Type};
    use datafusion::config::ConfigOptions;
    use std::cell::Cell;

    fn args(args: Vec<ColumnarValue>, rows: usize) -> ScalarFunctionArgs {
        let field = |arg: &ColumnarValue| Arc::new(Field::new("", arg.data_type(), true));
        ScalarFunctionArgs {
            arg_fields: args.iter().map(field).collect(),
            args,
            number_rows: rows,
            return_field: Arc::new(Field::new("", DataType::Int32, true)),
            config_options: Arc::new(ConfigOptions::default()),
        }
    }

    fn texts(texts: impl IntoIterator<Item = String>) -> ColumnarValue {
        ColumnarValue::Array(Arc::new(StringViewArray::from_iter_values(texts)))
    }

    fn stock(name: &str) -> Arc<ScalarUDF> {
        let all = datafusion::functions::all_default_functions().into_iter();
        let mut all = all.chain(datafusion::functions_nested::all_default_nested_functions());
        all.find(|function| function.name() == name).expect("a stock function")
    }

    /// A call that takes `time` for each row; counts the rows.
    fn slow(rows: &Cell<usize>, time: Duration) -> impl Fn(ScalarFunctionArgs) -> Result<ColumnarValue> {
        move |args| {
            let begun = Instant::now();
            while begun.elapsed() < time * args.number_rows as u32 {}
            rows.set(rows.get() + args.number_rows);
            let ColumnarValue::Array(texts) = &args.args[0] else { panic!("a column") };
            let lengths = texts.as_string_view().iter().map(|text| text.map(|text| text.len() as i64));
            Ok(ColumnarValue::Array(Arc::new(lengths.collect::<Int64Array>()) as ArrayRef))
        }
    }

    #[test]
    fn slow_rows_are_computed_once_and_in_order() {
        let rows = Cell::new(0);
        let column = || texts((0..400).map(|row| "y".repeat(4_000 + row)));
        let out = in_slices(args(vec![column()], 400), slow(&rows, Duration::from_micros(400))).unwrap();
        let out = out.into_array(400).unwrap();
        assert_eq!(out.as_primitive::<Int64Type>().values(), &(4_000..4_400).collect::<Vec<i64>>()[..]);
        assert_eq!(rows.get(), 400);
        // Rows that cost little are one call after the first, whose results are dropped.
        rows.set(0);
        let out = in_slices(args(vec![column()], 400), slow(&rows, Duration::ZERO)).unwrap();
        assert_eq!(out.into_array(400).unwrap().len(), 400);
        assert!((400..600).contains(&rows.get()), "{}", rows.get());
    }

    #[test]
    fn a_cancelled_statement_stops_between_slices() {
        let (cancel, rows) = (CancelToken::new(), Cell::new(0));
        let call = |args: ScalarFunctionArgs| {
            cancel.cancel(Error::cancelled());
            slow(&rows, Duration::from_millis(1))(args)
        };
        let column = texts((0..8_192).map(|_| "y".repeat(1_000)));
        let out = accounted(&cancel, || in_slices(args(vec![column], 8_192), call));
        assert!(out.is_err() && rows.get() < 500, "{}", rows.get());
    }

    #[test]
    fn few_rows_that_become_slow_are_found() {
        let largest = Cell::new(0);
        let call = |args: ScalarFunctionArgs| {
            let bytes = bytes_of(&args.args, args.number_rows);
            largest.set(largest.get().max(bytes));
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_nanos(bytes as u64 * 40) {}
            let ColumnarValue::Array(texts) = &args.args[0] else { panic!("a column") };
            Ok(ColumnarValue::Array(texts.clone()))
        };
        let column = texts((0..8_000).map(|row| "y".repeat(if row < 7_000 { 20 } else { 2_000 })));
        in_slices(args(vec![column], 8_000), call).unwrap();
        assert!(largest.get() <= 1 << 20, "{}", largest.get());
    }

    #[test]
    fn distances_are_those_of_the_stock_function() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut text = |most: usize| -> String {
            let length = random.usize(0..=most);
            (0..length).map(|_| random.choice(['a', 'b', 'ä', 'ß']).expect("a letter")).collect()
        };
        for _ in 0..300 {
            let (a, b) = (text(12), text(12));
            let expected = stock("levenshtein")
                .invoke_with_args(args(vec![texts([a.clone()]), texts([b.clone()])], 1))
                .and_then(|value| value.into_array(1))
                .unwrap();
            let expected = expected.as_primitive::<Int32Type>().value(0);
            assert_eq!(expected as usize, distance(&a, &b).unwrap(), "{a} {b}");
        }
        let cancel = CancelToken::new();
        cancel.cancel(Error::cancelled());
        let (a, b) = ("ab".repeat(50_000), "ba".repeat(50_000));
        assert!(accounted(&cancel, || distance(&a, &b)).is_err());
    }

    /// Heavy rows, light ones and NULL give what the stock functions do, as columns and as constants.
    #[test]
    fn heavy_rows_have_the_stock_results() {
        let long = "aab".repeat(1_000);
        let rows =
            [(long.as_str(), "b".repeat(2_000)), ("ab", "b".into()), (&long, "baa".repeat(900)), ("", "".into())];
        for name in ["levenshtein", "strpos"] {
            let column =
                |second: bool| texts(rows.iter().map(|(a, b)| if second { b.clone() } else { (*a).to_owned() }));
            let call = |function: &ScalarUDF| {
                let out = function.invoke_with_args(args(vec![column(false), column(true)], rows.len())).unwrap();
                out.into_array(rows.len()).unwrap()
            };
            assert_eq!(&call(&guarded(stock(name))), &call(&stock(name)), "{name}");
        }
        let list = |items: std::ops::Range<i64>| {
            let list = ListArray::from_iter_primitive::<Int64Type, _, _>([Some(items.map(Some).collect::<Vec<_>>())]);
            ColumnarValue::Array(Arc::new(list) as ArrayRef)
        };
        for (array, wanted) in [(0..5_000, 4_000..6_000), (0..5_000, 1_000..3_000), (0..3_000, 7_000..9_000)] {
            for name in ["array_has_all", "array_has_any"] {
                let call = |function: &ScalarUDF| {
                    let field = Arc::new(Field::new("", DataType::Boolean, true));
                    let args = args(vec![list(array.clone()), list(wanted.clone())], 1);
                    let args = ScalarFunctionArgs { return_field: field, ..args };
                    function.invoke_with_args(args).unwrap().into_array(1).unwrap()
                };
                assert_eq!(&call(&guarded(stock(name))), &call(&stock(name)), "{name} {wanted:?}");
            }
        }
    }

    #[test]
    fn trims_that_would_take_minutes_are_refused() {
        let call = |text: usize, characters: usize| {
            let args = args(vec![texts(["y".repeat(text)]), texts(["z".repeat(characters)])], 1);
            guarded(stock("btrim")).invoke_with_args(args).map(|_| ())
        };
        call(1_000_000, 1_000).unwrap();
        let error = call(100_000, 100_000).unwrap_err();
        assert!(error.to_string().contains("btrim of 100000 bytes of text"), "{error}");
    }
}
