//! CREATE [MATERIALIZED] VIEW and what is said of views afterwards. Their syntax is QuestDB's.
//!
//! A view's query is kept as text, so it is cut out of the statement before any clause of it is moved, and understood
//! by itself.

use super::clauses::is_word;
use super::{Input, TidaliteDialect};
use crate::door::timestamps::parse_timestamp;
use crate::names::Words;
use crate::statement::{CreateView, Name, NewMaterialized, RefreshScope, Statement};
use crate::{Error, Result};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use std::sync::Arc;
use tidalite_types::{Command, PartitionBy, Refresh, TimeUnit};

/// A hundred years.
const EVERY_MAX_S: u64 = 3_155_760_000;

/// CREATE VIEW in its forms; `None` for every other statement.
pub(super) fn create_view(tokens: &[TokenWithSpan], words: &Arc<Words>) -> Result<Option<Statement>> {
    let mut tokens: Vec<_> = tokens.iter().filter(|t| !matches!(t.token, Token::Whitespace(_))).cloned().collect();
    while tokens.last().is_some_and(|t| matches!(t.token, Token::SemiColon | Token::EOF)) {
        tokens.pop();
    }
    if !tokens.first().is_some_and(|t| is_word(&t.token, "create")) {
        return Ok(None);
    }
    let mut input = Input::new(&TidaliteDialect, tokens.clone(), words.clone());
    input.expect("create")?;
    let or_replace = input.take_all(&["or", "replace"]);
    let is_materialized = input.take("materialized");
    if !is_materialized && !input.sees("view") {
        return Ok(None);
    }
    input.expect("view")?;
    let if_not_exists = input.take_all(&["if", "not", "exists"]);
    if or_replace && (is_materialized || if_not_exists) {
        return input.error("OR REPLACE goes with a plain view, and without IF NOT EXISTS");
    }
    let name = input.table_name()?;
    let mut materialized = match is_materialized {
        true => Some(input.materialized()?),
        false => None,
    };
    if matches!(input.parser.peek_token_ref().token, Token::LParen) && !is_materialized {
        return input.error("the columns of a view are named in its query: SELECT x AS name");
    }
    input.expect("as")?;
    let at = input.parser.index();
    let (from, to, rest) = body(&tokens, at, is_materialized);
    let start = tokens.get(from).map_or(words.sql.len(), |t| words.offset(t.span.start).unwrap_or(0));
    let end = tokens[..to].last().map_or(start, |t| words.offset(t.span.end).unwrap_or(words.sql.len()));
    if from >= to || end <= start {
        return Err(Error::invalid("syntax error: expected the query of the view").at(start));
    }
    if let Some(parameter) = tokens[from..to].iter().find(|t| matches!(t.token, Token::Placeholder(_))) {
        let place = words.offset(parameter.span.start).unwrap_or(start);
        return Err(Error::invalid("a view cannot have parameters").at(place));
    }
    let sql = words.sql[start..end].to_owned();
    let query = match super::parse(&sql) {
        Ok(Statement::Query(query)) => query,
        Ok(_) => return Err(Error::invalid("a view needs a query").at(start)),
        Err(mut error) => {
            error.position = error.position.map(|place| place + start);
            return Err(error);
        }
    };
    let mut input = Input::new(&TidaliteDialect, tokens[rest..].to_vec(), words.clone());
    if let Some(materialized) = &mut materialized {
        input.storage(materialized)?;
    }
    input.end()?;
    let query_position = start;
    Ok(Some(Statement::CreateView(CreateView {
        name,
        or_replace,
        if_not_exists,
        sql,
        query,
        query_position,
        materialized,
    })))
}

/// Where the query behind AS begins and ends, parentheses around all of it left out, and where what follows begins.
fn body(tokens: &[TokenWithSpan], at: usize, has_clauses: bool) -> (usize, usize, usize) {
    let mut depth = 0_i32;
    let mut closes = None;
    let mut end = tokens.len();
    for (n, token) in tokens.iter().enumerate().skip(at) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => {
                depth -= 1;
                if depth == 0 {
                    closes.get_or_insert(n);
                }
            }
            _ if depth == 0 && n > at && has_clauses && begins_storage(tokens, n) => {
                end = n;
                break;
            }
            _ => {}
        }
    }
    let is_wrapped = tokens.get(at).is_some_and(|t| t.token == Token::LParen) && closes == Some(end.saturating_sub(1));
    if is_wrapped { (at + 1, end - 1, end) } else { (at, end, end) }
}

