//! `x BETWEEN SYMMETRIC a AND b`: between them in either order. The stock grammar reads
//! `x BETWEEN __symmetric(a) AND b`, which is then `x BETWEEN a AND b OR x BETWEEN b AND a`.

use super::clauses::is_word;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

const SYMMETRIC: &str = "__symmetric";

/// `tokens` have no white space.
pub(super) fn marked(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let asks =
        |at: usize| at > 0 && is_word(&tokens[at].token, "symmetric") && is_word(&tokens[at - 1].token, "between");
    if !(0..tokens.len()).any(asks) {
        return tokens;
    }
    let mut out = Vec::with_capacity(tokens.len() + 4);
    let mut closes = Vec::new();
    for at in 0..tokens.len() {
        let put = |token: Token| TokenWithSpan::new(token, tokens[at].span);
        if closes.last() == Some(&at) {
            closes.pop();
            out.push(put(Token::RParen));
        }
        let end = asks(at).then(|| first_and(&tokens, at)).flatten();
        match end {
            Some(end) => {
                out.extend([put(Token::make_word(SYMMETRIC, None)), put(Token::LParen)]);
                closes.push(end);
            }
            None => out.push(tokens[at].clone()),
        }
    }
    out
}

/// The AND that parts the bounds.
fn first_and(tokens: &[TokenWithSpan], from: usize) -> Option<usize> {
    let mut depth = 0_i32;
    (from..tokens.len()).find(|at| {
        match &tokens[*at].token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth -= 1,
            _ => {}
        }
        depth == 0 && is_word(&tokens[*at].token, "and")
    })
}

pub(super) fn as_written(text: &str) -> String {
    match text.split_once(&format!("BETWEEN {SYMMETRIC}(")) {
        Some((before, after)) => format!("{before}BETWEEN SYMMETRIC {}", after.replacen(") AND ", " AND ", 1)),
        None => text.to_owned(),
    }
}

pub(super) fn replaced(expr: &mut Expr) {
    let Expr::Between { expr: value, negated, low, high } = expr else { return };
    let Some((name, bounds)) = super::call(low) else { return };
    let (SYMMETRIC, [low]) = (name.as_str(), &bounds[..]) else { return };
    let of = |low: &Expr, high: &Expr| {
        let nested = |e: &Expr| Box::new(Expr::Nested(Box::new(e.clone())));
        Box::new(Expr::Between { expr: value.clone(), negated: false, low: nested(low), high: nested(high) })
    };
    let either = Expr::BinaryOp { left: of(low, high), op: BinaryOperator::Or, right: of(high, low) };
    let either = Expr::Nested(Box::new(either));
    *expr = if *negated { Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(either) } } else { either };
}
