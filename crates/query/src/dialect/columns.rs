//! Column definitions and constraints, as PostgreSQL's clients write them.
//!
//! A primary key becomes the upsert keys of the table: rows with the same key replace each other. The key contains the
//! designated timestamp, by which rows are found. Unsupported constraints are rejected with a hint.

use super::Input;
use crate::{Error, Result};
use datafusion::sql::sqlparser::tokenizer::Token;
use tidalite_types::schema::same_name;
use tidalite_types::{ColumnType, SqlState};

type Columns = Vec<(String, ColumnType)>;

/// A primary key and its position in the statement.
struct PrimaryKey {
    columns: Vec<String>,
    position: usize,
}

impl PrimaryKey {
    /// Returns the first timestamp column of the key: the designated one, unless another is named.
    fn timestamp(&self, columns: &Columns) -> Option<String> {
        let is_time = |name: &&String| {
            columns.iter().any(|(known, of)| same_name(known, name) && matches!(of, ColumnType::Timestamp(_)))
        };
        self.columns.iter().find(is_time).cloned()
    }

    /// Returns the upsert keys of the table.
    fn upsert_keys(self, columns: &Columns, designated: Option<&str>, dedup: Vec<String>) -> Result<Vec<String>> {
        let refused =
            |message: String| Error::invalid(message).with_code(SqlState::FEATURE_NOT_SUPPORTED).at(self.position);
        if let Some(unknown) = self.columns.iter().find(|name| !columns.iter().any(|(known, _)| same_name(known, name)))
        {
            let error = refused(format!("column \"{unknown}\" named in key does not exist"));
            return Err(error.with_code(SqlState::UNDEFINED_COLUMN));
        }
        if !dedup.is_empty() {
            return Err(refused("PRIMARY KEY and DEDUP UPSERT KEYS are the same: write one of them".to_owned()));
        }
        let Some(designated) = designated else {
            let message = "PRIMARY KEY is not supported without a timestamp in it".to_owned();
            return Err(refused(message).with_hint(
                "rows are kept by time: add a TIMESTAMP column to the key, as in PRIMARY KEY (ts, id), or leave it out",
            ));
        };
        if !self.columns.iter().any(|name| same_name(name, designated)) {
            let message =
                format!("PRIMARY KEY is not supported without the designated timestamp \"{designated}\" in it");
            let list = self.columns.join(", ");
            return Err(refused(message).with_hint(format!("write PRIMARY KEY ({designated}, {list})")));
        }
        Ok(self.columns)
    }
}

/// The constraints of a new table's columns.
#[derive(Default)]
pub(super) struct Constraints {
    key: Option<PrimaryKey>,
    /// Columns declared NOT NULL, with their positions.
    not_null: Vec<(String, usize)>,
}

impl Constraints {
    /// Returns the designated timestamp and the upsert keys that follow from all clauses.
    pub fn settle(
        self,
        columns: &Columns,
        designated: Option<String>,
        dedup: Vec<String>,
    ) -> Result<(Option<String>, Vec<String>)> {
        let designated = designated.or_else(|| self.key.as_ref().and_then(|key| key.timestamp(columns)));
        let is_time = |name: &str| designated.as_deref().is_some_and(|time| same_name(time, name));
        if let Some((_, position)) = self.not_null.iter().find(|(name, _)| !is_time(name)) {
            return Err(unsupported("not", *position));
        }
        let dedup = match self.key {
            Some(key) => key.upsert_keys(columns, designated.as_deref(), dedup)?,
            None => dedup,
        };
        Ok((designated, dedup))
    }
}

