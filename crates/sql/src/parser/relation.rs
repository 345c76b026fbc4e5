//! Relations: tables, functions, sub-queries, and the clauses of a relation.

use super::expected::NameKind;
use super::parens::TableParens;
use super::{Parser, Result};
use crate::ast::{Body, Ident, Query, Relation, RelationKind, TableRef, TableSample};
use crate::error::ErrorKind;
use crate::{Error, Keyword, Span, Symbol, TokenKind};
use Keyword as K;

/// Maximum number of PIVOT and UNPIVOT clauses of one relation; each clause is a level of the tree.
const PIVOTS_MAX: usize = 100;

impl Parser<'_> {
    /// Parses a relation and its joins.
    pub(super) fn table_ref(&mut self) -> Result<TableRef> {
        let relation = self.relation()?;
        self.joined(relation)
    }

    /// Parses a relation with its alias.
    #[inline(never)]
    pub(super) fn relation(&mut self) -> Result<Relation> {
        let start = self.start();
        let lateral = self.eat(K::Lateral);
        if self.keyword(0) == Some(K::Only) && self.is_name(1) {
            self.bump();
        }
        let kind = if self.is_symbol(0, Symbol::LeftParen) {
            match self.nested(Self::parens_in_from)? {
                TableParens::Query(query) => RelationKind::Query { lateral, query },
                TableParens::Tables(tables) => RelationKind::Nested(tables),
            }
        } else if self.keyword(0) == Some(K::Values) && self.is_symbol(1, Symbol::LeftParen) {
            self.bump();
            let rows = self.list(Self::optional_list)?;
            let query = Query::new(Body::Values(rows), self.since(start));
            RelationKind::Query { lateral, query: Box::new(query) }
        } else if self.keyword(0) == Some(K::Table) && self.is_symbol(1, Symbol::LeftParen) {
            self.at += 2;
            let function = self.table_or_function(lateral)?;
            self.expect_symbol(Symbol::RightParen)?;
            function
        } else if self.kind(0) == TokenKind::Variable {
            RelationKind::Variable(self.any_name())
        } else {
            self.table_or_function(lateral)?
        };
        self.relation_tail(kind, start)
    }

    /// Parses `t`, `s.t`, `'file.parquet'`, `f(…)`.
    #[inline(never)]
    fn table_or_function(&mut self, lateral: bool) -> Result<RelationKind> {
        let is_clause = matches!(
            self.keyword(0),
            Some(K::Select | K::From | K::Where | K::Join | K::On | K::Union | K::Group | K::Order)
        );
        if is_clause {
            return Err(self.expected("a table"));
        }
        let name = self.object_name(NameKind::Table, "a table")?;
        if !self.is_symbol(0, Symbol::LeftParen) || name.parts.last().is_some_and(is_text) {
            return Ok(RelationKind::Table { name });
        }
        let call = self.call_parens(name)?;
        Ok(RelationKind::Function { lateral, call: Box::new(call), with_ordinality: false })
    }

    /// Parses the clauses of a relation: TIMESTAMP, PIVOT and UNPIVOT, TABLESAMPLE, alias.
    #[inline(never)]
    pub(super) fn relation_tail(&mut self, kind: RelationKind, start: Span) -> Result<Relation> {
        let mut relation = Relation::new(kind, None, start);
        let mut wrapped = 0;
        loop {
            if let RelationKind::Function { with_ordinality: has @ false, .. } = &mut relation.kind
                && self.eat_all(&[K::With, K::Ordinality])
            {
                *has = true;
            } else if relation.timestamp.is_none() && self.sees_time() {
                self.at += 2;
                relation.timestamp = Some(self.column_name()?);
                self.expect_symbol(Symbol::RightParen)?;
            } else if self.sees_pivot() {
                wrapped += 1;
                if wrapped > PIVOTS_MAX {
                    return Err(Box::new(Error::new(ErrorKind::TooDeep(PIVOTS_MAX), self.start().start as usize)));
                }
                relation.span = self.since(start);
                let kind = self.pivoted(Box::new(relation))?;
                relation = Relation::new(kind, None, start);
            } else if relation.sample.is_none() && self.keyword(0) == Some(K::Tablesample) {
                relation.sample = Some(self.table_sample()?);
            } else if relation.alias.is_none()
                && let Some(alias) = self.alias()?
            {
                relation.alias = Some(alias);
            } else {
                relation.span = self.since(start);
                return Ok(relation);
            }
        }
    }

    fn sees_pivot(&self) -> bool {
        let opens = self.is_symbol(1, Symbol::LeftParen);
        self.sees(K::Pivot) && opens
            || self.sees(K::Unpivot) && (opens || matches!(self.keyword(1), Some(K::Include | K::Exclude)))
    }

    /// Parses PIVOT or UNPIVOT after a relation.
    fn pivoted(&mut self, relation: Box<Relation>) -> Result<RelationKind> {
        Ok(match self.keyword(0) {
            Some(K::Pivot) => RelationKind::Pivot { relation, pivot: Box::new(self.pivot_clause()?) },
            _ => RelationKind::Unpivot { relation, unpivot: Box::new(self.unpivot_clause()?) },
        })
    }

    /// Returns true if `TIMESTAMP(column)` follows and belongs to the relation.
    fn sees_time(&self) -> bool {
        self.sees(K::Timestamp)
            && self.is_symbol(1, Symbol::LeftParen)
            && self.is_name(2)
            && self.is_symbol(3, Symbol::RightParen)
            && !self.begins_storage()
    }

    /// Parses `TABLESAMPLE method (size) [REPEATABLE (seed)]`.
    #[inline(never)]
    fn table_sample(&mut self) -> Result<TableSample> {
        self.expect(K::Tablesample)?;
        let method = if self.is_symbol(0, Symbol::LeftParen) {
            super::names::joined("bernoulli".to_owned(), self.start())
        } else {
            self.name(NameKind::Other, "a method, such as BERNOULLI")?
        };
        let args = self.in_parens(Self::expr)?;
        let mut seed = None;
        if self.eat(K::Repeatable) {
            self.expect_symbol(Symbol::LeftParen)?;
            seed = Some(self.expr()?);
            self.expect_symbol(Symbol::RightParen)?;
        }
        Ok(TableSample { method, args, seed })
    }
}

fn is_text(name: &Ident) -> bool {
    name.quote == Some(crate::ast::Quote::Single)
}
