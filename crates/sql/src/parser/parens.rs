//! Parentheses around a query, a table or values; lookahead decides which, without backtracking.

use super::precedence;
use super::{NESTED_JOINS_MAX, Parser, Result};
use crate::ast::{Body, Expr, ExprKind, Projection, Query, RelationKind, Select, TableRef};
use crate::error::ErrorKind;
use crate::{Error, Keyword, Span, Symbol, TokenKind};
use Keyword as K;

/// Content of parentheses at a position that allows an expression.
pub(super) enum ExprParens {
    /// A query.
    Query(Box<Query>),
    /// Values, at least one.
    Values(Vec<Expr>),
}

/// Content of parentheses at a position that allows a table.
pub(super) enum TableParens {
    /// A query.
    Query(Box<Query>),
    /// Tables and their joins.
    Tables(Box<TableRef>),
}

impl Parser<'_> {
    /// Returns true if the token `n` after the next token begins a query.
    pub(super) fn begins_query(&self, n: usize) -> bool {
        let is_table = |n: usize| self.is_name(n) || self.is_symbol(n, Symbol::LeftParen) || self.is_text(n);
        match self.keyword(n) {
            Some(K::Select | K::With | K::From) => true,
            Some(K::Values) => self.is_symbol(n + 1, Symbol::LeftParen) || self.keyword(n + 1) == Some(K::Row),
            Some(K::Table) => is_table(n + 1),
            Some(K::Declare) => self.kind(n + 1) == TokenKind::Variable || self.keyword(n + 1) == Some(K::Overridable),
            Some(K::Pivot | K::Unpivot) => is_table(n + 1) && !self.ends_operand(n + 1),
            _ => false,
        }
    }

    /// Returns true if a short-form query, a table with clauses, begins at token `n`.
    ///
    /// The position also allows an expression.
    pub(super) fn begins_bare_query(&self, n: usize) -> bool {
        let mut at = n;
        while self.is_name(at) && self.is_symbol(at + 1, Symbol::Period) {
            at += 2;
        }
        (self.is_column_name(at) || self.kind(at) == TokenKind::Variable)
            && (self.keyword(at + 1) == Some(K::Where) || self.begins_time_clause(at + 1))
    }

    /// Returns true if SAMPLE BY, LATEST ON or LATEST BY begins at token `n`.
    pub(super) fn begins_time_clause(&self, n: usize) -> bool {
        matches!(
            (self.keyword(n), self.keyword(n + 1)),
            (Some(K::Sample), Some(K::By)) | (Some(K::Latest), Some(K::On | K::By))
        )
    }

    /// Returns true if a query clause that may follow a bare table begins at token `n`.
    pub(super) fn begins_clause(&self, n: usize) -> bool {
        matches!(self.keyword(n), Some(K::Where | K::Group | K::Having | K::Order | K::Limit | K::Offset | K::Fetch))
            || self.begins_time_clause(n)
            || self.begins_set_operation(n)
    }

    pub(super) fn begins_set_operation(&self, n: usize) -> bool {
        matches!(self.keyword(n), Some(K::Union | K::Except | K::Intersect))
    }

    /// Returns true if the word `n` after the next token is an operator, so that an operand precedes it.
    fn ends_operand(&self, n: usize) -> bool {
        matches!(
            self.keyword(n),
            Some(
                K::And
                    | K::Or
                    | K::Is
                    | K::In
                    | K::Not
                    | K::Between
                    | K::Like
                    | K::Ilike
                    | K::Similar
                    | K::Isnull
                    | K::Notnull
                    | K::Collate
                    | K::At
                    | K::As
                    | K::Asc
                    | K::Desc
                    | K::From
                    | K::Where
                    | K::Order
                    | K::Limit
                    | K::Filter
                    | K::Over
            )
        )
    }

    /// Parses parentheses at a position that allows an expression.
    #[inline(never)]
    pub(super) fn parens_in_expr(&mut self) -> Result<ExprParens> {
        self.expect_symbol(Symbol::LeftParen)?;
        let open = std::mem::replace(&mut self.storage_follows, false);
        let out = self.expr_parens_within()?;
        self.storage_follows = open;
        self.expect_symbol(Symbol::RightParen)?;
        Ok(out)
    }

    #[inline(never)]
    fn expr_parens_within(&mut self) -> Result<ExprParens> {
        if self.begins_query(0) || self.begins_bare_query(0) {
            return Ok(ExprParens::Query(Box::new(self.query()?)));
        }
        if !self.is_symbol(0, Symbol::LeftParen) {
            return Ok(ExprParens::Values(self.list(Self::expr)?));
        }
        let start = self.start();
        let first = match self.nested(Self::parens_in_expr)? {
            ExprParens::Query(query) if self.is_symbol(0, Symbol::RightParen) => return Ok(ExprParens::Query(query)),
            ExprParens::Query(query) if self.continues_query() => {
                return Ok(ExprParens::Query(Box::new(self.query_tail(Body::Query(query), start)?)));
            }
            inner => self.parens_value(inner, start),
        };
        let first = self.continued(first, start)?;
        let mut values = vec![first];
        while self.eat_symbol(Symbol::Comma) {
            values.push(self.expr()?);
        }
        Ok(ExprParens::Values(values))
    }

    /// Converts parentheses to an expression: a sub-query, a row, or the only value.
    pub(super) fn parens_value(&self, parens: ExprParens, start: Span) -> Expr {
        let span = self.since(start);
        match parens {
            ExprParens::Query(query) => Expr { kind: ExprKind::Subquery(query), span },
            ExprParens::Values(mut values) => match values.pop() {
                Some(value) if values.is_empty() => Expr { span, ..value },
                last => {
                    values.extend(last);
                    Expr { kind: ExprKind::Row(values), span }
                }
            },
        }
    }

    /// Returns true if a clause of a query follows: a set operation, ORDER BY, LIMIT.
    pub(super) fn continues_query(&self) -> bool {
        self.begins_set_operation(0) || matches!(self.keyword(0), Some(K::Order | K::Limit | K::Offset | K::Fetch))
    }

    /// Parses parentheses at a position that allows a table.
    #[inline(never)]
    pub(super) fn parens_in_from(&mut self) -> Result<TableParens> {
        self.expect_symbol(Symbol::LeftParen)?;
        let open = std::mem::replace(&mut self.storage_follows, false);
        let beside = std::mem::take(&mut self.nested_joins);
        let out = self.table_parens_within()?;
        if let TableParens::Tables(_) = &out {
            self.nested_joins += 1;
        }
        if self.nested_joins > NESTED_JOINS_MAX {
            let kind = ErrorKind::TooDeep(NESTED_JOINS_MAX);
            return Err(Box::new(Error::new(kind, self.start().start as usize)));
        }
        self.nested_joins = self.nested_joins.max(beside);
        self.storage_follows = open;
        self.expect_symbol(Symbol::RightParen)?;
        Ok(out)
    }

    #[inline(never)]
    fn table_parens_within(&mut self) -> Result<TableParens> {
        if self.begins_query(0) {
            return Ok(TableParens::Query(Box::new(self.query()?)));
        }
        let start = self.start();
        let tables = if self.is_symbol(0, Symbol::LeftParen) {
            let kind = match self.nested(Self::parens_in_from)? {
                TableParens::Query(query) if self.is_symbol(0, Symbol::RightParen) => {
                    return Ok(TableParens::Query(query));
                }
                TableParens::Query(query) if self.continues_query() => {
                    return Ok(TableParens::Query(Box::new(self.query_tail(Body::Query(query), start)?)));
                }
                TableParens::Query(query) => RelationKind::Query { lateral: false, query },
                TableParens::Tables(tables) => RelationKind::Nested(tables),
            };
            let relation = self.relation_tail(kind, start)?;
            self.joined(relation)?
        } else {
            self.nested(Self::table_ref)?
        };
        if self.begins_clause(0) {
            return Ok(TableParens::Query(Box::new(self.bare_query(tables, start)?)));
        }
        Ok(TableParens::Tables(Box::new(tables)))
    }

    /// Parses a query in parentheses; a bare table is also a query.
    #[inline(never)]
    pub(super) fn query_in_parens(&mut self) -> Result<Box<Query>> {
        let start = self.start();
        match self.parens_in_from()? {
            TableParens::Query(query) => Ok(query),
            TableParens::Tables(tables) => {
                let body = Body::Select(Box::new(implicit(*tables, self.since(start))));
                Ok(Box::new(Query::new(body, self.since(start))))
            }
        }
    }

    /// Parses the clauses after `tables` and returns a query of all columns.
    #[inline(never)]
    pub(super) fn bare_query(&mut self, tables: TableRef, start: Span) -> Result<Query> {
        let mut select = implicit(tables, start);
        self.select_clauses(&mut select)?;
        select.span = self.since(start);
        self.query_tail(Body::Select(Box::new(select)), start)
    }

    /// Continues an expression after its first operand.
    fn continued(&mut self, first: Expr, start: Span) -> Result<Expr> {
        self.height = self.above(self.tallest)?;
        let first = self.postfixed_from(first, start)?;
        self.climb_from(first, start, precedence::OR)
    }
}

/// Creates the implicit `SELECT *` over `tables`.
pub(super) fn implicit(tables: TableRef, span: Span) -> Select {
    Select::new(Projection::Implicit, vec![tables], span)
}
