//! INSERT.

use super::expected::NameKind;
use super::{Parser, Result};
use crate::ast::{Assignment, ConflictAction, Expr, ExprKind, Insert, InsertBatch, InsertSource, OnConflict, With};
use crate::{Keyword, Span, Symbol, TokenKind};
use Keyword as K;

impl Parser<'_> {
    /// Parses `INSERT [ATOMIC | BATCH n] INTO t [AS a] [(columns)] rows [ON CONFLICT …] [RETURNING …]`.
    pub(super) fn insert(&mut self, with: Option<With>) -> Result<Insert> {
        self.expect(K::Insert)?;
        let batch = self.batch()?;
        self.expect(K::Into)?;
        let table = self.table_name()?;
        let alias = if self.eat(K::As) { Some(self.name(NameKind::New, "an alias")?) } else { None };
        let has_columns =
            self.is_symbol(0, Symbol::LeftParen) && !self.begins_query(1) && !self.is_symbol(1, Symbol::LeftParen);
        let columns = if has_columns { self.column_names()? } else { Vec::new() };
        if self.eat(K::Overriding) {
            self.eat_any(&[K::User, K::System]);
            self.expect(K::Value)?;
        }
        let source = if self.eat_all(&[K::Default, K::Values]) {
            InsertSource::DefaultValues
        } else if self.begins_query(0) || self.begins_bare_query(0) || self.is_symbol(0, Symbol::LeftParen) {
            InsertSource::Query(Box::new(self.query()?))
        } else {
            self.may_be(&[K::Values, K::Select, K::With, K::From, K::Table]);
            return Err(self.expected("VALUES or a query"));
        };
        let start = self.start();
        let conflict = if self.eat_all(&[K::On, K::Conflict]) { Some(self.on_conflict(start)?) } else { None };
        let returning = self.returning()?;
        Ok(Insert { with, batch, table, alias, columns, source, conflict, returning })
    }

    /// Parses `ATOMIC` or `BATCH n [o3MaxLag t]`; the lag is ignored.
    fn batch(&mut self) -> Result<Option<InsertBatch>> {
        if self.eat(K::Atomic) {
            return Ok(Some(InsertBatch::Atomic));
        }
        if !self.eat(K::Batch) {
            return Ok(None);
        }
        let rows = self.number("the rows of a commit")?;
        if self.written(0).eq_ignore_ascii_case("o3maxlag") {
            self.bump();
            self.setting_of_table()?;
        }
        Ok(Some(InsertBatch::Rows(rows)))
    }

    /// Parses `[(keys)] DO NOTHING | DO UPDATE SET …`, after ON CONFLICT, which begins at `start`.
    fn on_conflict(&mut self, start: Span) -> Result<OnConflict> {
        let constraint = if self.eat_all(&[K::On, K::Constraint]) {
            Some(self.name(NameKind::Other, "a constraint")?)
        } else {
            None
        };
        let keys = if self.is_symbol(0, Symbol::LeftParen) {
            self.in_parens(|parser| parser.name(NameKind::Column, "an upsert key"))?
        } else {
            Vec::new()
        };
        self.expect(K::Do)?;
        if self.eat(K::Nothing) {
            let span = self.since(start);
            return Ok(OnConflict { keys, constraint, action: ConflictAction::Nothing, span });
        }
        self.expect_all(&[K::Update, K::Set])?;
        let assignments = self.list(Self::assignment)?;
        let selection = if self.eat(K::Where) { Some(self.expr()?) } else { None };
        let (action, span) = (ConflictAction::Update { assignments, selection }, self.since(start));
        Ok(OnConflict { keys, constraint, action, span })
    }

    /// Parses `column = value`, `(a, b) = (x, y)`.
    pub(super) fn assignment(&mut self) -> Result<Assignment> {
        let column = |parser: &mut Self| parser.object_name(NameKind::Column, "a column name");
        let columns = if self.is_symbol(0, Symbol::LeftParen) { self.in_parens(column)? } else { vec![column(self)?] };
        self.expect_symbol(Symbol::Equal)?;
        let start = self.start();
        let value = if self.keyword(0) == Some(K::Default) && self.kind(1) != TokenKind::Symbol(Symbol::LeftParen) {
            self.bump();
            Expr { kind: ExprKind::Default, span: self.since(start) }
        } else {
            self.expr()?
        };
        Ok(Assignment { columns, value })
    }
}
