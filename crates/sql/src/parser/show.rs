//! SHOW.

use super::{Parser, Result};
use crate::Keyword;
use crate::ast::{ObjectName, Show};
use crate::{Symbol, TokenKind};
use Keyword as K;

impl Parser<'_> {
    /// Parses `SHOW TABLES`, `SHOW COLUMNS FROM t`, `SHOW setting` and the other forms of SHOW.
    pub(super) fn show(&mut self) -> Result<Show> {
        self.expect(K::Show)?;
        self.may_be(&[K::Tables, K::Views, K::Columns, K::Partitions, K::Create, K::Materialized, K::All]);
        let ends = matches!(self.kind(1), TokenKind::End | TokenKind::Symbol(Symbol::Semicolon));
        if self.eat_all(&[K::Materialized, K::Views]) {
            return Ok(Show::MaterializedViews);
        }
        if self.eat(K::Create) {
            self.eat(K::Materialized);
            if self.eat_any(&[K::Table, K::View]).is_none() {
                return Err(self.expected("TABLE, VIEW or MATERIALIZED VIEW"));
            }
            return Ok(Show::Create(self.table_name()?));
        }
        if !ends && self.eat(K::Columns) {
            return Ok(Show::Columns(self.behind_from()?));
        }
        if !ends && self.eat(K::Partitions) {
            return Ok(Show::Partitions(self.behind_from()?));
        }
        if ends && self.eat(K::Tables) {
            return Ok(Show::Tables);
        }
        if ends && self.eat(K::Views) {
            return Ok(Show::Views);
        }
        if matches!(self.keyword(0), Some(K::Columns | K::Partitions)) {
            self.bump();
            return Err(self.expected("FROM"));
        }
        if self.kind(0) == TokenKind::End {
            return Err(self.expected("TABLES, VIEWS, COLUMNS, PARTITIONS or CREATE TABLE"));
        }
        const LISTS: &[Keyword] = &[K::Schemas, K::Functions, K::Parameters, K::All];
        if let Some(word) = self.eat_any(LISTS) {
            return Ok(Show::List(word.to_string()));
        }
        Ok(Show::Setting(self.setting_name()?))
    }

    /// Parses `FROM t`, `IN t`.
    fn behind_from(&mut self) -> Result<ObjectName> {
        if self.eat_any(&[K::From, K::In]).is_none() {
            return Err(self.expected("FROM"));
        }
        self.table_name()
    }
}
