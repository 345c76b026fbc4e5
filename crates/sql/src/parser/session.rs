//! Settings and prepared statements.

use super::expected::NameKind;
use super::transaction::Modes;
use super::{Parser, Result};
use crate::ast::{Expr, ExprKind, Literal, ObjectName, Session, SettingScope};
use crate::{Keyword, Symbol, TokenKind};
use Keyword as K;

impl Parser<'_> {
    /// Parses SET, RESET, PREPARE, EXECUTE, DEALLOCATE, DISCARD.
    pub(super) fn session(&mut self) -> Result<Session> {
        let word = self.keyword(0);
        self.bump();
        match word {
            Some(K::Set) => self.set(),
            Some(K::Reset) => {
                let is_all = self.eat(K::All);
                Ok(Session::Reset(if is_all { None } else { Some(self.setting_name()?) }))
            }
            Some(K::Discard) => {
                let mut words = Vec::new();
                while matches!(self.kind(0), TokenKind::Word(_)) {
                    words.push(self.upper());
                }
                Ok(Session::Discard(words.join(" ")))
            }
            Some(K::Prepare) => self.prepare(),
            Some(K::Execute) => {
                let name = self.name(NameKind::Other, "a prepared statement")?;
                let args = if self.is_symbol(0, Symbol::LeftParen) { self.optional_list()? } else { Vec::new() };
                Ok(Session::Execute { name, args })
            }
            _ => {
                self.eat(K::Prepare);
                let is_all = self.eat(K::All);
                let name = if is_all { None } else { Some(self.name(NameKind::Other, "a prepared statement")?) };
                Ok(Session::Deallocate(name))
            }
        }
    }

    fn prepare(&mut self) -> Result<Session> {
        let name = self.name(NameKind::New, "a name")?;
        let types = if self.is_symbol(0, Symbol::LeftParen) { self.in_parens(Self::type_name)? } else { Vec::new() };
        self.expect(K::As)?;
        Ok(Session::Prepare { name, types, statement: Box::new(self.any_statement()?) })
    }

    /// Parses `[SESSION | LOCAL] name { = | TO } values`, and the special forms of SET.
    fn set(&mut self) -> Result<Session> {
        if self.eat_all(&[K::Session, K::Characteristics]) {
            self.expect_all(&[K::As, K::Transaction])?;
            return self.set_transaction(true);
        }
        let is_scope = |parser: &Self| parser.is_name(1) && parser.keyword(1) != Some(K::To);
        let scope = match self.keyword(0) {
            Some(K::Session) if is_scope(self) => Some(SettingScope::Session),
            Some(K::Local) if is_scope(self) => Some(SettingScope::Local),
            _ => None,
        };
        if scope.is_some() {
            self.bump();
        }
        if self.keyword(0) == Some(K::Transaction) && self.is_name(1) {
            self.bump();
            return self.set_transaction(false);
        }
        let name = self.setting_name()?;
        let has_sign = self.eat_symbol(Symbol::Equal) || self.eat_symbol(Symbol::Assign) || self.eat(K::To);
        let ends = matches!(self.kind(0), TokenKind::End | TokenKind::Symbol(Symbol::Semicolon));
        if ends && !has_sign || self.eat(K::Default) {
            return Ok(Session::Set { scope, name, values: Vec::new() });
        }
        let values = self.list(Self::setting_value)?;
        Ok(Session::Set { scope, name, values })
    }

    fn set_transaction(&mut self, is_for_session: bool) -> Result<Session> {
        if self.eat(K::Snapshot) {
            self.text("a snapshot in single quotes")?;
        }
        let Modes { read_only, isolation, .. } = self.modes()?;
        Ok(Session::SetTransaction { is_for_session, read_only, isolation })
    }

    /// Parses `name`, `a.b`, `TIME ZONE`, `SESSION AUTHORIZATION`.
    pub(super) fn setting_name(&mut self) -> Result<String> {
        if self.eat_all(&[K::Time, K::Zone]) {
            return Ok("TIME ZONE".to_owned());
        }
        if self.eat_all(&[K::Session, K::Authorization]) {
            return Ok("SESSION AUTHORIZATION".to_owned());
        }
        if self.eat_all(&[K::Transaction, K::Isolation, K::Level]) {
            return Ok("TRANSACTION ISOLATION LEVEL".to_owned());
        }
        let name = self.object_name(NameKind::Other, "a setting")?;
        Ok(name.parts.iter().map(|part| part.value.as_str()).collect::<Vec<_>>().join("."))
    }

    /// Parses a word, reserved or not, or a constant.
    pub(super) fn setting_value(&mut self) -> Result<Expr> {
        let start = self.start();
        let is_word = matches!(self.kind(0), TokenKind::Word(_)) || self.is_quoted(0);
        let is_literal = matches!(self.keyword(0), Some(K::True | K::False | K::Null))
            || self.keyword(0) == Some(K::Interval) && self.is_text(1);
        if !is_word || is_literal {
            return self.operand(super::precedence::SUM);
        }
        let name = self.any_name();
        if self.is_adjacent_number() {
            let text = format!("{}{}", name.value, self.upper());
            return Ok(self.spanned(ExprKind::Literal(Literal::Text(text)), start));
        }
        let name = ObjectName { span: name.span, parts: vec![name] };
        Ok(self.spanned(ExprKind::Column(name), start))
    }

    /// Returns true if a number directly follows the last word, as in `UTF-8`.
    fn is_adjacent_number(&self) -> bool {
        let end = self.at.checked_sub(1).map_or(0, |at| self.tokens[at].span.end);
        self.is_symbol(0, Symbol::Minus) && self.start().start == end && self.kind(1) == TokenKind::Number
    }
}
