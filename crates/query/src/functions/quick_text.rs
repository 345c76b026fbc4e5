//! Stock functions over text for which a quicker way is known, where their arguments allow it: `length`, and
//! `regexp_replace` with a pattern that [`OnePass`] understands.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringViewArray, UInt32Array};
use datafusion::arrow::compute::{interleave, take};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF};
use std::sync::Arc;
use tidalite_operators::text::{OnePass, char_lengths};

/// Of a call over a batch; `None` when the stock function has to do it.
pub(super) type Quick = fn(&ScalarFunctionArgs, &ScalarUDF) -> Result<Option<ArrayRef>>;

fn text_column(args: &ScalarFunctionArgs) -> Option<&StringViewArray> {
    match args.args.first() {
        Some(ColumnarValue::Array(array)) => array.as_string_view_opt(),
        _ => None,
    }
}

fn constant(args: &ScalarFunctionArgs, at: usize) -> Option<&str> {
    match args.args.get(at) {
        Some(ColumnarValue::Scalar(
            ScalarValue::Utf8(Some(text)) | ScalarValue::LargeUtf8(Some(text)) | ScalarValue::Utf8View(Some(text)),
        )) => Some(text),
        _ => None,
    }
}

/// The stock function first goes over all texts to see whether a byte is a character in all of them.
pub(super) fn char_lengths_of(args: &ScalarFunctionArgs, _: &ScalarUDF) -> Result<Option<ArrayRef>> {
    Ok(text_column(args).map(|texts| Arc::new(char_lengths(texts)) as ArrayRef))
}

/// What the groups of `regexp_replace` found.
pub(super) fn groups_of(args: &ScalarFunctionArgs, stock: &ScalarUDF) -> Result<Option<ArrayRef>> {
    let (Some(texts), 3) = (text_column(args), args.args.len()) else { return Ok(None) };
    let (Some(pattern), Some(r"\1" | "$1" | "${1}")) = (constant(args, 1), constant(args, 2)) else { return Ok(None) };
    let Some(pattern) = OnePass::of(pattern) else { return Ok(None) };
    let (found, unknown) = pattern.groups(texts);
    if unknown.is_empty() {
        return Ok(Some(Arc::new(found)));
    }
    let rows = UInt32Array::from(unknown);
    let mut own = args.clone();
    own.args[0] = ColumnarValue::Array(take(texts, &rows, None)?);
    own.number_rows = rows.len();
    let answers = stock.invoke_with_args(own)?.into_array(rows.len())?;
    let mut places: Vec<(usize, usize)> = (0..texts.len()).map(|row| (0, row)).collect();
    rows.values().iter().enumerate().for_each(|(at, row)| places[*row as usize] = (1, at));
    Ok(Some(interleave(&[&found, &*answers], &places)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::guarded;
    use datafusion::arrow::datatypes::{DataType, Field};
    use datafusion::config::ConfigOptions;
    use tidalite_operators::text::Found;

    fn called(function: &ScalarUDF, args: &[ColumnarValue], rows: usize, gives: DataType) -> ArrayRef {
        let field = |arg: &ColumnarValue| Arc::new(Field::new("", arg.data_type(), true));
        let args = ScalarFunctionArgs {
            arg_fields: args.iter().map(field).collect(),
            args: args.to_vec(),
            number_rows: rows,
            return_field: Arc::new(Field::new("", gives, true)),
            config_options: Arc::new(ConfigOptions::default()),
        };
        function.invoke_with_args(args).expect("text").into_array(rows).expect("rows")
    }

    fn constant(text: &str) -> ColumnarValue {
        ColumnarValue::Scalar(ScalarValue::Utf8View(Some(text.to_owned())))
    }

    fn stock(name: &str) -> Arc<ScalarUDF> {
        let mut all = datafusion::functions::all_default_functions().into_iter();
        all.find(|function| function.name() == name).expect("a stock function")
    }

    #[test]
    fn quick_answers_are_those_of_the_stock_functions() {
        let mut random = fastrand::Rng::with_seed(9);
        let pieces = [
            "http://",
            "https://",
            "www.",
            "пример.рф",
            "example.com",
            "/",
            "日本",
            "a",
            "\n",
            "?",
            "x".repeat(150).leak(),
        ];
        let mut text = || {
            (random.u32(0..10) > 0)
                .then(|| (0..random.usize(0..6)).map(|_| pieces[random.usize(..pieces.len())]).collect::<String>())
        };
        let texts: StringViewArray = (0..5_000).map(|_| text()).collect();
        let column = ColumnarValue::Array(Arc::new(texts));
        let pattern = constant(r"^https?://(?:www\.)?([^/]+)/.*$");
        for (function, args, gives) in [
            ("character_length", vec![column.clone()], DataType::Int32),
            ("regexp_replace", vec![column.clone(), pattern.clone(), constant(r"\1")], DataType::Utf8View),
            ("regexp_replace", vec![column.clone(), pattern.clone(), constant("$1")], DataType::Utf8View),
            ("regexp_replace", vec![column, pattern, constant(r"\1!")], DataType::Utf8View),
        ] {
            let quick = guarded::functions().into_iter().find(|f| f.name() == function).expect("it is quick");
            let stock = stock(function);
            assert_eq!(
                &called(&quick, &args, 5_000, gives.clone()),
                &called(&stock, &args, 5_000, gives),
                "{function}"
            );
        }
    }

    #[test]
    fn what_is_found_is_what_the_regular_expression_finds() {
        let host = r"^https?://(?:www\.)?([^/]+)/.*$";
        let patterns = [
            host,
            r"^a?([^b]+)b.*$",
            r"(?s)^a?([^b]+)b.*$",
            r"^(?:ab)?([ab]+)$",
            r"^x([a]+)b$",
            r"^a?a?([^/]+)/$",
            r"^é?([^a]+)$",
            r"^\.([ab]+)",
        ];
        let mut random = fastrand::Rng::with_seed(4);
        let (mut known, mut matched) = (0, 0);
        for pattern in patterns {
            let Some(one_pass) = OnePass::of(pattern) else { continue };
            known += 1;
            let pieces = ["a", "b", "é", "/", "\n", "x", "http", "s", "://", "www.", "."];
            let start = if pattern == host { "http" } else { "" };
            let mut text = || {
                let pieces = (0..random.usize(0..7)).map(|_| pieces[random.usize(..pieces.len())]);
                std::iter::once(start).chain(pieces).collect::<String>()
            };
            let texts: Vec<String> = (0..2_000).map(|_| text()).collect();
            let column = ColumnarValue::Array(Arc::new(texts.iter().map(Some).collect::<StringViewArray>()));
            let args = [column, constant(pattern), constant(r"<\1>")];
            let replaced = called(&stock("regexp_replace"), &args, texts.len(), DataType::Utf8View);
            for (text, replaced) in texts.iter().zip(replaced.as_string_view()) {
                match one_pass.find(text.as_bytes()) {
                    Found::Group(from, to) => {
                        assert_eq!(replaced, Some(&*format!("<{}>", &text[from..to])), "{pattern} {text:?}");
                        matched += 1;
                    }
                    Found::Nothing => assert_eq!(replaced, Some(text.as_str()), "{pattern}"),
                    Found::Unknown => {}
                }
            }
        }
        assert!(known == 6 && matched > 300, "{known} patterns, {matched} matches");
    }
}
