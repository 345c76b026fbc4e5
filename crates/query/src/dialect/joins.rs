//! ASOF, LT, SPLICE and WINDOW JOIN as an ASOF JOIN of the stock grammar, whose condition says which it is.

use super::clauses::{BOUND, CLAUSE_ENDS, Mover, TIME_JOIN, WINDOW_JOIN, is_one_of, is_word};
use crate::Result;
use datafusion::sql::sqlparser::tokenizer::{Span, Token};

/// Besides those, words that end the table of a join and its condition.
const JOIN_WORDS: &[&str] = &[
    "tolerance",
    "where",
    "join",
    "left",
    "inner",
    "outer",
    "cross",
    "asof",
    "lt",
    "splice",
    "right",
    "full",
    "natural",
    "range",
];

fn join_ends() -> Vec<&'static str> {
    [CLAUSE_ENDS, JOIN_WORDS].concat()
}

impl Mover<'_> {
    pub(super) fn time_join(&mut self) -> Result<()> {
        let span = self.span(0);
        let kind = self.written(self.at).to_lowercase();
        let condition = self.join_table()?;
        let tolerance =
            if self.take(&["tolerance"]) { self.length("a length of time such as 5m")? } else { String::new() };
        self.word("match_condition", span);
        self.symbol(Token::LParen, span);
        self.word(TIME_JOIN, span);
        self.symbol(Token::LParen, span);
        self.text(&kind, span);
        self.symbol(Token::Comma, span);
        self.text(&tolerance, span);
        self.symbol(Token::RParen, span);
        self.symbol(Token::RParen, span);
        self.copy_range(condition)
    }

    /// Takes `ASOF JOIN table [ON …]` and gives out all but the condition, whose place is returned.
    fn join_table(&mut self) -> Result<(usize, usize)> {
        let span = self.span(0);
        self.at += 2;
        self.word("asof", span);
        self.word("join", span);
        let end = self.end_of(self.at, &[&join_ends()[..], &["on", "using", "match_condition"]].concat());
        if end == self.at {
            return self.refused("a table");
        }
        self.copy(end)?;
        let from = self.at;
        if is_one_of(self.token(0), &["on", "using"]) {
            self.at = self.end_of(self.at + 1, &join_ends());
        }
        Ok((from, self.at))
    }

    /// Copies what was passed over.
    pub(super) fn copy_range(&mut self, (from, to): (usize, usize)) -> Result<()> {
        let at = std::mem::replace(&mut self.at, from);
        self.copy(to)?;
        self.at = at;
        Ok(())
    }

    pub(super) fn window_join(&mut self) -> Result<()> {
        let span = self.span(0);
        let condition = self.join_table()?;
        if !self.take(&["range", "between"]) {
            return self.refused("RANGE BETWEEN");
        }
        self.word("match_condition", span);
        self.symbol(Token::LParen, span);
        self.word(WINDOW_JOIN, span);
        self.symbol(Token::LParen, span);
        self.bound(span)?;
        if !self.take(&["and"]) {
            return self.refused("AND");
        }
        self.symbol(Token::Comma, span);
        self.bound(span)?;
        let excludes = self.take(&["exclude", "prevailing"]);
        if !excludes {
            self.take(&["include", "prevailing"]);
        }
        self.symbol(Token::Comma, span);
        self.text(if excludes { "exclude" } else { "include" }, span);
        self.symbol(Token::RParen, span);
        self.symbol(Token::RParen, span);
        self.copy_range(condition)
    }

    /// `5 seconds PRECEDING`, `t.lookback minutes FOLLOWING`, `CURRENT ROW`.
    fn bound(&mut self, span: Span) -> Result<()> {
        self.word(BOUND, span);
        self.symbol(Token::LParen, span);
        if self.take(&["current", "row"]) {
            self.symbol(Token::Number("0".to_owned(), false), span);
            self.symbol(Token::Comma, span);
            self.text("n", span);
            self.symbol(Token::RParen, span);
            return Ok(());
        }
        let end = self.end_of(self.at, &["preceding", "following", "unbounded", "and"]);
        let direction = self.tokens.get(end).map_or(&Token::EOF, |t| &t.token);
        if end == self.at || !is_one_of(direction, &["preceding", "following"]) {
            self.at = end;
            return self.refused("a length of time and PRECEDING or FOLLOWING");
        }
        let is_preceding = is_word(direction, "preceding");
        let unit = self.unit_at(end - 1);
        if is_preceding {
            self.symbol(Token::Minus, span);
        }
        self.symbol(Token::LParen, span);
        self.copy(if unit.is_some() { end - 1 } else { end })?;
        self.symbol(Token::RParen, span);
        self.symbol(Token::Comma, span);
        self.text(unit.as_deref().unwrap_or_default(), span);
        self.symbol(Token::RParen, span);
        self.at = end + 1;
        Ok(())
    }

    /// The word at a place as a unit of time: `seconds`, or the letter of one behind a number.
    fn unit_at(&self, at: usize) -> Option<String> {
        if at <= self.at || self.tokens[at - 1].token == Token::Period {
            return None;
        }
        let Token::Word(word) = &self.tokens[at].token else { return None };
        const UNITS: &[(&str, &str)] = &[
            ("nanosecond", "n"),
            ("microsecond", "U"),
            ("millisecond", "T"),
            ("second", "s"),
            ("minute", "m"),
            ("hour", "h"),
            ("day", "d"),
            ("week", "w"),
        ];
        let name = word.value.strip_suffix('s').filter(|name| name.len() > 1).unwrap_or(&word.value);
        let known = UNITS.iter().find(|(unit, _)| *unit == name).map(|(_, letter)| (*letter).to_owned());
        known.or_else(|| Some(self.written(at)).filter(|text| crate::calendar::Unit::of(text).is_some()))
    }
}
