//! Names without regard to case.
//!
//! Before a statement is parsed every word of it is folded to lower case, quoted or not, and tables show their
//! columns folded, so that the planner only ever compares equal strings. How a name was written is kept here and
//! given back to the columns of the result.

use crate::dialect::TidaliteDialect;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};
use std::collections::HashMap;
use std::sync::Arc;
use tidalite_sql::TokenKind;
use tidalite_types::schema::fold_name;

/// Between the name of a column and that of its side.
const OF: &str = "·of·";

/// The name that the column of one side of a join has beside the join's own ([`crate::dialect`]).
pub(crate) fn name_of_side(column: &str, side: &str) -> String {
    format!("{column}{OF}{side}")
}

/// A column's name without the side that was put behind it.
pub(crate) fn without_side(name: &str) -> &str {
    name.split_once(OF).map_or(name, |(column, _)| column)
}

/// The words of one statement.
#[derive(Clone, Debug, Default)]
pub struct Words {
    pub(crate) sql: String,
    /// The spelling of a folded word; one written after AS wins, else the first.
    spelled: HashMap<String, String>,
    /// Folded words after AS: their spelling also wins over the table's.
    aliases: HashMap<String, String>,
    line_starts: Vec<usize>,
}

impl Words {
    /// Folds the words of `tokens` and remembers them.
    pub(crate) fn fold(sql: &str, tokens: &mut [TokenWithSpan]) -> Words {
        let mut words = Words { sql: sql.to_owned(), line_starts: line_starts(sql), ..Words::default() };
        let mut is_after_as = false;
        for token in tokens {
            match &mut token.token {
                Token::Whitespace(_) => continue,
                Token::Word(word) => {
                    let folded = fold_name(&word.value);
                    let spelling = std::mem::replace(&mut word.value, folded.clone());
                    if is_after_as {
                        words.aliases.insert(folded.clone(), spelling.clone());
                    }
                    is_after_as = word.quote_style.is_none() && folded == "as";
                    words.spelled.entry(folded).or_insert(spelling);
                }
                _ => is_after_as = false,
            }
        }
        words
    }

    /// Reads the words of a text that the parser of [`tidalite_sql`] accepts.
    pub(crate) fn read(sql: &str) -> Words {
        let mut words = Words { sql: sql.to_owned(), line_starts: line_starts(sql), ..Words::default() };
        let mut is_after_as = false;
        for token in tidalite_sql::lexer::tokens(sql).unwrap_or_default() {
            let written = token.span.slice(sql);
            let (spelling, is_quoted) = match token.kind {
                TokenKind::Word(_) => (written.to_owned(), false),
                TokenKind::QuotedName => (written[1..written.len() - 1].replace("\"\"", "\""), true),
                TokenKind::BacktickName => (written[1..written.len() - 1].to_owned(), true),
                _ => {
                    is_after_as = false;
                    continue;
                }
            };
            let folded = fold_name(&spelling);
            if is_after_as {
                words.aliases.insert(folded.clone(), spelling.clone());
            }
            is_after_as = !is_quoted && folded == "as";
            words.spelled.entry(folded).or_insert(spelling);
        }
        words
    }

    /// The same words, for a text that differs in its constants only.
    pub(crate) fn of_text(self: &Arc<Self>, sql: &str) -> Arc<Words> {
        if self.sql == sql {
            return self.clone();
        }
        Arc::new(Words { sql: sql.to_owned(), line_starts: line_starts(sql), ..Words::clone(self) })
    }

    /// Byte offset of a place that the tokenizer counted in lines and characters.
    pub(crate) fn offset(&self, location: Location) -> Option<usize> {
        (location.line > 0).then(|| offset(&self.sql, &self.line_starts, location))
    }

    /// The word at a place as it was written, when it is `folded`.
    pub(crate) fn written(&self, place: usize, folded: &str) -> Option<&str> {
        let word = self.sql.get(place..place + folded.len())?;
        (fold_name(word) == folded).then_some(word)
    }

