//! Tokens to a syntax tree, by recursive descent and, for operators, precedence climbing.
//!
//! Each clause and each family of statements has a file of its own. The parser never goes back: what a word means is
//! decided by the words behind it, at most four, or by names in a list. Every probe for a word says what could have
//! stood there ([`expected`]), which gives the hints of errors and completion for free.
//!
//! Functions that take part in the recursion, and what they call, are not inlined into each other: one frame with the
//! variables of all of them would need megabytes of stack at [`DEPTH_MAX`] levels.
//!
//! Reading order: this file, the cursor; [`names`], [`literal`], [`types`]; [`expr`], [`infix`], [`primary`],
//! [`function`], [`special`], [`window`]; [`query`], [`with`], [`select`], [`select_item`], [`group_by`], [`parens`],
//! [`relation`], [`alias`], [`join`], [`time_join`], [`sample_by`], [`latest_on`], [`pivot`]; [`statement`] and the
//! statements: [`insert`], [`update`], [`merge`], [`create_table`], [`column`], [`storage`], [`alter_table`], [`view`],
//! [`object`], [`access`], [`copy`], [`transaction`], [`session`], [`cursor`], [`show`], [`admin`].

mod access;
mod admin;
mod alias;
mod alter_table;
mod column;
mod copy;
mod create_table;
mod cursor;
pub mod expected;
mod expr;
mod function;
mod group_by;
mod infix;
mod insert;
mod join;
mod latest_on;
mod literal;
mod merge;
mod names;
mod object;
mod parens;
mod pivot;
mod primary;
mod query;
mod relation;
mod sample_by;
mod select;
mod select_item;
mod session;
mod show;
mod special;
mod statement;
mod storage;
mod time_join;
mod transaction;
mod types;
mod update;
mod view;
mod window;
mod with;

use crate::error::ErrorKind;
use crate::{Error, Keyword, Span, Symbol, Token, TokenKind};
use expected::{Expected, Trace};

/// Levels of parentheses, expressions and sub-queries within each other. The deepest recursion of the parser and of the
/// tree's own walks follows from it and from [`CHAIN_MAX`].
pub const DEPTH_MAX: usize = 200;

/// Levels of an expression, which operators in a row make, as in `a + b + …`. A list, AND, OR and UNION are one level, however
/// many members they have.
pub const CHAIN_MAX: usize = 2_000;

/// Parentheses around tables and joins within each other, as in `((a JOIN b ON …) JOIN c ON …)`. The stock parser, which reads a
/// statement behind this one, tries each of them twice: 2ⁿ ways.
pub const NESTED_JOINS_MAX: usize = 14;

/// Boxed, because results are small where nothing is wrong.
pub(crate) type Result<T> = std::result::Result<T, Box<Error>>;

/// A cursor over the tokens of a statement.
pub(crate) struct Parser<'a> {
    text: &'a str,
    tokens: &'a [Token],
    at: usize,
    /// Levels of recursion that are open.
    depth: usize,
    /// Levels of the expression that was read last.
    height: usize,
    /// The most levels of the expressions that were read within the one that is open.
    tallest: usize,
    /// Whether clauses about storage may follow the query that is being read, such as `PARTITION BY DAY`.
    storage_follows: bool,
    /// Parentheses around joins, within each other, of those that were read.
    nested_joins: usize,
    trace: Option<Trace>,
}

