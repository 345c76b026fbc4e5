//! COPY in the words of PostgreSQL, DuckDB and QuestDB: rows from a file or the client, and to them.
//!
//! A query within is cut out as text before any clause of it is moved, and understood by itself, as that of a view.

use super::clauses::is_word;
use super::{Input, TidaliteDialect};
use crate::names::Words;
use crate::names::in_quotes;
use crate::statement::{Copy, CopyFormat, CopyPlace, CopyWhat, Name, Statement};
use crate::{Error, Result};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use std::sync::Arc;
use tidalite_types::PartitionBy;

/// COPY; `None` for every other statement.
pub(super) fn copy(tokens: &[TokenWithSpan], words: &Arc<Words>) -> Result<Option<Statement>> {
    let tokens: Vec<_> = tokens.iter().filter(|t| !matches!(t.token, Token::Whitespace(_))).cloned().collect();
    let is_copy = tokens.first().is_some_and(|t| is_word(&t.token, "copy"))
        && !tokens.get(1).is_none_or(|t| matches!(t.token, Token::EOF | Token::SemiColon));
    if !is_copy {
        return Ok(None);
    }
    let offset = |n: usize| tokens.get(n).and_then(|t| words.offset(t.span.start)).unwrap_or(words.sql.len());
    let mut input = Input::new(&TidaliteDialect, tokens.clone(), words.clone());
    input.expect("copy")?;
    let what = if matches!(input.parser.peek_token_ref().token, Token::LParen) {
        let from = input.parser.index() + 1;
        let to =
            closing(&tokens, from).ok_or_else(|| Error::invalid("syntax error: expected )").at(words.sql.len()))?;
        let (start, end) = (offset(from), offset(to));
        input = Input::new(&TidaliteDialect, tokens[to + 1..].to_vec(), words.clone());
        // Its place in the statement is its place in the text, so that errors point to it.
        let text = words.sql.get(start..end).unwrap_or_default();
        CopyWhat::Rows(" ".repeat(start) + text)
    } else {
        let table = input.table_name()?;
        let mut columns = Vec::new();
        if input.take_symbol(&Token::LParen) {
            loop {
                columns.push(input.name("a column name")?);
                if !input.take_symbol(&Token::Comma) {
                    break;
                }
            }
            input.expect_symbol(&Token::RParen)?;
        }
        CopyWhat::Table { table, columns }
    };
    let is_from = match (&what, input.take("from")) {
        (_, false) => {
            input.expect("to")?;
            false
        }
        (CopyWhat::Rows(_), true) => {
            return Err(Error::invalid("rows are copied FROM a file into a table, not a query"));
        }
        (CopyWhat::Table { .. }, true) => true,
    };
    let stream = if is_from { "stdin" } else { "stdout" };
    let place = if input.take(stream) {
        CopyPlace::Client
    } else if input.sees("program") {
        return input.error("COPY does not run programs");
    } else {
        CopyPlace::File(input.string(&format!("a file in single quotes or {}", stream.to_uppercase()))?)
    };
    let mut copy = Copy {
        is_from,
        what,
        place,
        format: None,
        header: None,
        delimiter: None,
        null: None,
        timestamp: None,
        partition_by: None,
        skips_bad: false,
    };
    input.copy_options(&mut copy)?;
    input.end()?;
    copy.settle()?;
    Ok(Some(Statement::Copy(copy)))
}

/// Where the parenthesis that is open is closed.
fn closing(tokens: &[TokenWithSpan], from: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (n, token) in tokens.iter().enumerate().skip(from) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => return Some(n),
            Token::RParen => depth -= 1,
            _ => {}
        }
    }
    None
}

