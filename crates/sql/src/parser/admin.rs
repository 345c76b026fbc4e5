//! BACKUP, CHECK, CANCEL, and statements that other databases have.

use super::expected::{Expected, NameKind};
use super::precedence;
use super::{Parser, Result};
use crate::ast::{Admin, Backup, CheckTarget, Expr, ExprKind, Literal, Statement};
use crate::{Keyword, Symbol, TokenKind};
use Keyword as K;

impl Parser<'_> {
    /// Parses `BACKUP DATABASE TO '…'`, `BACKUP TABLE t`.
    pub(super) fn backup(&mut self) -> Result<Backup> {
        self.expect(K::Backup)?;
        if self.eat(K::Table) {
            return Ok(Backup::Table(self.table_name()?));
        }
        self.expect(K::Database)?;
        self.expect(K::To)?;
        Ok(Backup::Database { to: self.constant_text("the folder for backups, in single quotes")? })
    }

    /// Parses `CHECK DATABASE`, `CHECK TABLE t`.
    pub(super) fn check(&mut self) -> Result<CheckTarget> {
        self.expect(K::Check)?;
        if self.eat(K::Database) {
            return Ok(CheckTarget::Database);
        }
        if !self.eat(K::Table) {
            return Err(self.expected("TABLE or DATABASE"));
        }
        Ok(CheckTarget::Table(self.table_name()?))
    }

    /// Parses `CANCEL QUERY 12`, `CANCEL QUERY '12'`.
    pub(super) fn cancel(&mut self) -> Result<Statement> {
        self.expect_all(&[K::Cancel, K::Query])?;
        let is_id = self.is_text(0) || matches!(self.kind(0), TokenKind::Number | TokenKind::Parameter);
        self.note(0, Expected::Text("the id of a query"));
        if !is_id {
            return Err(self.expected("the id of a query"));
        }
        Ok(Statement::CancelQuery { id: self.operand(precedence::COLLATE + 1)? })
    }

    /// Parses VACUUM, LISTEN, LOCK and similar statements; returns `None` for any other statement.
    pub(super) fn admin(&mut self) -> Result<Option<Admin>> {
        let Some(keyword) = self.keyword(0) else { return Ok(None) };
        let takes_any = matches!(
            keyword,
            K::Vacuum
                | K::Analyze
                | K::Analyse
                | K::Checkpoint
                | K::Reindex
                | K::Snapshot
                | K::Listen
                | K::Notify
                | K::Unlisten
                | K::Lock
                | K::Comment
                | K::Call
                | K::Do
                | K::Load
        );
        if !takes_any || self.begins_clause(1) {
            return Ok(None);
        }
        let verb = self.upper();
        let mut admin = Admin { verb, object: None, args: Vec::new() };
        if keyword == K::Comment {
            self.comment(&mut admin)?;
            return Ok(Some(admin));
        }
        if keyword == K::Call {
            admin.object = Some(self.object_name(NameKind::Expression, "a procedure")?);
            admin.args = self.optional_list()?;
            return Ok(Some(admin));
        }
        if self.is_symbol(0, Symbol::LeftParen) {
            admin.args = self.in_parens(Self::setting_value)?;
        }
        self.admin_words(&mut admin)?;
        Ok(Some(admin))
    }

    /// Parses a sequence of words, one of which is the object, and constants.
    fn admin_words(&mut self, admin: &mut Admin) -> Result<()> {
        loop {
            if self.is_name(0) {
                admin.object = Some(self.table_name()?);
            } else if self.is_text(0) {
                let text = self.text("a text")?;
                admin.args.push(Expr { kind: ExprKind::Literal(Literal::Text(text.value)), span: text.span });
            } else if !matches!(self.kind(0), TokenKind::Symbol(Symbol::Comma | Symbol::Star)) {
                return Ok(());
            } else {
                self.bump();
            }
        }
    }

    /// Parses `ON TABLE t IS 'text'`.
    fn comment(&mut self, admin: &mut Admin) -> Result<()> {
        self.expect(K::On)?;
        self.name(NameKind::Other, "TABLE, COLUMN or another kind of object")?;
        if self.is_name(0) && self.is_name(1) && self.keyword(1) != Some(K::Is) {
            self.bump();
        }
        admin.object = Some(self.table_name()?);
        self.expect(K::Is)?;
        admin.args.push(self.operand(precedence::COLLATE + 1)?);
        Ok(())
    }
}
