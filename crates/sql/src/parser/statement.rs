//! Statements: dispatch by the first keyword.

use super::{Parser, Result};
use crate::ast::{Explain, RefreshScope, Statement};
use crate::error::ErrorKind;
use crate::{Error, Keyword, Symbol, TokenKind};
use Keyword as K;

/// Keywords that begin a statement, for completion and hints.
const STATEMENTS: &[Keyword] = &[
    K::Select,
    K::With,
    K::From,
    K::Values,
    K::Table,
    K::Insert,
    K::Update,
    K::Delete,
    K::Merge,
    K::Copy,
    K::Create,
    K::Alter,
    K::Drop,
    K::Truncate,
    K::Rename,
    K::Refresh,
    K::Show,
    K::Describe,
    K::Summarize,
    K::Explain,
    K::Pivot,
    K::Unpivot,
    K::Declare,
    K::Begin,
    K::Start,
    K::Commit,
    K::Rollback,
    K::Savepoint,
    K::Set,
    K::Reset,
    K::Prepare,
    K::Execute,
    K::Deallocate,
    K::Fetch,
    K::Close,
    K::Check,
    K::Backup,
    K::Cancel,
    K::Grant,
    K::Revoke,
];

impl<'a> Parser<'a> {
    /// Parses the only statement of a text; surrounding semicolons are allowed.
    pub(crate) fn statement(&mut self) -> Result<Statement> {
        while self.is_symbol(0, Symbol::Semicolon) {
            self.bump();
        }
        if self.kind(0) == TokenKind::End && self.trace.is_none() {
            return Err(Box::new(Error::new(ErrorKind::Empty, self.text.len())));
        }
        let statement = self.any_statement()?;
        let had_semicolon = self.eat_symbol(Symbol::Semicolon);
        while self.is_symbol(0, Symbol::Semicolon) {
            self.bump();
        }
        match self.kind(0) {
            TokenKind::End => Ok(statement),
            _ if had_semicolon => Err(Box::new(Error::new(ErrorKind::SeveralStatements, self.start().start as usize))),
            _ => Err(self.expected("end of statement")),
        }
    }

    /// Parses a statement, also within another statement.
    pub(super) fn any_statement(&mut self) -> Result<Statement> {
        self.nested(Self::statement_within)
    }

    fn statement_within(&mut self) -> Result<Statement> {
        if self.is_symbol(0, Symbol::LeftParen) {
            return Ok(Statement::Query(Box::new(self.query()?)));
        }
        if self.is_table_alone() {
            let start = self.start();
            let tables = self.table_ref()?;
            return Ok(Statement::Query(Box::new(self.bare_query(tables, start)?)));
        }
        let Some(keyword) = self.keyword(0) else { return self.bare_statement() };
        Ok(match keyword {
            K::Select | K::From | K::Values | K::Table | K::Pivot | K::Unpivot if self.begins_query(0) => {
                Statement::Query(Box::new(self.query()?))
            }
            K::With => self.with_statement()?,
            K::Declare if self.begins_query(0) => Statement::Query(Box::new(self.query()?)),
            K::Declare | K::Fetch | K::Move | K::Close => Statement::Cursor(Box::new(self.cursor()?)),
            K::Insert => Statement::Insert(Box::new(self.insert(None)?)),
            K::Update => Statement::Update(Box::new(self.update(None)?)),
            K::Delete => Statement::Delete(Box::new(self.delete(None)?)),
            K::Merge => Statement::Merge(Box::new(self.merge(None)?)),
            K::Copy => Statement::Copy(Box::new(self.copy()?)),
            K::Create => self.create()?,
            K::Alter => self.alter()?,
            K::Drop => Statement::Drop(Box::new(self.drop_object()?)),
            K::Truncate => self.truncate()?,
            K::Rename => self.rename()?,
            K::Refresh => self.refresh()?,
            K::Explain => self.explain()?,
            K::Show => Statement::Show(Box::new(self.show()?)),
            K::Describe | K::Desc => Statement::Describe(self.described()?),
            K::Summarize => Statement::Summarize(self.described()?),
            K::Begin | K::Start | K::Commit | K::End | K::Rollback | K::Abort | K::Savepoint | K::Release => {
                Statement::Transaction(self.transaction()?)
            }
            K::Set | K::Reset | K::Prepare | K::Execute | K::Deallocate | K::Discard => {
                Statement::Session(Box::new(self.session()?))
            }
            K::Grant | K::Revoke => Statement::Grant(Box::new(self.grant()?)),
            K::Backup => Statement::Backup(self.backup()?),
            K::Check => Statement::Check(self.check()?),
            K::Cancel => self.cancel()?,
            _ => match self.admin()? {
                Some(admin) => Statement::Admin(Box::new(admin)),
                None => return self.bare_statement(),
            },
        })
    }

