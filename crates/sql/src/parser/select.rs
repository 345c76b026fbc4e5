//! SELECT and its clauses.

use super::{Parser, Result};
use crate::ast::{Distinct, Projection, Select, SelectItem, TableRef};
use crate::{Keyword, Symbol, TokenKind};
use Keyword as K;

impl Parser<'_> {
    /// Parses `SELECT …`.
    #[inline(never)]
    pub(super) fn select(&mut self) -> Result<Select> {
        let start = self.start();
        self.expect(K::Select)?;
        let distinct = self.distinct()?;
        let items = self.select_items()?;
        if self.sees(K::Into) {
            let error = self.misplaced("SELECT INTO is not supported");
            return Err(Box::new(error.with_hint("write CREATE TABLE name AS (SELECT …)")));
        }
        let from = if self.eat(K::From) { self.table_refs()? } else { Vec::new() };
        let mut select = Select::new(Projection::Items(items), from, start);
        select.distinct = distinct;
        self.select_clauses(&mut select)?;
        select.span = self.since(start);
        Ok(select)
    }

    /// Parses `FROM t`, `FROM t SELECT a WHERE …`.
    #[inline(never)]
    pub(super) fn select_behind_from(&mut self) -> Result<Select> {
        let start = self.start();
        self.expect(K::From)?;
        let mut tables = self.table_refs()?.into_iter();
        let Some(first) = tables.next() else { return Err(self.expected("a table")) };
        let mut select = super::parens::implicit(first, start);
        select.from.extend(tables);
        if self.eat(K::Select) {
            select.distinct = self.distinct()?;
            select.projection = Projection::Items(self.select_items()?);
        }
        self.select_clauses(&mut select)?;
        select.span = self.since(start);
        Ok(select)
    }

    fn distinct(&mut self) -> Result<Option<Distinct>> {
        if !self.eat(K::Distinct) {
            self.eat(K::All);
            return Ok(None);
        }
        if self.keyword(0) == Some(K::On) && self.is_symbol(1, Symbol::LeftParen) {
            self.bump();
            return Ok(Some(Distinct::On(self.optional_list()?)));
        }
        Ok(Some(Distinct::Rows))
    }

    /// Parses the select list, which may be empty and may end with a comma.
    #[inline(never)]
    fn select_items(&mut self) -> Result<Vec<SelectItem>> {
        let mut items = Vec::new();
        while !self.ends_items() {
            items.push(self.select_item()?);
            if !self.eat_symbol(Symbol::Comma) {
                break;
            }
        }
        Ok(items)
    }

    /// Returns true if the next token is allowed only after a select list.
    fn ends_items(&self) -> bool {
        self.may_be(&[K::From]);
        match self.kind(0) {
            TokenKind::End => !self.is_traced(),
            TokenKind::Symbol(symbol) => matches!(symbol, Symbol::RightParen | Symbol::Semicolon),
            TokenKind::Word(Some(K::From)) => true,
            TokenKind::Word(Some(K::Where | K::Having)) => self.begins_operand(1),
            TokenKind::Word(Some(K::Group | K::Order)) => self.keyword(1) == Some(K::By),
            TokenKind::Word(Some(K::Limit)) => self.begins_operand(1),
            _ => self.begins_set_operation(0),
        }
    }

    /// Parses RETURNING and its items, if present.
    pub(super) fn returning(&mut self) -> Result<Vec<SelectItem>> {
        if self.eat(K::Returning) { self.list(Self::select_item) } else { Ok(Vec::new()) }
    }

    /// Parses a comma-separated list of tables.
    pub(super) fn table_refs(&mut self) -> Result<Vec<TableRef>> {
        self.list(Self::table_ref)
    }

    /// Parses the clauses from WHERE to QUALIFY.
    #[inline(never)]
    pub(super) fn select_clauses(&mut self, select: &mut Select) -> Result<()> {
        if self.eat(K::Where) {
            select.selection = Some(self.expr()?);
        }
        loop {
            if select.pivot.is_none() && self.keyword(0) == Some(K::Pivot) && self.is_symbol(1, Symbol::LeftParen) {
                select.pivot = Some(Box::new(self.pivot_clause()?));
            } else if select.group_by.is_none() && self.eat(K::Group) {
                self.expect(K::By)?;
                select.group_by = Some(self.group_by()?);
            } else if select.sample_by.is_none() && self.sees_all(&[K::Sample, K::By]) {
                select.sample_by = Some(Box::new(self.sample_by()?));
            } else if select.latest_on.is_none() && self.sees_latest() {
                select.latest_on = Some(Box::new(self.latest_on()?));
            } else {
                break;
            }
        }
        if self.eat(K::Having) {
            select.having = Some(self.expr()?);
        }
        if self.sees(K::Window) && self.is_name(1) {
            self.bump();
            select.windows = self.list(Self::named_window)?;
        }
        if self.sees(K::Qualify) && self.begins_operand(1) {
            self.bump();
            select.qualify = Some(self.expr()?);
        }
        if select.windows.is_empty() && self.keyword(0) == Some(K::Window) {
            self.bump();
            select.windows = self.list(Self::named_window)?;
        }
        Ok(())
    }

    fn sees_latest(&self) -> bool {
        self.sees(K::Latest) && (self.sees_at(1, K::On) || self.sees_at(1, K::By))
    }
}
