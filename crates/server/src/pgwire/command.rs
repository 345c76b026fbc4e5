//! Statements about the session itself: transactions, settings, prepared statements. The parser of SQL never sees them.

use super::isolation::{Level, Modes};
use super::reply::Report;
use super::split::{Token, tokens};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tidalite::{SessionContext, TimeZone};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Begin {
        modes: Modes,
        /// The command tag of the response.
        tag: &'static str,
    },
    /// Commits the block; with `chains` (`AND CHAIN`), a new transaction begins immediately.
    Commit {
        chains: bool,
    },
    Rollback {
        chains: bool,
    },
    Savepoint(String),
    Release(String),
    RollbackTo(String),
    SetTransaction(Modes),
    /// For the transactions to come.
    SetCharacteristics(Modes),
    /// `None` stands for the default.
    Set {
        name: String,
        value: Option<String>,
        /// Until the end of the transaction.
        is_local: bool,
    },
    Reset(String),
    ResetAll,
    Show(String),
    ShowAll,
    /// `None` for all.
    Deallocate(Option<String>),
    DiscardAll,
    /// Done by doing nothing; this is its tag.
    Nothing(&'static str),
    /// What is not supported, and what to use instead.
    Refused(&'static str, &'static str),
    /// The statement begins as a command; the syntax error is at this token.
    Malformed(String),
}

impl Command {
    /// Whether it may run in a transaction that failed.
    #[must_use]
    pub fn ends_transaction(&self) -> bool {
        matches!(self, Command::Commit { .. } | Command::Rollback { .. } | Command::RollbackTo(_))
    }
}

/// The command a statement is, if it is one.
#[must_use]
pub fn recognise(sql: &str) -> Option<Command> {
    let mut rest = tokens(sql).map(|(_, token)| token);
    let Some(Token::Word(first)) = rest.next() else { return None };
    let first = first.to_ascii_lowercase();
    let is_one = matches!(
        first.as_str(),
        "begin"
            | "start"
            | "commit"
            | "end"
            | "rollback"
            | "abort"
            | "savepoint"
            | "release"
            | "set"
            | "reset"
            | "show"
            | "deallocate"
            | "discard"
            | "unlisten"
            | "listen"
            | "notify"
            | "do"
    );
    if !is_one {
        return None;
    }
    let rest: Vec<Token> = rest.collect();
    let words: Vec<String> = rest.iter().map(text).collect();
    let word = |n: usize| words.get(n).map(|w| w.to_ascii_lowercase()).unwrap_or_default();
    // `begin` alone is no table here, as the parser of SQL has it; but `show.x` or `end = 1` are no commands.
    Some(match first.as_str() {
        "begin" | "start" | "commit" | "end" | "rollback" | "abort" | "savepoint" | "release" => {
            transaction(&first, &rest).unwrap_or_else(|at| {
                Command::Malformed(words.get(at).cloned().unwrap_or_else(|| "end of input".to_owned()))
            })
        }
        "set" => set(&rest, &words),
        "reset" if word(0) == "all" => Command::ResetAll,
        "reset" => Command::Reset(word(0)),
        "show" => match word(0).as_str() {
            "tables" | "columns" | "partitions" | "create" | "databases" | "schemas" | "views" | "materialized"
            | "functions" | "parameters" => return None,
            "all" => Command::ShowAll,
            _ => Command::Show(words.join(" ").to_ascii_lowercase()),
        },
        "deallocate" => {
            let name = usize::from(word(0) == "prepare");
            let is_all = word(name) == "all" && matches!(rest.get(name), Some(Token::Word(_)));
            let named = || rest.get(name).and_then(|token| token.identifier()).unwrap_or_default();
            Command::Deallocate((!is_all).then(named))
        }
        "discard" => Command::DiscardAll,
        "unlisten" => Command::Nothing("UNLISTEN"),
        "listen" | "notify" => Command::Refused("notifications are not supported", "ask again at intervals"),
        _ => Command::Refused("DO is not supported", "there is no procedural language"),
    })
}

