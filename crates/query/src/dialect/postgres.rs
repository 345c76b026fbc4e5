//! What clients of PostgreSQL write in their own queries about tables and types, in plainer words.
//!
//! `pg_catalog.` before a function or a type goes, `OPERATOR(pg_catalog.~)` is `~`, `COLLATE pg_catalog.default` goes,
//! a string cast to `regclass` is asked for its number, and numbers of objects are plain numbers.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// `tokens` are folded.
pub(super) fn plain(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_about_catalog = tokens
        .iter()
        .any(|t| matches!(&t.token, Token::Word(w) if w.value.starts_with("pg_") || w.value.starts_with("reg")));
    if !is_about_catalog {
        return tokens;
    }
    let tokens: Vec<_> = tokens.into_iter().filter(|t| !matches!(t.token, Token::Whitespace(_))).collect();
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let rest = &tokens[at..];
        if let Some((operator, taken)) = operator(rest) {
            out.push(operator);
            at += taken;
        } else if is_word(rest, 0, "collate") && is_word(rest, 1, "pg_catalog") {
            at += 4;
        } else if is_qualified(rest) && (is_call(rest) || follows_cast(&out)) {
            at += 2;
        } else if let Some(call) = number_of_object(rest) {
            out.extend(call);
            at += 3;
        } else {
            out.push(tokens[at].clone());
            at += 1;
        }
    }
    out
}

fn is_word(tokens: &[TokenWithSpan], n: usize, word: &str) -> bool {
    matches!(tokens.get(n).map(|t| &t.token), Some(Token::Word(w)) if w.value == word)
}

fn is_qualified(tokens: &[TokenWithSpan]) -> bool {
    is_word(tokens, 0, "pg_catalog")
        && tokens.get(1).is_some_and(|t| t.token == Token::Period)
        && matches!(tokens.get(2).map(|t| &t.token), Some(Token::Word(_)))
}

fn is_call(tokens: &[TokenWithSpan]) -> bool {
    tokens.get(3).is_some_and(|t| t.token == Token::LParen)
}

fn follows_cast(out: &[TokenWithSpan]) -> bool {
    match out.last().map(|t| &t.token) {
        Some(Token::DoubleColon) => true,
        Some(Token::Word(word)) => word.value == "as",
        _ => false,
    }
}

/// `operator ( pg_catalog . ~ )`, and how many tokens it is.
fn operator(tokens: &[TokenWithSpan]) -> Option<(TokenWithSpan, usize)> {
    let is = is_word(tokens, 0, "operator")
        && tokens.get(1).is_some_and(|t| t.token == Token::LParen)
        && is_word(tokens, 2, "pg_catalog")
        && tokens.get(3).is_some_and(|t| t.token == Token::Period)
        && tokens.get(5).is_some_and(|t| t.token == Token::RParen);
    is.then(|| (tokens[4].clone(), 6))
}

/// `'t'::regclass` as `to_regclass('t')`.
fn number_of_object(tokens: &[TokenWithSpan]) -> Option<[TokenWithSpan; 4]> {
    let is = matches!(tokens.first()?.token, Token::SingleQuotedString(_))
        && tokens.get(1)?.token == Token::DoubleColon
        && is_word(tokens, 2, "regclass");
    let span = tokens[0].span;
    let put = |token| TokenWithSpan::new(token, span);
    is.then(|| [put(Token::make_word("to_regclass", None)), put(Token::LParen), tokens[0].clone(), put(Token::RParen)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::TidaliteDialect;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    fn plainly(sql: &str) -> String {
        let tokens = Tokenizer::new(&TidaliteDialect, sql).tokenize_with_location().unwrap();
        plain(tokens).iter().map(|t| t.token.to_string()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn queries_of_clients_become_plain_ones() {
        assert_eq!(
            plainly(
                "select pg_catalog.f(c.oid) from pg_catalog.pg_class c where n operator(pg_catalog.~) '^t$' collate pg_catalog.default"
            ),
            "select f ( c . oid ) from pg_catalog . pg_class c where n ~ '^t$'"
        );
        assert_eq!(
            plainly("select 'pg_class'::regclass, x::pg_catalog.text"),
            "select to_regclass ( 'pg_class' ) , x :: text"
        );
        assert_eq!(plainly("select a"), "select   a");
    }
}