impl Input<'_> {
    fn copy_options(&mut self, copy: &mut Copy) -> Result<()> {
        self.take("with");
        let is_list = self.take_symbol(&Token::LParen);
        loop {
            if is_list && self.take_symbol(&Token::RParen) {
                return Ok(());
            }
            if matches!(self.parser.peek_token_ref().token, Token::EOF | Token::SemiColon) {
                return Ok(());
            }
            self.copy_option(copy)?;
            if is_list && !self.take_symbol(&Token::Comma) {
                return self.expect_symbol(&Token::RParen);
            }
        }
    }

    fn copy_option(&mut self, copy: &mut Copy) -> Result<()> {
        let position = self.position();
        let name = self.name("an option of COPY")?.text.to_lowercase();
        match name.as_str() {
            "csv" => copy.format = Some(CopyFormat::Csv),
            "parquet" => copy.format = Some(CopyFormat::Parquet),
            "text" => copy.format = Some(CopyFormat::Text),
            "binary" => copy.format = Some(CopyFormat::Binary),
            "format" => self.copy_format(copy)?,
            "header" => copy.header = Some(self.copy_flag()?),
            "delimiter" | "delim" | "sep" => copy.delimiter = Some(self.copy_byte("DELIMITER")?),
            "quote" | "escape" => {
                if self.copy_byte(&name.to_uppercase())? != b'"' {
                    return Err(
                        Error::invalid(format!("{} is always a double quote", name.to_uppercase())).at(position)
                    );
                }
            }
            "null" | "nullstr" | "null_padding" => {
                self.take("as");
                copy.null = Some(self.string("a text in single quotes")?.text);
            }
            "encoding" => {
                let text = self.copy_word("an encoding")?;
                let plain: String = text.text.chars().filter(char::is_ascii_alphanumeric).collect();
                if !plain.eq_ignore_ascii_case("utf8") {
                    return Err(Error::invalid(format!("encoding {} is not supported: text is UTF8", text.text))
                        .at(text.position));
                }
            }
            "timestamp" => copy.timestamp = Some(self.copy_word("the designated timestamp")?),
            "partition" | "partition_by" => {
                if name == "partition" {
                    self.expect("by")?;
                }
                let unit = self.copy_word("HOUR, DAY, WEEK, MONTH, YEAR or NONE")?;
                let Some(partition_by) = PartitionBy::from_sql_name(&unit.text) else {
                    return Err(Error::invalid(format!("there is no PARTITION BY {}", unit.text)).at(unit.position));
                };
                copy.partition_by = Some(partition_by);
            }
            "on" | "on_error" => {
                if name == "on" {
                    self.expect("error")?;
                }
                let what = self.copy_word("ABORT or SKIP_ROW")?;
                copy.skips_bad = match what.text.to_lowercase().as_str() {
                    "abort" | "stop" => false,
                    "skip_row" | "ignore" => true,
                    _ => return Err(Error::invalid("ON ERROR takes ABORT or SKIP_ROW").at(what.position)),
                };
            }
            "ignore_errors" => copy.skips_bad = self.copy_flag()?,
            "freeze" | "force_quote" | "force_not_null" | "force_null" => {
                return Err(Error::invalid(format!("{} is not supported", name.to_uppercase())).at(position));
            }
            _ => return Err(Error::invalid(format!("COPY has no option \"{name}\"")).at(position)),
        }
        Ok(())
    }

    /// PostgreSQL's and DuckDB's form of the file; QuestDB's pattern of its timestamps.
    fn copy_format(&mut self, copy: &mut Copy) -> Result<()> {
        let given = self.copy_word("csv, text, binary or parquet")?;
        copy.format = Some(match given.text.to_lowercase().as_str() {
            "csv" => CopyFormat::Csv,
            "text" => CopyFormat::Text,
            "parquet" => CopyFormat::Parquet,
            "binary" => CopyFormat::Binary,
            pattern if pattern.starts_with("yyyy-mm-dd") || pattern.starts_with("y-m-d") => CopyFormat::Csv,
            _ => {
                let message = format!("format '{}' is not supported", given.text);
                return Err(Error::invalid(message).at(given.position).with_hint(
                    "FORMAT csv, text or parquet; timestamps are read as 2024-01-31T12:30:00.5 or as numbers since 1970",
                ));
            }
        });
        Ok(())
    }

    /// A word or a string.
    fn copy_word(&mut self, what: &str) -> Result<Name> {
        match self.parser.peek_token_ref().token {
            Token::SingleQuotedString(_) => self.string(what),
            _ => self.name(what),
        }
    }

    /// `HEADER`, `HEADER true`, `HEADER off`, `HEADER match`.
    fn copy_flag(&mut self) -> Result<bool> {
        for (word, value) in [("true", true), ("on", true), ("match", true), ("false", false), ("off", false)] {
            // `ON ERROR` is an option of its own.
            if self.sees(word) && !self.sees_at(1, "error") {
                self.parser.next_token();
                return Ok(value);
            }
        }
        match self.parser.peek_token_ref().token {
            Token::Number(..) => Ok(self.number("0 or 1")? != 0),
            _ => Ok(true),
        }
    }

    fn copy_byte(&mut self, what: &str) -> Result<u8> {
        self.take("as");
        let (position, escapes) =
            (self.position(), matches!(self.parser.peek_token_ref().token, Token::EscapedStringLiteral(_)));
        let text = if escapes {
            match self.parser.next_token().token {
                Token::EscapedStringLiteral(text) => text,
                _ => String::new(),
            }
        } else {
            self.string("one character in single quotes")?.text
        };
        match text.as_str() {
            "\\t" => Ok(b'\t'),
            text if text.len() == 1 && !matches!(text, "\n" | "\r") => Ok(text.as_bytes()[0]),
            _ => Err(Error::invalid(format!("{what} takes one ASCII character")).at(position)),
        }
    }
}

