//! ALTER TABLE.

use super::expected::NameKind;
use super::{Parser, Result};
use crate::ast::{AlterAction, AlterTable, Ident, Partitions, Statement};
use crate::{Keyword, Symbol, TokenKind};
use Keyword as K;

impl Parser<'_> {
    /// Parses ALTER TABLE and ALTER MATERIALIZED VIEW.
    pub(super) fn alter(&mut self) -> Result<Statement> {
        self.expect(K::Alter)?;
        if self.eat(K::Materialized) {
            self.expect(K::View)?;
            return Ok(Statement::AlterView(Box::new(self.alter_view()?)));
        }
        self.expect(K::Table)?;
        let if_exists = self.if_exists();
        let table = self.table_name()?;
        let action = self.alter_action()?;
        Ok(Statement::AlterTable(Box::new(AlterTable { if_exists, table, action })))
    }

    fn alter_action(&mut self) -> Result<AlterAction> {
        const WORDS: &[Keyword] = &[
            K::Add,
            K::Drop,
            K::Rename,
            K::Alter,
            K::Set,
            K::Dedup,
            K::Attach,
            K::Detach,
            K::Convert,
            K::Force,
            K::Squash,
            K::Seal,
            K::Suspend,
            K::Resume,
            K::Owner,
        ];
        match self.eat_any(WORDS) {
            Some(K::Add) => self.alter_add(),
            Some(K::Drop) => self.alter_drop(),
            Some(K::Rename) => self.alter_rename(),
            Some(K::Alter) => self.alter_column(),
            Some(K::Set) => self.alter_set(),
            Some(K::Dedup) => match self.eat_any(&[K::Enable, K::Disable]) {
                Some(K::Enable) => Ok(AlterAction::Dedup(self.upsert_keys()?)),
                Some(_) => Ok(AlterAction::Dedup(Vec::new())),
                None => Err(self.expected("ENABLE or DISABLE")),
            },
            Some(K::Seal) => Ok(AlterAction::Seal),
            Some(K::Squash) => {
                if self.eat_any(&[K::Partitions, K::Partition]).is_none() {
                    return Err(self.expected("PARTITIONS"));
                }
                Ok(AlterAction::SquashPartitions)
            }
            Some(K::Suspend) => self.wal("SUSPEND WAL"),
            Some(K::Resume) => self.wal("RESUME WAL"),
            Some(K::Owner) => {
                self.expect(K::To)?;
                Ok(AlterAction::OwnerTo(self.name(NameKind::Other, "a role")?))
            }
            Some(verb) => self.alter_partitions(verb),
            None => Err(self.expected("ADD, DROP, RENAME, SET TTL, SET PARAM, SEAL or DEDUP")),
        }
    }

    fn alter_add(&mut self) -> Result<AlterAction> {
        let is_constraint = match self.keyword(0) {
            Some(K::Constraint) => self.is_name(1) && self.is_name(2),
            Some(K::Primary | K::Foreign) => self.keyword(1) == Some(K::Key),
            Some(K::Unique | K::Check) => self.is_symbol(1, Symbol::LeftParen),
            _ => false,
        };
        if is_constraint {
            return Ok(AlterAction::AddConstraint(self.table_constraint()?));
        }
        self.eat(K::Column);
        let if_not_exists = self.if_not_exists();
        let columns = self.list(|parser| {
            parser.eat_all(&[K::Add, K::Column]);
            parser.column_def()
        })?;
        Ok(AlterAction::AddColumns { if_not_exists, columns })
    }

    fn alter_drop(&mut self) -> Result<AlterAction> {
        if self.eat(K::Partition) {
            return Ok(AlterAction::DropPartitions(self.partitions()?));
        }
        if self.keyword(0) == Some(K::Constraint) && self.is_name(1) {
            self.bump();
            self.if_exists();
            return Ok(AlterAction::DropConstraint(self.name(NameKind::Other, "a constraint")?));
        }
        if self.is_name(1) {
            self.eat(K::Column);
        }
        let if_exists = self.if_exists();
        let columns = self.list(|parser| {
            parser.eat_all(&[K::Drop, K::Column]);
            let column = parser.column_name()?;
            parser.eat_any(&[K::Cascade, K::Restrict]);
            Ok(column)
        })?;
        Ok(AlterAction::DropColumns { if_exists, columns })
    }

    fn alter_rename(&mut self) -> Result<AlterAction> {
        if self.eat(K::To) {
            return Ok(AlterAction::RenameTo(self.object_name(NameKind::New, "a table name")?));
        }
        if self.keyword(1) != Some(K::To) || self.keyword(2) == Some(K::To) {
            self.eat(K::Column);
        }
        let columns = self.list(|parser| {
            let column = parser.column_name()?;
            parser.expect(K::To)?;
            Ok((column, parser.name(NameKind::New, "a column name")?))
        })?;
        Ok(AlterAction::RenameColumns(columns))
    }

    /// Parses `[COLUMN] c TYPE t`, `c SET DEFAULT x` and the other forms, after ALTER.
    fn alter_column(&mut self) -> Result<AlterAction> {
        self.eat(K::Column);
        let column = self.column_name()?;
        if self.eat_all(&[K::Set, K::Data, K::Type]) || self.eat(K::Type) {
            return self.column_type(column);
        }
        for is_set in [true, false] {
            let word = if is_set { K::Set } else { K::Drop };
            if self.eat_all(&[word, K::Not, K::Null]) {
                return Ok(AlterAction::ColumnNotNull { column, is_set });
            }
            if self.eat_all(&[word, K::Default]) {
                let value = if is_set { Some(self.expr()?) } else { None };
                return Ok(AlterAction::ColumnDefault { column, value });
            }
        }
        let from = self.at;
        let changes: &[&[Keyword]] =
            &[&[K::Add, K::Index], &[K::Drop, K::Index], &[K::Cache], &[K::Nocache], &[K::Set]];
        let is_symbol = self.written(0).eq_ignore_ascii_case("symbol");
        if is_symbol {
            self.bump();
        }
        if is_symbol || !changes.iter().any(|words| self.eat_all(words)) {
            self.expect(K::Capacity)?;
            self.number("a capacity")?;
        } else if self.eat(K::Capacity) {
            self.number("a capacity")?;
        }
        let words = self.tokens[from..self.at].iter().map(|t| t.span.slice(self.text).to_ascii_uppercase());
        Ok(AlterAction::ColumnStorage { column, change: words.collect::<Vec<_>>().join(" ") })
    }

    fn column_type(&mut self, column: Ident) -> Result<AlterAction> {
        let data_type = self.type_name()?;
        let options = self.column_options()?;
        let using = if self.eat(K::Using) { Some(self.expr()?) } else { None };
        Ok(AlterAction::ColumnType { column, data_type, options, using })
    }

    fn alter_set(&mut self) -> Result<AlterAction> {
        match self.eat_any(&[K::Ttl, K::Param, K::Type, K::Schema]) {
            Some(K::Ttl) => Ok(AlterAction::SetTtl(self.time_to_live()?)),
            Some(K::Param) => Ok(AlterAction::SetParam(self.settings()?)),
            Some(K::Type) => {
                self.eat(K::Bypass);
                Ok(AlterAction::SetType(self.name(NameKind::Other, "WAL")?))
            }
            Some(_) => Ok(AlterAction::SetSchema(self.name(NameKind::Other, "a schema")?)),
            None => Err(self.expected("TTL, PARAM, TYPE or SCHEMA")),
        }
    }

    /// Parses `LIST 'a', 'b'`, `WHERE condition`.
    fn partitions(&mut self) -> Result<Partitions> {
        if self.eat(K::List) {
            let partition = |parser: &mut Self| parser.constant_text("the name of a partition in quotes");
            return Ok(Partitions::List(self.list(partition)?));
        }
        if self.eat(K::Where) {
            return Ok(Partitions::Where(self.expr()?));
        }
        Err(self.expected("LIST or WHERE"))
    }

    /// Parses `PARTITION LIST …`, after ATTACH, DETACH, CONVERT or FORCE DROP.
    fn alter_partitions(&mut self, verb: Keyword) -> Result<AlterAction> {
        let verb = match verb {
            K::Force => {
                self.expect(K::Drop)?;
                "FORCE DROP".to_owned()
            }
            verb => verb.to_string(),
        };
        self.expect(K::Partition)?;
        let mut format = None;
        if self.eat(K::To) {
            format = Some(self.name(NameKind::Other, "PARQUET or NATIVE")?);
        }
        let which = self.partitions()?;
        Ok(AlterAction::Partitions { verb, which, format })
    }

    /// Parses `WAL [FROM TXN n]`, `WAL WITH code, 'message'`.
    fn wal(&mut self, change: &str) -> Result<AlterAction> {
        self.expect(K::Wal)?;
        let from = self.at;
        while !matches!(self.kind(0), TokenKind::End | TokenKind::Symbol(Symbol::Semicolon | Symbol::RightParen)) {
            self.bump();
        }
        let rest = self.tokens[from..self.at].iter().map(|t| t.span.slice(self.text));
        let words: Vec<&str> = std::iter::once(change).chain(rest).collect();
        Ok(AlterAction::Wal(words.join(" ")))
    }
}
