//! Hints for misspelt keywords.
//!
//! After an error the text is parsed again, and the keywords allowed at the position of the suspected word are
//! recorded. The word before the error is also suspected, because the parser often reads a misspelt keyword as a name:
//! in `FORM t` the error is at `t`.

use crate::parser::Parser;
use crate::{Category, Error, ErrorKind, Expected, Keyword, Token, TokenKind};

/// Adds a hint to `error` if a misspelt keyword explains the error and no hint is set.
pub(crate) fn with_hint(error: Error, text: &str, tokens: &[Token]) -> Error {
    if error.hint.is_some() || !matches!(error.kind, ErrorKind::Unexpected { .. }) {
        return error;
    }
    let end = tokens.len() - 1;
    let at = tokens.iter().position(|t| t.span.start as usize >= error.position).unwrap_or(end);
    if let Some(hint) = of_another_dialect(text, tokens, at) {
        return error.with_hint(hint);
    }
    let found = [at.checked_sub(1), Some(at)].into_iter().flatten().find_map(|at| misspelt(text, tokens, at));
    match found {
        Some((keyword, word)) => error.with_hint(format!("did you mean {keyword} instead of {word}?")),
        None => error,
    }
}

/// Returns a hint for a form that other databases have and PostgreSQL does not.
fn of_another_dialect(text: &str, tokens: &[Token], at: usize) -> Option<String> {
    let word = |at: usize| tokens[at].span.slice(text);
    let before = at.checked_sub(1).map(word).unwrap_or_default();
    match (before.to_ascii_lowercase().as_str(), word(at).to_ascii_lowercase().as_str()) {
        ("top", rows) if rows.starts_with(|c: char| c.is_ascii_digit()) => {
            Some(format!("write LIMIT {rows} at the end of the query"))
        }
        (_, "isnot") => Some("write IS NOT".to_owned()),
        (_, "=>") => Some("write >=".to_owned()),
        (_, "=<") => Some("write <=".to_owned()),
        _ => None,
    }
}

/// Returns the keyword that the word at `at` probably misspells, and the word.
fn misspelt<'a>(text: &'a str, tokens: &[Token], at: usize) -> Option<(Keyword, &'a str)> {
    let token = tokens[at];
    let TokenKind::Word(own) = token.kind else { return None };
    let word = token.span.slice(text);
    if own.is_some_and(|keyword| keyword.category() == Category::Reserved) || word.len() < 3 {
        return None;
    }
    let lower = word.to_ascii_lowercase();
    let mut parser = Parser::tracing(text, tokens, at);
    let _ = parser.statement();
    let keywords = parser.into_expected().into_iter().filter_map(|expected| match expected {
        Expected::Keyword(keyword) if Some(keyword) != own => Some(keyword),
        _ => None,
    });
    let limit = if word.len() < 6 { 1 } else { 2 };
    let near = keywords.map(|keyword| (distance(&lower, keyword.text()), keyword));
    near.filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, keyword)| (keyword, word))
}

/// Returns the edit distance: insertions, deletions, substitutions, and swaps of adjacent letters.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > 2 {
        return usize::MAX;
    }
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = changed.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, expected) in [
            ("form", "from", 1),
            ("selec", "select", 1),
            ("wher", "where", 1),
            ("gruop", "group", 1),
            ("a", "abc", 2),
            ("same", "same", 0),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn misspelt_keywords_are_found() {
        for (text, hint) in [
            ("SELEC * FROM t", "did you mean SELECT instead of SELEC?"),
            ("SELECT * FORM t", "did you mean FROM instead of FORM?"),
            ("SELECT a FORM t", "did you mean FROM instead of FORM?"),
            ("SELECT a FROM t WERE a = 1", "did you mean WHERE instead of WERE?"),
            ("SELECT a FROM t GRUOP BY a", "did you mean GROUP instead of GRUOP?"),
            ("SELECT a FROM t ODER BY a", "did you mean ORDER instead of ODER?"),
            ("SELECT a FROM t LIMT 5", "did you mean LIMIT instead of LIMT?"),
            ("SELECT a FROM t SAMPEL BY 1h", "did you mean SAMPLE instead of SAMPEL?"),
            ("INSERT INTO t VALUSE (1)", "did you mean VALUES instead of VALUSE?"),
            ("INSRT INTO t VALUES (1)", "did you mean INSERT instead of INSRT?"),
            ("CREATE TABEL t (a INT)", "did you mean TABLE instead of TABEL?"),
            ("UPDATE t STE a = 1", "did you mean SET instead of STE?"),
            ("SELECT a FROM t JION u ON a = b", "did you mean JOIN instead of JION?"),
            ("SELECT TOP 5 * FROM t", "write LIMIT 5 at the end of the query"),
            ("SELECT a FROM t WHERE a ISNOT NULL", "write IS NOT"),
            ("SELECT a FROM t WHERE a => 1", "write >="),
        ] {
            let error = crate::parse(text).expect_err(text);
            assert_eq!(error.hint.as_deref(), Some(hint), "{text}: {error}");
        }
        for text in ["SELECT a FROM t WHERE", "SELECT a FROM t x y", "SELECT )"] {
            assert_eq!(crate::parse(text).expect_err(text).hint, None, "{text}");
        }
    }
}
