//! UPDATE and DELETE.

use super::expected::NameKind;
use super::{Parser, Result};
use crate::ast::{Alias, Delete, Expr, Update, With};
use crate::{Keyword, TokenKind};
use Keyword as K;

impl Parser<'_> {
    /// Parses `UPDATE t [[AS] a] SET … [FROM …] [WHERE …] [RETURNING …]`.
    pub(super) fn update(&mut self, with: Option<With>) -> Result<Update> {
        self.expect(K::Update)?;
        let table = self.table_name()?;
        let alias = self.target_alias(K::Set)?;
        self.expect(K::Set)?;
        let assignments = self.list(Self::assignment)?;
        let from = if self.eat(K::From) { self.table_refs()? } else { Vec::new() };
        let selection = self.selection()?;
        let returning = self.returning()?;
        Ok(Update { with, table, alias, assignments, from, selection, returning })
    }

    /// Parses `DELETE FROM t [[AS] a] [USING …] [WHERE …] [RETURNING …]`.
    pub(super) fn delete(&mut self, with: Option<With>) -> Result<Delete> {
        self.expect(K::Delete)?;
        self.expect(K::From)?;
        let table = self.table_name()?;
        let alias = self.target_alias(K::Using)?;
        let using = if self.eat(K::Using) { self.table_refs()? } else { Vec::new() };
        let selection = self.selection()?;
        let returning = self.returning()?;
        Ok(Delete { with, table, alias, using, selection, returning })
    }

    pub(super) fn selection(&mut self) -> Result<Option<Expr>> {
        if self.eat(K::Where) { self.expr().map(Some) } else { Ok(None) }
    }

    /// Parses the alias of the modified table; `next` is the keyword that follows the alias.
    pub(super) fn target_alias(&mut self, next: Keyword) -> Result<Option<Alias>> {
        let has_as = self.eat(K::As);
        let is_clause = matches!(self.keyword(0), Some(K::Where | K::Set | K::Using | K::Returning))
            || self.keyword(0) == Some(next);
        let is_name = matches!(self.kind(0), TokenKind::Word(_)) || self.is_quoted(0);
        if !has_as && (is_clause || !is_name || self.is_traced()) {
            return Ok(None);
        }
        Ok(Some(Alias { name: self.name(NameKind::New, "an alias")?, columns: Vec::new() }))
    }
}
