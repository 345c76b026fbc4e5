//! COPY in the words of PostgreSQL, DuckDB and QuestDB.

use super::expected::NameKind;
use super::names::joined;
use super::{Parser, Result};
use crate::ast::{Copy, CopyDirection, CopyOption, CopySource, CopyTarget, Expr, ExprKind, Literal, ObjectName};
use crate::{Keyword, Symbol, TokenKind};
use Keyword as K;

impl Parser<'_> {
    /// `COPY t [(columns)] FROM | TO target options`, `COPY (query) TO target options`.
    pub(super) fn copy(&mut self) -> Result<Copy> {
        self.expect(K::Copy)?;
        let source = if self.is_symbol(0, Symbol::LeftParen) {
            CopySource::Query(self.query_in_parens()?)
        } else {
            let table = self.table_name()?;
            CopySource::Table { table, columns: self.optional_column_names()? }
        };
        let direction = match self.eat_any(&[K::To, K::From]) {
            Some(K::From) => CopyDirection::From,
            Some(_) => CopyDirection::To,
            None => return Err(self.expected("TO")),
        };
        let target = self.copy_target(direction)?;
        let options = self.copy_options()?;
        Ok(Copy { source, direction, target, options })
    }

    fn copy_target(&mut self, direction: CopyDirection) -> Result<CopyTarget> {
        let stream = if direction == CopyDirection::From { K::Stdin } else { K::Stdout };
        if self.eat(stream) {
            return Ok(CopyTarget::Client);
        }
        if self.keyword(0) == Some(K::Program) && self.is_text(1) {
            self.bump();
            return Ok(CopyTarget::Program(self.text("a command")?));
        }
        if !self.is_text(0) {
            return Err(self.expected(format!("a file in single quotes or {stream}")));
        }
        Ok(CopyTarget::File(self.text("a file in single quotes")?))
    }

    /// `[WITH] (name value, …)`, `[WITH] name value …`.
    fn copy_options(&mut self) -> Result<Vec<CopyOption>> {
        self.eat(K::With);
        let mut options = Vec::new();
        let is_list = self.eat_symbol(Symbol::LeftParen);
        loop {
            if is_list && self.eat_symbol(Symbol::RightParen) {
                return Ok(options);
            }
            let ends = matches!(self.kind(0), TokenKind::End | TokenKind::Symbol(Symbol::Semicolon));
            if ends && !is_list {
                return Ok(options);
            }
            options.push(self.copy_option()?);
            if is_list && !self.eat_symbol(Symbol::Comma) {
                self.expect_symbol(Symbol::RightParen)?;
                return Ok(options);
            }
        }
    }

    fn copy_option(&mut self) -> Result<CopyOption> {
        let start = self.start();
        let mut name = self.name(NameKind::Other, "an option of COPY")?;
        // `ON ERROR`, `PARTITION BY`, `FORCE QUOTE` are options of two words.
        let second = match name.value.to_ascii_lowercase().as_str() {
            "on" => Some("error"),
            "partition" => Some("by"),
            _ => None,
        };
        if let Some(second) = second {
            if !self.written(0).eq_ignore_ascii_case(second) {
                return Err(self.expected(second.to_ascii_uppercase()));
            }
            self.bump();
            name = joined(format!("{} {second}", name.value), self.since(start));
        }
        if matches!(self.keyword(0), Some(K::As)) || self.is_symbol(0, Symbol::Equal) {
            self.bump();
        }
        let value = if self.has_copy_value() { Some(self.copy_value()?) } else { None };
        Ok(CopyOption { name, value })
    }

    /// Whether a value comes: a constant, a list, or a word that is no option itself, which the word behind it shows.
    fn has_copy_value(&self) -> bool {
        let ends = |n: usize| {
            matches!(
                self.kind(n),
                TokenKind::End | TokenKind::Symbol(Symbol::Semicolon | Symbol::Comma | Symbol::RightParen)
            )
        };
        let is_constant = self.is_text(0)
            || matches!(self.kind(0), TokenKind::Number | TokenKind::Parameter)
            || self.is_symbol(0, Symbol::LeftParen)
            || self.is_symbol(0, Symbol::Star)
            || self.is_symbol(0, Symbol::Minus);
        match self.keyword(0) {
            Some(K::True | K::False) => true,
            Some(K::On) => !self.written(1).eq_ignore_ascii_case("error"),
            Some(K::Partition) => false,
            _ if is_constant => true,
            // `FORMAT csv, HEADER`; `CSV HEADER DELIMITER ','`: of words in a row each is an option, but for those
            // behind which nothing of their own can stand.
            _ => self.is_name(0) && (ends(1) || !self.is_text(1)) && self.takes_word(),
        }
    }

    /// Whether the option that was read takes a word.
    fn takes_word(&self) -> bool {
        const OPTIONS: &[&str] = &[
            "format",
            "header",
            "encoding",
            "timestamp",
            "by",
            "partition_by",
            "error",
            "on_error",
            "compression",
            "ignore_errors",
            "freeze",
            "auto_detect",
        ];
        let before = self.at.checked_sub(1).map_or("", |at| self.tokens[at].span.of(self.text));
        let is_flag = before.eq_ignore_ascii_case("header");
        let is_flag_value =
            ["off", "on", "match", "true", "false"].iter().any(|w| self.written(0).eq_ignore_ascii_case(w));
        OPTIONS.iter().any(|option| before.eq_ignore_ascii_case(option)) && (!is_flag || is_flag_value)
    }

    fn copy_value(&mut self) -> Result<Expr> {
        let start = self.start();
        if self.is_symbol(0, Symbol::Star) {
            self.bump();
            return Ok(self.expr_of(ExprKind::Literal(Literal::Text("*".to_owned())), start));
        }
        if self.is_name(0) && !matches!(self.keyword(0), Some(K::True | K::False)) {
            let name = self.any_name();
            let name = ObjectName { span: name.span, parts: vec![name] };
            return Ok(self.expr_of(ExprKind::Column(name), start));
        }
        self.operand(super::infix::precedence::SUM)
    }
}
