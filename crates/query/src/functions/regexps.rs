//! Texts as in PostgreSQL: `regexp_split_to_array`, `regexp_substr`, `regexp_instr`, `unistr`, `to_number`.

use super::scalar::{Call, Gives, Kind, PLAIN, Scalar};
use crate::Error;
use crate::decimal::{Decimal, arrow_decimal};
use crate::engine::check_current;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Int32Array, ListArray, StringViewArray, StringViewBuilder, new_null_array,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::{cast, is_null as is_null_mask, nullif};
use datafusion::arrow::datatypes::{DataType, Int64Type, i256};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};
use regex::{Regex, RegexBuilder};
use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

pub(super) const FUNCTIONS: &[Scalar] = &[
    Scalar {
        name: "regexp_split_to_array",
        takes: "a text, a pattern and flags",
        kinds: &[Kind::Text, Kind::Text, Kind::Text],
        least: 2,
        returns: Some(|_, _| Ok(DataType::List(crate::door::item(DataType::Utf8View)))),
        call: split,
        ..PLAIN
    },
    Scalar {
        name: "regexp_substr",
        takes: "a text, a pattern, a position, the number of the match, flags and the number of the group",
        kinds: &[Kind::Text, Kind::Text, Kind::Long, Kind::Long, Kind::Text, Kind::Long],
        least: 2,
        gives: Gives::Text,
        call: substr,
        ..PLAIN
    },
    Scalar {
        name: "regexp_instr",
        takes: "a text, a pattern, a position, the number of the match, 0 or 1 for its start or end, flags and the \
                number of the group",
        kinds: &[Kind::Text, Kind::Text, Kind::Long, Kind::Long, Kind::Long, Kind::Text, Kind::Long],
        least: 2,
        gives: Gives::Int,
        call: instr,
        ..PLAIN
    },
    Scalar {
        name: "unistr",
        takes: "a text",
        kinds: &[Kind::Text],
        gives: Gives::Text,
        call: |call| {
            let texts = call.columns[0].as_string_view().iter();
            Ok(Arc::new(texts.map(|text| text.map(unescaped).transpose()).collect::<Result<StringViewArray>>()?))
        },
        ..PLAIN
    },
    Scalar {
        name: "to_number",
        takes: "a text and a pattern",
        kinds: &[Kind::Text, Kind::Text],
        returns: Some(number_type),
        call: to_number,
        ..PLAIN
    },
];

/// Compiles a pattern with PostgreSQL's flags.
fn compiled(pattern: &str, flags: &str, name: &str) -> Result<Regex> {
    let mut builder = RegexBuilder::new(pattern);
    builder.dot_matches_new_line(true);
    for flag in flags.chars() {
        match flag {
            'i' => builder.case_insensitive(true),
            'c' => builder.case_insensitive(false),
            'm' | 'n' => builder.multi_line(true).dot_matches_new_line(false),
            'p' => builder.multi_line(false).dot_matches_new_line(false),
            'w' => builder.multi_line(true).dot_matches_new_line(true),
            's' => builder.multi_line(false).dot_matches_new_line(true),
            'x' => builder.ignore_whitespace(true),
            'g' => &mut builder,
            other => {
                let text = format!("invalid regular expression option: \"{other}\"");
                return Err(Error::invalid(text).about(name).into());
            }
        };
    }
    builder.build().map_err(|_| Error::invalid(format!("invalid regular expression: \"{pattern}\"")).about(name).into())
}

/// The compiled pattern of the previous row, which is reused if the pattern is the same.
#[derive(Default)]
struct Patterns {
    last: Option<(String, String, Regex)>,
}

impl Patterns {
    /// Returns the compiled pattern; not a clone, whose caches would be built again for each row.
    fn get(&mut self, pattern: &str, flags: &str, name: &str) -> Result<&Regex> {
        let is_known = |(known, with, _): &(String, String, Regex)| known == pattern && with == flags;
        let last = match self.last.take().filter(is_known) {
            Some(last) => last,
            None => (pattern.to_owned(), flags.to_owned(), compiled(pattern, flags, name)?),
        };
        Ok(&self.last.insert(last).2)
    }
}

/// Matches between two checks of the statement.
const MATCHES_CHECKED: u128 = 1 << 16;

/// Counts the matches of patterns; the last pattern is kept.
#[derive(Default)]
pub(super) struct MatchCounter(RefCell<Patterns>);

