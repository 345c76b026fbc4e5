//! COPY, with the syntax of PostgreSQL, DuckDB and QuestDB.

use super::expected::NameKind;
use super::names::joined;
use super::{Parser, Result};
use crate::ast::{Copy, CopyDirection, CopyOption, CopySource, CopyTarget, Expr, ExprKind, Literal, ObjectName};
use crate::{Keyword, Symbol, TokenKind};
use Keyword as K;

impl Parser<'_> {
    /// Parses `COPY t [(columns)] FROM | TO target options`, `COPY (query) TO target options`.
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

    /// Parses `[WITH] (name value, …)`, `[WITH] name value …`.
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
            options.push(self.copy_option(is_list)?);
            if is_list && !self.eat_symbol(Symbol::Comma) {
                self.expect_symbol(Symbol::RightParen)?;
                return Ok(options);
            }
        }
    }

    fn copy_option(&mut self, is_list: bool) -> Result<CopyOption> {
        let start = self.start();
        let mut name = self.name(NameKind::Other, "an option of COPY")?;
        // `ON ERROR`, `PARTITION BY` and `FORCE QUOTE` are two-word options.
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
        let has_value = if is_list { !self.ends_copy_option() } else { self.has_copy_value() };
        let value = if has_value { Some(self.copy_value()?) } else { None };
        Ok(CopyOption { name, value })
    }

    fn ends_copy_option(&self) -> bool {
        let symbols = [Symbol::Semicolon, Symbol::Comma, Symbol::RightParen];
        self.kind(0) == TokenKind::End || symbols.iter().any(|symbol| self.is_symbol(0, *symbol))
    }

    /// Returns true if an option value follows in a list without separators.
    ///
    /// An example of such a list is `CSV HEADER DELIMITER ','`. A value is a constant, or a word after an
    /// option that takes a value.
    fn has_copy_value(&self) -> bool {
        const TAKE_A_WORD: &[&str] = &["format", "encoding", "timestamp", "by", "partition_by", "error", "on_error"];
        const TAKE_A_FLAG: &[&str] = &["header", "freeze", "ignore_errors"];
        const FLAGS: &[&str] = &["true", "false", "on", "off", "match"];
        let is_one_of = |word: &str, words: &[&str]| words.iter().any(|known| word.eq_ignore_ascii_case(known));
        let option = self.at.checked_sub(1).map_or("", |at| self.tokens[at].span.slice(self.text));
        let is_constant = self.is_text(0)
            || matches!(self.kind(0), TokenKind::Number | TokenKind::Parameter)
            || self.is_symbol(0, Symbol::Minus);
        // `ON ERROR` starts another option.
        let is_on_error = self.keyword(0) == Some(K::On) && self.written(1).eq_ignore_ascii_case("error");
        let is_flag = is_one_of(option, TAKE_A_FLAG) && is_one_of(self.written(0), FLAGS) && !is_on_error;
        is_constant || is_flag || self.is_name(0) && is_one_of(option, TAKE_A_WORD)
    }

    fn copy_value(&mut self) -> Result<Expr> {
        let start = self.start();
        if self.is_symbol(0, Symbol::Star) {
            self.bump();
            return Ok(self.spanned(ExprKind::Literal(Literal::Text("*".to_owned())), start));
        }
        if self.is_name(0) && !matches!(self.keyword(0), Some(K::True | K::False)) {
            let name = self.any_name();
            let name = ObjectName { span: name.span, parts: vec![name] };
            return Ok(self.spanned(ExprKind::Column(name), start));
        }
        self.operand(super::precedence::SUM)
    }
}
