//! Syntax of DECLARE, FETCH, MOVE and CLOSE.

use super::reply::Report;
use super::split::{Token, tokens};

/// A statement about a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CursorCommand {
    Declare {
        name: String,
        is_scroll: bool,
        is_held: bool,
        sql: String,
    },
    Fetch {
        name: String,
        direction: Direction,
        returns_rows: bool,
    },
    /// `None` for all.
    Close(Option<String>),
}

/// The direction and distance of a cursor movement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// A number of rows, or all remaining rows.
    Forward(u64),
    Backward(u64),
    /// To a row, counted from 1, or from the end when negative.
    Absolute(i64),
    Relative(i64),
}

impl CursorCommand {
    /// Returns `None` if the text begins with another word, and an error if the rest has another form.
    pub fn read(sql: &str) -> Option<Result<CursorCommand, Report>> {
        let all: Vec<(usize, Token)> = tokens(sql).collect();
        let first = all.first()?.1;
        let malformed = |form: &str| Report::error("42601", "syntax error").with_hint(format!("write {form}"));
        if first.is_word("declare") {
            // `DECLARE @name` begins a query with named expressions, not a cursor statement.
            if matches!(all.get(1), Some((_, Token::Word(word))) if word.starts_with('@')) {
                return None;
            }
            let read = declare(sql, &all);
            return Some(read.ok_or_else(|| malformed("DECLARE name [SCROLL] CURSOR [WITH HOLD] FOR query")));
        }
        if first.is_word("close") {
            let read = match &all[1..] {
                [(_, Token::Word(word))] if word.eq_ignore_ascii_case("all") => Some(CursorCommand::Close(None)),
                [(_, name)] => name.identifier().map(|name| CursorCommand::Close(Some(name))),
                _ => None,
            };
            return Some(read.ok_or_else(|| malformed("CLOSE name, or CLOSE ALL")));
        }
        let returns_rows = first.is_word("fetch");
        if !returns_rows && !first.is_word("move") {
            return None;
        }
        let words: Vec<Token> = all[1..].iter().map(|(_, token)| *token).collect();
        let read = fetch(&words).map(|(direction, name)| CursorCommand::Fetch { name, direction, returns_rows });
        Some(
            read.ok_or_else(|| {
                malformed("FETCH [NEXT | PRIOR | FIRST | LAST | FORWARD n | BACKWARD n | ALL] FROM name")
            }),
        )
    }
}

fn declare(sql: &str, all: &[(usize, Token)]) -> Option<CursorCommand> {
    let name = all.get(1)?.1.identifier()?;
    let begin = all.iter().position(|(_, token)| token.is_word("for"))?;
    let options: Vec<String> = all.get(2..begin)?.iter().filter_map(|(_, token)| token.identifier()).collect();
    let at = options.iter().position(|word| word == "cursor")?;
    let (before, behind) = (&options[..at], &options[at + 1..]);
    let is_known = |word: &String| ["binary", "insensitive", "asensitive", "no", "scroll"].contains(&word.as_str());
    let is_held = match behind.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] | ["without", "hold"] => false,
        ["with", "hold"] => true,
        _ => return None,
    };
    let is_scroll = before.iter().any(|word| word == "scroll") && !before.iter().any(|word| word == "no");
    let query = sql[all.get(begin + 1)?.0..].trim_end().trim_end_matches(';');
    before.iter().all(is_known).then(|| CursorCommand::Declare { name, is_scroll, is_held, sql: query.to_owned() })
}

