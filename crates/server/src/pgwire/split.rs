//! A text cut into words and statements, without understanding more than quotes and comments.
//!
//! Always: agrees with the parser of SQL on where strings, names in quotes and comments end, so that a semicolon in one
//! of them ends no statement.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// A word or a number.
    Word(&'a str),
    /// In quotes, which are part of it.
    Name(&'a str),
    Text(&'a str),
    Symbol(char),
}

impl Token<'_> {
    /// A name: in lower case unless it is in quotes.
    #[must_use]
    pub fn identifier(self) -> Option<String> {
        match self {
            Token::Word(word) => Some(word.to_ascii_lowercase()),
            Token::Name(name) => Some(name.trim_matches(['"', '`']).replace("\"\"", "\"")),
            Token::Text(_) | Token::Symbol(_) => None,
        }
    }

    /// Whether it is this word, in any case.
    #[must_use]
    pub fn is_word(self, wanted: &str) -> bool {
        matches!(self, Token::Word(word) if word.eq_ignore_ascii_case(wanted))
    }
}

/// The tokens of a text, each with its place.
pub struct Tokens<'a> {
    sql: &'a str,
    at: usize,
}

#[must_use]
pub fn tokens(sql: &str) -> Tokens<'_> {
    Tokens { sql, at: 0 }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = (usize, Token<'a>);

    fn next(&mut self) -> Option<(usize, Token<'a>)> {
        self.skip_blanks();
        let start = self.at;
        let rest = &self.sql[start..];
        let first = rest.chars().next()?;
        let (length, token): (usize, fn(&'a str) -> Token<'a>) = match first {
            '\'' => (quoted(rest, '\'', false), Token::Text),
            'e' | 'E' if rest[1..].starts_with('\'') => (1 + quoted(&rest[1..], '\'', true), Token::Text),
            '"' | '`' => (quoted(rest, first, false), Token::Name),
            '$' => match dollar_quoted(rest) {
                Some(length) => (length, Token::Text),
                None => (1 + word(&rest[1..]), Token::Word),
            },
            c if is_word(c) => (word(rest), Token::Word),
            c => {
                self.at += c.len_utf8();
                return Some((start, Token::Symbol(c)));
            }
        };
        self.at += length;
        Some((start, token(&self.sql[start..self.at])))
    }
}

impl Tokens<'_> {
    /// Goes on to what is neither a blank nor a comment.
    fn skip_blanks(&mut self) {
        loop {
            let rest = &self.sql[self.at..];
            let blanks = rest.len() - rest.trim_start().len();
            self.at += if blanks > 0 {
                blanks
            } else if rest.starts_with("--") {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                comment(rest)
            } else {
                return;
            };
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '#' | '@' | '$')
}

fn word(text: &str) -> usize {
    text.find(|c| !is_word(c)).unwrap_or(text.len())
}

/// The length of what is in quotes; one without its end goes to the end of the text.
fn quoted(text: &str, quote: char, has_escapes: bool) -> usize {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == '\\' && has_escapes {
            chars.next();
        } else if c == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
            return at + quote.len_utf8();
        }
    }
    text.len()
}

/// `$$…$$`, `$tag$…$tag$`.
fn dollar_quoted(text: &str) -> Option<usize> {
    let tag =
        1 + text[1..].find(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|n| text[1 + n..].starts_with('$'))?;
    // `$1$` is a parameter.
    if text[1..].starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let delimiter = &text[..=tag];
    let body = &text[delimiter.len()..];
    Some(body.find(delimiter).map_or(text.len(), |end| delimiter.len() + end + delimiter.len()))
}

/// Comments nest.
fn comment(text: &str) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// The statements of a text, each with its place; what is between two semicolons and no more than comments is none.
#[must_use]
pub fn statements(sql: &str) -> Vec<(usize, &str)> {
    let mut out = Vec::new();
    let mut start: Option<usize> = None;
    for (at, token) in tokens(sql) {
        match (token, start) {
            (Token::Symbol(';'), Some(from)) => {
                out.push((from, &sql[from..at]));
                start = None;
            }
            (Token::Symbol(';'), None) => {}
            _ => start = start.or(Some(at)),
        }
    }
    out.extend(start.map(|from| (from, &sql[from..])));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(sql: &str) -> Vec<&str> {
        statements(sql).into_iter().map(|(_, part)| part).collect()
    }

    #[test]
    fn semicolons_end_statements() {
        assert_eq!(parts("select 1; select 2 ;"), ["select 1", "select 2 "]);
        assert_eq!(statements("  a;\n b"), [(2, "a"), (6, "b")]);
        assert!(parts("").is_empty() && parts(" ;; -- x\n ; /* ; */").is_empty());
    }

    #[test]
    fn semicolons_in_quotes_and_comments_do_not() {
        for sql in [
            "select ';'",
            "select 'it''s; so'",
            "select e'\\'; so'",
            "select \"a;b\"",
            "select `a;b`",
            "select 1 -- ; so\n + 1",
            "select /* ; /* ; */ ; */ 1",
            "select $$;$$",
            "select $a$;$$;$a$",
            "select 'no end; so",
        ] {
            assert_eq!(parts(sql), [sql]);
        }
        assert_eq!(parts("select $1; select $2"), ["select $1", "select $2"]);
    }

    #[test]
    fn no_text_panics() {
        let text = "é'ü';$ä$x$ä$/*ö*/--ß\n\"ñ\" e'\\é'";
        for (from, _) in text.char_indices() {
            for (to, _) in text.char_indices().filter(|(to, _)| *to >= from) {
                assert!(statements(&text[from..to]).len() <= 3);
            }
        }
    }
}