/// A command that begins, ends or marks a transaction; the number of the token that does not belong where one does not.
fn transaction(first: &str, rest: &[Token]) -> Result<Command, usize> {
    let mut words = Words { rest, at: 0 };
    let command = match first {
        "begin" | "start" => {
            let has_word = words.take("transaction") || (first == "begin" && words.take("work"));
            if first == "start" && !has_word {
                return Err(0);
            }
            let tag = if first == "start" { "START TRANSACTION" } else { "BEGIN" };
            Command::Begin { modes: words.modes()?, tag }
        }
        "savepoint" => Command::Savepoint(words.name()?),
        "release" => {
            if words.rest.len() > 1 {
                words.take("savepoint");
            }
            Command::Release(words.name()?)
        }
        _ if words.take("prepared") => {
            return Ok(Command::Refused("prepared transactions are not supported", "commit in one step"));
        }
        _ => {
            let _ = words.take("work") || words.take("transaction");
            if matches!(first, "rollback" | "abort") && words.take("to") {
                if words.rest.len() > words.at + 1 {
                    words.take("savepoint");
                }
                Command::RollbackTo(words.name()?)
            } else {
                let chains = words.chains()?;
                match first {
                    "rollback" | "abort" => Command::Rollback { chains },
                    _ => Command::Commit { chains },
                }
            }
        }
    };
    if words.at == rest.len() { Ok(command) } else { Err(words.at) }
}

/// Tokens that are taken from the front.
struct Words<'a> {
    rest: &'a [Token<'a>],
    at: usize,
}

impl Words<'_> {
    fn take(&mut self, word: &str) -> bool {
        let is_it = self.rest.get(self.at).is_some_and(|token| token.is_word(word));
        self.at += usize::from(is_it);
        is_it
    }

    fn expect(&mut self, word: &str) -> Result<(), usize> {
        if self.take(word) { Ok(()) } else { Err(self.at) }
    }

    fn name(&mut self) -> Result<String, usize> {
        let name = self.rest.get(self.at).and_then(|token| token.identifier()).ok_or(self.at)?;
        self.at += 1;
        Ok(name)
    }

    /// `[AND [NO] CHAIN]`.
    fn chains(&mut self) -> Result<bool, usize> {
        if !self.take("and") {
            return Ok(false);
        }
        let is_not = self.take("no");
        self.expect("chain")?;
        Ok(!is_not)
    }

    /// Modes of a transaction, to the end; commas between them may be left out.
    fn modes(&mut self) -> Result<Modes, usize> {
        let mut modes = Modes::default();
        while self.at < self.rest.len() {
            if self.take("isolation") {
                self.expect("level")?;
                let from = self.at;
                let level = if self.take("serializable") {
                    "serializable"
                } else if self.take("repeatable") {
                    self.expect("read")?;
                    "repeatable read"
                } else {
                    self.expect("read")?;
                    if self.take("committed") { "read committed" } else { "read uncommitted" }
                };
                if level == "read uncommitted" {
                    self.expect("uncommitted")?;
                }
                modes.level = Some(Level::by_name(level).ok_or(from)?);
            } else if self.take("read") {
                let is_read_only = self.take("only");
                if !is_read_only {
                    self.expect("write")?;
                }
                modes.is_read_only = Some(is_read_only);
            } else {
                // DEFERRABLE has no effect.
                self.take("not");
                self.expect("deferrable")?;
            }
            if matches!(self.rest.get(self.at), Some(Token::Symbol(','))) {
                self.at += 1;
            }
        }
        Ok(modes)
    }
}

/// A token without its quotes.
fn text(token: &Token) -> String {
    match token {
        Token::Word(word) => (*word).to_owned(),
        Token::Name(_) => token.identifier().unwrap_or_default(),
        Token::Text(text) => text.trim_start_matches(['e', 'E']).trim_matches('\'').replace("''", "'"),
        Token::Symbol(c) => c.to_string(),
    }
}

