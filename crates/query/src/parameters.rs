//! The values that `$1`, `$2`, … of a statement stand for.
//!
//! They take their places among the words of the statement, each as one constant, before it is parsed: so a value is
//! never read as SQL, every statement can have parameters, and a value that comes later is planned as one that was
//! written.

use crate::dialect::TidaliteDialect;
use crate::{Error, Result, door};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit, TimeUnit};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};
use std::sync::Arc;
use tidalite_sql::TokenKind;
use tidalite_types::pg_type::{self, PgType};
use tidalite_types::text::hex_digits;
use tidalite_types::{ColumnType, ErrorKind};

#[derive(Clone, Debug, PartialEq)]
pub enum Parameter {
    Null,
    Boolean(bool),
    Long(i64),
    Double(f64),
    /// Digits, perhaps with a sign and a point.
    Decimal(String),
    /// A constant whose type its place decides, as that of a string in quotes.
    Text(String),
    Bytes(Vec<u8>),
    /// The text of a value of this type.
    Typed(String, ColumnType),
    /// The text of a value of a type that no column can have.
    Of(String, PgType),
    List(Vec<Parameter>),
}

impl Parameter {
    /// Lists within each other at most.
    pub const DIMS_MAX: i32 = 32;

    /// PostgreSQL's text of an array, `{1,NULL,"a b",{…}}`; `element` reads those in it.
    #[must_use]
    pub fn list_of_text(text: &str, element: &dyn Fn(&str) -> Option<Parameter>) -> Option<Parameter> {
        let mut chars = text.chars().peekable();
        let list = list(element, &mut chars, 0)?;
        chars.next().is_none().then_some(list)
    }
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn list(element: &dyn Fn(&str) -> Option<Parameter>, chars: &mut Chars, depth: i32) -> Option<Parameter> {
    if depth >= Parameter::DIMS_MAX || chars.next()? != '{' {
        return None;
    }
    let mut out = Vec::new();
    if chars.next_if_eq(&'}').is_some() {
        return Some(Parameter::List(out));
    }
    loop {
        skip_spaces(chars);
        out.push(match chars.peek()? {
            '{' => list(element, chars, depth + 1)?,
            '"' => element(&quoted(chars)?)?,
            _ => {
                let mut word = String::new();
                while let Some(c) = chars.next_if(|c| !matches!(c, ',' | '}')) {
                    word.push(if c == '\\' { chars.next()? } else { c });
                }
                let word = word.trim();
                if word.eq_ignore_ascii_case("null") { Parameter::Null } else { element(word)? }
            }
        });
        skip_spaces(chars);
        match chars.next()? {
            ',' => {}
            '}' => return Some(Parameter::List(out)),
            _ => return None,
        }
    }
}

/// Skips white space before or after an item of a list.
fn skip_spaces(chars: &mut Chars) {
    while chars.next_if(|c| c.is_ascii_whitespace()).is_some() {}
}

fn quoted(chars: &mut Chars) -> Option<String> {
    chars.next();
    let mut out = String::new();
    loop {
        match chars.next()? {
            '"' => return Some(out),
            '\\' => out.push(chars.next()?),
            c => out.push(c),
        }
    }
}

/// Digits that a double keeps.
const DOUBLE_DIGITS: usize = 15;
/// Of a DECIMAL.
const DIGITS_MAX: usize = 38;

/// Puts the values in their places.
///
/// # Errors
/// When there is no value for one of them.
pub(crate) fn bind(
    tokens: Vec<TokenWithSpan>,
    values: &[Parameter],
    place: impl Fn(&TokenWithSpan) -> Option<usize>,
) -> Result<Vec<TokenWithSpan>> {
    let is_prepare = first_word(&tokens) == Some("prepare");
    let mut out = Vec::with_capacity(tokens.len());
    let mut lists = InLists::default();
    for token in tokens {
        lists.see(&token.token);
        let name = match &token.token {
            // Those of PREPARE are given when it is executed.
            Token::Placeholder(name) if !is_prepare => name,
            _ => {
                out.push(token);
                continue;
            }
        };
        let Some(value) = number(name).and_then(|n| values.get(n - 1)) else {
            let mut error = Error::new(ErrorKind::NotFound, format!("there is no parameter {name}"));
            error.position = place(&token);
            return Err(error);
        };
        let mut words = Vec::new();
        match value {
            // QuestDB accepts an array as the list in `x IN ($1)`.
            Parameter::List(items) if lists.is_item => push_items(&mut words, items),
            // After some words a bracket would be a subscript.
            Parameter::List(_) => {
                words.push(Token::make_keyword("array"));
                push(&mut words, value);
            }
            _ => push(&mut words, value),
        }
        // A minus takes the word of a number behind it for its own, which must not have another sign then.
        let last =
            out.iter().rev().map(|before: &TokenWithSpan| &before.token).find(|t| !matches!(t, Token::Whitespace(_)));
        let is_signed = matches!(&words[..], [Token::Number(digits, _)] if digits.starts_with('-'));
        if is_signed && last == Some(&Token::Minus) {
            words.insert(0, Token::LParen);
            words.push(Token::RParen);
        }
        out.extend(words.into_iter().map(|word| TokenWithSpan::new(word, token.span)));
    }
    Ok(out)
}

/// Returns the number of parameters of a statement.
///
/// # Errors
/// The text does not consist of tokens, or a parameter has no valid number.
pub(crate) fn count(sql: &str) -> Result<usize> {
    let tokens = tidalite_sql::lexer::tokens(sql).map_err(|e| Error::invalid(e.to_string()).at(e.position))?;
    let mut count = 0;
    for token in tokens.iter().filter(|token| token.kind == TokenKind::Parameter) {
        let name = token.span.slice(sql);
        let Some(number) = number(name) else {
            let error = Error::new(ErrorKind::NotFound, format!("there is no parameter {name}"));
            return Err(error.at(token.span.start as usize));
        };
        count = count.max(number);
    }
    Ok(count)
}

/// The number of `$n`, at least 1 and at most as many as a client can send.
pub(crate) fn number(name: &str) -> Option<usize> {
    name.strip_prefix('$')?.parse().ok().filter(|n| (1..=usize::from(u16::MAX)).contains(n))
}

fn first_word(tokens: &[TokenWithSpan]) -> Option<&str> {
    tokens.iter().find_map(|token| match &token.token {
        Token::Word(word) => Some(word.value.as_str()),
        _ => None,
    })
}

fn push(out: &mut Vec<Token>, value: &Parameter) {
    let text = |text: &str| Token::SingleQuotedString(text.to_owned());
    match value {
        Parameter::Null => out.push(Token::make_keyword("null")),
        Parameter::Boolean(value) => out.push(Token::make_keyword(if *value { "true" } else { "false" })),
        // One word with its sign, so that no operator beside it binds closer.
        Parameter::Long(value) => out.push(Token::Number(value.to_string(), false)),
        Parameter::Double(value) if value.is_finite() => out.push(Token::Number(format!("{value:?}"), false)),
        Parameter::Double(value) => {
            let name = if value.is_nan() {
                "NaN"
            } else if *value > 0.0 {
                "Infinity"
            } else {
                "-Infinity"
            };
            cast(out, text(name), "double");
        }
        Parameter::Decimal(digits) => match decimal_type(digits) {
            Some(decimal) => cast(out, text(digits), &decimal),
            None => out.push(Token::Number(digits.clone(), false)),
        },
        Parameter::Text(value) => out.push(text(value)),
        Parameter::Bytes(value) => out.push(Token::HexStringLiteral(hex_digits(value))),
        Parameter::Of(value, of) => cast(out, text(value), of.sql_name),
        Parameter::Typed(value, column_type) => cast(out, text(value), &sql_name(*column_type)),
        Parameter::List(items) => {
            out.push(Token::LBracket);
            push_items(out, items);
            out.push(Token::RBracket);
        }
    }
}

fn push_items(out: &mut Vec<Token>, items: &[Parameter]) {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(Token::Comma);
        }
        push(out, item);
    }
}

