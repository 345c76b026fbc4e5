//! Constants of a statement as parameters: statements that differ in nothing else share a plan ([`super::bound`]).
//!
//! A constant is taken where it is compared with a name and nothing else is done with that: `x > 5`, `s IN ('a', 'b')`,
//! `ts BETWEEN '2024' AND '2025'`. What that is in the statement, and whether the plan serves all values, is decided by
//! those who understand it; here are only words.

use crate::Parameter;

/// A statement with `$1`, `$2`, … in the places of its constants.
#[derive(Debug, PartialEq)]
pub struct Lifted {
    pub sql: String,
    pub values: Vec<Parameter>,
}

/// With more the texts are hardly ever alike.
const VALUES_MAX: usize = 64;
/// A double keeps so many digits.
const DIGITS_MAX: usize = 15;

/// What came last.
#[derive(Clone, Copy, PartialEq)]
enum Last {
    Name,
    /// A point behind a name.
    Point,
    /// What makes a value of two, as `+`, and a name, or more of it, behind that.
    Operator,
    Operand,
    OperandPoint,
    /// Each of these behind a name.
    Comparison,
    Not,
    In,
    Between,
    /// A constant that was taken, and what follows it.
    Item,
    Low,
    /// Where a constant may stand.
    ListBegins,
    ItemFollows,
    HighFollows,
    Other,
}

impl Last {
    fn takes_constant(self) -> bool {
        matches!(self, Last::Comparison | Last::Between | Last::ListBegins | Last::ItemFollows | Last::HighFollows)
    }

    fn after_constant(self) -> Last {
        match self {
            Last::ListBegins | Last::ItemFollows => Last::Item,
            Last::Between => Last::Low,
            _ => Last::Other,
        }
    }

    fn after_word(self, word: &str) -> Last {
        let is = |name: &str| word.eq_ignore_ascii_case(name);
        match self {
            Last::Name if is("not") => Last::Not,
            Last::Name | Last::Not if is("in") => Last::In,
            Last::Name if is("between") => Last::Between,
            Last::Low if is("and") => Last::HighFollows,
            Last::Operator | Last::OperandPoint => Last::Operand,
            _ => Last::Name,
        }
    }
}

/// `None` when there is nothing to take, and when the text is not what it seems.
#[must_use]
pub fn lifted(sql: &str) -> Option<Lifted> {
    let first = sql.trim_start().get(..6)?;
    if !first.eq_ignore_ascii_case("select") || sql.contains('$') {
        return None;
    }
    let (mut out, mut values) = (String::with_capacity(sql.len()), Vec::new());
    let (mut rest, mut last) = (sql, Last::Other);
    while let Some(c) = rest.chars().next() {
        let length = token(rest, c)?;
        let (text, after) = rest.split_at(length);
        rest = after;
        if is_blank(text, c) {
            out.push_str(text);
            continue;
        }
        let constant = if last.takes_constant() && !after.starts_with(':') { constant(text, c) } else { None };
        if let Some(constant) = constant {
            values.push(constant);
            out.push_str(&format!("${}", values.len()));
            last = last.after_constant();
            continue;
        }
        out.push_str(text);
        last = match c {
            '"' if matches!(last, Last::Operator | Last::OperandPoint) => Last::Operand,
            '"' => Last::Name,
            c if c.is_alphabetic() || c == '_' => last.after_word(text),
            '.' if last == Last::Name => Last::Point,
            '.' if last == Last::Operand => Last::OperandPoint,
            '+' | '-' | '*' | '/' | '%' | '|' | '^' | '&' | '#' => Last::Operator,
            '(' if last == Last::In => Last::ListBegins,
            ',' if last == Last::Item => Last::ItemFollows,
            _ if last == Last::Name && ["=", "<", ">", "<=", ">=", "<>", "!="].contains(&text) => Last::Comparison,
            _ => Last::Other,
        };
    }
    (1..=VALUES_MAX).contains(&values.len()).then_some(Lifted { sql: out, values })
}

fn is_blank(text: &str, first: char) -> bool {
    first.is_whitespace() || text.starts_with("--") || text.starts_with("/*")
}

