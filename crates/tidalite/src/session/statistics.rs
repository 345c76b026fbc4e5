//! Statistics of statements by normalised text, and the log of slow statements.
//!
//! Input: every statement that ends. Output: the rows of `statement_statistics()`, and a log line for each slow
//! statement.
//!
//! Invariant: at most [`ENTRIES_MAX`] texts of at most [`TEXT_BYTES_MAX`] bytes are kept; new texts replace the texts
//! with the fewest calls.

use super::{Activity, OWN, WATCHDOG};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tidalite_query::StatementStatistics;

/// Maximum number of texts.
const ENTRIES_MAX: usize = 1_000;
/// Texts that are removed together when the map is full: a removal reads all entries.
const ENTRIES_REMOVED: usize = 100;
/// Maximum bytes of a text; the rest is ignored.
const TEXT_BYTES_MAX: usize = 2_048;
/// Maximum bytes of a slow statement in the log.
const LOGGED_BYTES_MAX: usize = 1_000;

/// The costs and the outcome of a statement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub took: Duration,
    pub rows: u64,
    pub bytes: u64,
    pub is_failed: bool,
}

#[derive(Debug)]
pub(super) struct Statistics {
    /// Statements that take this long or longer are logged; zero for none.
    slow: Duration,
    slow_count: AtomicU64,
    entries: Mutex<HashMap<String, StatementStatistics>>,
}

impl Statistics {
    pub fn new(slow: Duration) -> Statistics {
        Statistics { slow, slow_count: AtomicU64::new(0), entries: Mutex::default() }
    }

    pub fn note(&self, statement: &Activity, ended: Ended) {
        if matches!(statement.client.as_str(), OWN | WATCHDOG) {
            return;
        }
        let Ended { took, rows, bytes, is_failed } = ended;
        if !self.slow.is_zero() && took >= self.slow {
            self.slow_count.fetch_add(1, Relaxed);
            let sql = cut(&statement.sql, LOGGED_BYTES_MAX);
            let took_ms = took.as_millis() as u64;
            tracing::warn!(took_ms, rows, bytes, is_failed, client = statement.client, sql, "slow statement");
        }
        let text = normalised(cut(&statement.sql, TEXT_BYTES_MAX));
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= ENTRIES_MAX && !entries.contains_key(&text) {
            evict(&mut entries);
        }
        let entry = entries.entry(text).or_insert_with_key(|text| StatementStatistics {
            query: text.clone(),
            calls: 0,
            errors: 0,
            total: Duration::ZERO,
            longest: Duration::ZERO,
            rows: 0,
            bytes: 0,
            last: statement.started,
        });
        entry.calls += 1;
        entry.errors += u64::from(is_failed);
        entry.total += took;
        entry.longest = entry.longest.max(took);
        entry.rows += rows;
        entry.bytes += bytes;
        entry.last = entry.last.max(statement.started);
    }

    /// Returns the number of statements that were logged as slow.
    pub fn slow_count(&self) -> u64 {
        self.slow_count.load(Relaxed)
    }

    /// Returns all entries, in descending order of total time.
    pub fn read(&self) -> Vec<StatementStatistics> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<StatementStatistics> = entries.values().cloned().collect();
        drop(entries);
        all.sort_unstable_by(|a, b| b.total.cmp(&a.total).then_with(|| a.query.cmp(&b.query)));
        all
    }
}

/// Removes the [`ENTRIES_REMOVED`] entries with the fewest calls, the oldest first.
fn evict(entries: &mut HashMap<String, StatementStatistics>) {
    let mut ranks: Vec<_> = entries.values().map(|e| (e.calls, e.last)).collect();
    let (_, &mut limit, _) = ranks.select_nth_unstable(ENTRIES_REMOVED - 1);
    let mut left = ENTRIES_REMOVED;
    entries.retain(|_, entry| {
        let goes = left > 0 && (entry.calls, entry.last) <= limit;
        left -= usize::from(goes);
        !goes
    });
}

fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Replaces constants and lists of constants by `?`, removes comments and normalizes white space.
fn normalised(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            c if c.is_whitespace() => space(&mut out, c.len_utf8()),
            '-' if rest.starts_with("--") => space(&mut out, rest.find('\n').unwrap_or(rest.len())),
            '/' if rest.starts_with("/*") => space(&mut out, rest.find("*/").map_or(rest.len(), |end| end + 2)),
            '\'' => constant(&mut out, quoted(rest, '\'')),
            '"' => copy(&mut out, &rest[..quoted(rest, '"')]),
            c if c.is_ascii_digit() && !out.ends_with(is_of_word) => constant(&mut out, number(rest)),
            c if is_of_word(c) => copy(&mut out, &rest[..rest.find(|c| !is_of_word(c)).unwrap_or(rest.len())]),
            ')' => close(&mut out),
            c => copy(&mut out, &rest[..c.len_utf8()]),
        };
        rest = &rest[length..];
    }
    out.truncate(out.trim_end_matches([' ', ';']).len());
    out
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '@')
}

