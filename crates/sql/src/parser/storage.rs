//! Storage clauses, which follow the columns or the query of a table.

use super::expected::NameKind;
use super::{Parser, Result};
use crate::ast::{ColumnDef, Duration, Ident, SettingValue, StorageSetting, TableStorage, TimeToLive};
use crate::{Keyword, Symbol, TokenKind};
use Keyword as K;

impl Parser<'_> {
    /// Parses the storage clauses, in any order.
    ///
    /// `[, CAST(…)] [TIMESTAMP(c)] [PARTITION BY …] [TTL …] [WAL] [DEDUP UPSERT KEYS(…)] [WITH …]`.
    pub(super) fn storage(&mut self) -> Result<TableStorage> {
        let mut storage = TableStorage::default();
        loop {
            if self.eat_symbol(Symbol::Comma) {
                self.behind_comma(&mut storage)?;
            } else if self.eat(K::Timestamp) {
                self.expect_symbol(Symbol::LeftParen)?;
                storage.timestamp = Some(self.column_name()?);
                self.expect_symbol(Symbol::RightParen)?;
            } else if self.eat(K::Partition) {
                self.expect(K::By)?;
                storage.partition_by = Some(self.name(NameKind::Other, "NONE, HOUR, DAY, WEEK, MONTH or YEAR")?);
            } else if self.eat(K::Dedup) {
                storage.dedup = self.upsert_keys()?;
            } else if self.eat(K::Ttl) {
                storage.ttl = Some(self.time_to_live()?);
            } else if self.eat_all(&[K::In, K::Volume]) {
                storage.volume = Some(self.name(NameKind::Other, "a volume")?);
            } else if self.eat_all(&[K::Owned, K::By]) {
                storage.owner = Some(self.name(NameKind::Other, "an owner")?);
            } else if self.eat(K::With) {
                storage.settings.extend(self.settings()?);
            } else if self.eat(K::Wal) {
                storage.wal = Some(true);
            } else if self.eat_all(&[K::Bypass, K::Wal]) {
                storage.wal = Some(false);
            } else {
                return Ok(storage);
            }
        }
    }

    /// Returns true if the next `TIMESTAMP(c)` begins the storage clauses.
    ///
    /// Otherwise the clause is a part of the preceding query.
    pub(super) fn begins_storage(&self) -> bool {
        self.storage_follows
            && matches!(
                self.kind(4),
                TokenKind::End
                    | TokenKind::Symbol(Symbol::Semicolon | Symbol::Comma)
                    | TokenKind::Word(Some(K::Partition | K::Wal | K::Bypass | K::Dedup | K::Ttl | K::With | K::Owned))
            )
    }

    /// Parses `, INDEX(column [CAPACITY n])`, `, CAST(column AS type)`.
    fn behind_comma(&mut self, storage: &mut TableStorage) -> Result<()> {
        let is_cast = match self.eat_any(&[K::Index, K::Cast]) {
            Some(word) => word == K::Cast,
            None => return Err(self.expected("INDEX or CAST")),
        };
        self.expect_symbol(Symbol::LeftParen)?;
        let name = self.column_name()?;
        if is_cast {
            self.expect(K::As)?;
            let data_type = self.type_name()?;
            let options = self.column_options()?;
            storage.casts.push(ColumnDef { name, data_type, options });
        } else {
            self.column_options()?;
            storage.indexes.push(name);
        }
        self.expect_symbol(Symbol::RightParen)
    }

    /// Parses `UPSERT KEYS(a, b)`.
    pub(super) fn upsert_keys(&mut self) -> Result<Vec<Ident>> {
        self.expect_all(&[K::Upsert, K::Keys])?;
        self.column_names()
    }

    /// Parses `30 DAYS`, `4w`, `0`.
    pub(super) fn time_to_live(&mut self) -> Result<TimeToLive> {
        let count = self.number("a time such as 30 DAYS")?;
        let is_unit = matches!(self.kind(0), TokenKind::Word(_)) && self.ttl_unit();
        let unit = if is_unit { Some(self.any_name()) } else { None };
        let is_zero = count.bytes().all(|digit| digit == b'0');
        if unit.is_none() && !is_zero {
            return Err(self.expected("HOURS, DAYS, WEEKS, MONTHS or YEARS"));
        }
        Ok(TimeToLive { count, unit })
    }

    fn ttl_unit(&self) -> bool {
        self.unit_at(0).is_some()
    }

    /// Parses `name = value, …`, up to the next clause.
    pub(super) fn settings(&mut self) -> Result<Vec<StorageSetting>> {
        let mut settings = Vec::new();
        loop {
            let name = self.name(NameKind::Other, "a setting")?;
            self.expect_symbol(Symbol::Equal)?;
            settings.push(StorageSetting { name, value: self.setting_of_table()? });
            let is_clause = matches!(self.keyword(1), Some(K::Index | K::Cast)) && self.is_symbol(2, Symbol::LeftParen);
            if is_clause || !self.eat_symbol(Symbol::Comma) {
                return Ok(settings);
            }
        }
    }

    /// Parses `10s`, `500ms`, `1000`, `'10s'`, `DEFAULT`.
    pub(super) fn setting_of_table(&mut self) -> Result<SettingValue> {
        if self.is_text(0) {
            return Ok(SettingValue::Text(self.text("a text")?.value));
        }
        if self.kind(0) != TokenKind::Number {
            return self.name(NameKind::Other, "a time such as 10s, or DEFAULT").map(SettingValue::Word);
        }
        let start = self.start();
        let unit = self.unit_at(1).filter(|_| self.is_adjacent(0));
        let has_word = self.is_adjacent(0) && matches!(self.kind(1), TokenKind::Word(_))
            || ["us", "ms"].iter().any(|unit| self.written(1).eq_ignore_ascii_case(unit))
            || self.unit_at(1).is_some();
        let digits = self.number("a number")?;
        if !has_word {
            return Ok(SettingValue::Number { digits, unit: None });
        }
        let word = self.any_name();
        Ok(match unit {
            Some(unit) => SettingValue::Duration(Duration { count: digits, unit, span: self.since(start) }),
            None => SettingValue::Number { digits, unit: Some(word) },
        })
    }
}
