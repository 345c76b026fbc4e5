//! Users, roles and privileges.

use super::expected::NameKind;
use super::{Parser, Result};
use crate::ast::{CreateRole, Grant, Ident, ObjectKind};
use crate::{Keyword, Symbol, TokenKind};
use Keyword as K;

impl Parser<'_> {
    /// Parses `USER name [WITH] [PASSWORD '…'] …` or `ROLE name`, after CREATE.
    pub(super) fn create_role(&mut self) -> Result<CreateRole> {
        let kind = if self.eat(K::User) { ObjectKind::User } else { ObjectKind::Role };
        if kind == ObjectKind::Role {
            self.expect(K::Role)?;
        }
        let if_not_exists = self.if_not_exists();
        let name = self.name(NameKind::New, "a name")?;
        self.eat(K::With);
        let (mut password, mut options) = (None, Vec::new());
        loop {
            if self.eat(K::Password) {
                password = Some(self.text("a password in single quotes")?.value);
            } else if matches!(self.kind(0), TokenKind::Word(_)) {
                options.push(self.upper());
            } else {
                return Ok(CreateRole { kind, if_not_exists, name, password, options });
            }
        }
    }

    /// Parses GRANT and REVOKE.
    pub(super) fn grant(&mut self) -> Result<Grant> {
        let is_revoke = self.keyword(0) == Some(K::Revoke);
        self.bump();
        let mut with_option =
            is_revoke && (self.eat_all(&[K::Grant, K::Option, K::For]) || self.eat_all(&[K::Admin, K::Option, K::For]));
        let privileges = self.list(Self::privilege)?;
        let (mut on, mut on_kind) = (Vec::new(), None);
        if self.eat(K::On) {
            if self.eat(K::All) {
                on_kind = Some(format!("ALL {}", self.upper()));
                self.expect_all(&[K::In, K::Schema])?;
            } else if matches!(self.keyword(0), Some(K::Table | K::Schema | K::Database | K::Function | K::Sequence)) {
                on_kind = Some(self.upper());
            }
            on = self.list(Self::table_name)?;
        }
        self.expect(if is_revoke { K::From } else { K::To })?;
        let grantees = self.list(Self::grantee)?;
        with_option |= self.eat_all(&[K::With, K::Grant, K::Option]) || self.eat_all(&[K::With, K::Admin, K::Option]);
        let cascade = self.eat_any(&[K::Cascade, K::Restrict]) == Some(K::Cascade);
        Ok(Grant { is_revoke, privileges, on, on_kind, grantees, with_option, cascade })
    }

    /// Parses a privilege or a role: `SELECT (a, b)`, `ALL PRIVILEGES`, `admin`.
    fn privilege(&mut self) -> Result<(String, Vec<Ident>)> {
        if !self.is_name(0) {
            return Err(self.expected("a privilege"));
        }
        let mut words = vec![self.upper()];
        while matches!(self.kind(0), TokenKind::Word(_)) && !matches!(self.keyword(0), Some(K::On | K::To | K::From)) {
            words.push(self.upper());
        }
        let columns = if self.is_symbol(0, Symbol::LeftParen) { self.column_names()? } else { Vec::new() };
        Ok((words.join(" "), columns))
    }

    fn grantee(&mut self) -> Result<Ident> {
        if self.is_name(1) {
            self.eat_any(&[K::Group, K::Role, K::User]);
        }
        self.name(NameKind::Other, "a role")
    }
}
