//! The clauses that the stock grammar lacks, moved into slots it has. Tokens in, tokens out, each with its place.
//!
//! | written | becomes |
//! |---|---|
//! | `SAMPLE BY 1h FROM a TO b FILL(x) ALIGN TO …` | `CLUSTER BY __sample_by('1h', a, b, 'calendar', zone, offset, x)` |
//! | `LATEST ON ts PARTITION BY k` | `SORT BY __latest_on(ts, k)` |
//! | `ASOF JOIN t ON (k) TOLERANCE 5m` | `ASOF JOIN t MATCH_CONDITION (__time_join('asof', '5m')) USING (k)` |
//! | `WINDOW JOIN t ON (k) RANGE BETWEEN 1 second PRECEDING AND …` | `ASOF JOIN t MATCH_CONDITION (__window_join(__bound(-(1), 'second'), …, 'include')) USING (k)` |
//! | `ts IN '2018'`, `ts IN today()` | `ts IN (__interval('2018'))`, `ts IN (__interval(today()))` |
//! | `a <<= b`, `a >>= b` | `a <@ b`, `a @> b` |
//!
//! Joins are in [`super::joins`]. PIVOT and DECLARE are planned by the binder alone.
//!
//! The planner knows none of the slots, so nothing passes as something else. [`super::rewrite`] takes them out again.

use crate::names::Words;
use crate::{Error, Result};
use datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan};
use std::cell::Cell;

pub(super) const SAMPLE_BY: &str = "__sample_by";
pub(super) const LATEST_ON: &str = "__latest_on";
pub(super) const TIME_JOIN: &str = "__time_join";
pub(super) const WINDOW_JOIN: &str = "__window_join";
pub(super) const BOUND: &str = "__bound";
pub(crate) const INTERVAL: &str = "__interval";
/// `interval(lo, hi)`.
pub(crate) const RANGE: &str = "__range";

/// Clauses within clauses are copied once for each level. A statement is refused that copies more tokens than this
/// number and so many times its own.
const COPIED_MAX: usize = 100_000;
const COPIED_TIMES: usize = 16;

/// Words that end a clause after WHERE.
pub(super) const CLAUSE_ENDS: &[&str] = &[
    "order",
    "limit",
    "union",
    "except",
    "intersect",
    "group",
    "having",
    "window",
    "qualify",
    "offset",
    "fetch",
    "sample",
    "latest",
];

/// Of the bounds of frames, without an s at their end.
const UNITS: &[&str] =
    &["nanosecond", "microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "year"];

/// The text of an expression with intervals as they are written.
pub(super) fn as_written(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once(&format!("({INTERVAL}(")) {
        let mut depth = 0_usize;
        let closes = after.char_indices().find(|(_, c)| {
            match c {
                '(' => depth += 1,
                ')' if depth == 0 => return true,
                ')' => depth -= 1,
                _ => {}
            }
            false
        });
        let Some((end, _)) = closes else { break };
        out.push_str(before);
        out.push_str(&after[..end]);
        rest = after[end + 1..].strip_prefix(')').unwrap_or(&after[end + 1..]);
    }
    (out + rest).replace(&format!("{RANGE}("), "interval(")
}

pub(super) fn moved(tokens: Vec<TokenWithSpan>, words: &Words) -> Result<Vec<TokenWithSpan>> {
    let tokens: Vec<_> = tokens.into_iter().filter(|t| !matches!(t.token, Token::Whitespace(_))).collect();
    let is_show = tokens.first().is_some_and(|t| is_word(&t.token, "show"));
    if is_show {
        return Ok(tokens);
    }
    part(&tokens, words, &Cell::new(COPIED_MAX + COPIED_TIMES * tokens.len()))
}

/// `may_copy`: how many tokens more may be copied in the whole statement.
fn part(tokens: &[TokenWithSpan], words: &Words, may_copy: &Cell<usize>) -> Result<Vec<TokenWithSpan>> {
    let out = Vec::with_capacity(tokens.len() + 8);
    let mut mover = Mover { tokens, words, may_copy, at: 0, out, callers: Vec::new() };
    while mover.at < tokens.len() {
        mover.one()?;
    }
    Ok(mover.out)
}

pub(super) fn is_word(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(w) if w.quote_style.is_none() && w.value == word)
}

pub(super) fn is_one_of(token: &Token, words: &[&str]) -> bool {
    words.iter().any(|word| is_word(token, word))
}

pub(super) struct Mover<'a> {
    pub(super) tokens: &'a [TokenWithSpan],
    words: &'a Words,
    may_copy: &'a Cell<usize>,
    pub(super) at: usize,
    pub(super) out: Vec<TokenWithSpan>,
    /// The word before each parenthesis that is open.
    callers: Vec<String>,
}