/// How long the first token is; `None` when it does not end.
fn token(text: &str, first: char) -> Option<usize> {
    let run = |is_in: fn(char) -> bool| text.find(|c| !is_in(c)).unwrap_or(text.len());
    Some(match first {
        c if c.is_whitespace() => run(char::is_whitespace),
        '\'' | '"' => quoted(text, first)?,
        // A number, and what stands with it: `5m` and `1e3` are no constants here.
        c if c.is_ascii_digit() => run(|c| c.is_alphanumeric() || c == '.' || c == '_'),
        c if c.is_alphabetic() || c == '_' => run(|c| c.is_alphanumeric() || c == '_'),
        '-' if text.starts_with("--") => text.find('\n').unwrap_or(text.len()),
        '/' if text.starts_with("/*") => {
            let inside = &text[2..];
            let end = inside.find("*/")?;
            // One within the other: not ours to understand.
            (!inside[..end].contains("/*")).then_some(end + 4)?
        }
        '=' | '<' | '>' | '!' | '~' => run(|c| "=<>!~".contains(c)),
        c => c.len_utf8(),
    })
}

/// Up to the quote that ends it; two are one within.
fn quoted(text: &str, quote: char) -> Option<usize> {
    let mut from = 1;
    loop {
        let at = from + text[from..].find(quote)?;
        if !text[at + 1..].starts_with(quote) {
            return Some(at + 1);
        }
        from = at + 2;
    }
}

fn constant(text: &str, first: char) -> Option<Parameter> {
    if first == '\'' {
        return Some(Parameter::Text(text[1..text.len() - 1].replace("''", "'")));
    }
    if !first.is_ascii_digit() {
        return None;
    }
    match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => text.parse().ok().map(Parameter::Long),
        // Nothing but digits and one point is a number for Rust, too; letters are not.
        false if text.len() <= DIGITS_MAX && text.bytes().all(|b| b.is_ascii_digit() || b == b'.') => {
            text.parse::<f64>().ok().map(|_| Parameter::Decimal(text.to_owned()))
        }
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sql: &str, expected: &str, values: &[Parameter]) {
        let lifted = lifted(sql).unwrap_or_else(|| panic!("nothing in {sql}"));
        assert_eq!((lifted.sql.as_str(), lifted.values.as_slice()), (expected, values));
    }

    #[test]
    fn constants_beside_names_are_taken() {
        use Parameter::{Decimal, Long, Text};
        let text = |text: &str| Text(text.to_owned());
        check(
            "SELECT max(v) FROM t WHERE \"host name\" IN ('a', 'it''s') AND t.v>=1.5 AND n <> 7 SAMPLE BY 1m LIMIT -10",
            "SELECT max(v) FROM t WHERE \"host name\" IN ($1, $2) AND t.v>=$3 AND n <> $4 SAMPLE BY 1m LIMIT -10",
            &[text("a"), text("it's"), Decimal("1.5".to_owned()), Long(7)],
        );
        check(
            "select * from t where ts BETWEEN '2024' AND '2025' /* x = 5 */ -- y = 6\n and z = 1",
            "select * from t where ts BETWEEN $1 AND $2 /* x = 5 */ -- y = 6\n and z = $3",
            &[text("2024"), text("2025"), Long(1)],
        );
    }

    #[test]
    fn other_constants_stay() {
        for sql in [
            "SELECT 5, 'a' FROM t LIMIT 7",
            "SELECT * FROM t WHERE ts IN '2024' AND f(x) = 3 AND x > -5 AND x + 1 = 2",
            "SELECT * FROM t WHERE x / y > 0.9 AND 2*t.y < 3 AND x || \"y z\" = 'a' AND x - t.\"y\" IN (1, 2)",
            "SELECT * FROM t WHERE x = $1",
            "SELECT * FROM t WHERE x = '5'::int AND y = E'a' AND z = 1e3 AND w = 0x10 AND v = 9223372036854775808",
            "SELECT * FROM t WHERE x = 'a",
            "SELECT * FROM t /* /* x = 1 */ */",
            "INSERT INTO t SELECT * FROM s WHERE x = 5",
            "",
            "é = 5",
        ] {
            assert_eq!(lifted(sql), None, "{sql}");
        }
    }
}
