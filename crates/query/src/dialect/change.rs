//! DELETE and UPDATE: queries that give the addresses of the rows, and what becomes of them.

use super::statements::{quoted, sub_query};
use super::{Input, from_parser, rewrite};
use crate::scan::read::ADDRESS;
use crate::statement::{Delete, Name, Query, Statement, Update};
use crate::{Error, Result};
use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::tokenizer::Token;

impl Input<'_> {
    pub(super) fn delete(&mut self) -> Result<Statement> {
        self.expect("delete")?;
        self.expect("from")?;
        let (table, alias) = self.table_and_alias()?;
        if self.sees("using") {
            return self.error("DELETE … USING is not supported: name the other table in a sub-query");
        }
        let predicate = self.predicate()?;
        let query = match predicate {
            Some(predicate) => Some(self.rows_query(&table, &alias, Some(predicate), Vec::new())?),
            None => None,
        };
        Ok(Statement::Delete(Delete { table, query }))
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
        if self.sees("from") {
            return self.error("UPDATE … FROM is not supported: name the other table in a sub-query");
        }
        let predicate = self.predicate()?;
        let query = self.rows_query(&table, &alias, predicate, values)?;
        Ok(Statement::Update(Update { table, query, columns }))
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
                || !["where", "set", "using"].contains(&w.value.as_str()));
        let alias = if has_alias { self.name("an alias")?.text } else { table.text.clone() };
        Ok((table, alias))
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
        predicate: Option<ast::Expr>,
        values: Vec<ast::Expr>,
    ) -> Result<Query> {
        let mut query = sub_query(&format!("SELECT \"{ADDRESS}\" FROM {} AS {}", quoted(&table.text), quoted(alias)))?;
        query.words = self.words.clone();
        if let ast::SetExpr::Select(select) = query.ast.body.as_mut() {
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