/// Parses the direction and the cursor name of FETCH or MOVE.
fn fetch(words: &[Token]) -> Option<(Direction, String)> {
    let (name, rest) = words.split_last()?;
    let name = name.identifier()?;
    let rest = match rest.split_last() {
        Some((last, before)) if last.is_word("from") || last.is_word("in") => before,
        _ => rest,
    };
    let number = |words: &[Token]| -> Option<i64> {
        match words {
            [Token::Word(digits)] => digits.parse().ok(),
            [Token::Symbol('-'), Token::Word(digits)] => digits.parse::<i64>().ok().map(|n| -n),
            [Token::Symbol('+'), Token::Word(digits)] => digits.parse().ok(),
            _ => None,
        }
    };
    let forward =
        |n: i64| if n < 0 { Direction::Backward(n.unsigned_abs()) } else { Direction::Forward(n.unsigned_abs()) };
    let backward =
        |n: i64| if n < 0 { Direction::Forward(n.unsigned_abs()) } else { Direction::Backward(n.unsigned_abs()) };
    let is_all = |words: &[Token]| matches!(words, [word] if word.is_word("all"));
    let step = match rest {
        [] => Direction::Forward(1),
        [word] if word.is_word("next") || word.is_word("forward") => Direction::Forward(1),
        [word] if word.is_word("prior") || word.is_word("backward") => Direction::Backward(1),
        [word] if word.is_word("first") => Direction::Absolute(1),
        [word] if word.is_word("last") => Direction::Absolute(-1),
        [word] if word.is_word("all") => Direction::Forward(u64::MAX),
        [word, rest @ ..] if word.is_word("forward") && is_all(rest) => Direction::Forward(u64::MAX),
        [word, rest @ ..] if word.is_word("backward") && is_all(rest) => Direction::Backward(u64::MAX),
        [word, rest @ ..] if word.is_word("forward") => forward(number(rest)?),
        [word, rest @ ..] if word.is_word("backward") => backward(number(rest)?),
        [word, rest @ ..] if word.is_word("absolute") => Direction::Absolute(number(rest)?),
        [word, rest @ ..] if word.is_word("relative") => Direction::Relative(number(rest)?),
        rest => forward(number(rest)?),
    };
    Some((step, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(sql: &str) -> Option<Direction> {
        match CursorCommand::read(sql)?.ok()? {
            CursorCommand::Fetch { direction, .. } => Some(direction),
            _ => None,
        }
    }

    #[test]
    fn declarations_are_read() {
        let declared = |sql: &str| match CursorCommand::read(sql) {
            Some(Ok(CursorCommand::Declare { name, is_scroll, is_held, sql })) => Some((name, is_scroll, is_held, sql)),
            _ => None,
        };
        let text = |name: &str, s, h, q: &str| Some((name.to_owned(), s, h, q.to_owned()));
        assert_eq!(declared("DECLARE c CURSOR FOR select 1;"), text("c", false, false, "select 1"));
        assert_eq!(
            declared("declare \"C d\" SCROLL CURSOR WITH HOLD FOR\nselect 1"),
            text("C d", true, true, "select 1")
        );
        assert_eq!(
            declared("declare c no scroll cursor without hold for select 1"),
            text("c", false, false, "select 1")
        );
        assert!(CursorCommand::read("declare @x := 1 select @x").is_none());
        for wrong in ["declare c", "declare c cursor select 1", "declare c cursor with for select 1", "fetch", "close"]
        {
            assert!(matches!(CursorCommand::read(wrong), Some(Err(_))), "{wrong}");
        }
    }

    #[test]
    fn every_direction_is_read() {
        for (sql, expected) in [
            ("fetch c", Direction::Forward(1)),
            ("fetch from c", Direction::Forward(1)),
            ("fetch 5 in c", Direction::Forward(5)),
            ("fetch -5 from c", Direction::Backward(5)),
            ("fetch all c", Direction::Forward(u64::MAX)),
            ("fetch forward all from c", Direction::Forward(u64::MAX)),
            ("fetch backward 2 from c", Direction::Backward(2)),
            ("move absolute -1 from c", Direction::Absolute(-1)),
            ("move relative 2 c", Direction::Relative(2)),
            ("fetch last from c", Direction::Absolute(-1)),
            ("fetch prior from c", Direction::Backward(1)),
        ] {
            assert_eq!(step(sql), Some(expected), "{sql}");
        }
    }
}
