//! PIVOT and UNPIVOT, as clauses of a relation and as statements.

use super::expected::NameKind;
use super::parens::implicit;
use super::{Parser, Result};
use crate::ast::{
    Ident, Pivot, PivotColumn, PivotValue, PivotValues, Relation, RelationKind, Select, TableRef, Unpivot,
};
use crate::{Keyword, Symbol};
use Keyword as K;

impl Parser<'_> {
    /// Parses `PIVOT (aggregates FOR column IN (…) … [GROUP BY …])`.
    #[inline(never)]
    pub(super) fn pivot_clause(&mut self) -> Result<Pivot> {
        let start = self.start();
        self.expect(K::Pivot)?;
        self.expect_symbol(Symbol::LeftParen)?;
        let mut pivot = self.pivot_within()?;
        self.expect_symbol(Symbol::RightParen)?;
        pivot.span = self.since(start);
        Ok(pivot)
    }

    fn pivot_within(&mut self) -> Result<Pivot> {
        let aggregates = self.list(Self::pivot_value)?;
        self.expect(K::For)?;
        let mut columns = Vec::new();
        loop {
            let column = self.operand(super::precedence::RANGE + 1)?;
            self.expect(K::In)?;
            columns.push(PivotColumn { column, values: self.pivot_values()? });
            self.eat(K::For);
            if self.is_symbol(0, Symbol::RightParen) || self.sees(K::Group) {
                break;
            }
        }
        let group_by = self.pivot_group()?;
        Ok(Pivot { aggregates, columns, group_by, is_statement: false, span: self.start() })
    }

    fn pivot_group(&mut self) -> Result<Option<Vec<crate::ast::Expr>>> {
        if self.eat_all(&[K::Group, K::By]) { self.list(Self::expr).map(Some) } else { Ok(None) }
    }

    /// Parses `(value [AS name], …)`, `(SELECT …)`.
    fn pivot_values(&mut self) -> Result<PivotValues> {
        let is_query = self.is_symbol(0, Symbol::LeftParen) && self.begins_query(1);
        if is_query {
            return Ok(PivotValues::Query(self.query_in_parens()?));
        }
        Ok(PivotValues::List(self.in_parens(Self::pivot_value)?))
    }

    fn pivot_value(&mut self) -> Result<PivotValue> {
        let expr = self.expr()?;
        Ok(PivotValue { expr, alias: self.label()? })
    }

    /// Parses `UNPIVOT [INCLUDE NULLS] (value FOR name IN (columns))`.
    #[inline(never)]
    pub(super) fn unpivot_clause(&mut self) -> Result<Unpivot> {
        let start = self.start();
        self.expect(K::Unpivot)?;
        let includes_nulls = self.nulls_of_unpivot();
        self.expect_symbol(Symbol::LeftParen)?;
        let value = Some(self.column_name()?);
        self.expect(K::For)?;
        let name = Some(self.column_name()?);
        self.expect(K::In)?;
        let columns = self.in_parens(Self::pivot_value)?;
        self.expect_symbol(Symbol::RightParen)?;
        Ok(Unpivot { includes_nulls, value, name, columns, span: self.since(start) })
    }

    /// Parses INCLUDE NULLS or EXCLUDE NULLS.
    fn nulls_of_unpivot(&mut self) -> bool {
        let includes = self.eat_all(&[K::Include, K::Nulls]);
        if !includes {
            self.eat_all(&[K::Exclude, K::Nulls]);
        }
        includes
    }

    /// Parses `PIVOT t ON …` or `UNPIVOT t ON …` at the beginning of a query.
    #[inline(never)]
    pub(super) fn pivot_statement(&mut self) -> Result<Select> {
        let start = self.start();
        let is_unpivot = self.keyword(0) == Some(K::Unpivot);
        self.bump();
        let relation = self.pivot_source()?;
        let kind = if is_unpivot {
            let includes_nulls = self.nulls_of_unpivot();
            self.expect(K::On)?;
            let columns = self.list(Self::pivot_value)?;
            let (name, value) = self.output_names()?;
            let unpivot = Unpivot { includes_nulls, value, name, columns, span: self.since(start) };
            RelationKind::Unpivot { relation: Box::new(relation), unpivot: Box::new(unpivot) }
        } else {
            self.expect(K::On)?;
            let columns = self.list(Self::pivot_on)?;
            let aggregates = if self.eat(K::Using) { self.list(Self::pivot_value)? } else { Vec::new() };
            let group_by = self.pivot_group()?;
            let pivot = Pivot { aggregates, columns, group_by, is_statement: true, span: self.since(start) };
            RelationKind::Pivot { relation: Box::new(relation), pivot: Box::new(pivot) }
        };
        let span = self.since(start);
        let tables = TableRef { relation: Relation::new(kind, None, span), joins: Vec::new() };
        Ok(implicit(tables, span))
    }

    /// Parses the table of a PIVOT statement; joins become a nested relation.
    fn pivot_source(&mut self) -> Result<Relation> {
        let start = self.start();
        let mut tables = self.table_ref()?;
        if tables.joins.is_empty() {
            return Ok(tables.relation);
        }
        tables.relation.span = self.since(start);
        Ok(Relation::new(RelationKind::Nested(Box::new(tables)), None, self.since(start)))
    }

    /// Parses `column [IN (…)]`.
    fn pivot_on(&mut self) -> Result<PivotColumn> {
        let column = self.operand(super::precedence::RANGE + 1)?;
        let values = if self.eat(K::In) { self.pivot_values()? } else { PivotValues::All };
        Ok(PivotColumn { column, values })
    }

    /// Parses `INTO NAME name VALUE value`.
    fn output_names(&mut self) -> Result<(Option<Ident>, Option<Ident>)> {
        if !self.eat(K::Into) {
            return Ok((None, None));
        }
        self.expect(K::Name)?;
        let name = self.name(NameKind::New, "a name")?;
        self.expect(K::Value)?;
        Ok((Some(name), Some(self.name(NameKind::New, "a name")?)))
    }
}