/// `SET [SESSION | LOCAL] name { = | TO } value, …`, and the older forms.
fn set(rest: &[Token], words: &[String]) -> Command {
    let lower: Vec<String> = words.iter().map(|w| w.to_ascii_lowercase()).collect();
    let is_local = lower.first().is_some_and(|word| word == "local");
    let from = usize::from(matches!(lower.first().map(String::as_str), Some("session" | "local")));
    let lower = &lower[from.min(lower.len())..];
    let at = |n: usize| lower.get(n).map_or("", String::as_str);
    let (name, value_from) = match (at(0), at(1)) {
        ("time", "zone") => ("timezone".to_owned(), 2),
        ("names", _) => ("client_encoding".to_owned(), 1),
        ("transaction", "snapshot") => {
            return Command::Refused("snapshots are not shared between transactions", "read in one transaction");
        }
        ("transaction", _) => return modes_from(rest, words, from + 1, Command::SetTransaction),
        ("characteristics", "as") if at(2) == "transaction" => {
            return modes_from(rest, words, from + 3, Command::SetCharacteristics);
        }
        ("characteristics" | "constraints" | "role" | "authorization", _) => {
            return Command::Nothing("SET");
        }
        // `a.b` is three tokens.
        (name, ".") => (format!("{name}.{}", at(2)), 4),
        (name, _) => (name.to_owned(), 2),
    };
    // `INTERVAL '+00:00' HOUR TO MINUTE` is an offset.
    let is_offset = (at(0), at(1), at(2)) == ("time", "zone", "interval");
    let (value_from, taken) = if is_offset { (value_from + 1, 1) } else { (value_from, usize::MAX) };
    let values = rest.iter().zip(words).skip(from + value_from).take(taken);
    let value: String =
        values.map(|(token, word)| if *token == Token::Symbol(',') { ", ".to_owned() } else { word.clone() }).collect();
    let is_default = value.eq_ignore_ascii_case("default") || value.is_empty();
    Command::Set { name, value: (!is_default).then_some(value), is_local }
}

/// The modes behind SET TRANSACTION, of which there is at least one.
fn modes_from(rest: &[Token], words: &[String], from: usize, command: fn(Modes) -> Command) -> Command {
    let mut left = Words { rest, at: from };
    let modes = if from < rest.len() { left.modes() } else { Err(from) };
    modes.map_or_else(
        |at| Command::Malformed(words.get(at).cloned().unwrap_or_else(|| "end of input".to_owned())),
        command,
    )
}

/// A setting of a session: how it is called, what it is at first, whether clients are told of changes.
struct Variable {
    name: &'static str,
    default: &'static str,
    is_reported: bool,
}

const fn variable(name: &'static str, default: &'static str, is_reported: bool) -> Variable {
    Variable { name, default, is_reported }
}

/// Others can be set and shown as well.
const VARIABLES: &[Variable] = &[
    variable("application_name", "", true),
    variable("bytea_output", "hex", false),
    variable("client_encoding", "UTF8", true),
    variable("client_min_messages", "notice", false),
    variable("DateStyle", "ISO, MDY", true),
    variable("default_transaction_isolation", "repeatable read", false),
    variable("default_transaction_read_only", "off", true),
    variable("extra_float_digits", "1", false),
    variable("idle_in_transaction_session_timeout", "0", false),
    variable("in_hot_standby", "off", true),
    variable("integer_datetimes", "on", true),
    variable("IntervalStyle", "postgres", true),
    variable("is_superuser", "on", true),
    variable("lc_collate", "C", false),
    variable("lc_ctype", "C", false),
    variable("max_identifier_length", "127", false),
    variable("max_index_keys", "32", false),
    variable("search_path", "public", false),
    variable("server_encoding", "UTF8", true),
    variable("server_version", tidalite::types::pg_type::SERVER_VERSION, true),
    variable("server_version_num", "140000", false),
    variable("session_authorization", "", true),
    variable("standard_conforming_strings", "on", true),
    variable("statement_timeout", "0", false),
    variable("TimeZone", "UTC", true),
    variable("transaction_isolation", "repeatable read", false),
    variable("transaction_read_only", "off", false),
];

/// The settings of one session.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    /// By lower-case name, where they differ from the default.
    set: BTreeMap<String, String>,
    pub timeout: Option<Duration>,
    /// How long an open transaction may wait for its client.
    pub idle_timeout: Option<Duration>,
    /// Later transactions are read-only.
    pub is_read_only: bool,
    /// Time zone in which `TIMESTAMPTZ` values are displayed.
    pub zone: Option<TimeZone>,
    /// The number of the session.
    pub process: i32,
    /// Cached settings for statements; cleared when a setting changes.
    context: OnceLock<Arc<SessionContext>>,
}

