//! Names with one or more parts.

use super::expected::{Expected, NameKind};
use super::{Parser, Result, literal};
use crate::ast::{Ident, ObjectName, Quote};
use crate::{Keyword, Span, Symbol, TokenKind};

impl Parser<'_> {
    /// Parses a name at a position that allows only names.
    ///
    /// A name is a word, quoted or not, or a single-quoted string (QuestDB).
    pub(super) fn name(&mut self, kind: NameKind, what: &str) -> Result<Ident> {
        self.note(0, Expected::Name(kind));
        if !self.is_name(0) && self.kind(0) != TokenKind::String {
            return Err(self.expected(what));
        }
        Ok(self.any_name())
    }

    /// Returns true if token `n` is a word, quoted or not.
    pub(super) fn is_name(&self, n: usize) -> bool {
        matches!(self.kind(n), TokenKind::Word(_) | TokenKind::Geohash | TokenKind::Variable) || self.is_quoted(n)
    }

    /// Returns true if token `n` is a quoted name.
    pub(super) fn is_quoted(&self, n: usize) -> bool {
        matches!(self.kind(n), TokenKind::QuotedName | TokenKind::BacktickName | TokenKind::UnicodeName)
    }

    /// Returns true if token `n` may name a column or a table: a quoted or unreserved word.
    pub(super) fn is_column_name(&self, n: usize) -> bool {
        match self.kind(n) {
            TokenKind::Word(keyword) => keyword.is_none_or(Keyword::is_column_name),
            _ => self.is_quoted(n),
        }
    }

    /// Consumes the next token, which is a name or a string.
    pub(super) fn any_name(&mut self) -> Ident {
        let token = self.bump();
        let written = token.span.slice(self.text);
        let (value, quote) = match token.kind {
            TokenKind::QuotedName => (literal::unquoted(written, '"'), Some(Quote::Double)),
            TokenKind::BacktickName => (literal::unquoted(written, '`'), Some(Quote::Backtick)),
            TokenKind::UnicodeName => (literal::unicode(&literal::unquoted(&written[2..], '"')), Some(Quote::Double)),
            TokenKind::String => (literal::unquoted(written, '\''), Some(Quote::Single)),
            _ => (written.to_owned(), None),
        };
        Ident { value, quote, span: token.span }
    }

    /// Parses the name of a table or another object, with an optional schema.
    pub(super) fn object_name(&mut self, kind: NameKind, what: &str) -> Result<ObjectName> {
        let start = self.start();
        let mut parts = vec![self.name(kind, what)?];
        while self.is_symbol(0, Symbol::Period) {
            self.bump();
            parts.push(self.name(kind, what)?);
        }
        Ok(ObjectName { parts, span: self.since(start) })
    }

    /// Parses the name of a table.
    pub(super) fn table_name(&mut self) -> Result<ObjectName> {
        self.object_name(NameKind::Table, "a table name")
    }

    /// Parses the name of a column.
    pub(super) fn column_name(&mut self) -> Result<Ident> {
        self.name(NameKind::Column, "a column name")
    }

    /// Parses column names in parentheses.
    pub(super) fn column_names(&mut self) -> Result<Vec<Ident>> {
        self.in_parens(Self::column_name)
    }

    /// Parses column names in parentheses, if present.
    pub(super) fn optional_column_names(&mut self) -> Result<Vec<Ident>> {
        if self.sees_symbol(Symbol::LeftParen) { self.column_names() } else { Ok(Vec::new()) }
    }

    /// Parses `IF EXISTS`.
    pub(super) fn if_exists(&mut self) -> bool {
        self.eat_all(&[Keyword::If, Keyword::Exists])
    }

    /// Parses `IF NOT EXISTS`.
    pub(super) fn if_not_exists(&mut self) -> bool {
        self.eat_all(&[Keyword::If, Keyword::Not, Keyword::Exists])
    }

    /// Returns the number of tokens if token `n` starts a parenthesised list that contains only names.
    pub(super) fn names_in_parens(&self, n: usize) -> Option<usize> {
        if !self.is_symbol(n, Symbol::LeftParen) {
            return None;
        }
        let mut at = n + 1;
        loop {
            if !self.is_name(at) {
                return None;
            }
            match self.kind(at + 1) {
                TokenKind::Symbol(Symbol::Comma) => at += 2,
                TokenKind::Symbol(Symbol::RightParen) => return Some(at + 2 - n),
                _ => return None,
            }
        }
    }

    /// Consumes the next token and returns its text in upper case.
    pub(super) fn upper(&mut self) -> String {
        let token = self.bump();
        token.span.slice(self.text).to_ascii_uppercase()
    }
}

/// Creates a name of several words, such as `DOUBLE PRECISION`.
pub(super) fn joined(value: String, span: Span) -> Ident {
    Ident { value, quote: None, span }
}
