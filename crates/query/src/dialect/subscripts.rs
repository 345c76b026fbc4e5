//! Parts of arrays: `a[2:]`, `a[:2]`, and subscripts of several dimensions, `a[2, 1]` and `a[1:2, 1]`.
//!
//! | written | tokens become | planned as |
//! |---|---|---|
//! | `a[2, 1]` | `a[2][1]` | that |
//! | `a[1:2, 1]` | `a[1:2:__and][1]` | `__array_part(a, 'si', 1, 2, 1)` |
//! | `a[2:]` | that | `a[2:2147483647]` |

use crate::functions::array_part;
use datafusion::sql::sqlparser::ast::{AccessExpr, Expr, Ident, Subscript, Value};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// Behind a slice: the next subscript is of its elements.
const AND: &str = "__and";
/// No array is longer.
const LAST: i32 = i32::MAX;

/// `tokens` have no white space.
pub(super) fn separated(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    if !tokens.iter().any(|t| t.token == Token::LBracket) {
        return tokens;
    }
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 8);
    // For each bracket or parenthesis that is open: nothing, or whether the dimension is a slice.
    let mut open: Vec<Option<bool>> = Vec::new();
    for token in tokens {
        let put = |token_of: Token| TokenWithSpan::new(token_of, token.span);
        match token.token {
            Token::LBracket => open.push(is_behind_value(out.last()).then_some(false)),
            Token::LParen | Token::LBrace => open.push(None),
            Token::RBracket | Token::RParen | Token::RBrace => drop(open.pop()),
            Token::Colon => {
                if let Some(Some(is_slice)) = open.last_mut() {
                    *is_slice = true;
                }
            }
            Token::Comma => {
                if let Some(Some(is_slice)) = open.last_mut() {
                    if std::mem::take(is_slice) {
                        if out.last().is_some_and(|t| t.token == Token::Colon) {
                            out.push(put(Token::Number(LAST.to_string(), false)));
                        }
                        out.push(put(Token::Colon));
                        out.push(put(Token::make_word(AND, None)));
                    }
                    out.push(put(Token::RBracket));
                    out.push(put(Token::LBracket));
                    continue;
                }
            }
            _ => {}
        }
        out.push(token);
    }
    out
}

fn is_behind_value(before: Option<&TokenWithSpan>) -> bool {
    match before.map(|t| &t.token) {
        Some(Token::Word(word)) => word.quote_style.is_some() || word.value != "array",
        Some(Token::RParen | Token::RBracket) => true,
        _ => false,
    }
}

/// How a part of an array is shown as the name of a column.
pub(super) fn as_written(text: &str) -> String {
    text.replace(&format!(":{LAST}:{AND}]["), ":, ").replace(&format!(":{AND}]["), ", ")
}

pub(super) fn replaced(expr: &mut Expr) {
    let Expr::CompoundFieldAccess { root, access_chain } = expr else { return };
    let is_ours = |access: &AccessExpr| match access {
        AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride }) => {
            lower_bound.is_none() || upper_bound.is_none() || stride.as_ref().is_some_and(is_and)
        }
        _ => false,
    };
    if !access_chain.iter().any(is_ours) {
        return;
    }
    let mut of = std::mem::replace(root.as_mut(), Expr::Value(Value::Null.into()));
    let (mut plain, mut group) = (Vec::new(), Vec::new());
    for access in std::mem::take(access_chain) {
        let goes_on = matches!(&access, AccessExpr::Subscript(Subscript::Slice { stride: Some(s), .. }) if is_and(s));
        if goes_on && group.is_empty() {
            of = accessed(of, std::mem::take(&mut plain));
        }
        match access {
            AccessExpr::Subscript(subscript) if goes_on || !group.is_empty() => group.push(subscript),
            AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride }) => {
                let (lower_bound, upper_bound) = bounds(lower_bound, upper_bound);
                let (lower_bound, upper_bound) = (Some(lower_bound), Some(upper_bound));
                plain.push(AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride }));
            }
            other => plain.push(other),
        }
        if !goes_on && !group.is_empty() {
            of = part(of, std::mem::take(&mut group));
        }
    }
    *expr = accessed(of, plain);
}

fn is_and(stride: &Expr) -> bool {
    matches!(stride, Expr::Identifier(Ident { value, .. }) if value == AND)
}

fn accessed(root: Expr, access_chain: Vec<AccessExpr>) -> Expr {
    if access_chain.is_empty() { root } else { Expr::CompoundFieldAccess { root: Box::new(root), access_chain } }
}

fn bounds(lower: Option<Expr>, upper: Option<Expr>) -> (Expr, Expr) {
    let number = |n: i32| Expr::Value(Value::Number(n.to_string(), false).into());
    (lower.unwrap_or_else(|| number(1)), upper.unwrap_or_else(|| number(LAST)))
}

fn part(of: Expr, subscripts: Vec<Subscript>) -> Expr {
    let (mut kinds, mut places) = (String::new(), Vec::new());
    for subscript in subscripts {
        match subscript {
            Subscript::Index { index } => {
                kinds.push(array_part::INDEX);
                places.push(index);
            }
            Subscript::Slice { lower_bound, upper_bound, .. } => {
                kinds.push(array_part::SLICE);
                places.extend(<[Expr; 2]>::from(bounds(lower_bound, upper_bound)));
            }
        }
    }
    let kinds = Expr::Value(Value::SingleQuotedString(kinds).into());
    super::sequences::call(array_part::NAME, [of, kinds].into_iter().chain(places).collect())
}
