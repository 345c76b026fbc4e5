//! Statements about the session itself: transactions, settings, prepared statements. They never reach the database.
//!
//! Every statement commits by itself, so BEGIN, COMMIT and ROLLBACK only change what the client is told of its
//! transaction: after an error in one, statements are refused until it ends, as in PostgreSQL.

use super::reply::Report;
use super::split::{Token, tokens};
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Begin,
    Commit,
    Rollback,
    Savepoint,
    Release,
    RollbackTo,
    /// `None` stands for the default.
    Set {
        name: String,
        value: Option<String>,
    },
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
}

impl Command {
    /// Whether it may run in a transaction that failed.
    #[must_use]
    pub fn ends_transaction(&self) -> bool {
        matches!(self, Command::Commit | Command::Rollback | Command::RollbackTo)
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
            | "close"
            | "unlisten"
            | "listen"
            | "notify"
            | "declare"
            | "fetch"
            | "move"
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
        "begin" | "start" => Command::Begin,
        "commit" | "end" => Command::Commit,
        "rollback" | "abort" => {
            let to = words.iter().take(2).any(|w| w.eq_ignore_ascii_case("to"));
            if to { Command::RollbackTo } else { Command::Rollback }
        }
        "savepoint" => Command::Savepoint,
        "release" => Command::Release,
        "set" => set(&rest, &words),
        "reset" if word(0) == "all" => Command::ResetAll,
        "reset" => Command::Set { name: word(0), value: None },
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
        "close" => Command::Nothing("CLOSE CURSOR"),
        "unlisten" => Command::Nothing("UNLISTEN"),
        // Names for expressions: a query of ours.
        "declare" if word(0).starts_with('@') => return None,
        "listen" | "notify" => Command::Refused("notifications are not supported", "ask again at intervals"),
        "do" => Command::Refused("DO is not supported", "there is no procedural language"),
        _ => Command::Refused(
            "cursors are not supported in SQL",
            "let the driver fetch rows in portions, which needs no cursor (setFetchSize, stream(), iterate())",
        ),
    })
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
    let from = usize::from(matches!(lower.first().map(String::as_str), Some("session" | "local")));
    let lower = &lower[from.min(lower.len())..];
    let at = |n: usize| lower.get(n).map_or("", String::as_str);
    let (name, value_from) = match (at(0), at(1)) {
        ("time", "zone") => ("timezone".to_owned(), 2),
        ("names", _) => ("client_encoding".to_owned(), 1),
        ("transaction" | "characteristics" | "constraints" | "role" | "authorization", _) => {
            return Command::Nothing("SET");
        }
        // `a.b` is three tokens.
        (name, ".") => (format!("{name}.{}", at(2)), 4),
        (name, _) => (name.to_owned(), 2),
    };
    let values = rest.iter().zip(words).skip(from + value_from);
    let value: String =
        values.map(|(token, word)| if *token == Token::Symbol(',') { ", ".to_owned() } else { word.clone() }).collect();
    let is_default = value.eq_ignore_ascii_case("default") || value.is_empty();
    Command::Set { name, value: (!is_default).then_some(value) }
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
    variable("default_transaction_isolation", "read committed", false),
    variable("default_transaction_read_only", "off", true),
    variable("extra_float_digits", "1", false),
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
    variable("transaction_isolation", "read committed", false),
    variable("transaction_read_only", "off", false),
];

/// The settings of one session.
#[derive(Debug, Default)]
pub struct Variables {
    /// By lower-case name, where they differ from the default.
    set: BTreeMap<String, String>,
    pub timeout: Option<Duration>,
}

impl Variables {
    /// Sets one, or puts it back to its default. Gives name and value when clients are to be told.
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
            "server_version" | "server_encoding" | "server_version_num" | "is_superuser" => {
                return Err(Report::error("55P02", format!("parameter \"{name}\" cannot be changed")));
            }
            _ => {}
        }
        self.set.insert(key, value.clone());
        Ok(known.filter(|v| v.is_reported).map(|v| (v.name, value)))
    }

    pub fn reset(&mut self) -> Vec<(&'static str, String)> {
        let user = self.set.remove("session_authorization");
        let changed = std::mem::take(&mut self.set);
        self.set.extend(user.map(|user| ("session_authorization".to_owned(), user)));
        self.timeout = None;
        let reported = VARIABLES.iter().filter(|v| v.is_reported && changed.contains_key(&v.name.to_ascii_lowercase()));
        reported.map(|v| (v.name, v.default.to_owned())).collect()
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
            (None, value) => value.map(|value| (name.to_owned(), value)),
        }
    }

    /// All that are known, and whether clients are told of them.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, String, bool)> {
        VARIABLES.iter().map(|v| {
            let value = self.set.get(&v.name.to_ascii_lowercase()).cloned();
            (v.name, value.unwrap_or_else(|| v.default.to_owned()), v.is_reported)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_to(name: &str, value: &str) -> Option<Command> {
        Some(Command::Set { name: name.to_owned(), value: Some(value.to_owned()) })
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
        assert_eq!(recognise("/* x */ BEGIN ISOLATION LEVEL SERIALIZABLE"), Some(Command::Begin));
        assert_eq!(recognise("START TRANSACTION"), Some(Command::Begin));
        assert_eq!(recognise("end"), Some(Command::Commit));
        assert_eq!(recognise("rollback to savepoint a"), Some(Command::RollbackTo));
        assert_eq!(recognise("ROLLBACK"), Some(Command::Rollback));
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
        assert_eq!(recognise("set names 'utf8'"), set_to("client_encoding", "utf8"));
        assert_eq!(recognise("set a.b = 1"), set_to("a.b", "1"));
        assert_eq!(recognise("set x = -1"), set_to("x", "-1"));
        assert_eq!(recognise("set x to default"), Some(Command::Set { name: "x".to_owned(), value: None }));
        assert_eq!(recognise("reset x"), Some(Command::Set { name: "x".to_owned(), value: None }));
        assert_eq!(recognise("SET TRANSACTION READ ONLY"), Some(Command::Nothing("SET")));
        assert_eq!(recognise("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"), Some(Command::Nothing("SET")));
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