impl MatchCounter {
    /// Returns the number of matches in a text, 0 for an invalid pattern.
    ///
    /// # Errors
    /// The statement of the thread is cancelled.
    pub fn count(&self, text: &str, pattern: &str, flags: &str) -> Result<u128> {
        let mut patterns = self.0.borrow_mut();
        let Ok(regex) = patterns.get(pattern, flags, "") else { return Ok(0) };
        let mut count = 0;
        for _ in regex.find_iter(text) {
            if count % MATCHES_CHECKED == 0 {
                check_current()?;
            }
            count += 1;
        }
        Ok(count)
    }
}

fn text<'a>(call: &Call<'a>, n: usize, row: usize) -> &'a str {
    call.columns.get(n).map_or("", |column| column.as_string_view().value(row))
}

fn is_null(call: &Call, row: usize) -> bool {
    call.columns.iter().any(|column| column.is_null(row))
}

/// Splits at matches; empty ones at the ends of the text and after a match do not count.
fn split(call: &Call) -> Result<ArrayRef> {
    let texts = call.columns[0].as_string_view();
    let (mut patterns, mut out, mut lengths) = (Patterns::default(), StringViewBuilder::new(), Vec::new());
    let mut is_valid = Vec::with_capacity(call.rows);
    for row in 0..call.rows {
        is_valid.push(!is_null(call, row));
        if is_null(call, row) {
            lengths.push(0);
            continue;
        }
        let regex = patterns.get(text(call, 1, row), text(call, 2, row), call.name)?;
        let parts = parts(texts.value(row), regex);
        lengths.push(parts.len());
        parts.into_iter().for_each(|part| out.append_value(part));
    }
    let offsets = OffsetBuffer::from_lengths(lengths);
    let (item, nulls) = (crate::door::item(DataType::Utf8View), NullBuffer::from(is_valid));
    Ok(Arc::new(ListArray::try_new(item, offsets, Arc::new(out.finish()), Some(nulls))?))
}

fn parts<'a>(text: &'a str, regex: &Regex) -> Vec<&'a str> {
    let (mut out, mut end) = (Vec::new(), 0);
    for found in regex.find_iter(text) {
        if found.is_empty() && (found.start() == end || found.start() == text.len()) {
            continue;
        }
        out.push(&text[end..found.start()]);
        end = found.end();
    }
    out.push(&text[end..]);
    out
}

fn wrong(call: &Call, what: &str, value: i64) -> Error {
    Error::invalid(format!("invalid value for parameter \"{what}\": {value}")).about(call.name)
}

fn integer(call: &Call, n: usize, row: usize, default: i64) -> i64 {
    call.columns.get(n).map_or(default, |column| column.as_primitive::<Int64Type>().value(row))
}

/// Returns the bytes of a match; `flags` and `group` are positions of arguments. `None` without a match.
fn matched(
    call: &Call,
    row: usize,
    (flags, group): (usize, usize),
    patterns: &mut Patterns,
) -> Result<Option<std::ops::Range<usize>>> {
    let (from, nth, number) = (integer(call, 2, row, 1), integer(call, 3, row, 1), integer(call, group, row, 0));
    let from = usize::try_from(from).ok().filter(|from| *from > 0).ok_or_else(|| wrong(call, "start", from))?;
    let nth = usize::try_from(nth).ok().filter(|nth| *nth > 0).ok_or_else(|| wrong(call, "n", nth))?;
    let number = usize::try_from(number).map_err(|_| wrong(call, "subexpr", number))?;
    let regex = patterns.get(text(call, 1, row), text(call, flags, row), call.name)?;
    let of = call.columns[0].as_string_view().value(row);
    // The end of the text may match, too.
    let mut starts = of.char_indices().map(|(start, _)| start).chain([of.len()]);
    let Some(start) = starts.nth(from - 1) else { return Ok(None) };
    let found = regex.captures_iter(&of[start..]).nth(nth - 1);
    let found = found.and_then(|found| found.get(number).map(|group| group.range()));
    Ok(found.map(|range| start + range.start..start + range.end))
}

