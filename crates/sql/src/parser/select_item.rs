//! Items of a SELECT list: expressions with their names, and `*`.

use super::expected::{Expected, NameKind};
use super::{Parser, Result};
use crate::ast::{Expr, ExprKind, Ident, ObjectName, SelectItem, Wildcard, WildcardChange};
use crate::{Keyword, Symbol, TokenKind};
use Keyword as K;

impl Parser<'_> {
    #[inline(never)]
    pub(super) fn select_item(&mut self) -> Result<SelectItem> {
        let start = self.start();
        if self.eat_symbol(Symbol::Star) {
            return self.wildcard(None, start);
        }
        if let Some(tokens) = self.wildcard_ahead() {
            let name = self.object_before_star(tokens);
            let of = Expr { span: name.span, kind: ExprKind::Column(name) };
            return self.wildcard(Some(Box::new(of)), start);
        }
        let expr = self.expr()?;
        if self.is_symbol(0, Symbol::Period) && self.is_symbol(1, Symbol::Star) {
            self.at += 2;
            return self.wildcard(Some(Box::new(expr)), start);
        }
        let alias = self.label()?;
        Ok(SelectItem::Expr { expr, alias })
    }

    /// Returns the number of tokens of the name if `t.*` follows.
    pub(super) fn wildcard_ahead(&self) -> Option<usize> {
        let mut at = 0;
        while self.is_name(at) && self.is_symbol(at + 1, Symbol::Period) {
            if self.is_symbol(at + 2, Symbol::Star) {
                return Some(at + 1);
            }
            at += 2;
        }
        None
    }

    /// Consumes a name of `tokens` tokens and the following `.*`.
    pub(super) fn object_before_star(&mut self, tokens: usize) -> ObjectName {
        let start = self.start();
        let mut parts = Vec::new();
        for _ in 0..tokens.div_ceil(2) {
            parts.push(self.any_name());
            self.bump();
        }
        let span = self.since(start);
        self.bump();
        ObjectName { parts, span }
    }

    /// Parses the modifiers after `*`.
    #[inline(never)]
    fn wildcard(&mut self, of: Option<Box<Expr>>, start: crate::Span) -> Result<SelectItem> {
        let mut changes = Vec::new();
        loop {
            let opens = self.is_symbol(1, Symbol::LeftParen);
            if self.sees(K::Except) && opens || self.sees(K::Exclude) && (opens || self.is_name(1)) {
                self.bump();
                let column = |parser: &mut Self| parser.object_name(NameKind::Column, "a column name");
                let columns = if opens { self.in_parens(column)? } else { vec![column(self)?] };
                changes.push(WildcardChange::Exclude(columns));
            } else if self.sees(K::Replace) && opens {
                self.bump();
                changes.push(WildcardChange::Replace(self.in_parens(Self::replaced)?));
            } else if self.sees(K::Rename) && (opens || self.is_name(1)) {
                self.bump();
                let columns = if opens { self.in_parens(Self::renamed)? } else { vec![self.renamed()?] };
                changes.push(WildcardChange::Rename(columns));
            } else if self.sees(K::Ilike) && self.is_text(1) {
                self.bump();
                changes.push(WildcardChange::Ilike(self.text("a pattern")?.value));
            } else {
                return Ok(SelectItem::Wildcard(Wildcard { of, changes, span: self.since(start) }));
            }
        }
    }

    /// Parses `expression AS column`.
    fn replaced(&mut self) -> Result<(Expr, Ident)> {
        let expr = self.expr()?;
        self.eat(K::As);
        Ok((expr, self.column_name()?))
    }

    /// Parses `column AS name`.
    fn renamed(&mut self) -> Result<(Ident, Ident)> {
        let column = self.column_name()?;
        self.expect(K::As)?;
        Ok((column, self.name(NameKind::New, "a column name")?))
    }

    /// Returns true if `keyword`, the next token, begins a clause after the select list.
    fn ends_item(&self, keyword: Keyword) -> bool {
        match keyword {
            K::Sample | K::Latest | K::Qualify | K::Partition | K::Dedup | K::Owned | K::Ttl => {
                self.begins_own_clause(keyword)
            }
            K::Timestamp => self.is_symbol(1, Symbol::LeftParen),
            _ => false,
        }
    }

    /// Parses the alias of an expression: any word after AS.
    ///
    /// Without AS, the words that PostgreSQL allows and the words that may be columns, such as `day`.
    pub(super) fn label(&mut self) -> Result<Option<Ident>> {
        if self.eat(K::As) {
            return self.name(NameKind::New, "a column name").map(Some);
        }
        self.note(0, Expected::Name(NameKind::New));
        let is_label = match self.kind(0) {
            _ if self.is_traced() => false,
            TokenKind::Word(None) | TokenKind::String => true,
            TokenKind::Word(Some(keyword)) => {
                (keyword.is_bare_label() || keyword.is_column_name()) && !self.ends_item(keyword)
            }
            _ => self.is_quoted(0),
        };
        Ok(is_label.then(|| self.any_name()))
    }
}
