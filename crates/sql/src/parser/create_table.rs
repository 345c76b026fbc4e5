//! CREATE, and CREATE TABLE.

use super::expected::NameKind;
use super::{Parser, Result};
use crate::ast::{CreateTable, Statement, TableElement, TableSource};
use crate::{Keyword, Symbol};
use Keyword as K;

impl Parser<'_> {
    /// Parses a CREATE statement.
    pub(super) fn create(&mut self) -> Result<Statement> {
        self.expect(K::Create)?;
        let or_replace = self.eat_all(&[K::Or, K::Replace]);
        let temporary = self.eat_any(&[K::Temp, K::Temporary, K::Unlogged]) == Some(K::Temporary);
        if self.eat(K::Table) {
            return Ok(Statement::CreateTable(Box::new(self.create_table(or_replace, temporary)?)));
        }
        if self.eat(K::View) {
            return Ok(Statement::CreateView(Box::new(self.create_view(or_replace, false)?)));
        }
        if self.eat_all(&[K::Materialized, K::View]) {
            return Ok(Statement::CreateView(Box::new(self.create_view(or_replace, true)?)));
        }
        if self.eat(K::Schema) {
            let if_not_exists = self.if_not_exists();
            let name = self.name(NameKind::New, "a schema name")?;
            return Ok(Statement::CreateSchema { name, if_not_exists });
        }
        if self.eat(K::Function) {
            return Ok(Statement::CreateFunction(Box::new(self.create_function(or_replace)?)));
        }
        if self.sees(K::Unique) || self.sees(K::Index) {
            return Ok(Statement::CreateIndex(Box::new(self.create_index()?)));
        }
        if self.sees(K::User) || self.sees(K::Role) {
            return Ok(Statement::CreateRole(Box::new(self.create_role()?)));
        }
        if self.keyword(0).is_some() {
            return Err(self.misplaced(format!("CREATE {} is not supported yet", self.written(0).to_ascii_uppercase())));
        }
        Err(self.expected("TABLE, VIEW, MATERIALIZED VIEW, SCHEMA or FUNCTION"))
    }

    /// Parses the rest of CREATE TABLE.
    ///
    /// `[IF NOT EXISTS] t (columns) …`, `t AS (SELECT …) …`, `t (LIKE u)`, `t LIKE u`.
    fn create_table(&mut self, or_replace: bool, temporary: bool) -> Result<CreateTable> {
        let if_not_exists = self.if_not_exists();
        let name = self.object_name(NameKind::New, "a table name")?;
        let source = if self.eat(K::As) {
            TableSource::Query(Box::new(self.stored_query()?))
        } else if self.eat(K::Like) {
            TableSource::Like(self.table_name()?)
        } else {
            let mut elements = self.in_parens(Self::table_element)?;
            match elements.pop() {
                Some(TableElement::Like(table)) if elements.is_empty() => TableSource::Like(table),
                last => {
                    elements.extend(last);
                    TableSource::Elements(elements)
                }
            }
        };
        let storage = self.storage()?;
        Ok(CreateTable { or_replace, temporary, if_not_exists, name, source, storage })
    }

    /// Parses a query that storage clauses may follow.
    ///
    /// A query in parentheses ends at the closing parenthesis.
    pub(super) fn stored_query(&mut self) -> Result<crate::ast::Query> {
        let open = std::mem::replace(&mut self.storage_follows, true);
        let query = self.query()?;
        self.storage_follows = open;
        Ok(query)
    }

    fn table_element(&mut self) -> Result<TableElement> {
        if self.keyword(0) == Some(K::Like) && self.is_name(1) {
            self.bump();
            let table = self.table_name()?;
            while self.eat_any(&[K::Including, K::Excluding]).is_some() {
                self.name(NameKind::Other, "ALL, DEFAULTS, …")?;
            }
            return Ok(TableElement::Like(table));
        }
        if self.begins_constraint() {
            return self.table_constraint();
        }
        Ok(TableElement::Column(self.column_def()?))
    }

    /// Returns true if a table constraint follows, and not a column named like a constraint keyword.
    fn begins_constraint(&self) -> bool {
        match self.keyword(0) {
            Some(K::Primary | K::Foreign) => self.keyword(1) == Some(K::Key),
            Some(K::Unique | K::Check) => self.is_symbol(1, Symbol::LeftParen),
            Some(K::Constraint) => {
                self.is_name(1) && matches!(self.keyword(2), Some(K::Primary | K::Foreign | K::Unique | K::Check))
            }
            _ => false,
        }
    }
}