/// Whether the clauses about how a view is stored begin here.
fn begins_storage(tokens: &[TokenWithSpan], n: usize) -> bool {
    let token = |n: usize| tokens.get(n).map_or(&Token::EOF, |t| &t.token);
    let is = |n: usize, word: &str| is_word(token(n), word);
    let is_unit = |token: &Token| matches!(token, Token::Word(w) if PartitionBy::from_sql_name(&w.value).is_some());
    is(n, "partition") && is(n + 1, "by") && is_unit(token(n + 2))
        || is(n, "ttl") && matches!(token(n + 1), Token::Number(..))
        || is(n, "owned") && is(n + 1, "by")
        || is(n, "timestamp")
            && *token(n + 1) == Token::LParen
            && *token(n + 3) == Token::RParen
            && (n + 4 >= tokens.len() || is(n + 4, "partition") || is(n + 4, "ttl"))
}

impl Input<'_> {
    /// `[WITH BASE t] [REFRESH …]`, behind the name.
    fn materialized(&mut self) -> Result<NewMaterialized> {
        let base = if self.take_all(&["with", "base"]) { Some(self.table_name()?) } else { None };
        let (mut refresh, mut is_deferred) = (RefreshAsked::Immediate, false);
        if self.take("refresh") {
            refresh = self.refresh_kind()?;
            is_deferred = self.take("deferred");
        }
        if is_deferred && refresh == RefreshAsked::Immediate {
            return self.error("DEFERRED goes with REFRESH MANUAL and REFRESH EVERY");
        }
        Ok(NewMaterialized { base, refresh, is_deferred, timestamp: None, partition_by: None, ttl: None })
    }

    fn refresh_kind(&mut self) -> Result<RefreshAsked> {
        if self.take("immediate") || self.take("incremental") {
            return Ok(RefreshAsked::Immediate);
        }
        if self.take("manual") {
            return Ok(RefreshAsked::Manual);
        }
        if self.sees("period") {
            return self.error("REFRESH PERIOD is not supported: REFRESH EVERY refreshes all that changed");
        }
        if !self.take("every") {
            return Err(self.expected("IMMEDIATE, MANUAL or EVERY"));
        }
        let seconds = self.seconds()?;
        let mut start = None;
        if self.take("start") {
            let text = self.string("a timestamp in single quotes")?;
            let Some((micros, _)) = parse_timestamp(&text.text, TimeUnit::Micros) else {
                return Err(Error::invalid(format!("\"{}\" is no timestamp", text.text)).at(text.position));
            };
            start = Some(micros);
        }
        if self.sees("time") {
            return self.error("TIME ZONE is not supported here: START says when the first interval begins");
        }
        Ok(RefreshAsked::Every { seconds, start })
    }

    /// `10m`, `'1h'`: a length that is always the same.
    fn seconds(&mut self) -> Result<u64> {
        let position = self.position();
        let text = match self.parser.peek_token_ref().token.clone() {
            Token::SingleQuotedString(text) => {
                self.parser.next_token();
                text
            }
            Token::Number(count, _) => {
                self.parser.next_token();
                let unit = self.name("a unit: s, m, h, d or w")?.text;
                format!("{count}{unit}")
            }
            _ => return Err(self.expected("a length of time such as 10m")),
        };
        let stride = crate::calendar::Stride::parse(&text).filter(|s| s.count > 0);
        let nanos = stride.and_then(|s| Some(s.unit.nanos()? * i128::from(s.count)));
        let seconds = nanos.filter(|n| n % 1_000_000_000 == 0).and_then(|n| u64::try_from(n / 1_000_000_000).ok());
        let seconds = seconds.filter(|s| *s <= EVERY_MAX_S);
        seconds
            .ok_or_else(|| Error::invalid(format!("EVERY takes a number of s, m, h, d or w, not {text}")).at(position))
    }

    /// `[TIMESTAMP(c)] [PARTITION BY …] [TTL …]`, behind the query.
    fn storage(&mut self, view: &mut NewMaterialized) -> Result<()> {
        loop {
            if self.take("timestamp") {
                self.expect_symbol(&Token::LParen)?;
                view.timestamp = Some(self.name("a column name")?);
                self.expect_symbol(&Token::RParen)?;
            } else if self.take_all(&["partition", "by"]) {
                view.partition_by = Some(self.partition_by()?);
            } else if self.take("ttl") {
                view.ttl = self.ttl()?;
            } else if self.take_all(&["owned", "by"]) {
                self.name("an owner")?;
            } else {
                return Ok(());
            }
        }
    }

    /// `DROP [MATERIALIZED] VIEW`, behind DROP; `None` when something else is dropped.
    pub(super) fn drop_view(&mut self) -> Result<Option<Statement>> {
        let is_materialized = self.take("materialized");
        if !is_materialized && !self.sees("view") {
            return Ok(None);
        }
        self.expect("view")?;
        let if_exists = self.take_all(&["if", "exists"]);
        let view = self.table_name()?.text;
        let tag = if is_materialized { "DROP MATERIALIZED VIEW" } else { "DROP VIEW" };
        let commands = vec![Command::DropView { view, is_materialized, if_exists }];
        Ok(Some(Statement::Commands { tag, commands }))
    }

    /// `ALTER MATERIALIZED VIEW`, behind ALTER.
    pub(super) fn alter_view(&mut self) -> Result<Statement> {
        self.expect("materialized")?;
        self.expect("view")?;
        let view = self.table_name()?;
        if self.take_all(&["resume", "wal"]) || self.take("resume") {
            return Ok(Statement::ResumeView { view });
        }
        self.expect("set")?;
        if self.take("ttl") {
            let ttl = self.ttl()?;
            let commands = vec![Command::SetTtl { table: view.text, ttl }];
            return Ok(Statement::Commands { tag: "ALTER MATERIALIZED VIEW", commands });
        }
        if self.take("refresh") {
            if self.sees("limit") {
                return self.error("REFRESH LIMIT is not supported");
            }
            return Ok(Statement::SetRefresh { view, refresh: self.refresh_kind()? });
        }
        Err(self.expected("REFRESH or TTL"))
    }

    /// `REFRESH MATERIALIZED VIEW v [INCREMENTAL | FULL | RANGE FROM a TO b]`.
    pub(super) fn refresh_view(&mut self) -> Result<Statement> {
        self.expect("refresh")?;
        self.expect("materialized")?;
        self.expect("view")?;
        let view = self.table_name()?;
        let scope = if self.take("full") {
            RefreshScope::Full
        } else if self.take("range") {
            self.expect("from")?;
            let from = self.string("a timestamp in single quotes")?;
            self.expect("to")?;
            let to = self.string("a timestamp in single quotes")?;
            RefreshScope::Range(bound(&from)?, bound(&to)?)
        } else {
            self.take("incremental");
            RefreshScope::Incremental
        };
        Ok(Statement::RefreshView { view, scope })
    }
}

