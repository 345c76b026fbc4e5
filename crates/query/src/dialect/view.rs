//! CREATE [MATERIALIZED] VIEW and what is said of views afterwards. Their syntax is QuestDB's.
//!
//! A view's query is kept as text, so it is cut out of the statement before any clause of it is moved, and understood
//! by itself.

use super::clauses::is_word;
use super::{Input, TidaliteDialect};
use crate::calendar::{Stride, Zone};
use crate::door::timestamps::parse_timestamp;
use crate::names::Words;
use crate::statement::{CreateView, Name, NewMaterialized, RefreshScope, Statement};
use crate::{Error, Result};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use std::sync::Arc;
use tidalite_types::{Command, PartitionBy, Period, Refresh, Schedule, TimeUnit};

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
        let (mut refresh, mut is_deferred) = (RefreshAsked::default(), false);
        if self.take("refresh") {
            (refresh, is_deferred) = self.refresh_asked()?;
        }
        if is_deferred && refresh.kind == RefreshKind::Immediate {
            return self.error("DEFERRED goes with REFRESH MANUAL and REFRESH EVERY");
        }
        Ok(NewMaterialized { base, refresh, is_deferred, timestamp: None, partition_by: None, ttl: None })
    }

    /// When, and behind it `[PERIOD (…)]`, and whether it is DEFERRED.
    fn refresh_asked(&mut self) -> Result<(RefreshAsked, bool)> {
        let mut asked = RefreshAsked::default();
        let mut is_deferred = false;
        if self.take("immediate") || self.take("incremental") || self.sees("period") {
            // PERIOD alone: as soon as one has ended.
        } else if self.take("manual") {
            asked.kind = RefreshKind::Manual;
        } else if self.take("every") {
            let seconds = self.seconds("EVERY")?;
            is_deferred = self.take("deferred");
            let start =
                if self.take("start") { Some(bound(&self.string("a timestamp in single quotes")?)?) } else { None };
            asked.zone = self.time_zone()?;
            asked.kind = RefreshKind::Every { seconds, start };
        } else {
            return Err(self.expected("IMMEDIATE, MANUAL, EVERY or PERIOD"));
        }
        is_deferred |= self.take("deferred");
        if self.take("period") {
            asked.period = Some(self.period()?);
            is_deferred |= self.take("deferred");
        }
        Ok((asked, is_deferred))
    }

    /// `[TIME ZONE '…']`
    fn time_zone(&mut self) -> Result<Option<String>> {
        if !self.take_all(&["time", "zone"]) {
            return Ok(None);
        }
        let zone = self.string("a time zone in single quotes")?;
        match Zone::parse(&zone.text) {
            Some(_) => Ok(Some(zone.text)),
            None => Err(Error::invalid(format!("time zone \"{}\" not recognized", zone.text))
                .at(zone.position)
                .with_hint("a zone is a name such as 'Europe/London' or an offset such as '+01:00'")),
        }
    }

    /// `(LENGTH 1d [TIME ZONE '…'] [DELAY 2h])` or `(SAMPLE BY INTERVAL)`, behind PERIOD.
    fn period(&mut self) -> Result<Period> {
        self.expect_symbol(&Token::LParen)?;
        let mut period = Period { length: None, zone: None, delay_s: 0 };
        if self.take("length") {
            let (length, position) = self.length()?;
            if Stride::parse(&length).is_none_or(|s| s.count <= 0) {
                let message = format!("\"{length}\" is no length of time");
                return Err(Error::invalid(message)
                    .at(position)
                    .with_hint("a length is a number and one of s, m, h, d, w, M and y"));
            }
            period.length = Some(length);
            period.zone = self.time_zone()?;
            if self.take("delay") {
                period.delay_s = self.seconds("DELAY")?;
            }
        } else if !self.take_all(&["sample", "by", "interval"]) {
            return Err(self.expected("LENGTH or SAMPLE BY INTERVAL"));
        }
        self.expect_symbol(&Token::RParen)?;
        Ok(period)
    }

    /// `10m`, `'1h'`, as it is written.
    fn length(&mut self) -> Result<(String, usize)> {
        let position = self.position();
        let text = match self.parser.peek_token_ref().token.clone() {
            Token::SingleQuotedString(text) => {
                self.parser.next_token();
                text
            }
            Token::Number(count, _) => {
                self.parser.next_token();
                let at = self.position();
                let unit = self.name("a unit: s, m, h, d or w")?.text;
                // Minutes and months differ in case only.
                let written = self.words.sql.get(at..at + unit.len()).unwrap_or(&unit);
                format!("{count}{written}")
            }
            _ => return Err(self.expected("a length of time such as 10m")),
        };
        Ok((text, position))
    }

    /// A length that is always the same.
    fn seconds(&mut self, of: &str) -> Result<u64> {
        let (text, position) = self.length()?;
        let stride = Stride::parse(&text).filter(|s| s.count > 0);
        let nanos = stride.and_then(|s| Some(s.unit.nanos()? * i128::from(s.count)));
        let seconds = nanos.filter(|n| n % 1_000_000_000 == 0).and_then(|n| u64::try_from(n / 1_000_000_000).ok());
        let seconds = seconds.filter(|s| *s <= EVERY_MAX_S);
        seconds
            .ok_or_else(|| Error::invalid(format!("{of} takes a number of s, m, h, d or w, not {text}")).at(position))
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
        self.drop_behavior();
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
            if self.take("limit") {
                let commands = vec![Command::SetRefreshLimit { view: view.text, limit: self.ttl()? }];
                return Ok(Statement::Commands { tag: "ALTER MATERIALIZED VIEW", commands });
            }
            return Ok(Statement::SetRefresh { view, refresh: self.refresh_asked()?.0 });
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefreshAsked {
    pub(crate) kind: RefreshKind,
    pub(crate) zone: Option<String>,
    pub(crate) period: Option<Period>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RefreshKind {
    #[default]
    Immediate,
    Manual,
    /// `start` in microseconds since 1970, by the clock of the zone; `None` for "from now on".
    Every {
        seconds: u64,
        start: Option<i64>,
    },
}

impl RefreshAsked {
    /// `now` in microseconds since 1970.
    #[must_use]
    pub fn from_now(self, now: i64, is_deferred: bool) -> Schedule {
        let refresh = match self.kind {
            RefreshKind::Immediate => Refresh::Immediate,
            RefreshKind::Manual => Refresh::Manual,
            RefreshKind::Every { seconds, start } => {
                let first =
                    if is_deferred { now.saturating_add_unsigned(seconds.saturating_mul(1_000_000)) } else { now };
                let zone = self.zone.as_deref().and_then(Zone::parse).unwrap_or(Zone::UTC);
                let instant = |at: i64| zone.to_utc(at.div_euclid(1_000_000)) * 1_000_000 + at.rem_euclid(1_000_000);
                Refresh::Every { seconds, start: start.map_or(first, instant) }
            }
        };
        Schedule { refresh, zone: self.zone, period: self.period }
    }
}

impl NewMaterialized {
    /// How rows of a view are partitioned when nothing is said: so that a partition has a fair number of buckets.
    #[must_use]
    pub fn partitioned(&self, bucket_seconds: i64) -> PartitionBy {
        self.partition_by.unwrap_or(match bucket_seconds {
            ..=60 => PartitionBy::Day,
            61..=3_600 => PartitionBy::Month,
            _ => PartitionBy::Year,
        })
    }
}