fn substr(call: &Call) -> Result<ArrayRef> {
    let texts = call.columns[0].as_string_view();
    let mut patterns = Patterns::default();
    let value = |row: usize| -> Result<Option<&str>> {
        if is_null(call, row) {
            return Ok(None);
        }
        Ok(matched(call, row, (4, 5), &mut patterns)?.map(|range| &texts.value(row)[range]))
    };
    Ok(Arc::new((0..call.rows).map(value).collect::<Result<StringViewArray>>()?))
}

/// Returns the position of a match in characters, from 1; 0 without a match.
fn instr(call: &Call) -> Result<ArrayRef> {
    let texts = call.columns[0].as_string_view();
    let mut patterns = Patterns::default();
    let value = |row: usize| -> Result<Option<i32>> {
        if is_null(call, row) {
            return Ok(None);
        }
        let end = integer(call, 4, row, 0);
        if !matches!(end, 0 | 1) {
            return Err(wrong(call, "endoption", end).into());
        }
        let found = matched(call, row, (5, 6), &mut patterns)?;
        let at = found.map(|range| if end == 0 { range.start } else { range.end });
        Ok(Some(at.map_or(0, |at| i32::try_from(texts.value(row)[..at].chars().count() + 1).unwrap_or(i32::MAX))))
    };
    Ok(Arc::new((0..call.rows).map(value).collect::<Result<Int32Array>>()?))
}

/// Returns the arguments of `regexp_replace` with PostgreSQL's replacement as the stock function takes it.
pub(super) fn with_template(mut args: ScalarFunctionArgs) -> Result<ScalarFunctionArgs> {
    if let Some(value) = args.args.get_mut(2) {
        change_texts(value, template)?;
    }
    Ok(args)
}

/// Returns the arguments of a function of patterns with flags that the stock function takes.
fn with_flags(mut args: ScalarFunctionArgs, name: &str) -> Result<ScalarFunctionArgs> {
    if let Some(value) = args.args.get_mut(flags_at(name)) {
        change_texts(value, flags)?;
    }
    Ok(args)
}

/// Returns the position of the flags among the arguments of a stock function of patterns.
fn flags_at(name: &str) -> usize {
    if matches!(name, "regexp_match" | "regexp_like") { 2 } else { 3 }
}

/// Calls a function of patterns: the result is NULL for NULL flags, which the stock function takes for none (DF-81).
pub(super) fn with_known_flags(
    args: ScalarFunctionArgs,
    name: &str,
    call: impl Fn(ScalarFunctionArgs) -> Result<ColumnarValue>,
) -> Result<ColumnarValue> {
    let flags = args.args.get(flags_at(name)).cloned();
    let rows = args.number_rows;
    let found = call(with_flags(args, name)?)?;
    match flags {
        Some(ColumnarValue::Scalar(flags)) if flags.is_null() => Ok(match found {
            ColumnarValue::Scalar(found) => ColumnarValue::Scalar(ScalarValue::try_from(&found.data_type())?),
            ColumnarValue::Array(found) => ColumnarValue::Array(new_null_array(found.data_type(), rows)),
        }),
        Some(ColumnarValue::Array(flags)) if flags.null_count() > 0 => {
            Ok(ColumnarValue::Array(nullif(&found.into_array(rows)?, &is_null_mask(&flags)?)?))
        }
        _ => Ok(found),
    }
}

/// Translates flags: `c` is the default, and there is at least one. `None` if nothing changes.
fn flags(text: &str) -> Option<String> {
    // The last of `c` and `i` counts.
    let is_sensitive = text.rfind('c') > text.rfind('i');
    let kept: String = text.chars().filter(|c| *c != 'c' && !(is_sensitive && *c == 'i')).collect();
    let kept = if kept.is_empty() { "s".to_owned() } else { kept };
    (kept != text).then_some(kept)
}

/// Changes texts; `change` returns `None` for a text that stays.
fn change_texts(value: &mut ColumnarValue, change: impl Fn(&str) -> Option<String>) -> Result<()> {
    match value {
        ColumnarValue::Scalar(value) => {
            if let Some(text) = value.try_as_str().flatten().and_then(change) {
                *value = ScalarValue::Utf8View(Some(text)).cast_to(&value.data_type())?;
            }
        }
        ColumnarValue::Array(array) => {
            let texts = cast(array, &DataType::Utf8View)?;
            let changed = |text| change(text).map_or(Cow::Borrowed(text), Cow::Owned);
            let own: ArrayRef =
                Arc::new(texts.as_string_view().iter().map(|text| text.map(changed)).collect::<StringViewArray>());
            *array = cast(&own, array.data_type())?;
        }
    }
    Ok(())
}