    /// Returns true if only a table name follows that is also the first keyword of a statement.
    ///
    /// One-word statements are statements, not tables.
    fn is_table_alone(&self) -> bool {
        let ends = matches!(self.kind(1), TokenKind::End | TokenKind::Symbol(Symbol::Semicolon));
        let is_statement = matches!(
            self.keyword(0),
            Some(
                K::Begin
                    | K::Commit
                    | K::Rollback
                    | K::Abort
                    | K::End
                    | K::Select
                    | K::From
                    | K::With
                    | K::Values
                    | K::Create
                    | K::Drop
                    | K::Alter
                    | K::Insert
                    | K::Show
                    | K::Explain
                    | K::Truncate
                    | K::Discard
                    | K::Set
                    | K::Update
                    | K::Delete
                    | K::Merge
                    | K::Copy
                    | K::Checkpoint
                    | K::Vacuum
                    | K::Analyze
            )
        );
        ends && !is_statement && (self.is_name(0) || self.kind(0) == TokenKind::String)
    }

    /// Parses a query without SELECT: `t`, `t WHERE …`, `tables()`, `(SELECT …) PIVOT (…)`.
    fn bare_statement(&mut self) -> Result<Statement> {
        let mut at = 0;
        while self.is_name(at) && self.is_symbol(at + 1, Symbol::Period) {
            at += 2;
        }
        let is_name = self.is_name(at) || self.is_text(at);
        let ends = matches!(self.kind(at + 1), TokenKind::End | TokenKind::Symbol(Symbol::Semicolon));
        let has_clause = self.begins_clause(at + 1)
            || self.is_symbol(at + 1, Symbol::LeftParen)
            || matches!(self.keyword(at + 1), Some(K::Pivot | K::Unpivot));
        if is_name && (ends || has_clause) {
            return Ok(Statement::Query(Box::new(self.query()?)));
        }
        self.may_be(STATEMENTS);
        Err(self.expected("a statement"))
    }

    /// Parses `WITH … SELECT`, `WITH … INSERT` and the other statements with WITH.
    fn with_statement(&mut self) -> Result<Statement> {
        let start = self.start();
        let with = self.with()?;
        Ok(match self.keyword(0) {
            Some(K::Insert) => Statement::Insert(Box::new(self.insert(with)?)),
            Some(K::Update) => Statement::Update(Box::new(self.update(with)?)),
            Some(K::Delete) => Statement::Delete(Box::new(self.delete(with)?)),
            Some(K::Merge) => Statement::Merge(Box::new(self.merge(with)?)),
            _ => {
                self.may_be(&[K::Select, K::Insert, K::Update, K::Delete]);
                Statement::Query(Box::new(self.query_behind(Vec::new(), with, start)?))
            }
        })
    }

    /// Parses EXPLAIN of any statement.
    fn explain(&mut self) -> Result<Statement> {
        self.bump();
        let mut options = Vec::new();
        let has_options = self.is_symbol(0, Symbol::LeftParen) && self.is_explain_option(1);
        if has_options {
            options = self.in_parens(Self::explain_option)?;
        }
        let analyze = self.eat(K::Analyze);
        let verbose = self.eat(K::Verbose);
        let statement = self.any_statement()?;
        Ok(Statement::Explain(Box::new(Explain { analyze, verbose, options, statement })))
    }

    /// Returns true if token `n` is an EXPLAIN option, as in `(ANALYZE, BUFFERS OFF)`, and not a query.
    fn is_explain_option(&self, n: usize) -> bool {
        self.is_name(n) && !self.begins_query(n) && !self.begins_clause(n + 1)
    }

    fn explain_option(&mut self) -> Result<(crate::ast::Ident, Option<crate::ast::Expr>)> {
        let name = self.name(super::expected::NameKind::Other, "an option of EXPLAIN")?;
        let is_last = self.is_symbol(0, Symbol::Comma) || self.is_symbol(0, Symbol::RightParen);
        Ok((name, if is_last { None } else { Some(self.setting_value()?) }))
    }

    fn truncate(&mut self) -> Result<Statement> {
        self.bump();
        self.eat(K::Table);
        let if_exists = self.if_exists();
        let tables = self.list(Self::table_name)?;
        if self.eat(K::Keep) {
            self.name(super::expected::NameKind::Other, "SYMBOL MAPS")?;
            self.name(super::expected::NameKind::Other, "MAPS")?;
        }
        let _ = self.eat_all(&[K::Restart, K::Identity]) || self.eat_all(&[K::Continue, K::Identity]);
        self.eat_any(&[K::Cascade, K::Restrict]);
        Ok(Statement::Truncate { tables, if_exists })
    }

    fn rename(&mut self) -> Result<Statement> {
        self.bump();
        self.expect(K::Table)?;
        let table = self.table_name()?;
        self.expect(K::To)?;
        Ok(Statement::RenameTable { table, to: self.table_name()? })
    }

    fn refresh(&mut self) -> Result<Statement> {
        self.bump();
        self.expect_all(&[K::Materialized, K::View])?;
        let view = self.table_name()?;
        let scope: RefreshScope = self.refresh_scope()?;
        Ok(Statement::RefreshView { view, scope })
    }

    /// Parses the table or the query of DESCRIBE and SUMMARIZE.
    fn described(&mut self) -> Result<Box<crate::ast::Query>> {
        self.bump();
        self.eat(K::Table);
        self.query().map(Box::new)
    }
}
