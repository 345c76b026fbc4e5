//! Queries: set operations, ORDER BY, LIMIT.

use super::expected::NameKind;
use super::{Parser, Result};
use crate::ast::{
    Body, Declaration, Expr, Limit, Lock, OrderBy, OrderItem, Query, Select, SetOperator, SetQuantifier, SetTerm, With,
};
use crate::{Keyword, Span, Symbol, TokenKind};
use Keyword as K;

impl Parser<'_> {
    /// Parses a query with its surrounding clauses.
    pub(super) fn query(&mut self) -> Result<Query> {
        self.nested(|parser| {
            let start = parser.start();
            let declare = parser.declarations()?;
            let with = parser.with()?;
            parser.query_behind(declare, with, start)
        })
    }

    /// Parses a query, after DECLARE and WITH.
    #[inline(never)]
    pub(super) fn query_behind(&mut self, declare: Vec<Declaration>, with: Option<With>, start: Span) -> Result<Query> {
        let first = self.body()?;
        let query = self.query_tail(first, start)?;
        Ok(Query { declare, with, ..query })
    }

    /// Parses set operations, ORDER BY, LIMIT and locks, after the first body.
    #[inline(never)]
    pub(super) fn query_tail(&mut self, first: Body, start: Span) -> Result<Query> {
        let first = self.set_terms(first, &[K::Intersect])?;
        let body = self.set_terms(first, &[K::Union, K::Except])?;
        let order_by = match self.eat(K::Order) {
            true => {
                self.expect(K::By)?;
                Some(self.order_by()?)
            }
            false => None,
        };
        let limit = self.limit()?;
        let locks = self.locks()?;
        Ok(Query { declare: Vec::new(), with: None, body, order_by, limit, locks, span: self.since(start) })
    }

    /// Parses the set operations of one precedence after `first`.
    #[inline(never)]
    fn set_terms(&mut self, first: Body, words: &[Keyword]) -> Result<Body> {
        let mut rest = Vec::new();
        while let Some(word) = self.eat_any(words) {
            let op = match word {
                K::Union => SetOperator::Union,
                K::Except => SetOperator::Except,
                _ => SetOperator::Intersect,
            };
            let quantifier = match self.eat_any(&[K::All, K::Distinct]) {
                Some(K::All) => Some(SetQuantifier::All),
                Some(_) => Some(SetQuantifier::Distinct),
                None => None,
            };
            let by_name = self.eat_all(&[K::By, K::Name]);
            let mut body = self.body()?;
            if op != SetOperator::Intersect {
                body = self.set_terms(body, &[K::Intersect])?;
            }
            rest.push(SetTerm { op, quantifier, by_name, body });
        }
        if rest.is_empty() { Ok(first) } else { Ok(Body::Set { first: Box::new(first), rest }) }
    }

    /// Parses a query body: SELECT, VALUES, a query in parentheses, or a short form.
    #[inline(never)]
    fn body(&mut self) -> Result<Body> {
        let start = self.start();
        if self.sees_symbol(Symbol::LeftParen) {
            return self.body_in_parens(start);
        }
        let is_form = self.begins_query(0);
        match self.keyword(0) {
            Some(K::Values) if is_form => {
                self.bump();
                Ok(Body::Values(self.list(Self::values_row)?))
            }
            Some(K::Table) if is_form => {
                self.bump();
                let tables = self.table_ref()?;
                self.select_of(tables, start)
            }
            Some(K::Pivot | K::Unpivot) if is_form => self.boxed(Self::pivot_statement),
            Some(K::From) => self.boxed(Self::select_behind_from),
            _ if self.sees(K::Select) => self.boxed(Self::select),
            _ if self.is_column_name(0) || self.kind(0) == TokenKind::Variable || self.is_text(0) => {
                let tables = self.table_ref()?;
                self.select_of(tables, start)
            }
            _ => {
                self.may_be(&[K::Values, K::Table, K::From]);
                Err(self.expected("a query"))
            }
        }
    }

    /// Parses a SELECT by `read`: its slot on the stack is in this frame once, not in that of `body` for each form.
    #[inline(never)]
    fn boxed(&mut self, read: fn(&mut Self) -> Result<Select>) -> Result<Body> {
        Ok(Body::Select(Box::new(read(self)?)))
    }

    /// Parses a query in parentheses; if clauses of a table follow, the query is a relation.
    #[inline(never)]
    fn body_in_parens(&mut self, start: Span) -> Result<Body> {
        let query = self.nested(Self::query_in_parens)?;
        let is_table = self.begins_time_clause(0)
            || matches!(self.keyword(0), Some(K::Where | K::Pivot | K::Unpivot | K::Timestamp));
        if !is_table {
            return Ok(Body::Query(query));
        }
        let kind = crate::ast::RelationKind::Query { lateral: false, query };
        let relation = self.relation_tail(kind, start)?;
        let tables = self.joined(relation)?;
        self.select_of(tables, start)
    }

    /// Parses the clauses after `tables` and returns a SELECT of all columns.
    #[inline(never)]
    fn select_of(&mut self, tables: crate::ast::TableRef, start: Span) -> Result<Body> {
        let mut select: Select = super::parens::implicit(tables, start);
        self.select_clauses(&mut select)?;
        select.span = self.since(start);
        Ok(Body::Select(Box::new(select)))
    }

    fn values_row(&mut self) -> Result<Vec<Expr>> {
        if self.keyword(0) == Some(K::Row) {
            self.bump();
        }
        self.optional_list()
    }

    #[inline(never)]
    pub(super) fn order_by(&mut self) -> Result<OrderBy> {
        if self.eat(K::All) {
            let (descending, nulls_first) = self.direction();
            return Ok(OrderBy::All { descending, nulls_first });
        }
        Ok(OrderBy::Items(self.list(Self::order_item)?))
    }

    /// Parses a key of ORDER BY.
    pub(super) fn order_item(&mut self) -> Result<OrderItem> {
        let expr = self.expr()?;
        let (descending, nulls_first) = self.direction();
        Ok(OrderItem { expr, descending, nulls_first })
    }

    /// Parses ASC or DESC, `USING >`, NULLS FIRST or NULLS LAST.
    fn direction(&mut self) -> (Option<bool>, Option<bool>) {
        let mut descending = self.eat_any(&[K::Asc, K::Desc]).map(|word| word == K::Desc);
        if descending.is_none() && self.keyword(0) == Some(K::Using) {
            descending = match self.kind(1) {
                TokenKind::Symbol(Symbol::Less) => Some(false),
                TokenKind::Symbol(Symbol::Greater) => Some(true),
                _ => None,
            };
            self.at += if descending.is_some() { 2 } else { 0 };
        }
        let nulls_first = if self.eat_all(&[K::Nulls, K::First]) {
            Some(true)
        } else if self.eat_all(&[K::Nulls, K::Last]) {
            Some(false)
        } else {
            None
        };
        (descending, nulls_first)
    }

    /// Parses LIMIT, OFFSET and FETCH, in any order, each at most once.
    #[inline(never)]
    fn limit(&mut self) -> Result<Option<Box<Limit>>> {
        let (mut count, mut offset, mut fetch) = (None, None, None);
        let (mut has_limit, mut range) = (false, None);
        loop {
            if !has_limit && fetch.is_none() && self.eat(K::Limit) {
                has_limit = true;
                if self.keyword(0) == Some(K::All) || self.keyword(0) == Some(K::Null) {
                    self.bump();
                    continue;
                }
                let first = self.expr()?;
                if offset.is_none() && self.eat_symbol(Symbol::Comma) {
                    range = Some(Limit::Range { lo: first, hi: self.expr()? });
                } else {
                    count = Some(first);
                }
            } else if offset.is_none() && range.is_none() && self.eat(K::Offset) {
                offset = Some(self.expr()?);
                self.eat_any(&[K::Row, K::Rows]);
            } else if !has_limit && fetch.is_none() && self.eat(K::Fetch) {
                fetch = Some(self.fetch()?);
            } else {
                break;
            }
        }
        let limit = match (range, fetch) {
            (Some(range), _) => range,
            (None, Some((count, percent, with_ties))) => Limit::Fetch { count, percent, with_ties, offset },
            (None, None) if has_limit || offset.is_some() => Limit::Count { count, offset },
            (None, None) => return Ok(None),
        };
        Ok(Some(Box::new(limit)))
    }

    /// Parses `FIRST n ROWS ONLY`, after FETCH, into (count, is a percentage, includes ties).
    fn fetch(&mut self) -> Result<(Option<Expr>, bool, bool)> {
        if self.eat_any(&[K::First, K::Next]).is_none() {
            return Err(self.expected("FIRST or NEXT"));
        }
        let has_count = !(self.sees(K::Row) || self.sees(K::Rows));
        let count = if has_count { Some(self.expr()?) } else { None };
        let percent = self.eat(K::Percent);
        if self.eat_any(&[K::Row, K::Rows]).is_none() {
            return Err(self.expected("ROW or ROWS"));
        }
        if self.eat_all(&[K::With, K::Ties]) {
            return Ok((count, percent, true));
        }
        match self.eat(K::Only) {
            true => Ok((count, percent, false)),
            false => Err(self.expected("ONLY or WITH TIES")),
        }
    }

    /// Parses `FOR UPDATE OF t NOWAIT`.
    #[inline(never)]
    fn locks(&mut self) -> Result<Vec<Lock>> {
        let mut locks = Vec::new();
        while self.keyword(0) == Some(K::For) {
            const STRENGTHS: &[&[Keyword]] =
                &[&[K::Update], &[K::No, K::Key, K::Update], &[K::Share], &[K::Key, K::Share]];
            self.bump();
            let Some(words) = STRENGTHS.iter().find(|words| self.eat_all(words)) else {
                return Err(self.expected("UPDATE or SHARE"));
            };
            let strength = words.iter().map(Keyword::to_string).collect::<Vec<_>>().join(" ");
            let of = if self.eat(K::Of) { self.list(Self::table_name)? } else { Vec::new() };
            if !self.eat(K::Nowait) {
                self.eat_all(&[K::Skip, K::Locked]);
            }
            locks.push(Lock { strength, of });
        }
        Ok(locks)
    }

    /// Parses `DECLARE @name := value, …`.
    #[inline(never)]
    pub(super) fn declarations(&mut self) -> Result<Vec<Declaration>> {
        let mut declared = Vec::new();
        while self.keyword(0) == Some(K::Declare) {
            self.bump();
            declared.extend(self.list(Self::declaration)?);
        }
        Ok(declared)
    }

    fn declaration(&mut self) -> Result<Declaration> {
        let overridable = self.eat(K::Overridable);
        if self.kind(0) != TokenKind::Variable {
            return Err(self.expected("@name"));
        }
        let name = self.name(NameKind::New, "@name")?;
        self.expect_symbol(Symbol::Assign)?;
        Ok(Declaration { name, overridable, value: self.expr()? })
    }
}
