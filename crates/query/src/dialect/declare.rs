//! `DECLARE @x := …, @y := … SELECT …`: each `@x` of the query is what was declared, token by token.

use super::clauses::is_word;
use crate::names::Words;
use crate::{Error, Result};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use std::collections::HashMap;

/// Declarations can name earlier ones, which doubles what they stand for; past this many tokens, those of all variables
/// and of the statement together, a statement is refused.
const TOKENS_MAX: usize = 100_000;

#[derive(Default)]
struct Declared {
    values: HashMap<String, Vec<TokenWithSpan>>,
    /// Tokens made so far.
    made: usize,
}

pub(super) fn substituted(tokens: Vec<TokenWithSpan>, words: &Words) -> Result<Vec<TokenWithSpan>> {
    if !tokens.iter().any(|t| is_word(&t.token, "declare")) {
        return Ok(tokens);
    }
    let mut declared = Declared::default();
    let mut out = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        if is_word(&tokens[at].token, "declare") && variable(&tokens, at + 1).is_some() {
            at = declarations(&tokens, at + 1, &mut declared, words)?;
            continue;
        }
        push(&tokens[at], &mut declared, &mut out, words)?;
        at += 1;
    }
    Ok(out)
}

fn variable(tokens: &[TokenWithSpan], at: usize) -> Option<&str> {
    match &tokens.get(at)?.token {
        Token::Word(w) if w.quote_style.is_none() && w.value.starts_with('@') => Some(&w.value),
        _ => None,
    }
}

/// Reads `@x := …, …` from `at` on and returns where the query begins.
fn declarations(tokens: &[TokenWithSpan], mut at: usize, declared: &mut Declared, words: &Words) -> Result<usize> {
    loop {
        if tokens.get(at).is_some_and(|t| is_word(&t.token, "overridable")) {
            at += 1;
        }
        let Some(name) = variable(tokens, at) else { return Err(expected("@name", tokens, at, words)) };
        if tokens.get(at + 1).is_none_or(|t| t.token != Token::Assignment) {
            return Err(expected(":=", tokens, at + 1, words));
        }
        let (from, mut depth) = (at + 2, 0_i32);
        at = from;
        while let Some(token) = tokens.get(at) {
            match &token.token {
                Token::LParen | Token::LBracket => depth += 1,
                Token::RParen | Token::RBracket => depth -= 1,
                Token::EOF | Token::SemiColon => break,
                Token::Comma if depth == 0 => break,
                token if depth == 0 && at > from && ["select", "with", "from"].iter().any(|w| is_word(token, w)) => {
                    break;
                }
                _ => {}
            }
            at += 1;
        }
        if at == from {
            return Err(expected("an expression", tokens, at, words));
        }
        let mut value = Vec::new();
        for token in &tokens[from..at] {
            push(token, declared, &mut value, words)?;
        }
        declared.values.insert(name.to_owned(), value);
        match tokens.get(at).map(|t| &t.token) {
            Some(Token::Comma) => at += 1,
            _ => return Ok(at),
        }
    }
}

fn push(token: &TokenWithSpan, declared: &mut Declared, out: &mut Vec<TokenWithSpan>, words: &Words) -> Result<()> {
    let value = match &token.token {
        Token::Word(w) if w.quote_style.is_none() => declared.values.get(&w.value),
        _ => None,
    };
    let Some(value) = value else {
        out.push(token.clone());
        return Ok(());
    };
    declared.made += value.len();
    if declared.made > TOKENS_MAX {
        return Err(Error::invalid("what DECLARE declares grows too long")
            .at(words.offset(token.span.start).unwrap_or_default()));
    }
    // One token is itself; what is longer keeps together.
    let is_call = matches!(value.first().map(|t| &t.token), Some(Token::Word(_)))
        && value.get(1).is_some_and(|t| t.token == Token::LParen)
        && closes_last(&value[1..]);
    if value.len() == 1 || is_call || (value[0].token == Token::LParen && closes_last(value)) {
        out.extend_from_slice(value);
    } else {
        out.push(TokenWithSpan::new(Token::LParen, token.span));
        out.extend_from_slice(value);
        out.push(TokenWithSpan::new(Token::RParen, token.span));
    }
    Ok(())
}

/// Whether the parenthesis that opens `tokens` is closed by the last of them.
fn closes_last(tokens: &[TokenWithSpan]) -> bool {
    let mut depth = 0_i32;
    for (n, token) in tokens.iter().enumerate() {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return n + 1 == tokens.len();
        }
    }
    false
}

fn expected(what: &str, tokens: &[TokenWithSpan], at: usize, words: &Words) -> Error {
    let token = tokens.get(at).filter(|t| t.token != Token::EOF);
    let found = token.map_or_else(|| "end of statement".to_owned(), |t| t.token.to_string());
    let place = token.and_then(|t| words.offset(t.span.start)).unwrap_or(words.sql.len());
    Error::invalid(format!("syntax error: expected {what}, found {found}")).at(place)
}