impl Variables {
    /// Sets or resets a setting. Returns name and value if the client must be notified.
    ///
    /// # Errors
    /// On a value that would change how answers look.
    pub fn set(&mut self, name: &str, value: Option<&str>) -> Result<Option<(&'static str, String)>, Report> {
        let key = name.to_ascii_lowercase();
        let known = VARIABLES.iter().find(|v| v.name.eq_ignore_ascii_case(name));
        let default = known.map_or("", |v| v.default);
        let mut value = value.unwrap_or(default).to_owned();
        let refused = || Report::error("22023", format!("invalid value for parameter \"{name}\": \"{value}\""));
        match key.as_str() {
            "client_encoding" => {
                let plain: String =
                    value.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_uppercase();
                if !matches!(plain.as_str(), "UTF8" | "UNICODE" | "SQLASCII") {
                    return Err(refused().with_hint("text is UTF8"));
                }
                value = "UTF8".to_owned();
            }
            "datestyle" => {
                if !value.to_ascii_uppercase().contains("ISO") {
                    return Err(refused().with_hint("dates are written in ISO style"));
                }
                value = default.to_owned();
            }
            "standard_conforming_strings" | "integer_datetimes" if !value.eq_ignore_ascii_case("on") => {
                return Err(refused().with_hint("only \"on\" is supported"));
            }
            "statement_timeout" => {
                let plain = value.parse().ok().map(Duration::from_millis);
                let timeout = plain.or_else(|| crate::config::duration(&value)).ok_or_else(refused)?;
                self.timeout = Some(timeout).filter(|t| !t.is_zero());
            }
            "idle_in_transaction_session_timeout" => {
                let plain = value.parse().ok().map(Duration::from_millis);
                let timeout = plain.or_else(|| crate::config::duration(&value)).ok_or_else(refused)?;
                self.idle_timeout = Some(timeout).filter(|t| !t.is_zero());
            }
            "default_transaction_read_only" => {
                let is_on = boolean(&value)
                    .ok_or_else(|| Report::error("22023", format!("parameter \"{name}\" requires a Boolean value")))?;
                self.is_read_only = is_on;
                value = if is_on { "on" } else { "off" }.to_owned();
            }
            "default_transaction_isolation" => {
                value = Level::by_name(&value).ok_or_else(refused)?.name.to_owned();
            }
            "server_version" | "server_encoding" | "server_version_num" | "is_superuser" => {
                return Err(Report::error("55P02", format!("parameter \"{name}\" cannot be changed")));
            }
            "timezone" => {
                let zone = if value.eq_ignore_ascii_case("local") { "UTC" } else { value.as_str() };
                let unknown = || refused().with_hint("a name of the tz database such as Europe/Berlin, or an offset");
                self.zone = Some(TimeZone::parse(zone).ok_or_else(unknown)?).filter(|zone| *zone != TimeZone::UTC);
            }
            _ => {}
        }
        self.context = OnceLock::new();
        self.set.insert(key, value.clone());
        Ok(known.filter(|v| v.is_reported).map(|v| (v.name, value)))
    }

    pub fn reset(&mut self) -> Vec<(&'static str, String)> {
        let user = self.set.remove("session_authorization");
        let changed = std::mem::take(&mut self.set);
        self.set.extend(user.map(|user| ("session_authorization".to_owned(), user)));
        (self.timeout, self.idle_timeout, self.is_read_only) = (None, None, false);
        (self.zone, self.context) = (None, OnceLock::new());
        let reported = VARIABLES.iter().filter(|v| v.is_reported && changed.contains_key(&v.name.to_ascii_lowercase()));
        reported.map(|v| (v.name, v.default.to_owned())).collect()
    }

    /// Restores all settings. Returns the settings of which the client must be notified.
    pub fn restore(&mut self, before: Variables) -> Vec<(&'static str, String)> {
        let now = std::mem::replace(self, before);
        let reported = VARIABLES.iter().filter(|v| v.is_reported);
        let value = |of: &Variables, v: &Variable| {
            of.set.get(&v.name.to_ascii_lowercase()).cloned().unwrap_or_else(|| v.default.to_owned())
        };
        let changed = reported.filter(|v| value(&now, v) != value(self, v));
        changed.map(|v| (v.name, value(self, v))).collect()
    }