fn copy(out: &mut String, text: &str) -> usize {
    out.push_str(text);
    text.len()
}

fn space(out: &mut String, length: usize) -> usize {
    if !out.is_empty() && !out.ends_with([' ', '(']) {
        out.push(' ');
    }
    length
}

/// Appends `?` for a constant, unless the constant follows another in a list.
fn constant(out: &mut String, length: usize) -> usize {
    let list = out.trim_end_matches([',', ' ']);
    if list.ends_with('?') && list.len() < out.len() && out[list.len()..].contains(',') {
        out.truncate(list.len());
    } else {
        out.push('?');
    }
    length
}

/// Appends `)`; removes a row of constants that follows another such row.
fn close(out: &mut String) -> usize {
    out.truncate(out.trim_end_matches(' ').len());
    if let Some(row) = out.strip_suffix("(?") {
        let before = row.trim_end_matches(' ');
        if before.ends_with(',') && before.trim_end_matches([',', ' ']).ends_with("(?)") {
            let length = before.trim_end_matches([',', ' ']).len();
            out.truncate(length);
            return 1;
        }
    }
    out.push(')');
    1
}

/// Returns the length of a quoted string; a doubled quote is part of the string.
fn quoted(text: &str, quote: char) -> usize {
    let mut from = 1;
    while let Some(end) = text[from..].find(quote) {
        from += end + 1;
        if !text[from..].starts_with(quote) {
            return from;
        }
        from += 1;
    }
    text.len()
}

fn number(text: &str) -> usize {
    let mut before = b'0';
    let is_of_number = |c: &u8| {
        let is_sign = matches!(c, b'+' | b'-') && matches!(before, b'e' | b'E');
        before = *c;
        is_sign || c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_')
    };
    text.as_bytes().iter().copied().take_while(is_of_number).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[test]
    fn constants_comments_and_spaces_do_not_matter() {
        for (sql, expected) in [
            ("SELECT  1", "SELECT ?"),
            (
                "select x1, \"a 'b\" from t2\n where v = 'it''s' and w<1.5e-3;",
                "select x1, \"a 'b\" from t2 where v = ? and w<?",
            ),
            ("select 1 -- all\n /* more */ + $1", "select ? + $1"),
            ("select * from t where v in (1, 2, 3)", "select * from t where v in (?)"),
            ("insert into t values (1, 'a'), (2, 'b') , (3,'c')", "insert into t values (?)"),
            ("select f(1), f(2)", "select f(?), f(?)"),
            ("select 'open", "select ?"),
            ("select \u{e4}1, 7\u{20ac}", "select \u{e4}1, ?\u{20ac}"),
            ("", ""),
            (" ; ", ""),
        ] {
            assert_eq!(normalised(sql), expected, "{sql}");
        }
    }

    fn statement(sql: &str, client: &str) -> Activity {
        let (client, sql, started) = (client.to_owned(), sql.to_owned(), SystemTime::now());
        Activity { id: 1, client, sql, started, rows: (0, 0), is_queued: false }
    }

    fn ended(ms: u64, is_failed: bool) -> Ended {
        Ended { took: Duration::from_millis(ms), rows: 2, bytes: 16, is_failed }
    }

    #[test]
    fn calls_of_one_text_are_added_up() {
        let statistics = Statistics::new(Duration::from_millis(20));
        statistics.note(&statement("select 1", "me"), ended(10, false));
        statistics.note(&statement("select  2", "you"), ended(30, true));
        statistics.note(&statement("select x", "me"), ended(50, false));
        statistics.note(&statement("refresh", OWN), ended(500, false));
        let all = statistics.read();
        assert_eq!(all.iter().map(|s| s.query.as_str()).collect::<Vec<_>>(), ["select x", "select ?"]);
        let both = &all[1];
        assert_eq!((both.calls, both.errors, both.rows, both.bytes), (2, 1, 4, 32));
        assert_eq!((both.total, both.longest), (Duration::from_millis(40), Duration::from_millis(30)));
        assert_eq!(statistics.slow_count(), 2);
    }

    #[test]
    fn texts_are_bounded_and_what_is_called_often_stays() {
        let statistics = Statistics::new(Duration::ZERO);
        (0..5).for_each(|_| statistics.note(&statement("select often", "me"), ended(1, false)));
        for n in 0..3 * ENTRIES_MAX {
            statistics.note(&statement(&format!("select c{n} {}", "x".repeat(9_000)), "me"), ended(1, false));
        }
        let all = statistics.read();
        assert!(all.len() <= ENTRIES_MAX && all.len() > ENTRIES_MAX - ENTRIES_REMOVED);
        assert!(all.iter().any(|s| s.query == "select often" && s.calls == 5));
        assert!(all.iter().all(|s| s.query.len() <= TEXT_BYTES_MAX));
    }
}
