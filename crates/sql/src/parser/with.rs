//! WITH.

use super::expected::NameKind;
use super::{Parser, Result};
use crate::ast::{Cte, CteBody, Materialization, With};
use crate::{Keyword, Symbol};
use Keyword as K;

impl Parser<'_> {
    /// Parses `WITH [RECURSIVE] name AS (…), …`, if present.
    #[inline(never)]
    pub(super) fn with(&mut self) -> Result<Option<With>> {
        if !self.eat(K::With) {
            return Ok(None);
        }
        let recursive = self.keyword(1) != Some(K::As) && self.eat(K::Recursive);
        Ok(Some(With { recursive, ctes: self.list(Self::cte)? }))
    }

    #[inline(never)]
    fn cte(&mut self) -> Result<Cte> {
        let name = self.name(NameKind::New, "the name of a query")?;
        let columns = self.optional_column_names()?;
        self.expect(K::As)?;
        let materialization = if self.eat_all(&[K::Not, K::Materialized]) {
            Some(Materialization::NotMaterialized)
        } else if self.eat(K::Materialized) {
            Some(Materialization::Materialized)
        } else {
            None
        };
        Ok(Cte { name, columns, materialization, body: self.cte_body()? })
    }

    fn cte_body(&mut self) -> Result<CteBody> {
        let changes = matches!(self.keyword(1), Some(K::Insert | K::Update | K::Delete | K::Merge));
        if !changes || !self.is_symbol(0, Symbol::LeftParen) {
            return Ok(CteBody::Query(self.query_in_parens()?));
        }
        self.expect_symbol(Symbol::LeftParen)?;
        let body = self.nested(|parser| {
            let with = None;
            Ok(match parser.keyword(0) {
                Some(K::Insert) => CteBody::Insert(Box::new(parser.insert(with)?)),
                Some(K::Update) => CteBody::Update(Box::new(parser.update(with)?)),
                Some(K::Delete) => CteBody::Delete(Box::new(parser.delete(with)?)),
                _ => CteBody::Merge(Box::new(parser.merge(with)?)),
            })
        })?;
        self.expect_symbol(Symbol::RightParen)?;
        Ok(body)
    }
}
