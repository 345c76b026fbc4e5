//! The parser: recursive descent, with precedence climbing for operators.
//!
//! Each clause and each family of statements has its own file. The parser does not backtrack: the meaning of a word is
//! decided by the following words, at most four, or by a list of names. Every test for a keyword records the allowed
//! keyword ([`expected`]); hints of errors and completion use these records.
//!
//! Functions of the recursion and their callees are not inlined into each other: one stack frame with the
//! variables of all these functions would need megabytes of stack at [`DEPTH_MAX`] levels.
//!
//! Reading order: this file, the cursor; [`names`], [`literal`], [`types`]; [`expr`], [`precedence`], [`infix`],
//! [`primary`], [`function`], [`special`], [`window`]; [`query`], [`with`], [`select`], [`select_item`], [`group_by`],
//! [`parens`], [`relation`], [`alias`], [`join`], [`time_join`], [`sample_by`], [`latest_on`], [`pivot`]; [`statement`]
//! and the statements: [`insert`], [`update`], [`merge`], [`create_table`], [`column`], [`storage`], [`alter_table`],
//! [`view`], [`object`], [`access`], [`copy`], [`transaction`], [`session`], [`cursor`], [`show`], [`admin`].

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
mod precedence;
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

/// Maximum nesting depth of parentheses, expressions and sub-queries.
///
/// Together with [`CHAIN_MAX`] the limit bounds the recursion of the parser and of all walks over the tree.
pub const DEPTH_MAX: usize = 200;

/// Maximum depth of an expression that chains operators, as in `a + b + …`.
///
/// A list, AND, OR and UNION are one level, regardless of the number of members.
pub const CHAIN_MAX: usize = 2_000;

/// Maximum nesting of parentheses around tables and joins, as in `((a JOIN b ON …) JOIN c ON …)`.
///
/// The stock parser, which reads a statement after this one, tries each parenthesis twice and needs 2ⁿ steps.
pub const NESTED_JOINS_MAX: usize = 14;

/// Result of a parser function. The error is boxed to keep the success path small.
pub(crate) type Result<T> = std::result::Result<T, Box<Error>>;

/// A cursor over the tokens of a statement.
pub(crate) struct Parser<'a> {
    text: &'a str,
    tokens: &'a [Token],
    at: usize,
    /// Current recursion depth.
    depth: usize,
    /// Depth of the expression that was read last.
    height: usize,
    /// Maximum depth of the expressions read so far within the current one.
    tallest: usize,
    /// True if storage clauses such as `PARTITION BY DAY` may follow the current query.
    storage_follows: bool,
    /// Maximum nesting of the parentheses around joins that were read.
    nested_joins: usize,
    trace: Option<Trace>,
}

impl<'a> Parser<'a> {
    /// Creates a parser; `tokens` are the tokens of `text`.
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

