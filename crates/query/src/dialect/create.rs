//! CREATE TABLE, from columns and from a query.

use super::Input;
use crate::statement::{CreateTableAs, Statement};
use crate::{Error, Result};
use datafusion::sql::sqlparser::tokenizer::Token;
use tidalite_types::command::CreateTable;
use tidalite_types::{ColumnType, Command, PartitionBy, Ttl};

/// What may follow the columns or the query.
#[derive(Default)]
struct Clauses {
    designated: Option<String>,
    partition_by: Option<(PartitionBy, usize)>,
    casts: Vec<(String, ColumnType)>,
    ttl: Option<Ttl>,
    lag_us: Option<u64>,
    dedup: Vec<String>,
}

impl Input<'_> {
    pub(super) fn create(&mut self) -> Result<Statement> {
        self.expect("create")?;
        self.take_all(&["or", "replace"]);
        if self.take("schema") {
            self.take_all(&["if", "not", "exists"]);
            self.schema_name()?;
            // It is there as soon as a table is in it.
            return Ok(Statement::Nothing { tag: "CREATE SCHEMA" });
        }
        if self.take("index") {
            while !self.sees("on") {
                if matches!(self.parser.next_token().token, Token::EOF | Token::SemiColon) {
                    return self.error("CREATE INDEX names no table");
                }
            }
            return Ok(self.without_effect("CREATE INDEX"));
        }
        if !self.take("table") {
            let what = self.parser.peek_token_ref().token.to_string().to_uppercase();
            return self.error(format!("CREATE {what} is not supported yet"));
        }
        let if_not_exists = self.take_all(&["if", "not", "exists"]);
        let table = self.table_name()?.text;
        if self.take("as") {
            return self.create_as(table, if_not_exists);
        }
        if self.sees_at(1, "like") {
            return self.error("CREATE TABLE … (LIKE …) is not supported yet");
        }
        let (columns, constraints) = self.column_definitions()?;
        let clauses = self.clauses()?;
        let Clauses { designated, partition_by, ttl, lag_us, dedup, .. } = clauses;
        let (designated, dedup) = constraints.settle(&columns, designated, dedup)?;
        let partition_by = self.checked_partitioning(designated.is_some(), partition_by)?;
        let create = CreateTable { name: table, columns, designated, partition_by, ttl, lag_us, dedup, if_not_exists };
        Ok(Statement::Commands { tag: "CREATE TABLE", commands: vec![Command::CreateTable(create)] })
    }

    fn create_as(&mut self, table: String, if_not_exists: bool) -> Result<Statement> {
        let query = if matches!(self.parser.peek_token_ref().token, Token::LParen) {
            self.expect_symbol(&Token::LParen)?;
            let query = self.query()?;
            self.expect_symbol(&Token::RParen)?;
            query
        } else {
            self.query_before_clauses()?
        };
        let Clauses { designated, partition_by, casts, ttl, lag_us, dedup } = self.clauses()?;
        let partition_by = self.checked_partitioning(designated.is_some(), partition_by)?;
        Ok(Statement::CreateTableAs(CreateTableAs {
            table,
            if_not_exists,
            query,
            casts,
            designated,
            partition_by,
            ttl,
            lag_us,
            dedup,
        }))
    }

    /// A query without parentheses ends where the clauses of CREATE TABLE begin; the stock parser would take
    /// `TIMESTAMP(ts)` for an alias.
    fn query_before_clauses(&mut self) -> Result<crate::statement::Query> {
        let mut depth = 0_i32;
        let mut n = 0;
        let mut taken = Vec::new();
        loop {
            let token = self.parser.peek_nth_token(n);
            let starts_clause = depth == 0
                && ((self.sees_at(n, "timestamp")
                    && matches!(self.parser.peek_nth_token_ref(n + 3).token, Token::RParen)
                    && self.ends_or_continues(n + 4))
                    || (self.sees_at(n, "partition") && self.sees_at(n + 1, "by"))
                    || (self.sees_at(n, "dedup") && self.sees_at(n + 1, "upsert")));
            match token.token {
                Token::EOF | Token::SemiColon => break,
                _ if starts_clause => break,
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                _ => {}
            }
            taken.push(token);
            n += 1;
        }
        let mut inner = Input::new(&super::TidaliteDialect, taken, self.words.clone());
        let query = inner.query()?;
        inner.end()?;
        (0..n).for_each(|_| drop(self.parser.next_token()));
        Ok(query)
    }

    fn ends_or_continues(&self, n: usize) -> bool {
        matches!(self.parser.peek_nth_token_ref(n).token, Token::EOF | Token::SemiColon | Token::Comma)
            || ["partition", "wal", "bypass", "dedup", "ttl", "with"].iter().any(|w| self.sees_at(n, w))
    }

    fn clauses(&mut self) -> Result<Clauses> {
        let mut clauses = Clauses::default();
        loop {
            if self.take_symbol(&Token::Comma) {
                self.comma_clause(&mut clauses)?;
            } else if self.take("timestamp") {
                self.expect_symbol(&Token::LParen)?;
                clauses.designated = Some(self.name("a column name")?.text);
                self.expect_symbol(&Token::RParen)?;
            } else if self.sees("partition") {
                let position = self.position();
                self.expect("partition")?;
                self.expect("by")?;
                clauses.partition_by = Some((self.partition_by()?, position));
            } else if self.take("dedup") {
                clauses.dedup = self.upsert_keys()?;
            } else if self.take("ttl") {
                clauses.ttl = self.ttl()?;
            } else if self.sees("in") {
                return self.error("IN VOLUME is not supported");
            } else if self.take("with") {
                clauses.lag_us = self.settings()?.unwrap_or(clauses.lag_us);
            } else if !(self.take("wal") || self.take_all(&["bypass", "wal"])) {
                return Ok(clauses);
            }
        }
    }

    /// `, INDEX(column [CAPACITY n])` is accepted and ignored; `, CAST(column AS type)` sets a type.
    fn comma_clause(&mut self, clauses: &mut Clauses) -> Result<()> {
        if self.take("index") {
            self.expect_symbol(&Token::LParen)?;
            self.name("a column name")?;
            self.column_options()?;
            return self.expect_symbol(&Token::RParen);
        }
        if self.take("cast") {
            self.expect_symbol(&Token::LParen)?;
            let column = self.name("a column name")?.text;
            self.expect("as")?;
            clauses.casts.push((column, self.column_type()?));
            self.column_options()?;
            return self.expect_symbol(&Token::RParen);
        }
        Err(self.expected("INDEX or CAST"))
    }

    /// `o3MaxLag = 10s, maxUncommittedRows = 1000`: the lag if it was given, in microseconds, `None` in it for the
    /// default. What else QuestDB tunes has no meaning here.
    pub(super) fn settings(&mut self) -> Result<Option<Option<u64>>> {
        let mut lag = None;
        loop {
            let setting = self.name("a setting")?.text;
            self.expect_symbol(&Token::Eq)?;
            if setting.eq_ignore_ascii_case("o3maxlag") {
                lag = Some(self.lag()?);
            } else {
                self.ignored_value();
            }
            let is_index = self.sees_at(1, "index") || self.sees_at(1, "cast");
            if is_index || !self.take_symbol(&Token::Comma) {
                return Ok(lag);
            }
        }
    }

    fn ignored_value(&mut self) {
        self.parser.next_token();
        // A value such as 240s is a number and a word.
        if !matches!(self.parser.peek_token_ref().token, Token::Comma | Token::EOF | Token::SemiColon)
            && !self.ends_or_continues(0)
            && !self.sees("in")
        {
            self.parser.next_token();
        }
    }

    /// `10s`, `'10s'` or `DEFAULT`, behind `o3MaxLag =`; in microseconds.
    fn lag(&mut self) -> Result<Option<u64>> {
        const WHAT: &str = "a time such as 10s, or DEFAULT";
        let position = self.position();
        if self.take("default") {
            return Ok(None);
        }
        let text = if matches!(self.parser.peek_token_ref().token, Token::SingleQuotedString(_)) {
            self.string(WHAT)?.text
        } else {
            let count = self.number(WHAT)?;
            match self.parser.peek_token_ref().token.clone() {
                Token::Word(word) if lag_unit(&word.value).is_some() => {
                    self.parser.next_token();
                    format!("{count}{}", word.value)
                }
                _ => count.to_string(),
            }
        };
        let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
        let unit = text[digits.len()..].trim();
        let lag = digits.parse::<u64>().ok().and_then(|count| match (count, unit) {
            (0, "") => Some(0),
            _ => count.checked_mul(lag_unit(unit)?),
        });
        match lag {
            // Further back there are no timestamps.
            Some(lag) if i64::try_from(lag).is_ok() => Ok(Some(lag)),
            _ => Err(Error::invalid(format!("invalid lag \"{text}\": a time such as 10s, 500ms or 5m")).at(position)),
        }
    }

    /// `UPSERT KEYS(ts, …)`, behind DEDUP.
    pub(super) fn upsert_keys(&mut self) -> Result<Vec<String>> {
        self.expect("upsert")?;
        self.expect("keys")?;
        self.expect_symbol(&Token::LParen)?;
        let mut keys = vec![self.name("a column name")?.text];
        while self.take_symbol(&Token::Comma) {
            keys.push(self.name("a column name")?.text);
        }
        self.expect_symbol(&Token::RParen)?;
        Ok(keys)
    }

    /// `30 DAYS`, `4w`, `0` for none, behind TTL.
    pub(super) fn ttl(&mut self) -> Result<Option<Ttl>> {
        let position = self.position();
        let count = self.number("a time such as 30 DAYS")?;
        let unit = match &self.parser.peek_token_ref().token {
            Token::Word(word) if word.quote_style.is_none() => Some(word.value.clone()),
            _ => None,
        };
        let Some(ttl) = unit.and_then(|unit| Ttl::from_sql(count, &unit)) else {
            return if count == 0 { Ok(None) } else { Err(self.expected("HOURS, DAYS, WEEKS, MONTHS or YEARS")) };
        };
        self.parser.next_token();
        if matches!(ttl, Ttl::Hours(0) | Ttl::Months(0)) {
            return Ok(None);
        }
        if matches!(ttl, Ttl::Hours(h) if h > 8_766_000) || matches!(ttl, Ttl::Months(m) if m > 12_000) {
            return Err(Error::invalid("a TTL can be at most 1,000 years").at(position));
        }
        Ok(Some(ttl))
    }

    pub(super) fn partition_by(&mut self) -> Result<PartitionBy> {
        let found = match &self.parser.peek_token_ref().token {
            Token::Word(word) => PartitionBy::from_sql_name(&word.value),
            _ => None,
        };
        match found {
            Some(by) => {
                self.parser.next_token();
                Ok(by)
            }
            None => Err(self.expected("NONE, HOUR, DAY, WEEK, MONTH or YEAR")),
        }
    }

    /// Without PARTITION BY a table has one partition, as in QuestDB.
    fn checked_partitioning(&self, has_designated: bool, given: Option<(PartitionBy, usize)>) -> Result<PartitionBy> {
        match given {
            Some((by, position)) if by != PartitionBy::None && !has_designated => {
                Err(Error::invalid("partitioning is possible only on tables with a designated timestamp")
                    .at(position)
                    .with_hint("add TIMESTAMP(column) before PARTITION BY"))
            }
            Some((by, _)) => Ok(by),
            None => Ok(PartitionBy::None),
        }
    }
}

/// Microseconds of a unit of time.
fn lag_unit(unit: &str) -> Option<u64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => return None,
    })
}