/// Tracks which parentheses hold the list of an IN, and the start of its items.
#[derive(Default)]
struct InLists {
    open: Vec<bool>,
    follows_in: bool,
    begins_item: bool,
    /// True if the last token begins an item.
    is_item: bool,
}

impl InLists {
    fn see(&mut self, token: &Token) {
        if matches!(token, Token::Whitespace(_)) {
            return;
        }
        self.is_item = self.begins_item && self.open.last() == Some(&true);
        match token {
            Token::LParen => self.open.push(self.follows_in),
            Token::RParen => drop(self.open.pop()),
            _ => {}
        }
        self.begins_item = matches!(token, Token::LParen | Token::Comma);
        self.follows_in = matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value == "in");
    }
}

/// The type that keeps the digits of a number with many of them.
fn decimal_type(digits: &str) -> Option<String> {
    let (whole, fraction) = digits.trim_start_matches(['-', '+']).split_once('.')?;
    let count = whole.len() + fraction.len();
    (count > DOUBLE_DIGITS && count <= DIGITS_MAX).then(|| format!("decimal({count},{})", fraction.len()))
}

/// Words are folded already where this is put.
fn sql_name(column_type: ColumnType) -> String {
    match column_type {
        ColumnType::Binary => "bytea".to_owned(),
        other => other.sql_name().to_lowercase(),
    }
}

fn cast(out: &mut Vec<Token>, value: Token, type_name: &str) {
    let words = Tokenizer::new(&TidaliteDialect, type_name).tokenize().unwrap_or_default();
    out.extend([Token::make_keyword("cast"), Token::LParen, value, Token::make_keyword("as")]);
    out.extend(words);
    out.push(Token::RParen);
}

