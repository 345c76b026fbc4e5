//! What may stand at a place of a text, for editors.

use crate::parser::Parser;
use crate::{Expected, TokenKind, lexer};

/// What may stand at a byte offset of a text, in a fixed order; the word that ends there is being written and left out.
///
/// Nothing is known where the text before the place is no beginning of a statement, or ends within a string or a comment.
#[must_use]
pub fn expected_at(text: &str, position: usize) -> Vec<Expected> {
    let Some(before) = text.get(..position) else { return Vec::new() };
    let Ok(mut tokens) = lexer::tokens(before) else { return Vec::new() };
    let mut at = tokens.len() - 1;
    // A word that touches the place is not whole yet.
    let is_word = |kind: TokenKind| matches!(kind, TokenKind::Word(_) | TokenKind::Variable);
    if at > 0 && tokens[at - 1].span.end as usize == position && is_word(tokens[at - 1].kind) {
        at -= 1;
        tokens.remove(at);
    }
    // Of several statements the last one counts.
    let semicolon = TokenKind::Symbol(crate::Symbol::Semicolon);
    let from = tokens[..at].iter().rposition(|t| t.kind == semicolon).map_or(0, |n| n + 1);
    let tokens = &tokens[from..];
    let mut parser = Parser::tracing(before, tokens, at - from);
    let _ = parser.statement();
    parser.into_expected()
}
