//! Which statement it is, and the short ones.

use super::Input;
use crate::names::in_quotes;
use crate::statement::{Name, Query, Statement};
use crate::{Error, Result};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::Token;
use tidalite_types::Command;

impl Input<'_> {
    pub(super) fn statement(mut self) -> Result<Statement> {
        while self.take_symbol(&Token::SemiColon) {}
        if self.parser.peek_token_ref().token == Token::EOF {
            return self.error("empty statement");
        }
        let statement = self.any()?;
        self.end()?;
        Ok(statement)
    }

    fn any(&mut self) -> Result<Statement> {
        if let Some(query) = self.bare_table()? {
            return Ok(Statement::Query(query));
        }
        let Token::Word(word) = &self.parser.peek_token_ref().token else {
            return self.query().map(Statement::Query);
        };
        if word.quote_style.is_some() {
            return Err(self.expected("a statement"));
        }
        match word.value.as_str() {
            "create" => self.create(),
            "alter" => self.alter(),
            "drop" => self.drop_table(),
            "truncate" => self.truncate(),
            "rename" => self.rename(),
            "show" => self.show().map(Statement::Query),
            "explain" => self.explain(),
            "cancel" => self.cancel(),
            "check" => self.check(),
            "backup" => self.backup(),
            "refresh" => self.refresh_view(),
            "begin" | "start" | "commit" | "rollback" | "abort" | "end" | "set" | "reset" | "discard"
            | "deallocate" | "close" => self.nothing(),
            "copy" | "vacuum" | "checkpoint" | "grant" | "revoke" | "snapshot" | "reindex" | "analyze" | "call"
            | "declare" | "fetch" | "listen" | "lock" | "comment" => self.unsupported(),
            "execute" | "prepare" => self.is_of_sessions(),
            "select" | "with" | "from" | "values" | "table" | "pivot" | "unpivot" => self.query().map(Statement::Query),
            _ => Err(self.expected("a statement")),
        }
    }

    fn unsupported<T>(&mut self) -> Result<T> {
        let word = self.parser.peek_token_ref().token.to_string().to_uppercase();
        self.error(format!("{word} is not supported yet"))
    }

    /// Where there are sessions, they take these statements themselves.
    fn is_of_sessions<T>(&mut self) -> Result<T> {
        let word = self.parser.peek_token_ref().token.to_string().to_uppercase();
        self.error(format!("{word} is of sessions of the PostgreSQL protocol"))
    }

    /// `t`, `"t"` or `'t'` alone: all of the table.
    fn bare_table(&mut self) -> Result<Option<Query>> {
        let tokens = self.parser.peek_tokens_ref::<2>();
        let ends = matches!(tokens[1].token, Token::EOF | Token::SemiColon);
        let is_name = match &tokens[0].token {
            Token::SingleQuotedString(_) => true,
            Token::Word(word) => {
                word.quote_style.is_some()
                    || !matches!(
                        word.keyword,
                        Keyword::BEGIN
                            | Keyword::COMMIT
                            | Keyword::ROLLBACK
                            | Keyword::ABORT
                            | Keyword::END
                            | Keyword::SELECT
                            | Keyword::FROM
                            | Keyword::WITH
                            | Keyword::VALUES
                            | Keyword::CREATE
                            | Keyword::DROP
                            | Keyword::ALTER
                            | Keyword::INSERT
                            | Keyword::SHOW
                            | Keyword::EXPLAIN
                            | Keyword::TRUNCATE
                            | Keyword::DISCARD
                            | Keyword::SET
                            | Keyword::UPDATE
                            | Keyword::DELETE
                    )
            }
            _ => false,
        };
        if !(ends && is_name) {
            return Ok(None);
        }
        let name = self.table_name()?;
        let mut query = sub_query(&format!("SELECT * FROM {}", in_quotes(&name.text)))?;
        query.words = self.words.clone();
        Ok(Some(query))
    }

    fn drop_table(&mut self) -> Result<Statement> {
        self.expect("drop")?;
        if let Some(statement) = self.drop_view()? {
            return Ok(statement);
        }
        if self.take("schema") {
            let if_exists = self.take_all(&["if", "exists"]);
            let schema = self.schema_name()?;
            let cascades = self.take("cascade");
            self.take("restrict");
            return Ok(Statement::DropSchema { schema, if_exists, cascades });
        }
        if self.take("index") {
            return self.drop_indexes();
        }
        if !self.take("table") {
            return Err(self.expected("TABLE, VIEW, MATERIALIZED VIEW, INDEX or SCHEMA"));
        }
        let if_exists = self.take_all(&["if", "exists"]);
        let commands = self.tables(|table| Command::DropTable { table, if_exists })?;
        self.drop_behavior();
        Ok(Statement::Commands { tag: "DROP TABLE", commands })
    }

    /// `DROP INDEX`, behind these words; what exists has no effect.
    fn drop_indexes(&mut self) -> Result<Statement> {
        self.take("concurrently");
        if !self.take_all(&["if", "exists"]) {
            return Ok(self.without_effect("DROP INDEX"));
        }
        let mut names = vec![self.table_name()?.text];
        while self.take_symbol(&Token::Comma) {
            names.push(self.table_name()?.text);
        }
        self.drop_behavior();
        Ok(Statement::DropIndexes { names })
    }

    /// Accepts the rest of a statement about an index: no column needs one.
    pub(super) fn without_effect(&mut self, tag: &'static str) -> Statement {
        while !matches!(self.parser.peek_token_ref().token, Token::EOF | Token::SemiColon) {
            self.parser.next_token();
        }
        Statement::Nothing { tag }
    }

    pub(super) fn schema_name(&mut self) -> Result<Name> {
        let name = self.name("a schema name")?;
        if let Some(problem) = tidalite_types::schema::table_name_problem(&name.text).filter(|_| !name.text.is_empty())
        {
            return Err(Error::invalid(problem).at(name.position));
        }
        if name.text.contains('.') || ["pg_catalog", "information_schema"].contains(&name.text.to_lowercase().as_str())
        {
            return Err(Error::invalid(format!("schema \"{}\" cannot be changed", name.text)).at(name.position));
        }
        Ok(name)
    }

    fn truncate(&mut self) -> Result<Statement> {
        self.expect("truncate")?;
        self.take("table");
        self.take("only");
        let commands = self.tables(|table| Command::Truncate { table })?;
        // No column has a sequence.
        let _ = self.take_all(&["restart", "identity"]) || self.take_all(&["continue", "identity"]);
        self.drop_behavior();
        Ok(Statement::Commands { tag: "TRUNCATE TABLE", commands })
    }

    /// Returns a command for each table of a list.
    fn tables(&mut self, command: impl Fn(String) -> Command) -> Result<Vec<Command>> {
        let mut commands = vec![command(self.table_name()?.text)];
        while self.take_symbol(&Token::Comma) {
            commands.push(command(self.table_name()?.text));
        }
        Ok(commands)
    }

    /// Accepts CASCADE or RESTRICT where nothing depends on the object.
    pub(super) fn drop_behavior(&mut self) {
        let _ = self.take("cascade") || self.take("restrict");
    }

    fn rename(&mut self) -> Result<Statement> {
        self.expect("rename")?;
        self.expect("table")?;
        let table = self.table_name()?.text;
        self.expect("to")?;
        let to = self.table_name()?.text;
        Ok(Statement::Commands { tag: "RENAME TABLE", commands: vec![Command::RenameTable { table, to }] })
    }

    /// SHOW statements are queries over table functions.
    fn show(&mut self) -> Result<Query> {
        self.expect("show")?;
        let sql = if self.take("tables") {
            "SELECT table_name FROM tables() ORDER BY lower(table_name)".to_owned()
        } else if self.take("views") {
            "SELECT * FROM views() ORDER BY lower(view_name)".to_owned()
        } else if self.take_all(&["materialized", "views"]) {
            "SELECT * FROM materialized_views() ORDER BY lower(view_name)".to_owned()
        } else if self.take("columns") {
            format!("SELECT * FROM table_columns({})", self.table_behind_from()?)
        } else if self.take("partitions") {
            format!("SELECT * FROM table_partitions({})", self.table_behind_from()?)
        } else if ["table", "view"].iter().any(|what| self.take_all(&["create", what]))
            || self.take_all(&["create", "materialized", "view"])
        {
            let table = self.table_name()?;
            format!("SELECT * FROM show_create_table({})", literal(&table.text))
        } else if let Some((name, value)) = self.setting() {
            format!("SELECT {} AS {}", literal(value), in_quotes(name))
        } else {
            return Err(self.expected("TABLES, VIEWS, COLUMNS, PARTITIONS or CREATE TABLE"));
        };
        let mut query = sub_query(&sql)?;
        query.words = self.words.clone();
        Ok(query)
    }

    /// A setting of PostgreSQL's that does not change, and its value.
    fn setting(&mut self) -> Option<(&'static str, &'static str)> {
        const SETTINGS: &[(&[&str], &str, &str)] = &[
            (&["server_version"], "server_version", tidalite_types::pg_type::SERVER_VERSION),
            (&["server_encoding"], "server_encoding", "UTF8"),
            (&["client_encoding"], "client_encoding", "UTF8"),
            (&["timezone"], "TimeZone", "UTC"),
            (&["time", "zone"], "TimeZone", "UTC"),
            (&["search_path"], "search_path", crate::tables::SCHEMA),
            (&["standard_conforming_strings"], "standard_conforming_strings", "on"),
            (&["transaction", "isolation", "level"], "transaction_isolation", "read committed"),
            (&["transaction_isolation"], "transaction_isolation", "read committed"),
            (&["max_identifier_length"], "max_identifier_length", "127"),
        ];
        let (_, name, value) = SETTINGS.iter().find(|(words, ..)| self.take_all(words))?;
        Some((name, value))
    }

    fn table_behind_from(&mut self) -> Result<String> {
        if !self.take("from") && !self.take("in") {
            return Err(self.expected("FROM"));
        }
        Ok(literal(&self.table_name()?.text))
    }

    fn explain(&mut self) -> Result<Statement> {
        self.expect("explain")?;
        let is_analyze = self.take("analyze");
        self.take("verbose");
        if self.sees("execute") {
            return self.is_of_sessions();
        }
        if let Some(query) = self.bare_table()? {
            return Ok(Statement::Explain { query, is_analyze });
        }
        Ok(Statement::Explain { query: self.query()?, is_analyze })
    }

    fn cancel(&mut self) -> Result<Statement> {
        self.expect("cancel")?;
        self.expect("query")?;
        let position = self.position();
        let id = match self.string("the id of a query") {
            Ok(text) => {
                text.text.trim().parse().map_err(|_| Error::invalid("the id of a query is a number").at(position))?
            }
            Err(_) => self.number("the id of a query")?,
        };
        Ok(Statement::CancelQuery(id))
    }

    fn check(&mut self) -> Result<Statement> {
        self.expect("check")?;
        if self.take("database") {
            return Ok(Statement::Check { table: None });
        }
        if !self.take("table") {
            return Err(self.expected("TABLE or DATABASE"));
        }
        Ok(Statement::Check { table: Some(self.table_name()?) })
    }

    fn backup(&mut self) -> Result<Statement> {
        self.expect("backup")?;
        if self.sees("table") {
            return self.error("only the whole database can be backed up: BACKUP DATABASE TO '…'");
        }
        self.expect("database")?;
        self.expect("to")?;
        Ok(Statement::Backup { to: self.string("the folder for backups, in single quotes")? })
    }

    /// Statements that clients send out of habit: every statement is its own transaction.
    fn nothing(&mut self) -> Result<Statement> {
        let tag = match self.parser.next_token().token.to_string().as_str() {
            "begin" | "start" => "BEGIN",
            "commit" | "end" => "COMMIT",
            "rollback" | "abort" => "ROLLBACK",
            "set" => "SET",
            "reset" => "RESET",
            "discard" => "DISCARD",
            "deallocate" => "DEALLOCATE",
            _ => "CLOSE",
        };
        while !matches!(self.parser.peek_token_ref().token, Token::EOF | Token::SemiColon) {
            self.parser.next_token();
        }
        Ok(Statement::Nothing { tag })
    }
}

/// A query of our own making.
pub(super) fn sub_query(sql: &str) -> Result<Query> {
    super::parse_template(sql)
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
