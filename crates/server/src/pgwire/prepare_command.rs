//! Syntax of PREPARE, EXECUTE and EXPLAIN EXECUTE.

use super::split::{Token, tokens};

/// `PREPARE name [(type, …)] AS statement`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepare {
    pub(super) name: String,
    pub(super) types: Vec<String>,
    pub(super) sql: String,
}

/// `[EXPLAIN …] EXECUTE name [(expression, …)]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execute {
    /// `EXPLAIN` and its options, or nothing.
    pub(super) explain: String,
    pub(super) name: String,
    pub(super) values: Vec<String>,
}

impl Prepare {
    /// Returns `None` if the text has another form.
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
    /// Returns `None` if the text has another form.
    pub fn read(sql: &str) -> Option<Execute> {
        let words: Vec<_> = tokens(sql).collect();
        let execute = words.iter().position(|(_, token)| token.is_word("execute"))?;
        let name = words.get(execute + 1)?.1.identifier()?;
        let (values, next) = list(sql, &words, execute + 2)?;
        let explain = sql[..words[execute].0].to_owned();
        (next == words.len()).then_some(Execute { explain, name, values })
    }

    /// Returns true if a text that begins with EXPLAIN explains an EXECUTE.
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

/// Returns the items of the optional list in parentheses at the token `open`, and the number of the next token.
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