/// A point in time, in microseconds.
fn bound(text: &Name) -> Result<i64> {
    let found = parse_timestamp(&text.text, TimeUnit::Micros);
    let Some((micros, _)) = found else {
        return Err(Error::invalid(format!("\"{}\" is no timestamp", text.text)).at(text.position));
    };
    Ok(micros)
}

/// When a view is to be refreshed, as a statement says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefreshAsked {
    Immediate,
    Manual,
    /// `start` in microseconds since 1970; `None` for "from now on".
    Every {
        seconds: u64,
        start: Option<i64>,
    },
}

impl RefreshAsked {
    /// `now` in microseconds since 1970.
    #[must_use]
    pub fn from_now(self, now: i64, is_deferred: bool) -> Refresh {
        match self {
            RefreshAsked::Immediate => Refresh::Immediate,
            RefreshAsked::Manual => Refresh::Manual,
            RefreshAsked::Every { seconds, start } => {
                let first =
                    if is_deferred { now.saturating_add_unsigned(seconds.saturating_mul(1_000_000)) } else { now };
                Refresh::Every { seconds, start: start.unwrap_or(first) }
            }
        }
    }
}

impl NewMaterialized {
    /// How rows of a view are partitioned when nothing is said: so that a partition has a fair number of buckets.
    #[must_use]
    pub fn partitioned(&self, bucket_seconds: i64) -> PartitionBy {
        self.partition_by.unwrap_or(match bucket_seconds {
            ..=60 => PartitionBy::Day,
            ..=3_600 => PartitionBy::Month,
            _ => PartitionBy::Year,
        })
    }
}