impl Input<'_> {
    /// Parses the parenthesized columns of CREATE TABLE, with the constraints among them.
    pub(super) fn column_definitions(&mut self) -> Result<(Columns, Constraints)> {
        self.expect_symbol(&Token::LParen)?;
        let (mut columns, mut constraints) = (Columns::new(), Constraints::default());
        loop {
            if !self.table_constraint(&mut constraints.key)? {
                let name = self.name("a column name")?;
                if columns.iter().any(|(other, _)| same_name(other, &name.text)) {
                    return Err(Error::invalid(format!("column \"{}\" specified more than once", name.text))
                        .with_code(SqlState::DUPLICATE_COLUMN)
                        .at(name.position));
                }
                let column_type = self.column_type()?;
                self.options(&name.text, &mut constraints)?;
                columns.push((name.text, column_type));
            }
            if !self.take_symbol(&Token::Comma) {
                break;
            }
        }
        self.expect_symbol(&Token::RParen)?;
        Ok((columns, constraints))
    }

    /// Parses a table constraint, if one begins at this token.
    fn table_constraint(&mut self, key: &mut Option<PrimaryKey>) -> Result<bool> {
        let opens = |n: usize, input: &Self| matches!(input.parser.peek_nth_token_ref(n).token, Token::LParen);
        let position = self.position();
        if self.sees("constraint") && !self.sees_at(2, "capacity") {
            let is_one = ["primary", "unique", "foreign", "check", "exclude"].iter().any(|word| self.sees_at(2, word));
            if is_one {
                self.parser.next_token();
                self.name("a constraint name")?;
            }
        }
        if self.sees("primary") && self.sees_at(1, "key") && opens(2, self) {
            self.take_all(&["primary", "key"]);
            let columns = self.column_list()?;
            return self.primary_key(key, PrimaryKey { columns, position }).map(|()| true);
        }
        let refused: &[(&str, bool)] = &[
            ("unique", opens(1, self)),
            ("check", opens(1, self)),
            ("exclude", self.sees_at(1, "using")),
            ("foreign", self.sees_at(1, "key")),
        ];
        match refused.iter().find(|(word, follows)| self.sees(word) && *follows) {
            Some((word, _)) => Err(unsupported(word, position)),
            None => Ok(false),
        }
    }

    fn primary_key(&self, known: &mut Option<PrimaryKey>, key: PrimaryKey) -> Result<()> {
        if known.is_some() {
            return Err(Error::invalid("multiple primary keys for a table are not allowed")
                .with_code(SqlState::INVALID_TABLE_DEFINITION)
                .at(key.position));
        }
        *known = Some(key);
        Ok(())
    }

    fn column_list(&mut self) -> Result<Vec<String>> {
        self.expect_symbol(&Token::LParen)?;
        let mut columns = vec![self.name("a column name")?.text];
        while self.take_symbol(&Token::Comma) {
            columns.push(self.name("a column name")?.text);
        }
        self.expect_symbol(&Token::RParen)?;
        Ok(columns)
    }

    /// Parses the options after a column type in CREATE TABLE.
    fn options(&mut self, column: &str, constraints: &mut Constraints) -> Result<()> {
        loop {
            let position = self.position();
            if self.take_all(&["primary", "key"]) {
                let key = PrimaryKey { columns: vec![column.to_owned()], position };
                self.primary_key(&mut constraints.key, key)?;
            } else if self.take_all(&["not", "null"]) {
                constraints.not_null.push((column.to_owned(), position));
            } else if !self.option()? {
                return Ok(());
            }
        }
    }

    /// Parses the options after a column type in ALTER TABLE.
    pub(super) fn column_options(&mut self) -> Result<()> {
        while self.option()? {}
        Ok(())
    }

    /// Parses one column option.
    ///
    /// QuestDB's options have no effect: dictionaries size themselves, and no column needs an index.
    fn option(&mut self) -> Result<bool> {
        const REFUSED: &[&str] =
            &["not", "default", "primary", "unique", "references", "check", "generated", "constraint", "collate"];
        let position = self.position();
        if self.take("capacity") || self.take_all(&["index", "capacity"]) {
            self.number("a capacity")?;
            return Ok(true);
        }
        if self.take_all(&["default", "null"]) || self.take_all(&["collate", "c"]) {
            return Ok(true);
        }
        if let Some(word) = REFUSED.iter().find(|word| self.sees(word)) {
            return Err(unsupported(word, position));
        }
        Ok(self.take("cache") || self.take("nocache") || self.take("index") || self.take("null"))
    }
}

/// Creates the error for an unsupported constraint.
fn unsupported(word: &str, position: usize) -> Error {
    let (what, hint) = match word {
        "not" => ("NOT NULL", "leave it out: only the designated timestamp is never NULL"),
        "default" => ("DEFAULT", "leave it out, and give the value when rows are inserted"),
        "primary" => ("PRIMARY KEY", "write it in CREATE TABLE, with the designated timestamp in it"),
        "unique" => (
            "UNIQUE",
            "write PRIMARY KEY (ts, …) with the designated timestamp: rows with the same key replace each other",
        ),
        "references" | "foreign" => ("a foreign key", "leave it out: references between tables are not checked"),
        "check" => ("CHECK", "leave it out, and check rows before they are inserted"),
        "generated" => ("GENERATED", "leave it out: numbers are not made here, the client gives them"),
        "collate" => ("COLLATE", "leave it out: texts are ordered by their bytes, as with COLLATE \"C\""),
        _ => ("CONSTRAINT", "leave it out"),
    };
    Error::invalid(format!("{what} is not supported"))
        .with_code(SqlState::FEATURE_NOT_SUPPORTED)
        .at(position)
        .with_hint(hint)
}