    /// Returns the name in double quotes that begins at a position.
    pub(crate) fn quoted_at(&self, position: Option<usize>) -> Option<&str> {
        let name = self.sql.get(position?..)?.strip_prefix('"')?;
        name.find('"').map(|end| &name[..end])
    }

    /// Where the folded word stands first, or a string, which is named by its text with a quote before it. Asked
    /// for errors only, and so read from the text again.
    pub(crate) fn place_of(&self, name: &str) -> Option<usize> {
        let tokens = Tokenizer::new(&TidaliteDialect, &self.sql).tokenize_with_location().ok()?;
        let found = tokens.into_iter().find(|token| match &token.token {
            Token::Word(word) => fold_name(&word.value) == name,
            Token::SingleQuotedString(text) => name.strip_prefix('\'') == Some(text),
            Token::Number(number, _) => number == name,
            _ => false,
        });
        self.offset(found?.span.start)
    }

    /// The place of an error that has none: where what it is about stands, the clause that its text begins with, or the
    /// only division.
    pub(crate) fn place_of_error(&self, error: &crate::Error) -> Option<usize> {
        let found = |subject: &str| self.place_of(subject).or_else(|| self.place_of_operator(subject));
        if let Some(found) = error.subject.as_deref().and_then(found) {
            return Some(found);
        }
        let text = error.to_string();
        if text == "division by zero" {
            return self.place_of_division();
        }
        let clause = text.split(' ').next().filter(|w| w.len() > 2 && w.bytes().all(|b| b.is_ascii_uppercase()))?;
        self.place_of(&clause.to_lowercase())
    }

    /// Returns the position of an operator that the text has once.
    fn place_of_operator(&self, operator: &str) -> Option<usize> {
        let tokens = Tokenizer::new(&TidaliteDialect, &self.sql).tokenize_with_location().ok()?;
        let is_name =
            |token: &Token| matches!(token, Token::Word(_) | Token::SingleQuotedString(_) | Token::Whitespace(_));
        let is_same = |token: &Token| !is_name(token) && token.to_string() == operator;
        let mut found = tokens.iter().filter(|token| is_same(&token.token));
        match (found.next(), found.next()) {
            (Some(only), None) => self.offset(only.span.start),
            _ => None,
        }
    }

    fn place_of_division(&self) -> Option<usize> {
        let tokens = Tokenizer::new(&TidaliteDialect, &self.sql).tokenize_with_location().ok()?;
        let divides = |token: &Token| match token {
            Token::Div | Token::Mod | Token::DuckIntDiv => true,
            Token::Word(word) => ["mod", "div"].contains(&fold_name(&word.value).as_str()),
            _ => false,
        };
        let tokens: Vec<_> = tokens.into_iter().filter(|t| !matches!(t.token, Token::Whitespace(_))).collect();
        // One by a number that is not zero is not it.
        let is_safe = |at: usize| match tokens.get(at + 1).map(|t| &t.token) {
            Some(Token::Number(number, _)) => number.parse::<f64>().is_ok_and(|n| n != 0.0),
            _ => false,
        };
        let places = tokens.iter().enumerate().filter(|(at, t)| divides(&t.token) && !is_safe(*at));
        let mut found = places.map(|(_, token)| token);
        match (found.next(), found.next()) {
            (Some(only), None) => self.offset(only.span.start),
            _ => None,
        }
    }

    /// How a column of the result is to be spelled: as an alias that was written, else as the table has it, else
    /// as it was first written.
    pub(crate) fn spelling<'a>(&'a self, folded: &'a str, in_table: Option<&'a str>) -> &'a str {
        if let Some(alias) = self.aliases.get(folded) {
            return alias;
        }
        // A column under another name that nobody wrote, as the second of a name has, is not called as in its table.
        let is_own = |name: &&str| {
            let known = fold_name(name);
            let number = folded.strip_prefix(known.as_str());
            number.is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()))
        };
        in_table.filter(is_own).or_else(|| self.spelled.get(folded).map(String::as_str)).unwrap_or(folded)
    }
}