    /// Creates a parser that records the tokens allowed at the position of token `at`.
    pub(crate) fn tracing(text: &'a str, tokens: &'a [Token], at: usize) -> Parser<'a> {
        Parser { trace: Some(Trace::new(at)), ..Parser::new(text, tokens) }
    }

    /// Returns the tokens allowed at the traced position.
    pub(crate) fn into_expected(self) -> Vec<Expected> {
        self.trace.map(Trace::into_expected).unwrap_or_default()
    }

    /// Returns the token `n` after the next token, or the end token past the end.
    fn token(&self, n: usize) -> Token {
        let last = self.tokens.len() - 1;
        self.tokens[(self.at + n).min(last)]
    }

    fn kind(&self, n: usize) -> TokenKind {
        self.token(n).kind
    }

    /// Returns the keyword of the token `n` after the next token, if the token is a keyword.
    fn keyword(&self, n: usize) -> Option<Keyword> {
        match self.kind(n) {
            TokenKind::Word(keyword) => keyword,
            _ => None,
        }
    }

    fn is_symbol(&self, n: usize, symbol: Symbol) -> bool {
        self.kind(n) == TokenKind::Symbol(symbol)
    }

    /// Returns the text of the token `n` after the next token.
    fn written(&self, n: usize) -> &'a str {
        self.token(n).span.slice(self.text)
    }

    /// Consumes the next token.
    fn bump(&mut self) -> Token {
        let token = self.token(0);
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        token
    }

    /// Returns the span of the next token.
    fn start(&self) -> Span {
        self.token(0).span
    }

    /// Returns the span from `start` to the last consumed token.
    fn since(&self, start: Span) -> Span {
        let last = self.at.checked_sub(1).map_or(start, |at| self.tokens[at].span);
        if last.end < start.start { Span { start: start.start, end: start.start } } else { start.to(last) }
    }

    /// Returns true if the tokens `n` and `n + 1` are adjacent in the text.
    fn is_adjacent(&self, n: usize) -> bool {
        self.token(n).span.end == self.token(n + 1).span.start
    }

    /// Returns true if the next token is `keyword`.
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

    /// Returns true if the next tokens are `keywords`, in order.
    fn sees_all(&self, keywords: &[Keyword]) -> bool {
        keywords.iter().enumerate().all(|(n, keyword)| self.sees_at(n, *keyword))
    }

    /// Consumes `keyword` if it is the next token.
    fn eat(&mut self, keyword: Keyword) -> bool {
        let found = self.sees(keyword);
        if found {
            self.bump();
        }
        found
    }

    /// Consumes all of `keywords`, in order, or no token.
    fn eat_all(&mut self, keywords: &[Keyword]) -> bool {
        let found = self.sees_all(keywords);
        if found {
            self.at += keywords.len();
        }
        found
    }

    /// Consumes the next token if it is one of `keywords`.
    fn eat_any(&mut self, keywords: &[Keyword]) -> Option<Keyword> {
        keywords.iter().copied().find(|keyword| self.eat(*keyword))
    }

    fn expect(&mut self, keyword: Keyword) -> Result<()> {
        if self.eat(keyword) { Ok(()) } else { Err(self.expected(keyword.to_string())) }
    }

    /// Consumes all of `keywords`, in order, or fails.
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

    /// Parses one or more items, separated by commas.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.eat_symbol(Symbol::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Parses a comma-separated list in parentheses.
    fn in_parens<T>(&mut self, item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.expect_symbol(Symbol::LeftParen)?;
        let items = self.list(item)?;
        self.expect_symbol(Symbol::RightParen)?;
        Ok(items)
    }

    /// Records that `expected` is allowed at the token `n` after the next token.
    fn note(&self, n: usize, expected: Expected) {
        if let Some(trace) = &self.trace {
            trace.note(self.at + n, expected);
        }
    }

    /// Returns true if the next token is the traced one.
    ///
    /// An optional name is omitted at the traced position, so that the tokens allowed instead are recorded.
    fn is_traced(&self) -> bool {
        self.trace.as_ref().is_some_and(|trace| trace.is_at(self.at))
    }

    /// Records that each of `keywords` is allowed next.
    fn may_be(&self, keywords: &[Keyword]) {
        if self.trace.is_some() {
            keywords.iter().for_each(|keyword| self.note(0, Expected::Keyword(*keyword)));
        }
    }

    /// Creates the error that the next token is not `what`.
    fn expected(&self, what: impl Into<String>) -> Box<Error> {
        let token = self.token(0);
        let (found, position) = match token.kind {
            TokenKind::End => ("end of statement".to_owned(), self.text.len()),
            _ => (shortened(token.span.slice(self.text)), token.span.start as usize),
        };
        Box::new(Error::new(ErrorKind::Unexpected { expected: what.into(), found }, position))
    }

    /// Creates the error for a misplaced word.
    fn misplaced(&self, message: impl Into<String>) -> Box<Error> {
        Box::new(Error::new(ErrorKind::Misplaced(message.into()), self.start().start as usize))
    }

    /// Calls `read` one nesting level deeper; fails beyond [`DEPTH_MAX`] levels.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= DEPTH_MAX {
            return Err(Box::new(Error::new(ErrorKind::TooDeep(DEPTH_MAX), self.start().start as usize)));
        }
        self.depth += 1;
        let out = read(self);
        self.depth -= 1;
        out
    }

    /// Returns `levels + 1`, or fails if the tree would be too deep.
    ///
    /// Callers check before they create a level, so that a tree that is dropped after an error is within the limit.
    fn above(&self, levels: usize) -> Result<usize> {
        if levels > CHAIN_MAX {
            let position = self.start().start as usize;
            return Err(Box::new(Error::new(ErrorKind::TooManyOperators(CHAIN_MAX), position)));
        }
        Ok(levels + 1)
    }

    /// Calls `read` for a node above its expressions and above `below` levels.
    ///
    /// Returns the node and its depth.
    fn level<T>(&mut self, below: usize, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<(T, usize)> {
        let outer = std::mem::take(&mut self.tallest);
        self.above(below)?;
        let out = read(self)?;
        let levels = self.above(below.max(self.tallest))?;
        self.tallest = outer;
        Ok((out, levels))
    }
}

/// Shortens the text of a token for a message.
fn shortened(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
