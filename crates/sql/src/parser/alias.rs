//! Aliases of relations. The first word of a Tidalite clause is an alias unless the following words complete the
//! clause.

use super::expected::{Expected, NameKind};
use super::{Parser, Result};
use crate::ast::{Alias, AliasColumn};
use crate::{Keyword, Symbol, TokenKind};
use Keyword as K;

impl Parser<'_> {
    /// Parses `[AS] name [(columns)]`, if present.
    pub(super) fn alias(&mut self) -> Result<Option<Alias>> {
        let has_as = self.eat(K::As);
        if !has_as && !self.begins_alias() {
            return Ok(None);
        }
        let name = self.name(NameKind::New, "an alias")?;
        let columns =
            if self.is_symbol(0, Symbol::LeftParen) { self.in_parens(Self::alias_column)? } else { Vec::new() };
        Ok(Some(Alias { name, columns }))
    }

    fn alias_column(&mut self) -> Result<AliasColumn> {
        let name = self.name(NameKind::New, "a column name")?;
        let is_last = self.is_symbol(0, Symbol::Comma) || self.is_symbol(0, Symbol::RightParen);
        let data_type = if is_last { None } else { Some(self.type_name()?) };
        Ok(AliasColumn { name, data_type })
    }

    /// Returns true if an alias of a relation follows, without AS.
    fn begins_alias(&self) -> bool {
        self.note(0, Expected::Name(NameKind::New));
        match self.kind(0) {
            _ if self.is_traced() => false,
            TokenKind::Word(None) | TokenKind::String => true,
            TokenKind::Word(Some(keyword)) => keyword.is_column_name() && !self.begins_own_clause(keyword),
            _ => self.is_quoted(0),
        }
    }

    /// Returns true if `keyword`, the unreserved next token, begins a clause at this position.
    pub(super) fn begins_own_clause(&self, keyword: Keyword) -> bool {
        let next = self.keyword(1);
        match keyword {
            K::Sample => next == Some(K::By),
            K::Latest => matches!(next, Some(K::On | K::By)),
            K::Asof => matches!(next, Some(K::Join | K::Left | K::Right | K::Inner | K::Full)),
            K::Lt | K::Splice | K::Horizon | K::Semi | K::Anti => next == Some(K::Join),
            K::Pivot => self.is_symbol(1, Symbol::LeftParen),
            K::Unpivot => self.is_symbol(1, Symbol::LeftParen) || matches!(next, Some(K::Include | K::Exclude)),
            K::Timestamp => self.is_symbol(1, Symbol::LeftParen),
            K::Tolerance => self.is_length(1),
            K::Include | K::Exclude => next == Some(K::Nulls),
            K::Range => matches!(next, Some(K::Between | K::From)),
            K::List => self.is_symbol(1, Symbol::LeftParen) && self.is_length(2),
            K::Qualify => self.begins_operand(1),
            K::Partition => next == Some(K::By) && self.storage_follows,
            K::Dedup => next == Some(K::Upsert),
            K::Owned => next == Some(K::By) && self.storage_follows,
            K::Ttl => self.kind(1) == TokenKind::Number && self.storage_follows,
            _ => false,
        }
    }

    /// Returns true if token `n` may start a duration: a number, with or without a sign.
    fn is_length(&self, n: usize) -> bool {
        self.kind(n) == TokenKind::Number || self.is_symbol(n, Symbol::Minus)
    }
}