/// Quotes a name as PostgreSQL does: only if it is not a plain word or is a keyword.
pub(crate) fn quoted(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if is_plain && !crate::pg_catalog::is_keyword(name) {
        return name.to_owned();
    }
    in_quotes(name)
}

/// Puts a name into quotes, which any statement accepts.
pub(crate) fn in_quotes(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Splits a dotted name into words, folded unless quoted; `None` for an invalid name.
pub(crate) fn identifiers(text: &str) -> Option<Vec<String>> {
    let (mut out, mut chars) = (Vec::new(), text.trim().chars().peekable());
    loop {
        let mut word = String::new();
        if chars.next_if_eq(&'"').is_some() {
            loop {
                match chars.next()? {
                    '"' if chars.next_if_eq(&'"').is_none() => break,
                    c => word.push(c),
                }
            }
        } else {
            let is_first = |c: &char| c.is_alphabetic() || *c == '_';
            word.extend(chars.next_if(is_first)?.to_lowercase());
            while let Some(c) = chars.next_if(|c| c.is_alphanumeric() || matches!(c, '_' | '$')) {
                word.extend(c.to_lowercase());
            }
        }
        out.push(word);
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        match chars.next() {
            None => return Some(out),
            Some('.') => while chars.next_if(|c| c.is_whitespace()).is_some() {},
            Some(_) => return None,
        }
    }
}

fn line_starts(sql: &str) -> Vec<usize> {
    std::iter::once(0).chain(sql.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

/// `location` counts lines and characters from 1.
fn offset(sql: &str, line_starts: &[usize], location: Location) -> usize {
    let line = (location.line as usize).saturating_sub(1);
    let start = line_starts.get(line).copied().unwrap_or(sql.len());
    let column = (location.column as usize).saturating_sub(1);
    sql[start..].char_indices().nth(column).map_or(sql.len(), |(at, _)| start + at)
}

/// The candidate closest to `name`, if any is close enough to be a slip of the fingers.
pub(crate) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = fold_name(name);
    let limit = (name.chars().count() + 1) / 3;
    let scored = candidates.map(|c| (edit_distance(&name, &fold_name(c), limit), c));
    scored.filter(|(d, _)| *d <= limit).min_by_key(|(d, _)| *d).map(|(_, c)| c)
}

/// Insertions, deletions, substitutions and neighbours exchanged between two names; `limit + 1` stands for all that is
/// more.
fn edit_distance(a: &str, b: &str, limit: usize) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > limit {
        return limit + 1;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let substituted = last[j] + usize::from(a[i] != b[j]);
            let mut least = substituted.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()].min(limit + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let words = |words: &[&str]| Some(words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>());
        assert_eq!(identifiers("Public.\"A b\""), words(&["public", "A b"]));
        assert_eq!(identifiers("\"a\"\"b\""), words(&["a\"b"]));
        assert_eq!(identifiers(" a . b "), words(&["a", "b"]));
        for wrong in ["", "a.", ".a", "1a", "a b", "\"a", "a;b"] {
            assert_eq!(identifiers(wrong), None, "{wrong}");
        }
        for (name, written) in
            [("public", "public"), ("Mixed", "\"Mixed\""), ("select", "\"select\""), ("a\"b", "\"a\"\"b\"")]
        {
            assert_eq!(quoted(name), written);
        }
    }

    #[test]
    fn the_nearest_name_is_a_slip_away_or_none() {
        let names = ["usage_user", "usage_system", "hostname"];
        assert_eq!(nearest("usage_usr", names.into_iter()), Some("usage_user"));
        assert_eq!(nearest("HOSTNMAE", names.into_iter()), Some("hostname"));
        assert_eq!(nearest("price", names.into_iter()), None);
        assert_eq!(nearest("twap", ["map", "trim"].into_iter()), None, "half of it would have to be another");
        assert_eq!(nearest("ts", ["tss"].into_iter()), Some("tss"));
        assert_eq!(nearest("cuont", ["cot", "count"].into_iter()), Some("count"), "two letters exchanged are one slip");
    }
}