/// What stands for a parameter while only its type is known.
///
/// `given` are the types of parameters that no column has.
pub(crate) fn bind_types(
    tokens: Vec<TokenWithSpan>,
    types: &[Option<ColumnType>],
    given: &[Option<PgType>],
) -> Vec<TokenWithSpan> {
    let name_of = |n: usize| match (types.get(n).copied().flatten(), given.get(n).copied().flatten()) {
        // Values bind the same way: integers are LONG.
        (Some(ColumnType::Byte | ColumnType::Short | ColumnType::Int), _) => Some(sql_name(ColumnType::Long)),
        (Some(column_type), _) => Some(sql_name(column_type)),
        (None, Some(of @ (pg_type::INTERVAL | pg_type::TIME))) => Some(of.sql_name.to_owned()),
        _ => None,
    };
    let mut out = Vec::with_capacity(tokens.len());
    for token in tokens {
        let known = match &token.token {
            Token::Placeholder(name) => number(name).and_then(|n| name_of(n - 1)),
            _ => None,
        };
        let Some(type_name) = known else {
            out.push(token);
            continue;
        };
        let mut words = Vec::new();
        cast(&mut words, Token::make_keyword("null"), &type_name);
        out.extend(words.into_iter().map(|word| TokenWithSpan::new(word, token.span)));
    }
    out
}

/// Returns the types of parameters as fields of a plan, as [`bind_types`] writes them.
pub(crate) fn fields(types: &[Option<ColumnType>], given: &[Option<PgType>]) -> Vec<Option<FieldRef>> {
    let plain = |data_type| Arc::new(Field::new("", data_type, true));
    let field = |(n, known): (usize, &Option<ColumnType>)| match (known, given.get(n).copied().flatten()) {
        (Some(ColumnType::Byte | ColumnType::Short | ColumnType::Int), _) => {
            Some(door::field("", ColumnType::Long, true))
        }
        (Some(column_type), _) => Some(door::field("", *column_type, true)),
        (None, Some(pg_type::INTERVAL)) => Some(plain(DataType::Interval(IntervalUnit::MonthDayNano))),
        (None, Some(pg_type::TIME)) => Some(plain(DataType::Time64(TimeUnit::Nanosecond))),
        _ => None,
    };
    types.iter().enumerate().map(field).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(sql: &str, values: &[Parameter]) -> Result<String> {
        let mut tokens = Tokenizer::new(&TidaliteDialect, sql).tokenize_with_location().expect("it is SQL");
        let words = crate::names::Words::fold(sql, &mut tokens);
        let tokens = bind(tokens, values, |token| words.offset(token.span.start))?;
        Ok(tokens.iter().map(|t| t.token.to_string()).collect())
    }

    #[test]
    fn values_are_constants_and_never_sql() {
        // Shown without the quotes that a string in SQL doubles.
        let values = [
            Parameter::Text("'; drop table t; --".to_owned()),
            Parameter::Long(-5),
            Parameter::Typed("2020-01-01".to_owned(), ColumnType::Date),
        ];
        assert_eq!(
            bound("select $1, $2, $1", &values).unwrap(),
            "select ''; drop table t; --', -5, ''; drop table t; --'"
        );
        assert_eq!(bound("select $3", &values).unwrap().to_lowercase(), "select cast('2020-01-01'asdate)");
        assert_eq!(bound("select '$1', \"$1\"", &values).unwrap(), "select '$1', \"$1\"");
    }

    #[test]
    fn a_parameter_without_a_value_is_named_with_its_place() {
        for sql in ["select 1, $2", "select 1, $0", "select 1, $x"] {
            let error = bound(sql, &[Parameter::Null]).unwrap_err();
            assert_eq!(error.position, Some(10), "{sql}");
        }
    }

    #[test]
    fn a_list_behind_in_is_its_items() {
        let list = Parameter::List(vec![Parameter::Long(1), Parameter::Null]);
        let bound = |sql: &str| bound(sql, std::slice::from_ref(&list)).unwrap().to_lowercase();
        assert_eq!(bound("select x in ($1)"), "select x in (1,null)");
        assert_eq!(bound("select x in (5, $1)"), "select x in (5, 1,null)");
        assert_eq!(bound("select x in (f($1))"), "select x in (f(array[1,null]))");
        assert_eq!(bound("select x = any($1)"), "select x = any(array[1,null])");
    }

    #[test]
    fn numbers_keep_their_digits() {
        let digits = "12345678901234567.89".to_owned();
        let text = bound("select $1", &[Parameter::Decimal(digits)]).unwrap().to_lowercase();
        assert_eq!(text, "select cast('12345678901234567.89'asdecimal(19,2))");
        assert_eq!(bound("select $1", &[Parameter::Double(1e300)]).unwrap(), "select 1e300");
        assert_eq!(bound("select $1", &[Parameter::Double(5.0)]).unwrap(), "select 5.0");
        for (value, text) in [(Parameter::Long(-5), "-5"), (Parameter::Double(-0.5), "-0.5")] {
            let expected = format!("select - ({text}), x -/**/({text}), {text}");
            assert_eq!(bound("select - $1, x -/**/$1, $1", &[value]).unwrap(), expected);
        }
    }
}
