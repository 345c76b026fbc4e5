//! Joins.

use super::{Parser, Result};
use crate::ast::{Ident, Join, JoinCondition, JoinKind, JoinSide, Relation, TableRef};
use crate::{Keyword, Symbol, TokenKind};
use Keyword as K;

impl Parser<'_> {
    /// Parses the joins after `relation`.
    #[inline(never)]
    pub(super) fn joined(&mut self, relation: Relation) -> Result<TableRef> {
        let mut joins = Vec::new();
        while let Some(join) = self.join()? {
            joins.push(join);
        }
        Ok(TableRef { relation, joins })
    }

    #[inline(never)]
    fn join(&mut self) -> Result<Option<Join>> {
        if let Some(kind) = self.asof_kind() {
            return self.asof_join(kind).map(Some);
        }
        if self.eat_all(&[K::Window, K::Join]) {
            return self.window_join().map(Some);
        }
        if self.eat_all(&[K::Horizon, K::Join]) {
            return self.horizon_join().map(Some);
        }
        let is_natural = self.eat(K::Natural);
        let Some(kind) = self.join_kind()? else {
            return if is_natural { Err(self.expected("JOIN")) } else { Ok(None) };
        };
        let relation = self.relation()?;
        let condition = match (is_natural, &kind) {
            (true, _) => JoinCondition::Natural,
            (false, JoinKind::Cross) => JoinCondition::None,
            (false, _) => self.join_condition()?,
        };
        Ok(Some(Join { kind, relation, condition }))
    }

    /// Parses the keywords up to JOIN; returns `None` if no join follows.
    fn join_kind(&mut self) -> Result<Option<JoinKind>> {
        let kind = match self.keyword(0) {
            Some(K::Semi | K::Anti) if self.keyword(1) != Some(K::Join) => return Ok(None),
            Some(K::Semi) => JoinKind::Semi(JoinSide::Left),
            Some(K::Anti) => JoinKind::Anti(JoinSide::Left),
            Some(K::Join) => {
                self.bump();
                return Ok(Some(JoinKind::Inner));
            }
            _ => match self.eat_any(&[K::Inner, K::Cross, K::Left, K::Right, K::Full]) {
                Some(K::Inner) => return self.expect(K::Join).map(|()| Some(JoinKind::Inner)),
                Some(K::Cross) => return self.expect(K::Join).map(|()| Some(JoinKind::Cross)),
                Some(K::Left) => return self.sided(JoinSide::Left, JoinKind::Left).map(Some),
                Some(K::Right) => return self.sided(JoinSide::Right, JoinKind::Right).map(Some),
                Some(_) => {
                    self.eat(K::Outer);
                    return self.expect(K::Join).map(|()| Some(JoinKind::Full));
                }
                None => {
                    self.sees(K::Join);
                    return Ok(None);
                }
            },
        };
        self.at += 2;
        Ok(Some(kind))
    }

    /// Parses `[OUTER | SEMI | ANTI] JOIN`, after LEFT or RIGHT.
    fn sided(&mut self, side: JoinSide, outer: JoinKind) -> Result<JoinKind> {
        let kind = match self.eat_any(&[K::Outer, K::Semi, K::Anti]) {
            Some(K::Semi) => JoinKind::Semi(side),
            Some(K::Anti) => JoinKind::Anti(side),
            _ => outer,
        };
        self.expect(K::Join)?;
        Ok(kind)
    }

    /// Parses ON or USING, if present. `ON (a, b)` with names only is equivalent to USING, as in QuestDB.
    pub(super) fn join_condition(&mut self) -> Result<JoinCondition> {
        if self.eat(K::On) {
            if let Some(tokens) = self.names_in_parens(0).filter(|n| !self.continues_operand(*n)) {
                let columns = self.column_names()?;
                debug_assert!(tokens >= 3 && !columns.is_empty());
                return Ok(JoinCondition::Using(columns));
            }
            return Ok(JoinCondition::On(self.expr()?));
        }
        if self.eat(K::Using) {
            let columns: Vec<Ident> = self.column_names()?;
            return Ok(JoinCondition::Using(columns));
        }
        Ok(JoinCondition::None)
    }

    /// Returns true if token `n` after the next token is an operator, so that an operand precedes it.
    fn continues_operand(&self, n: usize) -> bool {
        match self.kind(n) {
            TokenKind::Symbol(symbol) => {
                !matches!(symbol, Symbol::Comma | Symbol::Semicolon | Symbol::RightParen | Symbol::LeftParen)
            }
            TokenKind::Word(Some(keyword)) => matches!(
                keyword,
                K::And | K::Or | K::Is | K::In | K::Not | K::Between | K::Like | K::Ilike | K::Isnull | K::Notnull
            ),
            _ => false,
        }
    }
}