impl<'a> Parser<'a> {
    /// `tokens` are those of `text`.
    pub(crate) fn new(text: &'a str, tokens: &'a [Token]) -> Parser<'a> {
        Parser {
            text,
            tokens,
            at: 0,
            depth: 0,
            height: 0,
            tallest: 0,
            storage_follows: false,
            nested_joins: 0,
            trace: None,
        }
    }

    /// A parser that notes what may stand in the place of token `at`.
    pub(crate) fn tracing(text: &'a str, tokens: &'a [Token], at: usize) -> Parser<'a> {
        Parser { trace: Some(Trace::new(at)), ..Parser::new(text, tokens) }
    }

    /// What may stand in the place that is traced.
    pub(crate) fn into_expected(self) -> Vec<Expected> {
        self.trace.map(Trace::into_expected).unwrap_or_default()
    }

    /// The token `n` behind the next one; past the end, the end.
    fn token(&self, n: usize) -> Token {
        let last = self.tokens.len() - 1;
        self.tokens[(self.at + n).min(last)]
    }

    fn kind(&self, n: usize) -> TokenKind {
        self.token(n).kind
    }

    /// The keyword of the token `n` behind the next one, if it is one.
    fn keyword(&self, n: usize) -> Option<Keyword> {
        match self.kind(n) {
            TokenKind::Word(keyword) => keyword,
            _ => None,
        }
    }

    fn is_symbol(&self, n: usize, symbol: Symbol) -> bool {
        self.kind(n) == TokenKind::Symbol(symbol)
    }

    /// The text of the token `n` behind the next one.
    fn written(&self, n: usize) -> &'a str {
        self.token(n).span.slice(self.text)
    }

    /// Takes the next token.
    fn bump(&mut self) -> Token {
        let token = self.token(0);
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        token
    }

    /// The place of the next token.
    fn start(&self) -> Span {
        self.token(0).span
    }

    /// The place from `start` to the last token that was taken.
    fn since(&self, start: Span) -> Span {
        let last = self.at.checked_sub(1).map_or(start, |at| self.tokens[at].span);
        if last.end < start.start { Span { start: start.start, end: start.start } } else { start.to(last) }
    }

    /// Whether the tokens `n` and `n + 1` have nothing between them.
    fn is_adjacent(&self, n: usize) -> bool {
        self.token(n).span.end == self.token(n + 1).span.start
    }

    /// Whether the next token is the keyword.
    fn sees(&self, keyword: Keyword) -> bool {
        self.sees_at(0, keyword)
    }

    fn sees_at(&self, n: usize, keyword: Keyword) -> bool {
        let found = self.keyword(n) == Some(keyword);
        if !found {
            self.note(n, Expected::Keyword(keyword));
        }
        found
    }

    /// Whether the keywords come one after the other.
    fn sees_all(&self, keywords: &[Keyword]) -> bool {
        keywords.iter().enumerate().all(|(n, keyword)| self.sees_at(n, *keyword))
    }

    /// Takes the keyword if it is next.
    fn eat(&mut self, keyword: Keyword) -> bool {
        let found = self.sees(keyword);
        if found {
            self.bump();
        }
        found
    }

    /// Takes all of the keywords or none.
    fn eat_all(&mut self, keywords: &[Keyword]) -> bool {
        let found = self.sees_all(keywords);
        if found {
            self.at += keywords.len();
        }
        found
    }

    /// Takes one of the keywords.
    fn eat_any(&mut self, keywords: &[Keyword]) -> Option<Keyword> {
        keywords.iter().copied().find(|keyword| self.eat(*keyword))
    }

    fn expect(&mut self, keyword: Keyword) -> Result<()> {
        if self.eat(keyword) { Ok(()) } else { Err(self.expected(keyword.to_string())) }
    }

    /// Takes all of the keywords.
    fn expect_all(&mut self, keywords: &[Keyword]) -> Result<()> {
        for (n, keyword) in keywords.iter().enumerate() {
            if !self.eat(*keyword) {
                let rest: Vec<String> = keywords[n..].iter().map(Keyword::to_string).collect();
                return Err(self.expected(rest.join(" ")));
            }
        }
        Ok(())
    }

    fn sees_symbol(&self, symbol: Symbol) -> bool {
        let found = self.is_symbol(0, symbol);
        if !found {
            self.note(0, Expected::Symbol(symbol));
        }
        found
    }

    fn eat_symbol(&mut self, symbol: Symbol) -> bool {
        let found = self.sees_symbol(symbol);
        if found {
            self.bump();
        }
        found
    }

    fn expect_symbol(&mut self, symbol: Symbol) -> Result<()> {
        if self.eat_symbol(symbol) { Ok(()) } else { Err(self.expected(symbol.text())) }
    }

    /// One or more of what `item` reads, with commas between them.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.eat_symbol(Symbol::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// A list in parentheses.
    fn in_parens<T>(&mut self, item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.expect_symbol(Symbol::LeftParen)?;
        let items = self.list(item)?;
        self.expect_symbol(Symbol::RightParen)?;
        Ok(items)
    }

    /// Notes that `expected` may stand where the token `n` behind the next one stands.
    fn note(&self, n: usize, expected: Expected) {
        if let Some(trace) = &self.trace {
            trace.note(self.at + n, expected);
        }
    }

    /// Whether the next token is the traced one. A name that may be left out is left out there, so that what may stand
    /// in its place is noted.
    fn is_traced(&self) -> bool {
        self.trace.as_ref().is_some_and(|trace| trace.is_at(self.at))
    }

    /// Notes that each of the keywords may come.
    fn may_be(&self, keywords: &[Keyword]) {
        if self.trace.is_some() {
            keywords.iter().for_each(|keyword| self.note(0, Expected::Keyword(*keyword)));
        }
    }

    /// The error that something else stands where `what` belongs.
    fn expected(&self, what: impl Into<String>) -> Box<Error> {
        let token = self.token(0);
        let (found, position) = match token.kind {
            TokenKind::End => ("end of statement".to_owned(), self.text.len()),
            _ => (shortened(token.span.slice(self.text)), token.span.start as usize),
        };
        Box::new(Error::new(ErrorKind::Unexpected { expected: what.into(), found }, position))
    }

    /// The error that a word stands in the wrong place.
    fn misplaced(&self, message: impl Into<String>) -> Box<Error> {
        Box::new(Error::new(ErrorKind::Misplaced(message.into()), self.start().start as usize))
    }

    /// Reads something within something else, up to [`DEPTH_MAX`] levels.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= DEPTH_MAX {
            return Err(Box::new(Error::new(ErrorKind::TooDeep(DEPTH_MAX), self.start().start as usize)));
        }
        self.depth += 1;
        let out = read(self);
        self.depth -= 1;
        out
    }

    /// One level more than `levels`, if the tree may be that high. Whoever makes a level asks before it is made, so that
    /// what is dropped with an error is no higher.
    fn above(&self, levels: usize) -> Result<usize> {
        if levels > CHAIN_MAX {
            let position = self.start().start as usize;
            return Err(Box::new(Error::new(ErrorKind::TooManyOperators(CHAIN_MAX), position)));
        }
        Ok(levels + 1)
    }

    /// Reads what makes one level over the expressions within it and over `below` levels; gives the levels, too.
    fn level<T>(&mut self, below: usize, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<(T, usize)> {
        let outer = std::mem::take(&mut self.tallest);
        self.above(below)?;
        let out = read(self)?;
        let levels = self.above(below.max(self.tallest))?;
        self.tallest = outer;
        Ok((out, levels))
    }
}

/// The beginning of a token, as a message shows it.
fn shortened(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