/// Translates a replacement: `\&` is the whole match, `\1` to `\9` a group, `\\` a backslash. Another backslash is text.
///
/// `None` if the stock function reads the text as it is. `$` and digits are a group, too, as in QuestDB.
fn template(text: &str) -> Option<String> {
    text.contains(['\\', '$']).then_some(())?;
    let mut out = String::with_capacity(text.len() + 8);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek().copied()) {
            ('\\', Some('&')) => out.push_str("${0}"),
            ('\\', Some(group @ '1'..='9')) => {
                out.push_str("${");
                out.push(group);
                out.push('}');
            }
            // The empty name, which no group has, keeps digits after a backslash from being a group.
            ('\\', Some('\\')) => out.push_str("\\${}"),
            ('\\', _) => {
                out.push_str("\\${}");
                continue;
            }
            ('$', Some(next)) if next.is_ascii_digit() || next == '{' => {
                out.push('$');
                continue;
            }
            ('$', _) => {
                out.push_str("$$");
                continue;
            }
            _ => {
                out.push(c);
                continue;
            }
        }
        chars.next();
    }
    Some(out)
}

/// Replaces `\XXXX`, `\+XXXXXX`, `\uXXXX` and `\UXXXXXXXX` by the characters with these numbers, and `\\` by `\`.
fn unescaped(text: &str) -> Result<String> {
    let refused = || Error::invalid("invalid Unicode escape").about("unistr");
    let (mut out, mut units) = (String::with_capacity(text.len()), Vec::new());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        flush(&mut units, &mut out).ok_or_else(refused)?;
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        // Escapes that follow each other may be halves of a surrogate pair.
        loop {
            let (skip, digits) = match rest.as_bytes().first() {
                Some(b'\\') => {
                    flush(&mut units, &mut out).ok_or_else(refused)?;
                    out.push('\\');
                    rest = &rest[1..];
                    break;
                }
                Some(b'+') => (1, 6),
                Some(b'u') => (1, 4),
                Some(b'U') => (1, 8),
                _ => (0, 4),
            };
            // A sign would be accepted by the parser of the standard library.
            let number = rest.get(skip..skip + digits).filter(|own| own.bytes().all(|byte| byte.is_ascii_hexdigit()));
            let number = number.and_then(|digits| u32::from_str_radix(digits, 16).ok());
            units.push(number.ok_or_else(refused)?);
            rest = &rest[skip + digits..];
            match rest.strip_prefix('\\') {
                Some(after) => rest = after,
                None => break,
            }
        }
        flush(&mut units, &mut out).ok_or_else(refused)?;
    }
    out.push_str(rest);
    Ok(out)
}

/// Writes numbers as characters, a high and a low surrogate as one; `None` for other numbers.
fn flush(units: &mut Vec<u32>, out: &mut String) -> Option<()> {
    let mut rest = units.drain(..);
    while let Some(unit) = rest.next() {
        let number = match unit {
            0xd800..=0xdbff => {
                let low = rest.next().filter(|low| (0xdc00..=0xdfff).contains(low))?;
                0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00)
            }
            other => other,
        };
        out.push(char::from_u32(number).filter(|c| *c != '\0')?);
    }
    Some(())
}

/// Returns the places after the point of a pattern.
fn places(pattern: &str) -> i32 {
    let upper = pattern.to_ascii_uppercase();
    let after = upper.find(['.', 'D']).map_or("", |at| &upper[at + 1..]);
    after.chars().filter(|c| matches!(c, '9' | '0')).count().min(30) as i32
}

/// The pattern of `to_number` gives the scale; of patterns that differ by row the scale is 10.
fn number_type(_: &[DataType], constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    let pattern = constants.get(1).copied().flatten().and_then(|value| value.try_as_str().flatten());
    Ok(arrow_decimal(38, pattern.map_or(10, places)))
}

/// Reads a number: digits, the first point, and a sign or angle brackets count; other characters are skipped.
fn number(text: &str) -> Option<Decimal> {
    let (mut plain, mut is_negative, mut has_point) = (String::new(), false, false);
    for c in text.chars() {
        match c {
            '0'..='9' => plain.push(c),
            '.' if !has_point => {
                has_point = true;
                plain.push(c);
            }
            '-' | '<' => is_negative = true,
            _ => {}
        }
    }
    let digits = plain.bytes().any(|byte| byte.is_ascii_digit());
    let number = Decimal::parse(&plain).filter(|_| digits)?;
    Some(if is_negative { Decimal { digits: number.digits.wrapping_neg(), ..number } } else { number })
}

