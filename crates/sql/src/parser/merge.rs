//! MERGE.

use super::{Parser, Result};
use crate::ast::{Merge, MergeAction, MergeClause, With};
use crate::{Keyword, Symbol};
use Keyword as K;

impl Parser<'_> {
    /// Parses `MERGE INTO t [AS a] USING source ON condition WHEN …`.
    pub(super) fn merge(&mut self, with: Option<With>) -> Result<Merge> {
        self.expect(K::Merge)?;
        self.eat(K::Into);
        let table = self.table_name()?;
        let alias = self.target_alias(K::Using)?;
        self.expect(K::Using)?;
        let source = self.relation()?;
        self.expect(K::On)?;
        let on = self.expr()?;
        let mut clauses = vec![self.merge_clause()?];
        while self.sees(K::When) {
            clauses.push(self.merge_clause()?);
        }
        let returning = self.returning()?;
        Ok(Merge { with, table, alias, source, on, clauses, returning })
    }

    fn merge_clause(&mut self) -> Result<MergeClause> {
        self.expect(K::When)?;
        let matched = !self.eat(K::Not);
        self.expect(K::Matched)?;
        let by_source = if self.eat(K::By) {
            let by_source = self.eat(K::Source);
            if !by_source && !self.eat(K::Target) {
                return Err(self.expected("SOURCE or TARGET"));
            }
            by_source
        } else {
            false
        };
        let condition = if self.eat(K::And) { Some(self.expr()?) } else { None };
        self.expect(K::Then)?;
        Ok(MergeClause { matched, by_source, condition, action: self.merge_action(matched || by_source)? })
    }

    /// Parses the action of a clause; only a clause for rows of the target can change rows.
    fn merge_action(&mut self, has_target: bool) -> Result<MergeAction> {
        if self.eat_all(&[K::Do, K::Nothing]) {
            return Ok(MergeAction::Nothing);
        }
        let actions: &[Keyword] = if has_target { &[K::Update, K::Delete] } else { &[K::Insert] };
        match self.eat_any(actions) {
            Some(K::Update) => {
                self.expect(K::Set)?;
                Ok(MergeAction::Update(self.list(Self::assignment)?))
            }
            Some(K::Delete) => Ok(MergeAction::Delete),
            Some(_) => {
                let columns = self.optional_column_names()?;
                if self.eat_all(&[K::Default, K::Values]) {
                    return Ok(MergeAction::Insert { columns, values: Vec::new() });
                }
                self.expect(K::Values)?;
                self.sees_symbol(Symbol::LeftParen);
                Ok(MergeAction::Insert { columns, values: self.in_parens(Self::expr)? })
            }
            None if has_target => Err(self.expected("UPDATE, DELETE or DO NOTHING")),
            None => Err(self.expected("INSERT or DO NOTHING")),
        }
    }
}