impl<'a> Mover<'a> {
    fn one(&mut self) -> Result<()> {
        let follows_dot = self.at > 0 && self.tokens[self.at - 1].token == Token::Period;
        if !follows_dot {
            if self.sees(0, "sample") && self.sees(1, "by") {
                return self.sample_by();
            }
            if self.sees(0, "latest") && (self.sees(1, "on") || self.sees(1, "by")) {
                return self.latest();
            }
            if self.sees(1, "join") && is_one_of(self.token(0), &["asof", "lt", "splice"]) {
                return self.time_join();
            }
            if self.sees(0, "window") && self.sees(1, "join") {
                return self.window_join();
            }
            if self.sees(0, "in") && self.interval() {
                return Ok(());
            }
            if self.sees(0, "interval") && self.is_pair(self.at + 1) {
                let span = self.span(0);
                self.word(RANGE, span);
                self.at += 1;
                return Ok(());
            }
            if self.sees(0, "timestamp") && self.timed() {
                return Ok(());
            }
            let is_distinct_on = self.at > 0 && is_word(&self.tokens[self.at - 1].token, "distinct");
            if self.sees(0, "on") && !is_distinct_on && self.names_in_parentheses(self.at + 1) {
                let span = self.span(0);
                self.word("using", span);
                self.at += 1;
                return Ok(());
            }
        }
        if self.frame()? {
            return Ok(());
        }
        let shifted = match (self.token(0), self.token(1)) {
            (Token::ShiftLeft, Token::Eq) => Some(Token::ArrowAt),
            (Token::ShiftRight, Token::Eq) => Some(Token::AtArrow),
            _ => None,
        };
        if let Some(contained) = shifted {
            self.symbol(contained, self.span(0));
            self.at += 2;
            return Ok(());
        }
        match self.token(0) {
            Token::LParen => {
                let caller = match self.at.checked_sub(1).map(|before| &self.tokens[before].token) {
                    Some(Token::Word(word)) => word.value.clone(),
                    _ => String::new(),
                };
                self.callers.push(caller);
            }
            Token::RParen => drop(self.callers.pop()),
            _ => {}
        }
        self.out.push(self.tokens[self.at].clone());
        self.at += 1;
        Ok(())
    }

    /// Reads the extensions of a window frame: bounds as times (`2 hours PRECEDING`) and EXCLUDE.
    fn frame(&mut self) -> Result<bool> {
        let span = self.span(0);
        let is_bound = self.sees(2, "preceding") || self.sees(2, "following");
        if let (Token::Number(count, _), Token::Word(unit)) = (self.token(0), self.token(1))
            && is_bound
            && UNITS.contains(&unit.value.trim_end_matches('s'))
        {
            self.word("interval", span);
            self.text(&format!("{count} {}", unit.value), span);
            self.at += 2;
            return Ok(true);
        }
        let ends_frame = self.out.last().is_some_and(|t| is_one_of(&t.token, &["row", "preceding", "following"]));
        if !self.sees(0, "exclude") || !ends_frame {
            return Ok(false);
        }
        if self.take(&["exclude", "no", "others"]) {
            return Ok(true);
        }
        let what = ["group", "ties"].into_iter().find(|what| self.sees(1, what));
        let is_row = self.sees(1, "current") && self.sees(2, "row");
        if what.is_none() && !is_row {
            self.at += 1;
            return self.refused("CURRENT ROW, GROUP, TIES or NO OTHERS");
        }
        if !super::exclusions::noted(&mut self.out, what.unwrap_or("current_row")) {
            return self.refused("a window around its frame");
        }
        self.at += if is_row { 3 } else { 2 };
        Ok(true)
    }

