//! DELETE and UPDATE: queries that give the addresses of the rows, and what becomes of them.

use super::statements::{quoted, sub_query};
use super::{Input, from_parser, rewrite};
use crate::scan::read::ADDRESS;
use crate::statement::{Assigned, Delete, Name, OnConflict, Query, Statement, Update};
use crate::{Error, Result};
use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::tokenizer::Token;

/// The rows that an INSERT brings, in the expressions of ON CONFLICT.
pub(crate) const EXCLUDED: &str = "excluded";

/// Whether an expression is `EXCLUDED.column`.
fn is_excluded(expr: &ast::Expr, column: &str) -> bool {
    let ast::Expr::CompoundIdentifier(parts) = expr else { return false };
    matches!(parts.as_slice(), [table, name] if table.value.eq_ignore_ascii_case(EXCLUDED)
        && tidalite_types::schema::same_name(&name.value, column))
}

impl Input<'_> {
    pub(super) fn delete(&mut self) -> Result<Statement> {
        self.expect("delete")?;
        self.expect("from")?;
        let (table, alias) = self.table_and_alias()?;
        let others = self.other_tables("using")?;
        let predicate = self.predicate()?;
        let query = match (&predicate, others.as_slice()) {
            (None, []) => None,
            _ => Some(self.rows_query(&table, &alias, others, predicate, Vec::new())?),
        };
        let returning = self.returning(&table, &alias)?;
        Ok(Statement::Delete(Delete { table, query, returning }))
    }

    pub(super) fn update(&mut self) -> Result<Statement> {
        self.expect("update")?;
        let (table, alias) = self.table_and_alias()?;
        self.expect("set")?;
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        loop {
            columns.push(self.assigned(&table, &alias)?);
            self.expect_symbol(&Token::Eq)?;
            values.push(self.parser.parse_expr().map_err(|e| from_parser(&e, &self.words))?);
            if !self.take_symbol(&Token::Comma) {
                break;
            }
        }
        let others = self.other_tables("from")?;
        let predicate = self.predicate()?;
        let query = self.rows_query(&table, &alias, others, predicate, values)?;
        let returning = self.returning(&table, &alias)?;
        Ok(Statement::Update(Update { table, query, columns, returning }))
    }

    /// `RETURNING …`: a query over the rows concerned, which take the table's place.
    pub(super) fn returning(&mut self, table: &Name, alias: &str) -> Result<Option<Query>> {
        if !self.take("returning") {
            return Ok(None);
        }
        let items = self.parser.parse_comma_separated(|parser| parser.parse_select_item());
        let items = items.map_err(|e| from_parser(&e, &self.words))?;
        let mut query = sub_query(&format!("SELECT * FROM {} AS {}", quoted(&table.text), quoted(alias)))?;
        query.words = self.words.clone();
        if let ast::SetExpr::Select(select) = query.ast.body.as_mut() {
            select.projection = items;
        }
        rewrite::rewrite(&mut query.ast)?;
        Ok(Some(query))
    }

    /// `ON CONFLICT [(key, …)] DO NOTHING | DO UPDATE SET column = expression, … [WHERE …]`, behind the rows of an INSERT.
    pub(super) fn on_conflict(&mut self, table: &Name, alias: &str) -> Result<Option<OnConflict>> {
        let position = self.position();
        if !self.take_all(&["on", "conflict"]) {
            return Ok(None);
        }
        if self.sees("on") {
            return self.error("ON CONSTRAINT is not supported: name the upsert keys in parentheses");
        }
        let mut keys = Vec::new();
        if self.take_symbol(&Token::LParen) {
            keys.push(self.name("an upsert key")?);
            while self.take_symbol(&Token::Comma) {
                keys.push(self.name("an upsert key")?);
            }
            self.expect_symbol(&Token::RParen)?;
        }
        self.expect("do")?;
        if self.take("nothing") {
            return Ok(Some(OnConflict { position, keys, update: None }));
        }
        self.expect("update")?;
        self.expect("set")?;
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        loop {
            columns.push(self.assigned(table, alias)?);
            self.expect_symbol(&Token::Eq)?;
            values.push(self.parser.parse_expr().map_err(|e| from_parser(&e, &self.words))?);
            if !self.take_symbol(&Token::Comma) {
                break;
            }
        }
        let predicate = self.predicate()?;
        let is_plain = predicate.is_none() && columns.iter().zip(&values).all(|(c, value)| is_excluded(value, &c.text));
        let query = self.conflict_query(alias, predicate, values)?;
        Ok(Some(OnConflict { position, keys, update: Some(Assigned { columns, is_plain, query }) }))
    }

    /// Only to hold the expressions: [`crate::Engine::conflicting`] asks them of what is there.
    fn conflict_query(&self, alias: &str, predicate: Option<ast::Expr>, values: Vec<ast::Expr>) -> Result<Query> {
        let mut query = sub_query(&format!("SELECT 1 FROM {EXCLUDED}, {}", quoted(alias)))?;
        query.words = self.words.clone();
        if let ast::SetExpr::Select(select) = query.ast.body.as_mut() {
            select.selection = predicate;
            select.projection = values.into_iter().map(ast::SelectItem::UnnamedExpr).collect();
        }
        rewrite::rewrite(&mut query.ast)?;
        Ok(query)
    }

    /// The name of a column, which may stand behind that of its table.
    fn assigned(&mut self, table: &Name, alias: &str) -> Result<Name> {
        let name = self.name("a column name")?;
        if !self.take_symbol(&Token::Period) {
            return Ok(name);
        }
        let is_table = [table.text.as_str(), alias].iter().any(|t| tidalite_types::schema::same_name(t, &name.text));
        if !is_table {
            return Err(Error::invalid(format!("\"{}\" is not the table that is updated", name.text)).at(name.position));
        }
        self.name("a column name")
    }

    /// The table and what expressions may call it.
    fn table_and_alias(&mut self) -> Result<(Name, String)> {
        let table = self.table_name()?;
        let has_alias = self.take("as")
            || matches!(&self.parser.peek_token_ref().token, Token::Word(w) if w.quote_style.is_some()
                || !["where", "set", "using", "returning"].contains(&w.value.as_str()));
        let alias = if has_alias { self.name("an alias")?.text } else { table.text.clone() };
        Ok((table, alias))
    }

    /// The tables behind FROM or USING, whose rows are paired with those of the table.
    fn other_tables(&mut self, word: &str) -> Result<Vec<ast::TableWithJoins>> {
        if !self.take(word) {
            return Ok(Vec::new());
        }
        let tables = self.parser.parse_comma_separated(|parser| parser.parse_table_and_joins());
        tables.map_err(|e| from_parser(&e, &self.words))
    }

    fn predicate(&mut self) -> Result<Option<ast::Expr>> {
        if !self.take("where") {
            return Ok(None);
        }
        self.parser.parse_expr().map(Some).map_err(|e| from_parser(&e, &self.words))
    }

    fn rows_query(
        &self,
        table: &Name,
        alias: &str,
        others: Vec<ast::TableWithJoins>,
        predicate: Option<ast::Expr>,
        values: Vec<ast::Expr>,
    ) -> Result<Query> {
        let (table, alias) = (quoted(&table.text), quoted(alias));
        let mut query = sub_query(&format!("SELECT {alias}.\"{ADDRESS}\" FROM {table} AS {alias}"))?;
        query.words = self.words.clone();
        if let ast::SetExpr::Select(select) = query.ast.body.as_mut() {
            select.from.extend(others);
            select.selection = predicate;
            select.projection.extend(values.into_iter().enumerate().map(|(i, expr)| ast::SelectItem::ExprWithAlias {
                expr,
                alias: ast::Ident::with_quote('"', format!("{ADDRESS}{i}")),
            }));
        }
        rewrite::rewrite(&mut query.ast)?;
        Ok(query)
    }
}