fn to_number(call: &Call) -> Result<ArrayRef> {
    let (texts, patterns) = (call.columns[0].as_string_view(), call.columns[1].as_string_view());
    let Some((precision, scale)) = crate::decimal::decimal_type(call.data_type) else {
        return Err(Error::internal("to_number gives a DECIMAL").into());
    };
    let value = |row: usize| {
        if texts.is_null(row) || patterns.is_null(row) {
            return Ok(i256::ZERO);
        }
        let (text, places) = (texts.value(row), places(patterns.value(row)));
        let refused =
            || Error::invalid(format!("invalid input syntax for type numeric: \"{text}\"")).about("to_number");
        // Digits past those of the pattern are cut off.
        let cut = |number: Decimal| {
            let is_below = number.digits.is_negative();
            let own = Decimal { digits: number.digits.wrapping_abs(), ..number }.rescaled(places)?.floor;
            let own = Decimal { digits: if is_below { own.wrapping_neg() } else { own }, scale: places };
            own.rescaled(scale.into()).map(|own| own.floor)
        };
        let found = number(text).and_then(cut).filter(|digits| crate::decimal::fits(*digits, precision));
        found.ok_or_else(refused)
    };
    let values = (0..call.rows).map(value).collect::<crate::Result<Vec<_>>>()?;
    let is_valid = (0..call.rows).map(|row| texts.is_valid(row) && patterns.is_valid(row)).collect::<Vec<bool>>();
    super::decimal_arithmetic::decimal_array(values, Some(NullBuffer::from(is_valid)), call.data_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values are outputs of PostgreSQL 15.
    #[test]
    fn texts_are_split_at_matches() {
        let split = |text, pattern| parts(text, &compiled(pattern, "", "f").expect("a pattern")).join("|");
        assert_eq!(split("hello world  foo", r"\s+"), "hello|world|foo");
        assert_eq!(split("abc", ""), "a|b|c");
        assert_eq!(split("the quick brown", r"\s*"), "t|h|e|q|u|i|c|k|b|r|o|w|n");
        assert_eq!([split("", "x"), split(",a,", ",")], ["", "|a|"]);
        assert!(compiled("(", "", "f").is_err() && compiled("a", "?", "f").is_err());
    }

    #[test]
    fn replacements_as_templates() {
        let regex = Regex::new("(b)(c)?").expect("a pattern");
        // The stock function replaces a backslash with digits by a group.
        let replaced = |text: &str| regex.replace("abd", template(text).as_deref().unwrap_or(text)).into_owned();
        let pairs = [(r"<\&>", "a<b>d"), (r"<\1\2>", "a<b>d"), (r"\\1", r"a\1d"), (r"\0", r"a\0d"), (r"\x", r"a\xd")];
        for (text, expected) in pairs {
            assert_eq!(replaced(text), expected, "{text}");
        }
        assert_eq!(
            [replaced("$1!"), replaced("${1}x"), replaced("$USD"), replaced("5$")],
            ["ab!d", "abxd", "a$USDd", "a5$d"]
        );
    }

    #[test]
    fn escapes_of_characters() {
        let found = |text| unescaped(text).ok();
        assert_eq!(found(r"d\0061t\+000061").as_deref(), Some("data"));
        assert_eq!(found(r"\u0061\U00000062\\").as_deref(), Some(r"ab\"));
        assert_eq!(found(r"\d83d\de00!").as_deref(), Some("😀!"));
        assert_eq!([r"\00", r"\d83d", r"\0000", r"\u+061"].map(found), [const { None }; 4]);
    }

    #[test]
    fn numbers_of_patterns() {
        let shown = |text: &str| number(text).map(Decimal::text);
        assert_eq!(shown("12,454.8-").as_deref(), Some("-12454.8"));
        assert_eq!(shown("$ <1>").as_deref(), Some("-1"));
        assert_eq!([shown("abc"), shown("")], [const { None }; 2]);
        assert_eq!([places("99G999D9S"), places("999"), places("9.99")], [1, 0, 2]);
    }
}
