//! Statements prepared and run in SQL: PREPARE, EXECUTE and EXPLAIN EXECUTE.
//!
//! They share their names with those that clients prepare by the protocol, as in PostgreSQL. The values of EXECUTE are
//! expressions; what they give is bound as the values of a Bind message would be, never as SQL.

use super::connection::{Session, Step, reported};
use super::parameters::decode;
use super::prepared::{Prepared, What, first_word};
use super::reply::Report;
use super::split::{Token, tokens};
use super::types;
use super::values::{Cells, canonical};
use futures::StreamExt;
use std::sync::{Arc, OnceLock};
use tidalite::types::pg_type;
use tidalite::{Parameter, Response};

/// `PREPARE name [(type, …)] AS statement`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepare {
    name: String,
    types: Vec<String>,
    sql: String,
}

/// `[EXPLAIN …] EXECUTE name [(expression, …)]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execute {
    /// `EXPLAIN` and its options, or nothing.
    explain: String,
    name: String,
    values: Vec<String>,
}

impl Prepare {
    /// `None` when the words are in no such order.
    pub fn read(sql: &str) -> Option<Prepare> {
        let words: Vec<_> = tokens(sql).collect();
        let name = words.get(1)?.1.identifier()?;
        let (types, next) = list(sql, &words, 2)?;
        let has_as = words.get(next)?.1.is_word("as");
        let (start, _) = words.get(next + 1).filter(|_| has_as)?;
        Some(Prepare { name, types, sql: sql[*start..].to_owned() })
    }
}

impl Execute {
    /// `None` when the words are in no such order.
    pub fn read(sql: &str) -> Option<Execute> {
        let words: Vec<_> = tokens(sql).collect();
        let execute = words.iter().position(|(_, token)| token.is_word("execute"))?;
        let name = words.get(execute + 1)?.1.identifier()?;
        let (values, next) = list(sql, &words, execute + 2)?;
        let explain = sql[..words[execute].0].to_owned();
        (next == words.len()).then_some(Execute { explain, name, values })
    }

    /// Whether a text that begins with EXPLAIN explains one.
    pub fn is_explained(sql: &str) -> bool {
        const OPTIONS: &[&str] = &[
            "explain", "analyze", "verbose", "costs", "settings", "buffers", "wal", "timing", "summary", "format",
            "on", "off", "true", "false", "text", "json",
        ];
        let is_option = |token: &Token| match token {
            Token::Word(word) => OPTIONS.contains(&word.to_ascii_lowercase().as_str()),
            Token::Symbol(symbol) => matches!(symbol, '(' | ')' | ','),
            _ => false,
        };
        tokens(sql)
            .map(|(_, token)| token)
            .find(|token| !is_option(token))
            .is_some_and(|token| token.is_word("execute"))
    }
}

/// What is between commas in the parentheses that may begin at a token, and the token behind them.
fn list(sql: &str, words: &[(usize, Token)], open: usize) -> Option<(Vec<String>, usize)> {
    if !matches!(words.get(open), Some((_, Token::Symbol('(')))) {
        return Some((Vec::new(), open));
    }
    let (mut out, mut closers, mut from) = (Vec::new(), Vec::new(), words[open].0 + 1);
    for (i, (at, token)) in words.iter().enumerate().skip(open) {
        match token {
            Token::Symbol('(') => closers.push(')'),
            Token::Symbol('[') => closers.push(']'),
            Token::Symbol(closer @ (')' | ']')) if closers.pop() != Some(*closer) => return None,
            _ => {}
        }
        if closers.is_empty() || (closers.len() == 1 && *token == Token::Symbol(',')) {
            out.push(sql[from..*at].trim().to_owned());
            from = at + 1;
        }
        if closers.is_empty() {
            return out.iter().all(|item| !item.is_empty()).then_some((out, i + 1));
        }
    }
    None
}

