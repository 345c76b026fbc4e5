//! `(…) TIMESTAMP(ts) AS a` and `(…) a TIMESTAMP(ts)`: a table with its time and a name. The stock grammar takes
//! TIMESTAMP(ts) alone for an alias with a column, and has no place for another: both become `(…) AS a(__timestamp, ts)`.

use super::clauses::{Mover, is_one_of};
use datafusion::sql::sqlparser::tokenizer::{Token, Word};

/// The first column of an alias whose second is the time.
pub(crate) const TIMED: &str = "__timestamp";

/// Words that may follow TIMESTAMP(ts) and are no alias.
const FOLLOW: &[&str] = &[
    "align",
    "anti",
    "asof",
    "bypass",
    "cross",
    "dedup",
    "except",
    "fetch",
    "fill",
    "for",
    "from",
    "full",
    "group",
    "having",
    "in",
    "inner",
    "intersect",
    "join",
    "lateral",
    "latest",
    "left",
    "limit",
    "lt",
    "maxuncommittedrows",
    "natural",
    "o3maxlag",
    "offset",
    "on",
    "order",
    "owned",
    "partition",
    "pivot",
    "qualify",
    "right",
    "sample",
    "semi",
    "set",
    "splice",
    "tolerance",
    "ttl",
    "union",
    "unpivot",
    "using",
    "volume",
    "wal",
    "where",
    "window",
    "with",
];

impl Mover<'_> {
    /// Takes `TIMESTAMP(ts)` with the name beside it, if there is one.
    pub(super) fn timed(&mut self) -> bool {
        let (Token::LParen, Token::Word(time), Token::RParen) = (self.token(1), self.token(2), self.token(3)) else {
            return false;
        };
        let time = time.clone();
        if self.out.last().is_some_and(|t| t.token == Token::RParen) {
            if let Some((alias, behind)) = self.alias_of_parentheses() {
                let closing = self.span(4);
                self.named(alias, time);
                self.symbol(Token::RParen, closing);
                self.at += behind;
                return true;
            }
            let has_as = self.sees(4, "as");
            let at = 4 + usize::from(has_as);
            let Token::Word(alias) = self.token(at) else { return false };
            if alias.quote_style.is_none()
                && (is_one_of(self.token(at), FOLLOW) || *self.token(at + 1) == Token::LParen)
            {
                return false;
            }
            let alias = alias.clone();
            self.named(alias, time);
            self.at += at + 1;
            return true;
        }
        let before = |n: usize| self.out.len().checked_sub(n).map(|at| &self.out[at].token);
        let alias = match (before(1), before(2), before(3)) {
            (Some(Token::Word(alias)), Some(Token::RParen), _) => Some((alias.clone(), 1)),
            (Some(Token::Word(alias)), Some(word), Some(Token::RParen)) if is_one_of(word, &["as"]) => {
                Some((alias.clone(), 2))
            }
            _ => None,
        };
        let Some((alias, count)) = alias else { return false };
        if alias.quote_style.is_none() && (FOLLOW.contains(&alias.value.as_str()) || alias.value == "as") {
            return false;
        }
        self.out.truncate(self.out.len() - count);
        self.named(alias, time);
        self.at += 4;
        true
    }

    /// Returns the alias after `((…) TIMESTAMP(ts)) a` and the number of tokens up to its end.
    ///
    /// The alias moves to the inner table.
    fn alias_of_parentheses(&self) -> Option<(Word, usize)> {
        if *self.token(4) != Token::RParen {
            return None;
        }
        let at = 5 + usize::from(self.sees(5, "as"));
        let Token::Word(alias) = self.token(at) else { return None };
        let is_alias = alias.quote_style.is_some() || !is_one_of(self.token(at), FOLLOW);
        (is_alias && *self.token(at + 1) != Token::LParen).then(|| (alias.clone(), at + 1))
    }

    fn named(&mut self, alias: Word, time: Word) {
        let span = self.span(0);
        self.word("as", span);
        self.symbol(Token::Word(alias), span);
        self.symbol(Token::LParen, span);
        self.word(TIMED, span);
        self.symbol(Token::Comma, span);
        self.symbol(Token::Word(time), span);
        self.symbol(Token::RParen, span);
    }
}