impl Copy {
    /// What was not said, from the name of the file.
    fn settle(&mut self) -> Result<()> {
        let by_name = match &self.place {
            CopyPlace::Client => CopyFormat::Text,
            CopyPlace::File(name) if name.text.to_lowercase().ends_with(".parquet") => CopyFormat::Parquet,
            CopyPlace::File(_) => CopyFormat::Csv,
        };
        let format = *self.format.get_or_insert(by_name);
        match (format, &self.place) {
            (CopyFormat::Parquet, CopyPlace::Client) => {
                Err(Error::invalid("Parquet goes from and to files").with_hint("FORMAT csv or text"))
            }
            (CopyFormat::Binary, CopyPlace::File(name)) => {
                Err(Error::invalid("the binary format goes from and to clients")
                    .at(name.position)
                    .with_hint("files are CSV, text or Parquet; clients COPY FROM STDIN and TO STDOUT"))
            }
            (CopyFormat::Parquet | CopyFormat::Binary, _)
                if self.header.is_some() || self.delimiter.is_some() || self.null.is_some() =>
            {
                Err(Error::invalid("HEADER, DELIMITER and NULL are for text and CSV"))
            }
            _ => Ok(()),
        }
    }

    /// The query whose rows are copied, as text.
    #[must_use]
    pub fn query(&self) -> String {
        match &self.what {
            CopyWhat::Rows(sql) => sql.clone(),
            CopyWhat::Table { table, columns } => {
                let list: Vec<String> = columns.iter().map(|column| in_quotes(&column.text)).collect();
                let list = if list.is_empty() { "*".to_owned() } else { list.join(", ") };
                format!("SELECT {list} FROM {}", in_quotes(&table.text))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(sql: &str) -> Copy {
        match super::super::parse(sql) {
            Ok(Statement::Copy(copy)) => copy,
            other => panic!("{sql}: {other:?}"),
        }
    }

    #[test]
    fn the_words_of_three_databases() {
        let copy = parsed("COPY t (a, \"B\") FROM STDIN WITH (FORMAT csv, HEADER, DELIMITER ';', NULL 'NA')");
        assert!(copy.is_from && matches!(copy.place, CopyPlace::Client));
        assert_eq!(copy.query(), "SELECT \"a\", \"B\" FROM \"t\"");
        assert_eq!((copy.format, copy.header, copy.delimiter), (Some(CopyFormat::Csv), Some(true), Some(b';')));
        assert_eq!(copy.null.as_deref(), Some("NA"));
        let copy = parsed("copy  t FROM STDIN csv header delimiter E'\\t' null as ''");
        assert_eq!((copy.format, copy.header, copy.delimiter), (Some(CopyFormat::Csv), Some(true), Some(b'\t')));
        let copy = parsed(
            "COPY t FROM 'x.csv' WITH HEADER true TIMESTAMP 'ts' FORMAT 'yyyy-MM-ddTHH:mm:ss' PARTITION BY DAY ON ERROR SKIP_ROW;",
        );
        assert_eq!((copy.format, copy.header, copy.skips_bad), (Some(CopyFormat::Csv), Some(true), true));
        assert_eq!(
            (copy.timestamp.map(|t| t.text).as_deref(), copy.partition_by),
            (Some("ts"), Some(PartitionBy::Day))
        );
        let copy = parsed("COPY (SELECT * FROM t SAMPLE BY 1h) TO 'x.parquet'");
        assert_eq!((copy.format, copy.query().trim()), (Some(CopyFormat::Parquet), "SELECT * FROM t SAMPLE BY 1h"));
        assert_eq!(copy.query().find("SELECT"), Some(6), "where it stands in the statement");
        assert_eq!(parsed("COPY t TO STDOUT").format, Some(CopyFormat::Text));
        assert_eq!(parsed("COPY t TO STDOUT BINARY").format, Some(CopyFormat::Binary));
        assert_eq!(parsed("COPY t FROM STDIN WITH (FORMAT binary)").format, Some(CopyFormat::Binary));
        assert_eq!(parsed("COPY t TO '/tmp/x' (FORMAT 'csv')").format, Some(CopyFormat::Csv));
    }

    #[test]
    fn what_is_no_copy_is_refused_with_its_place() {
        for (sql, position) in [
            ("COPY t FROM 'x' (FORMAT binary)", 12),
            ("COPY t FROM STDIN (FORMAT xml)", 26),
            ("COPY t FROM PROGRAM 'ls'", 12),
            ("COPY t FROM STDIN (COLOUR 'red')", 19),
            ("COPY t INTO 'x'", 7),
            ("COPY t TO 'x' DELIMITER 'ab'", 24),
        ] {
            let error = super::super::parse(sql).expect_err(sql);
            assert_eq!(error.position, Some(position), "{sql}: {error}");
        }
        assert!(super::super::parse("COPY (SELECT 1) FROM 'x'").is_err());
        assert!(super::super::parse("COPY (SELECT 1 TO 'x'").is_err());
    }
}
