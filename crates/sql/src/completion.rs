//! Completion for editors: tokens that are allowed at a position of a statement.

use crate::parser::Parser;
use crate::{Expected, TokenKind, lexer};

/// Returns the tokens allowed at a byte offset of `text`, in a fixed order.
///
/// A word that ends at the offset is incomplete and ignored. The result is empty if the text before the offset is not
/// the beginning of a statement, or ends within a string or a comment.
#[must_use]
pub fn expected_at(text: &str, position: usize) -> Vec<Expected> {
    let Some(before) = text.get(..position) else { return Vec::new() };
    let Ok(mut tokens) = lexer::tokens(before) else { return Vec::new() };
    let mut at = tokens.len() - 1;
    // A word that ends at the offset is still incomplete.
    let is_word = |kind: TokenKind| matches!(kind, TokenKind::Word(_) | TokenKind::Variable);
    if at > 0 && tokens[at - 1].span.end as usize == position && is_word(tokens[at - 1].kind) {
        at -= 1;
        tokens.remove(at);
    }
    // If the text has several statements, only the last one is completed.
    let semicolon = TokenKind::Symbol(crate::Symbol::Semicolon);
    let from = tokens[..at].iter().rposition(|t| t.kind == semicolon).map_or(0, |n| n + 1);
    let tokens = &tokens[from..];
    let mut parser = Parser::tracing(before, tokens, at - from);
    let _ = parser.statement();
    parser.into_expected()
}
