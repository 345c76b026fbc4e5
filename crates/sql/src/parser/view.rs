//! Views and materialized views.

use super::expected::NameKind;
use super::{Parser, Result};
use crate::ast::{
    AlterView, CreateView, Duration, Expr, ExprKind, Literal, Materialized, Offset, Period, Refresh, RefreshMode,
    RefreshScope, TableStorage,
};
use crate::{Keyword, Symbol, TokenKind};
use Keyword as K;

impl Parser<'_> {
    /// Parses `[IF NOT EXISTS] v [WITH BASE t] [REFRESH …] AS query …`, after CREATE [MATERIALIZED] VIEW.
    pub(super) fn create_view(&mut self, or_replace: bool, is_materialized: bool) -> Result<CreateView> {
        let if_not_exists = self.if_not_exists();
        let name = self.object_name(NameKind::New, "a table name")?;
        let columns = self.optional_column_names()?;
        let mut materialized = None;
        if is_materialized {
            let base = if self.eat_all(&[K::With, K::Base]) { Some(self.table_name()?) } else { None };
            let refresh = if self.eat(K::Refresh) { Some(self.refresh_mode()?) } else { None };
            materialized = Some(Box::new(Materialized { base, refresh, storage: TableStorage::default() }));
        }
        self.expect(K::As)?;
        let query = Box::new(if is_materialized { self.stored_query()? } else { self.query()? });
        if let Some(materialized) = &mut materialized {
            materialized.storage = self.storage()?;
        }
        Ok(CreateView { or_replace, if_not_exists, name, columns, materialized, query })
    }

    /// Parses `[IMMEDIATE | MANUAL | EVERY …] [DEFERRED] [PERIOD (…)]`, after REFRESH.
    fn refresh_mode(&mut self) -> Result<Refresh> {
        let mut deferred = false;
        let mode = match self.eat_any(&[K::Immediate, K::Incremental, K::Manual, K::Every]) {
            Some(K::Immediate | K::Incremental) => RefreshMode::Immediate,
            Some(K::Manual) => RefreshMode::Manual,
            Some(_) => {
                let interval = self.length()?;
                deferred = self.eat(K::Deferred);
                let start =
                    if self.eat(K::Start) { Some(self.constant_text("a timestamp in single quotes")?) } else { None };
                RefreshMode::Every { interval, start, zone: self.time_zone()? }
            }
            None if self.sees(K::Period) => RefreshMode::Immediate,
            None => return Err(self.expected("IMMEDIATE, MANUAL, EVERY or PERIOD")),
        };
        deferred |= self.eat(K::Deferred);
        let period = if self.eat(K::Period) { Some(self.period()?) } else { None };
        deferred |= self.eat(K::Deferred);
        Ok(Refresh { mode, deferred, period })
    }

    /// Parses `[TIME ZONE '…']`.
    fn time_zone(&mut self) -> Result<Option<Expr>> {
        if !self.eat_all(&[K::Time, K::Zone]) {
            return Ok(None);
        }
        self.constant_text("a time zone in single quotes").map(Some)
    }

    /// Parses `(LENGTH 1d [TIME ZONE '…'] [DELAY 2h])`, `(SAMPLE BY INTERVAL)`.
    fn period(&mut self) -> Result<Period> {
        self.expect_symbol(Symbol::LeftParen)?;
        let period = if self.eat(K::Length) {
            let length = self.length()?;
            let zone = self.time_zone()?;
            let delay = if self.eat(K::Delay) { Some(self.length()?) } else { None };
            Period::Length { length, zone, delay }
        } else if self.eat_all(&[K::Sample, K::By, K::Interval]) {
            Period::SampleBy
        } else {
            return Err(self.expected("LENGTH or SAMPLE BY INTERVAL"));
        };
        self.expect_symbol(Symbol::RightParen)?;
        Ok(period)
    }

    /// Parses `10m`, `'10m'`.
    fn length(&mut self) -> Result<Offset> {
        const WHAT: &str = "a length of time such as 10m";
        if self.is_text(0) {
            return Ok(Offset::Expr { expr: Box::new(self.constant_text(WHAT)?), unit: None });
        }
        // The code that reads the duration rejects an unknown unit and names the unit.
        if self.kind(0) == TokenKind::Number && self.unit_at(1).is_none() && self.is_name(1) {
            let start = self.start();
            let text = format!("{}{}", self.number(WHAT)?, self.any_name().value);
            let expr = self.spanned(ExprKind::Literal(Literal::Text(text)), start);
            return Ok(Offset::Expr { expr: Box::new(expr), unit: None });
        }
        match self.length_ahead(0) {
            Some(unit) => {
                let start = self.start();
                let count = self.number(WHAT)?;
                self.bump();
                Ok(Offset::Duration(Duration { count, unit, span: self.since(start) }))
            }
            None => Err(self.expected(WHAT)),
        }
    }

    /// Parses `INCREMENTAL`, `FULL`, `RANGE FROM a TO b`.
    pub(super) fn refresh_scope(&mut self) -> Result<RefreshScope> {
        match self.eat_any(&[K::Full, K::Range, K::Incremental]) {
            Some(K::Full) => Ok(RefreshScope::Full),
            Some(K::Range) => {
                self.expect(K::From)?;
                let from = self.constant_text("a timestamp in single quotes")?;
                self.expect(K::To)?;
                Ok(RefreshScope::Range { from, to: self.constant_text("a timestamp in single quotes")? })
            }
            _ => Ok(RefreshScope::Incremental),
        }
    }

    /// Parses `v RESUME`, `v SET REFRESH …`, `v SET TTL …`, after ALTER MATERIALIZED VIEW.
    pub(super) fn alter_view(&mut self) -> Result<AlterView> {
        let view = self.table_name()?;
        if self.eat(K::Resume) {
            self.eat(K::Wal);
            return Ok(AlterView::Resume(view));
        }
        self.expect(K::Set)?;
        if self.eat(K::Ttl) {
            return Ok(AlterView::SetTtl(view, self.time_to_live()?));
        }
        if !self.eat(K::Refresh) {
            return Err(self.expected("REFRESH or TTL"));
        }
        if self.eat(K::Limit) {
            return Ok(AlterView::SetRefreshLimit(view, self.time_to_live()?));
        }
        Ok(AlterView::SetRefresh(view, self.refresh_mode()?))
    }
}
