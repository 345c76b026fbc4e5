//! Columns of tables, and constraints.

use super::expected::NameKind;
use super::precedence;
use super::{Parser, Result};
use crate::ast::{ColumnDef, ColumnOption, Ident, ObjectName, TableElement};
use crate::{Keyword, Symbol};
use Keyword as K;

impl Parser<'_> {
    /// Parses `name TYPE options`.
    pub(super) fn column_def(&mut self) -> Result<ColumnDef> {
        let name = self.name(NameKind::New, "a column name")?;
        let data_type = self.type_name()?;
        Ok(ColumnDef { name, data_type, options: self.column_options()? })
    }

    /// Parses the options of a column.
    pub(super) fn column_options(&mut self) -> Result<Vec<ColumnOption>> {
        let mut options = Vec::new();
        while let Some(option) = self.column_option()? {
            options.push(option);
        }
        Ok(options)
    }

    fn column_option(&mut self) -> Result<Option<ColumnOption>> {
        if self.keyword(0) == Some(K::Constraint) && self.is_name(1) {
            self.at += 2;
        }
        let option = if self.eat_all(&[K::Not, K::Null]) {
            ColumnOption::NotNull
        } else if self.eat_all(&[K::Primary, K::Key]) {
            ColumnOption::PrimaryKey
        } else {
            const WORDS: &[Keyword] = &[
                K::Capacity,
                K::Cache,
                K::Nocache,
                K::Index,
                K::Null,
                K::Default,
                K::Unique,
                K::Check,
                K::References,
                K::Collate,
                K::Generated,
            ];
            match self.eat_any(WORDS) {
                Some(K::Capacity) => ColumnOption::Capacity(self.number("a capacity")?),
                Some(K::Cache) => ColumnOption::Cache,
                Some(K::Nocache) => ColumnOption::NoCache,
                Some(K::Index) => {
                    let has_capacity = self.eat(K::Capacity);
                    ColumnOption::Index(if has_capacity { Some(self.number("a capacity")?) } else { None })
                }
                Some(K::Null) => ColumnOption::Null,
                Some(K::Default) => ColumnOption::Default(self.operand(precedence::OTHER)?),
                Some(K::Unique) => ColumnOption::Unique,
                Some(K::Check) => self.check_condition()?,
                Some(K::References) => self.references()?,
                Some(K::Collate) => ColumnOption::Collate(self.object_name(NameKind::Other, "a collation")?),
                Some(_) => self.generated()?,
                None => return Ok(None),
            }
        };
        Ok(Some(option))
    }

    fn check_condition(&mut self) -> Result<ColumnOption> {
        self.expect_symbol(Symbol::LeftParen)?;
        let condition = self.expr()?;
        self.expect_symbol(Symbol::RightParen)?;
        Ok(ColumnOption::Check(condition))
    }

    fn references(&mut self) -> Result<ColumnOption> {
        let table: ObjectName = self.table_name()?;
        let columns: Vec<Ident> = self.optional_column_names()?;
        while self.eat(K::On) {
            self.eat_any(&[K::Delete, K::Update]);
            if !self.eat_all(&[K::Set, K::Null]) && !self.eat_all(&[K::No, K::Action]) {
                self.eat_any(&[K::Cascade, K::Restrict]);
            }
        }
        Ok(ColumnOption::References { table, columns })
    }

    /// Parses `{ALWAYS | BY DEFAULT} AS {IDENTITY | (expression) STORED}`, after GENERATED.
    fn generated(&mut self) -> Result<ColumnOption> {
        if !self.eat_all(&[K::By, K::Default]) {
            self.expect(K::Always)?;
        }
        self.expect(K::As)?;
        if self.eat(K::Identity) {
            return Ok(ColumnOption::Generated(None));
        }
        self.expect_symbol(Symbol::LeftParen)?;
        let expr = self.expr()?;
        self.expect_symbol(Symbol::RightParen)?;
        self.eat(K::Stored);
        Ok(ColumnOption::Generated(Some(expr)))
    }

    /// Parses `[CONSTRAINT name] PRIMARY KEY (a, b)` and the other table constraints.
    pub(super) fn table_constraint(&mut self) -> Result<TableElement> {
        let name = if self.eat(K::Constraint) { Some(self.name(NameKind::New, "a constraint")?) } else { None };
        if self.eat_all(&[K::Primary, K::Key]) {
            let columns = self.column_names()?;
            return Ok(TableElement::Constraint { name, option: ColumnOption::PrimaryKey, columns });
        }
        if self.eat_all(&[K::Foreign, K::Key]) {
            let columns = self.column_names()?;
            self.expect(K::References)?;
            let option = self.references()?;
            return Ok(TableElement::Constraint { name, option, columns });
        }
        if self.eat(K::Unique) {
            let columns = self.column_names()?;
            return Ok(TableElement::Constraint { name, option: ColumnOption::Unique, columns });
        }
        self.expect(K::Check)?;
        let option = self.check_condition()?;
        Ok(TableElement::Constraint { name, option, columns: Vec::new() })
    }
}
