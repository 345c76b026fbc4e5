//! Functions, indexes, and DROP.

use super::expected::NameKind;
use super::{Parser, Result};
use crate::ast::object::{FunctionOption, FunctionParam};
use crate::ast::{CreateFunction, CreateIndex, DropObject, ObjectKind};
use crate::{Keyword, Symbol};
use Keyword as K;

impl Parser<'_> {
    /// Parses `DROP kind [IF EXISTS] names [CASCADE]`.
    pub(super) fn drop_object(&mut self) -> Result<DropObject> {
        self.expect(K::Drop)?;
        if self.eat_all(&[K::All, K::Tables]) {
            let kind = ObjectKind::Table;
            return Ok(DropObject { kind, if_exists: false, names: Vec::new(), args: None, cascade: false });
        }
        let kind = self.object_kind()?;
        let if_exists = self.if_exists();
        let what = if kind == ObjectKind::Schema { "a schema name" } else { "a table name" };
        let names = self.list(|parser| parser.object_name(NameKind::Table, what))?;
        let mut args = None;
        if kind == ObjectKind::Function && self.is_symbol(0, Symbol::LeftParen) {
            args = Some(if self.is_symbol(1, Symbol::RightParen) {
                self.at += 2;
                Vec::new()
            } else {
                self.in_parens(Self::type_name)?
            });
        }
        let cascade = self.eat_any(&[K::Cascade, K::Restrict]) == Some(K::Cascade);
        Ok(DropObject { kind, if_exists, names, args, cascade })
    }

    fn object_kind(&mut self) -> Result<ObjectKind> {
        if self.eat_all(&[K::Materialized, K::View]) {
            return Ok(ObjectKind::MaterializedView);
        }
        const KINDS: &[(Keyword, ObjectKind)] = &[
            (K::Table, ObjectKind::Table),
            (K::View, ObjectKind::View),
            (K::Schema, ObjectKind::Schema),
            (K::Database, ObjectKind::Database),
            (K::Index, ObjectKind::Index),
            (K::Function, ObjectKind::Function),
            (K::Role, ObjectKind::Role),
            (K::User, ObjectKind::User),
            (K::Sequence, ObjectKind::Sequence),
            (K::Type, ObjectKind::Type),
        ];
        match KINDS.iter().find(|(word, _)| self.eat(*word)) {
            Some((_, kind)) => Ok(*kind),
            None => Err(self.expected("TABLE, VIEW, MATERIALIZED VIEW or SCHEMA")),
        }
    }

    /// Parses `f(a INT, b TEXT) RETURNS type … AS 'body'`, after CREATE FUNCTION.
    pub(super) fn create_function(&mut self, or_replace: bool) -> Result<CreateFunction> {
        let name = self.object_name(NameKind::New, "the name of a function")?;
        let mut params = Vec::new();
        if self.is_symbol(0, Symbol::LeftParen) && self.is_symbol(1, Symbol::RightParen) {
            self.at += 2;
        } else {
            params = self.in_parens(Self::function_param)?;
        }
        let returns = if self.eat(K::Returns) { Some(self.type_name()?) } else { None };
        let mut options = Vec::new();
        while let Some(option) = self.function_option()? {
            options.push(option);
        }
        Ok(CreateFunction { or_replace, name, params, returns, options })
    }

    fn function_param(&mut self) -> Result<FunctionParam> {
        let has_name = self.is_name(0) && self.is_name(1) && self.keyword(1) != Some(K::Default);
        let name = if has_name { Some(self.any_name()) } else { None };
        let data_type = self.type_name()?;
        let has_default = self.eat(K::Default) || self.eat_symbol(Symbol::Equal);
        let default = if has_default { Some(self.expr()?) } else { None };
        Ok(FunctionParam { name, data_type, default })
    }

    fn function_option(&mut self) -> Result<Option<FunctionOption>> {
        const PROPERTIES: &[Keyword] = &[K::Immutable, K::Stable, K::Volatile, K::Strict, K::Leakproof];
        if self.eat(K::Language) {
            return Ok(Some(FunctionOption::Language(self.name(NameKind::Other, "a language")?)));
        }
        if self.eat(K::As) {
            return Ok(Some(FunctionOption::Body(self.text("the body in single quotes")?.value)));
        }
        if self.eat(K::Return) {
            return Ok(Some(FunctionOption::Return(self.expr()?)));
        }
        if let Some(property) = self.eat_any(PROPERTIES) {
            return Ok(Some(FunctionOption::Property(property.to_string())));
        }
        if self.eat(K::Parallel) {
            let level = self.name(NameKind::Other, "SAFE, RESTRICTED or UNSAFE")?;
            return Ok(Some(FunctionOption::Property(format!("PARALLEL {}", level.value.to_ascii_uppercase()))));
        }
        Ok(None)
    }

    /// Parses `[UNIQUE] INDEX [CONCURRENTLY] [IF NOT EXISTS] [name] [ON t [USING method] (columns)]`.
    pub(super) fn create_index(&mut self) -> Result<CreateIndex> {
        let unique = self.eat(K::Unique);
        self.expect(K::Index)?;
        self.eat(K::Concurrently);
        let if_not_exists = self.if_not_exists();
        let has_name = self.keyword(0) != Some(K::On) && self.is_name(0);
        let name = if has_name { Some(self.object_name(NameKind::New, "an index")?) } else { None };
        let on = if self.eat(K::On) {
            let table = self.table_name()?;
            if self.eat(K::Using) {
                self.name(NameKind::Other, "a method")?;
            }
            let keys = self.in_parens(|parser| parser.order_item().map(|item| item.expr))?;
            Some((table, keys))
        } else {
            None
        };
        Ok(CreateIndex { unique, if_not_exists, name, on })
    }
}
