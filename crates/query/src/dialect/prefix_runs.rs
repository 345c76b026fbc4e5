//! Long runs of one prefix operator, `NOT NOT NOT x`, shortened for the stock grammar, which recurses into each.
//!
//! Two of an operator are as good as four, and one as good as three, also where the first of them is infix:
//! `a - - - b` is `a - b`.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// `tokens` have no white space.
pub(super) fn shortened(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in tokens {
        let ends_in_two = matches!(out.as_slice(), [.., first, second]
            if first.token == token.token && second.token == token.token);
        if ends_in_two && is_prefix(&token.token) {
            out.pop();
        } else {
            out.push(token);
        }
    }
    out
}

fn is_prefix(token: &Token) -> bool {
    match token {
        Token::Minus | Token::Plus | Token::Tilde => true,
        Token::Word(word) => word.keyword == Keyword::NOT && word.quote_style.is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    fn short(sql: &str) -> String {
        let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize_with_location().unwrap();
        let tokens = tokens.into_iter().filter(|t| !matches!(t.token, Token::Whitespace(_))).collect();
        shortened(tokens).iter().map(|t| t.token.to_string()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn runs_keep_their_parity() {
        assert_eq!(short("NOT NOT NOT x"), "NOT x");
        assert_eq!(short("NOT NOT NOT NOT x AND NOT y"), "NOT NOT x AND NOT y");
        assert_eq!(short("a - - - b + + + + c"), "a - b + + c");
        assert_eq!(short("- + - + 1"), "- + - + 1");
        assert_eq!(short("~ ~ ~ 1"), "~ 1");
        assert_eq!(short("f((((1))))"), "f ( ( ( ( 1 ) ) ) )");
        assert_eq!(short(&format!("{}x", "NOT ".repeat(2001))), "NOT x");
    }
}