    /// Returns the value that a setting was set to; `None` if the setting has its default.
    #[must_use]
    pub fn given(&self, name: &str) -> Option<String> {
        self.set.get(&name.to_ascii_lowercase()).cloned()
    }

    /// Returns the value of a known setting; an empty string for unknown settings.
    #[must_use]
    pub fn value(&self, name: &str) -> String {
        self.get(name).map(|(_, value)| value).unwrap_or_default()
    }

    /// Name and value of one.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<(String, String)> {
        let name = match name {
            "time zone" => "timezone",
            "transaction isolation level" => "transaction_isolation",
            "session authorization" => "session_authorization",
            other => other,
        };
        let known = VARIABLES.iter().find(|v| v.name.eq_ignore_ascii_case(name));
        let value = self.set.get(&name.to_ascii_lowercase()).cloned();
        match (known, value) {
            (Some(known), value) => Some((known.name.to_owned(), value.unwrap_or_else(|| known.default.to_owned()))),
            (None, Some(value)) => Some((name.to_owned(), value)),
            (None, None) => {
                let found = tidalite::settings().iter().find(|setting| setting.name.eq_ignore_ascii_case(name))?;
                Some((found.name.to_owned(), found.default.to_owned()))
            }
        }
    }

    /// Returns the properties of the session that statements can read.
    pub fn context(&self) -> Arc<SessionContext> {
        let made = || {
            let user = self.set.get("session_authorization").cloned().unwrap_or_default();
            Arc::new(SessionContext::new(user, self.process, self.set.clone()))
        };
        self.context.get_or_init(made).clone()
    }

    /// All that are known, and whether clients are told of them.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, String, bool)> {
        VARIABLES.iter().map(|v| {
            let value = self.set.get(&v.name.to_ascii_lowercase()).cloned();
            (v.name, value.unwrap_or_else(|| v.default.to_owned()), v.is_reported)
        })
    }
}