    pub(super) fn token(&self, n: usize) -> &'a Token {
        self.tokens.get(self.at + n).map_or(&Token::EOF, |t| &t.token)
    }

    pub(super) fn span(&self, n: usize) -> Span {
        self.tokens.get(self.at + n).or(self.tokens.last()).map_or_else(Span::empty, |t| t.span)
    }

    pub(super) fn sees(&self, n: usize, word: &str) -> bool {
        is_word(self.token(n), word)
    }

    pub(super) fn take(&mut self, sequence: &[&str]) -> bool {
        let found = sequence.iter().enumerate().all(|(n, word)| self.sees(n, word));
        if found {
            self.at += sequence.len();
        }
        found
    }

    pub(super) fn refused<T>(&self, expected: &str) -> Result<T> {
        let (found, position) = match self.tokens.get(self.at) {
            Some(t) if t.token != Token::EOF => (self.written(self.at), self.words.offset(t.span.start)),
            _ => ("end of statement".to_owned(), Some(self.words.sql.len())),
        };
        let mut error = Error::invalid(format!("syntax error: expected {expected}, found {found}"));
        error.position = position;
        Err(error)
    }

    /// A token as it stands in the text; words are folded, and `m` is not `M`.
    pub(super) fn written(&self, at: usize) -> String {
        let Some(token) = self.tokens.get(at) else { return String::new() };
        match &token.token {
            Token::Word(word) => {
                let place = self.words.offset(token.span.start);
                let text = place.and_then(|place| self.words.written(place, &word.value));
                text.unwrap_or(&word.value).to_owned()
            }
            other => other.to_string(),
        }
    }

    pub(super) fn word(&mut self, word: &str, span: Span) {
        self.out.push(TokenWithSpan::new(Token::make_word(word, None), span));
    }

    pub(super) fn text(&mut self, text: &str, span: Span) {
        self.out.push(TokenWithSpan::new(Token::SingleQuotedString(text.to_owned()), span));
    }

    pub(super) fn symbol(&mut self, token: Token, span: Span) {
        self.out.push(TokenWithSpan::new(token, span));
    }

    /// The first token from `from` on that is one of `ends`, or that ends the parentheses or the statement.
    pub(super) fn end_of(&self, from: usize, ends: &[&str]) -> usize {
        let mut depth = 0_usize;
        for (n, token) in self.tokens.iter().enumerate().skip(from) {
            match &token.token {
                Token::LParen | Token::LBracket => depth += 1,
                Token::RParen | Token::RBracket if depth == 0 => return n,
                Token::RParen | Token::RBracket => depth -= 1,
                Token::EOF | Token::SemiColon => return n,
                token if depth == 0 && is_one_of(token, ends) => return n,
                _ => {}
            }
        }
        self.tokens.len()
    }

    /// Copies what comes up to `end`, its own clauses moved.
    pub(super) fn copy(&mut self, end: usize) -> Result<()> {
        let Some(left) = self.may_copy.get().checked_sub(end - self.at) else {
            let mut error = Error::invalid("the statement grows too long by clauses that stand within each other");
            error.position = self.words.offset(self.span(0).start);
            return Err(error);
        };
        self.may_copy.set(left);
        let inner = part(&self.tokens[self.at..end], self.words, self.may_copy)?;
        self.out.extend(inner);
        self.at = end;
        Ok(())
    }

    /// A number and a letter beside it, or a letter alone: `1h`, `h`.
    pub(super) fn length(&mut self, what: &str) -> Result<String> {
        let negative = if *self.token(0) == Token::Minus { "-" } else { "" };
        self.at += negative.len();
        let count = match self.token(0) {
            Token::Number(count, _) => count.clone(),
            _ => String::new(),
        };
        let at = if count.is_empty() { self.at } else { self.at + 1 };
        let unit = self.written(at);
        let text = format!("{negative}{count}{unit}");
        let is_word = matches!(self.tokens.get(at).map(|t| &t.token), Some(Token::Word(w)) if w.quote_style.is_none());
        if !is_word || crate::calendar::Stride::parse(&text).is_none() {
            return self.refused(what);
        }
        self.at = at + 1;
        Ok(text)
    }

    fn sample_by(&mut self) -> Result<()> {
        let span = self.span(0);
        self.at += 2;
        let position = self.words.offset(self.span(0).start).unwrap_or_default();
        let stride = self.length("a length of time such as 15m (n U T s m h d w M y)")?;
        if crate::calendar::Stride::parse(&stride).is_none_or(|s| s.count < 1) {
            return Err(Error::invalid("SAMPLE BY takes a length of at least one unit").at(position));
        }
        self.word("cluster", span);
        self.word("by", span);
        self.word(SAMPLE_BY, span);
        self.symbol(Token::LParen, span);
        self.text(&stride, span);
        let bounds = [CLAUSE_ENDS, &["from", "to", "fill", "align"]].concat();
        for keyword in ["from", "to"] {
            self.symbol(Token::Comma, span);
            if self.take(&[keyword]) {
                let end = self.end_of(self.at, &bounds);
                self.copy(end)?;
            } else {
                self.word("null", span);
            }
        }
        let fill = if self.take(&["fill"]) { Some(self.parentheses()?) } else { None };
        self.alignment(span)?;
        if let Some((from, to)) = fill {
            self.symbol(Token::Comma, span);
            let at = std::mem::replace(&mut self.at, from);
            self.copy(to)?;
            self.at = at;
        }
        self.symbol(Token::RParen, span);
        Ok(())
    }

    /// What stands in the parentheses that come next, which are passed over.
    fn parentheses(&mut self) -> Result<(usize, usize)> {
        if *self.token(0) != Token::LParen {
            return self.refused("(");
        }
        let from = self.at + 1;
        let to = self.end_of(from, &[]);
        self.at = to;
        if *self.token(0) != Token::RParen {
            return self.refused(")");
        }
        self.at = to + 1;
        Ok((from, to))
    }

    fn alignment(&mut self, span: Span) -> Result<()> {
        let mut kind = "calendar";
        let mut given = [None, None];
        if self.take(&["align"]) {
            if self.take(&["to", "first", "observation"]) {
                kind = "first";
            } else if self.take(&["to", "calendar"]) {
                if self.take(&["time", "zone"]) {
                    given[0] = Some(self.string("a time zone in single quotes")?);
                }
                if self.take(&["with", "offset"]) {
                    given[1] = Some(self.string("an offset such as '+01:30'")?);
                }
            } else {
                return self.refused("TO CALENDAR or TO FIRST OBSERVATION");
            }
        }
        self.symbol(Token::Comma, span);
        self.text(kind, span);
        for text in given {
            self.symbol(Token::Comma, span);
            match text {
                Some(token) => self.out.push(token),
                None => self.word("null", span),
            }
        }
        Ok(())
    }

    fn string(&mut self, what: &str) -> Result<TokenWithSpan> {
        if !matches!(self.token(0), Token::SingleQuotedString(_)) {
            return self.refused(what);
        }
        self.at += 1;
        Ok(self.tokens[self.at - 1].clone())
    }

    /// `LATEST ON ts PARTITION BY k, …`, and the older `LATEST BY k, …`, which has no timestamp.
    fn latest(&mut self) -> Result<()> {
        let span = self.span(0);
        let names_time = self.sees(1, "on");
        self.at += 2;
        self.word("sort", span);
        self.word("by", span);
        self.word(LATEST_ON, span);
        self.symbol(Token::LParen, span);
        if names_time {
            let end = self.end_of(self.at, &[CLAUSE_ENDS, &["partition"]].concat());
            self.copy(end)?;
            if !self.take(&["partition", "by"]) {
                return self.refused("PARTITION BY");
            }
        } else {
            self.word("null", span);
        }
        self.symbol(Token::Comma, span);
        let end = self.end_of(self.at, &[CLAUSE_ENDS, &["where"]].concat());
        if end == self.at {
            return self.refused("a column");
        }
        self.copy(end)?;
        if self.sees(0, "where") {
            let mut error = Error::invalid("LATEST ON comes after WHERE");
            error.position = self.words.offset(self.span(0).start);
            return Err(
                error.with_hint("to filter the latest rows, put the query in parentheses: SELECT * FROM (…) WHERE")
            );
        }
        self.symbol(Token::RParen, span);
        Ok(())
    }

    /// Whether two values in parentheses come: `(lo, hi)`.
    fn is_pair(&self, from: usize) -> bool {
        if self.tokens.get(from).is_none_or(|t| t.token != Token::LParen) {
            return false;
        }
        let mut depth = 0_usize;
        for token in &self.tokens[from..] {
            match &token.token {
                Token::LParen | Token::LBracket => depth += 1,
                Token::RParen | Token::RBracket if depth <= 1 => return false,
                Token::RParen | Token::RBracket => depth -= 1,
                Token::Comma if depth == 1 => return true,
                _ => {}
            }
        }
        false
    }

    /// Whether what comes are names in parentheses: `(a, b)`.
    fn names_in_parentheses(&self, from: usize) -> bool {
        if self.tokens.get(from).is_none_or(|t| t.token != Token::LParen) {
            return false;
        }
        let mut wants_name = true;
        for token in &self.tokens[from + 1..] {
            match &token.token {
                Token::Word(_) if wants_name => wants_name = false,
                Token::Comma if !wants_name => wants_name = true,
                Token::RParen => return !wants_name,
                _ => return false,
            }
        }
        false
    }

    /// `IN` with an interval after it instead of a list.
    fn interval(&mut self) -> bool {
        let end = match self.token(1) {
            // POSITION('a' IN 'b') is another matter.
            Token::SingleQuotedString(_) | Token::Placeholder(_)
                if self.callers.last().is_none_or(|c| c != "position") =>
            {
                self.at + 2
            }
            Token::Word(w)
                if ["today", "yesterday", "tomorrow", "interval"].contains(&w.value.as_str())
                    && *self.token(2) == Token::LParen =>
            {
                self.end_of(self.at + 3, &[]) + 1
            }
            _ => return false,
        };
        if end > self.tokens.len() {
            return false;
        }
        let span = self.span(1);
        self.out.push(self.tokens[self.at].clone());
        self.symbol(Token::LParen, span);
        self.word(INTERVAL, span);
        self.symbol(Token::LParen, span);
        // The stock parser takes INTERVAL for the beginning of a literal.
        let is_range = self.sees(1, "interval");
        if is_range {
            self.word(RANGE, span);
        }
        self.out.extend_from_slice(&self.tokens[self.at + 1 + usize::from(is_range)..end]);
        self.symbol(Token::RParen, span);
        self.symbol(Token::RParen, span);
        self.at = end;
        true
    }
}
