//! What clients of PostgreSQL write in their own queries about tables and types, in plainer words.
//!
//! The prefix `pg_catalog.` of functions and types is removed, `OPERATOR(pg_catalog.~)` becomes `~`, and `COLLATE` is
//! removed where it names the default byte order. `[NOT] MATERIALIZED` of a WITH query is removed: it changes no result.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// `tokens` are folded.
pub(super) fn plain(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_wanted = |word: &str| word.starts_with("pg_") || matches!(word, "collate" | "materialized");
    if !tokens.iter().any(|t| matches!(&t.token, Token::Word(w) if is_wanted(&w.value))) {
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
        } else if let Some(taken) = collation(rest).or_else(|| materialization(rest, &out)) {
            at += taken;
        } else if is_hidden(rest) {
            // `tableoid` and the system transaction columns are constant 0.
            out.push(TokenWithSpan::new(Token::Number("0".to_owned(), false), tokens[at].span));
            at += 3;
        } else if is_qualified(rest) && (is_call(rest) || follows_cast(&out)) {
            at += 2;
        } else {
            out.push(tokens[at].clone());
            at += 1;
        }
    }
    out
}

/// Returns the number of tokens of `[NOT] MATERIALIZED` between AS and a parenthesis.
fn materialization(tokens: &[TokenWithSpan], before: &[TokenWithSpan]) -> Option<usize> {
    let words = 1 + usize::from(is_word(tokens, 0, "not"));
    let is_with_query = is_word(tokens, words - 1, "materialized")
        && tokens.get(words).is_some_and(|t| t.token == Token::LParen)
        && before.last().is_some_and(|t| is_word(std::slice::from_ref(t), 0, "as"));
    is_with_query.then_some(words)
}

fn is_word(tokens: &[TokenWithSpan], n: usize, word: &str) -> bool {
    matches!(tokens.get(n).map(|t| &t.token), Some(Token::Word(w)) if w.value == word)
}

fn is_qualified(tokens: &[TokenWithSpan]) -> bool {
    is_word(tokens, 0, "pg_catalog")
        && tokens.get(1).is_some_and(|t| t.token == Token::Period)
        && matches!(tokens.get(2).map(|t| &t.token), Some(Token::Word(_)))
}

/// Returns true for `c.tableoid` and `c.xmin`, PostgreSQL's system columns.
fn is_hidden(tokens: &[TokenWithSpan]) -> bool {
    matches!(tokens.first().map(|t| &t.token), Some(Token::Word(_)))
        && tokens.get(1).is_some_and(|t| t.token == Token::Period)
        && (is_word(tokens, 2, "tableoid") || is_word(tokens, 2, "xmin"))
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

/// Returns the length of `COLLATE "C"` and similar clauses: strings are ordered by bytes anyway.
fn collation(tokens: &[TokenWithSpan]) -> Option<usize> {
    const BY_BYTES: &[&str] = &["c", "default", "posix", "ucs_basic", "c.utf-8", "c.utf8"];
    if !is_word(tokens, 0, "collate") {
        return None;
    }
    let behind = if is_qualified(&tokens[1..]) { 2 } else { 0 };
    let name = match &tokens.get(1 + behind)?.token {
        Token::Word(word) => word.value.as_str(),
        _ => return None,
    };
    BY_BYTES.contains(&name).then_some(2 + behind)
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
            "select 'pg_class' :: regclass , x :: text"
        );
        assert_eq!(plainly("select a collate \"c\" from t"), "select a from t");
        assert_eq!(plainly("select a"), "select   a");
    }
}
