//! Geohashes in a statement: `#u33d`, its first bits `#u33d/10`, bits `##1101`, and `CAST(x AS GEOHASH(4c))`. They are text.

use crate::functions::geo;
use crate::names::Words;
use crate::{Error, Result};
use datafusion::sql::sqlparser::ast::{DataType, Expr, Value};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// Replaces geohashes by strings. Other words that begin with `#` stay, except after a value, where no word is allowed.
/// `tokens` have no white space.
pub(super) fn literals(tokens: Vec<TokenWithSpan>, words: &Words) -> Result<Vec<TokenWithSpan>> {
    let is_mark = |t: &TokenWithSpan| matches!(&t.token, Token::Word(w) if is_marked(&w.value, w.quote_style));
    if !tokens.iter().any(is_mark) {
        return Ok(tokens);
    }
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut rest = tokens.into_iter().peekable();
    while let Some(token) = rest.next() {
        let Token::Word(word) = &token.token else {
            out.push(token);
            continue;
        };
        if !is_marked(&word.value, word.quote_style) {
            out.push(token);
            continue;
        }
        let placed = |mut error: Error| {
            error.position = words.offset(token.span.start);
            error
        };
        if out.last().is_some_and(|before| ends_value(&before.token)) {
            let message = format!("syntax error: expected end of statement, found {}", word.value);
            return Err(placed(Error::invalid(message)));
        }
        if hash(&word.value).is_none() {
            out.push(token);
            continue;
        }
        let mut written = word.value.clone();
        if rest.next_if(|t| t.token == Token::Div).is_some() {
            written.push('/');
            if let Some(Token::Number(bits, _)) = rest.next().map(|t| t.token) {
                written.push_str(&bits);
            }
        }
        let text = text_of(&written).ok_or_else(|| placed(error_of(&written)))?;
        out.push(TokenWithSpan::new(Token::SingleQuotedString(text), token.span));
    }
    Ok(out)
}

/// Returns the error for a geohash that [`text_of`] does not read.
pub(crate) fn error_of(written: &str) -> Error {
    let word = written.split('/').next().unwrap_or_default();
    Error::invalid(match hash(&word.to_lowercase()) {
        Some((_, bits)) => format!("{word} has {bits} bits: the number after / must be from 1 to {bits}"),
        None => format!("invalid geohash {word}"),
    })
}

/// Returns the text of a geohash as it is written: `#u33d`, `#u33d/10`, `##1101`; `None` for another word.
pub(crate) fn text_of(written: &str) -> Option<String> {
    let (word, limit) = match written.split_once('/') {
        Some((word, limit)) => (word, Some(limit)),
        None => (written, None),
    };
    let (hash, all) = hash(&word.to_lowercase())?;
    let bits = match limit {
        Some(limit) => limit.parse().ok().filter(|bits| (1..=all).contains(bits))?,
        None => all,
    };
    Some(geo::text(hash >> (all - bits), bits))
}

fn is_marked(word: &str, quote: Option<char>) -> bool {
    quote.is_none() && word.starts_with('#')
}

/// The bits and how many.
fn hash(word: &str) -> Option<(u64, u32)> {
    match word.strip_prefix("##") {
        Some(digits) => {
            let is_binary = !digits.is_empty() && digits.bytes().all(|b| matches!(b, b'0' | b'1'));
            let bits = u32::try_from(digits.len()).ok().filter(|bits| is_binary && *bits <= geo::BITS_MAX)?;
            Some((u64::from_str_radix(digits, 2).ok()?, bits))
        }
        None => geo::parsed(word.strip_prefix('#')?),
    }
}

/// Returns true for a token that ends a value.
fn ends_value(token: &Token) -> bool {
    match token {
        Token::Word(word) => word.quote_style.is_some() || word.keyword == Keyword::NoKeyword,
        Token::Number(..) | Token::SingleQuotedString(_) | Token::RParen | Token::RBracket => true,
        _ => false,
    }
}

/// `CAST(x AS GEOHASH(4c))` is the first four letters of `x`.
pub(super) fn cast(expr: &mut Expr) {
    let Expr::Cast { expr: inner, data_type: DataType::Custom(name, parameters), .. } = expr else { return };
    if name.to_string() != "geohash" {
        return;
    }
    let Some(bits) = bits_of(parameters) else { return };
    let value = std::mem::replace(inner.as_mut(), Expr::Value(Value::Null.into()));
    let bits = Expr::Value(Value::Number(bits.to_string(), false).into());
    *expr = super::sequences::call(geo::CUT, vec![value, bits]);
}

/// `(4c)`, `(20b)`.
fn bits_of(parameters: &[String]) -> Option<u32> {
    let text = parameters.concat();
    let (count, of_each) = match text.strip_suffix('c') {
        Some(count) => (count, 5),
        None => (text.strip_suffix('b')?, 1),
    };
    let bits = count.trim().parse::<u32>().ok()?.checked_mul(of_each)?;
    (1..=geo::BITS_MAX).contains(&bits).then_some(bits)
}
