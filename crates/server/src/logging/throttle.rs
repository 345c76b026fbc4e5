//! Log lines that clients can cause as often as they like: a few at once and then one a second, with the number of those
//! left out.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lines that may come at once.
const BURST: u32 = 20;
/// One more line each.
const INTERVAL: Duration = Duration::from_secs(1);

/// Of one kind of line; kept in a `static`.
#[derive(Debug)]
pub struct LineThrottle(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Lines that may not come before this are left out; `None` before the first.
    due: Option<Instant>,
    left_out: u64,
}

impl LineThrottle {
    #[must_use]
    pub const fn new() -> LineThrottle {
        LineThrottle(Mutex::new(State { due: None, left_out: 0 }))
    }

    /// Returns how many lines were left out since the last one if a line may be logged now.
    #[must_use]
    pub fn pass(&self) -> Option<u64> {
        self.pass_at(Instant::now())
    }

    fn pass_at(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let due = state.due.map_or(now, |due| due.max(now));
        if due.duration_since(now) > INTERVAL * (BURST - 1) {
            state.left_out += 1;
            return None;
        }
        state.due = Some(due + INTERVAL);
        Some(std::mem::take(&mut state.left_out))
    }
}

/// The beginning of what a client sent, for a log line.
#[must_use]
pub fn cut(text: &str) -> String {
    const CHARS_MAX: usize = 64;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_few_lines_pass() {
        let throttle = LineThrottle::new();
        let start = Instant::now();
        let passed = (0..10_000).filter(|_| throttle.pass_at(start).is_some()).count();
        assert_eq!(passed, BURST as usize);
        assert_eq!(throttle.pass_at(start + INTERVAL), Some(10_000 - u64::from(BURST)));
        assert_eq!(throttle.pass_at(start + INTERVAL), None);
        assert_eq!(throttle.pass_at(start + 60 * INTERVAL), Some(1));
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(cut("name"), "name");
        let long = cut(&"ü".repeat(9000));
        assert_eq!((long.chars().count(), long.chars().last()), (65, Some('…')));
    }
}