impl Session<'_> {
    pub(super) async fn prepare(&mut self, asked: &Prepare) -> Step {
        self.check_transaction()?;
        let is_one = matches!(What::of(&asked.sql)?, What::Statement) && first_word(&asked.sql) != "copy";
        if !is_one {
            return Err(Report::error("42601", "only queries and changes of rows can be prepared").into());
        }
        let unknown = |name: &String| Report::error("42704", format!("type \"{name}\" does not exist"));
        let oid = |name: &String| match name.as_str() {
            "unknown" => Ok(0),
            name_of => pg_type::by_sql_name(name_of).map(|found| found.oid).ok_or_else(|| unknown(name)),
        };
        let oids = asked.types.iter().map(oid).collect::<Result<Vec<u32>, Report>>()?;
        let prepared = self.new_prepared(&asked.name, &asked.sql, What::Statement, oids)?;
        // What is wrong with it is said now.
        self.describe(&prepared).await?;
        self.statements.insert(asked.name.clone(), Arc::new(prepared));
        self.complete("PREPARE");
        Ok(())
    }

    /// The statement that is run, and its values.
    pub(super) async fn executed(&mut self, asked: &Execute) -> Step<(Arc<Prepared>, Vec<Parameter>)> {
        self.check_transaction()?;
        let prepared = self.statement_asked_for(asked).await?;
        let oids = prepared.all_oids();
        let given = asked.values.len();
        if given != oids.len() {
            let (name, wanted) = (&asked.name, oids.len());
            let message = format!("wrong number of parameters for prepared statement \"{name}\"");
            let hint = format!("expected {wanted} parameters but got {given}");
            return Err(Report::error("42601", message).with_hint(hint).into());
        }
        let values = self.values(&asked.values).await?;
        let decoded =
            values.iter().zip(&oids).enumerate().map(|(i, (value, oid))| decode(i + 1, *oid, false, value.as_deref()));
        Ok((prepared, decoded.collect::<Result<_, _>>()?))
    }

    /// The statement that is run, described.
    pub(super) async fn statement_asked_for(&mut self, asked: &Execute) -> Step<Arc<Prepared>> {
        let prepared = self.prepared(&asked.name)?;
        if !matches!(prepared.what, What::Statement) {
            return Err(Report::error("42601", "only queries and changes of rows can be executed").into());
        }
        self.describe(&prepared).await?;
        if asked.explain.is_empty() {
            return Ok(prepared);
        }
        let explained = Prepared {
            sql: format!("{}{}", asked.explain, prepared.sql),
            plainer: None,
            what: What::Statement,
            oids: prepared.all_oids(),
            described: OnceLock::new(),
            _held: self.held(prepared.sql.len())?,
        };
        self.describe(&explained).await?;
        Ok(Arc::new(explained))
    }

    /// What expressions give, as text.
    async fn values(&mut self, expressions: &[String]) -> Step<Vec<Option<Vec<u8>>>> {
        if expressions.is_empty() {
            return Ok(Vec::new());
        }
        // Parentheses keep each to itself.
        let text = format!("SELECT ({})", expressions.join("), ("));
        let mut out = Vec::with_capacity(expressions.len());
        if let Response::Rows(mut rows) = self.start("", &text, Vec::new()).await? {
            let columns = types::columns(&rows.columns, &rows.schema);
            while let Some(batch) = rows.stream.next().await {
                let batch = batch.map_err(|error| reported("", &error))?;
                for (column, array) in columns.iter().zip(batch.columns()).filter(|_| batch.num_rows() > 0) {
                    let array = canonical(column, array).map_err(|error| reported("", &error))?;
                    let cells = Cells::new(column.pg_type, column.is_ipv4, array.as_ref());
                    let mut text = Vec::new();
                    cells.push_text(0, &mut text);
                    out.push((!cells.is_null(0)).then_some(text));
                }
            }
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepare(sql: &str) -> Option<(String, Vec<String>, String)> {
        Prepare::read(sql).map(|p| (p.name, p.types, p.sql))
    }

    fn execute(sql: &str) -> Option<(String, String, Vec<String>)> {
        Execute::read(sql).map(|e| (e.explain, e.name, e.values))
    }

    fn texts(items: &[&str]) -> Vec<String> {
        items.iter().map(|item| (*item).to_owned()).collect()
    }

    #[test]
    fn names_types_and_the_statement_are_told_apart() {
        let (name, types, sql) = prepare("PREPARE P (int, numeric(10, 2)) AS select $1, $2").unwrap();
        assert_eq!((name.as_str(), types, sql.as_str()), ("p", texts(&["int", "numeric(10, 2)"]), "select $1, $2"));
        let (name, types, sql) = prepare("prepare \"P a\" as -- x\n values (1)").unwrap();
        assert_eq!((name.as_str(), types, sql.as_str()), ("P a", Vec::new(), "values (1)"));
        for wrong in
            ["prepare", "prepare p", "prepare p as", "prepare p (int as select 1", "prepare p (int,) as select 1"]
        {
            assert_eq!(prepare(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn values_are_cut_at_their_own_commas() {
        let (explain, name, values) = execute("execute p (1, f(2, '),'), ARRAY[3, 4])").unwrap();
        assert_eq!((explain.as_str(), name.as_str()), ("", "p"));
        assert_eq!(values, texts(&["1", "f(2, '),')", "ARRAY[3, 4]"]));
        assert_eq!(execute("EXECUTE p").unwrap().2, Vec::<String>::new());
        assert_eq!(execute("explain (analyze, verbose) execute p(1)").unwrap().0, "explain (analyze, verbose) ");
        for wrong in ["execute", "execute p (1", "execute p (1) 2", "execute p ()", "execute p (1]"] {
            assert_eq!(execute(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn explained_are_those_behind_options_only() {
        assert!(Execute::is_explained("EXPLAIN ANALYZE EXECUTE p"));
        assert!(!Execute::is_explained("explain select execute from t"));
        assert!(!Execute::is_explained("explain"));
    }
}