/// Parses a Boolean as PostgreSQL does.
#[must_use]
pub fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" | "t" | "y" | "tr" | "tru" | "ye" => Some(true),
        "off" | "false" | "no" | "0" | "f" | "n" | "of" | "fa" | "fal" | "fals" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_to(name: &str, value: &str) -> Option<Command> {
        Some(Command::Set { name: name.to_owned(), value: Some(value.to_owned()), is_local: false })
    }

    #[test]
    fn commands_are_told_from_statements() {
        for sql in [
            "select 1",
            "show tables",
            "SHOW CREATE TABLE t",
            "insert into begin values (1)",
            "",
            "\"begin\"",
            "declare @x := 1 select @x",
            "1",
        ] {
            assert_eq!(recognise(sql), None, "{sql}");
        }
        let level = |name| Modes { level: Level::by_name(name), is_read_only: None };
        assert_eq!(
            recognise("/* x */ BEGIN ISOLATION LEVEL SERIALIZABLE"),
            Some(Command::Begin { modes: level("serializable"), tag: "BEGIN" })
        );
        let started = Command::Begin { modes: Modes::default(), tag: "START TRANSACTION" };
        assert_eq!(recognise("START TRANSACTION"), Some(started));
        let both = Modes { is_read_only: Some(true), ..level("read committed") };
        for sql in [
            "begin work isolation level read committed, read only",
            "begin isolation level read committed read only not deferrable",
            "begin transaction read only, isolation level read committed",
        ] {
            assert_eq!(recognise(sql), Some(Command::Begin { modes: both, tag: "BEGIN" }), "{sql}");
        }
        assert_eq!(recognise("end"), Some(Command::Commit { chains: false }));
        assert_eq!(recognise("commit work and chain"), Some(Command::Commit { chains: true }));
        assert_eq!(recognise("abort and no chain"), Some(Command::Rollback { chains: false }));
        for sql in ["rollback to savepoint a", "ROLLBACK WORK TO A", "rollback transaction to \"a\""] {
            assert_eq!(recognise(sql), Some(Command::RollbackTo("a".to_owned())), "{sql}");
        }
        assert_eq!(recognise("rollback to savepoint"), Some(Command::RollbackTo("savepoint".to_owned())));
        assert_eq!(recognise("release a"), Some(Command::Release("a".to_owned())));
        assert_eq!(recognise("savepoint \"A b\""), Some(Command::Savepoint("A b".to_owned())));
        assert_eq!(recognise("ROLLBACK"), Some(Command::Rollback { chains: false }));
        for (sql, at) in [
            ("begin immediate", "immediate"),
            ("commit and", "end of input"),
            ("begin isolation level chaos", "chaos"),
            ("savepoint", "end of input"),
            ("savepoint a b", "b"),
            ("start", "end of input"),
            ("set transaction", "end of input"),
        ] {
            assert_eq!(recognise(sql), Some(Command::Malformed(at.to_owned())), "{sql}");
        }
        assert_eq!(recognise("deallocate all"), Some(Command::Deallocate(None)));
        assert_eq!(recognise("deallocate \"all\""), Some(Command::Deallocate(Some("all".to_owned()))));
        assert_eq!(recognise("deallocate P"), Some(Command::Deallocate(Some("p".to_owned()))));
        assert_eq!(recognise("deallocate prepare \"P\""), Some(Command::Deallocate(Some("P".to_owned()))));
        assert_eq!(recognise("show time zone"), Some(Command::Show("time zone".to_owned())));
        assert!(matches!(recognise("listen x"), Some(Command::Refused(..))));
        assert_eq!(recognise("copy t from stdin"), None);
    }

    #[test]
    fn settings_are_read_in_every_form() {
        assert_eq!(recognise("SET extra_float_digits = 3"), set_to("extra_float_digits", "3"));
        assert_eq!(recognise("set session search_path to public, other"), set_to("search_path", "public, other"));
        assert_eq!(recognise("SET application_name = 'it''s'"), set_to("application_name", "it's"));
        assert_eq!(recognise("SET TIME ZONE 'Europe/Berlin'"), set_to("timezone", "Europe/Berlin"));
        assert_eq!(recognise("SET TIME ZONE INTERVAL '+02:00' HOUR TO MINUTE"), set_to("timezone", "+02:00"));
        assert_eq!(recognise("set names 'utf8'"), set_to("client_encoding", "utf8"));
        assert_eq!(recognise("set a.b = 1"), set_to("a.b", "1"));
        assert_eq!(recognise("set x = -1"), set_to("x", "-1"));
        let unset = |is_local| Some(Command::Set { name: "x".to_owned(), value: None, is_local });
        assert_eq!(recognise("set x to default"), unset(false));
        assert_eq!(recognise("set local x to default"), unset(true));
        assert_eq!(recognise("reset x"), Some(Command::Reset("x".to_owned())));
        let read_only = Modes { level: None, is_read_only: Some(true) };
        assert_eq!(recognise("SET TRANSACTION READ ONLY"), Some(Command::SetTransaction(read_only)));
        assert_eq!(
            recognise("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"),
            Some(Command::SetCharacteristics(read_only))
        );
    }

    #[test]
    fn what_would_change_answers_is_refused() {
        let mut variables = Variables::default();
        assert!(variables.set("client_encoding", Some("latin1")).is_err());
        assert!(variables.set("DateStyle", Some("German")).is_err());
        assert!(variables.set("server_version", Some("9")).is_err());
        assert_eq!(
            variables.set("CLIENT_ENCODING", Some("utf-8")).unwrap(),
            Some(("client_encoding", "UTF8".to_owned()))
        );
        assert_eq!(variables.set("statement_timeout", Some("1500")).unwrap(), None);
        assert_eq!(variables.timeout, Some(Duration::from_millis(1500)));
        variables.set("statement_timeout", Some("5s")).unwrap();
        assert_eq!(variables.timeout, Some(Duration::from_secs(5)));
        assert!(variables.set("statement_timeout", Some("soon")).is_err());
        variables.set("application_name", Some("x")).unwrap();
        assert_eq!(variables.get("application_name").unwrap().1, "x");
        assert_eq!(variables.reset(), [("application_name", String::new()), ("client_encoding", "UTF8".to_owned())]);
        assert_eq!((variables.timeout, variables.get("nosuch")), (None, None));
    }
}
