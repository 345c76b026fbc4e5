//! Throttle for log lines that clients can trigger: a burst, then one line per second with the number of omitted lines.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lines in a burst.
const BURST: u32 = 20;
/// Interval of further lines.
const INTERVAL: Duration = Duration::from_secs(1);

/// The throttle of one kind of log line; kept in a `static`.
#[derive(Debug)]
pub struct LineThrottle(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Time until which earlier lines use up the rate; `None` before the first line.
    due: Option<Instant>,
    left_out: u64,
}

impl LineThrottle {
    #[must_use]
    pub const fn new() -> LineThrottle {
        LineThrottle(Mutex::new(State { due: None, left_out: 0 }))
    }

    /// Returns the number of lines omitted since the last one if a line may be logged now, otherwise `None`.
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

/// Returns the first 64 characters of a client's text, for log lines and messages.
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
    fn burst_and_rate() {
        let throttle = LineThrottle::new();
        let start = Instant::now();
        let passed = (0..10_000).filter(|_| throttle.pass_at(start).is_some()).count();
        assert_eq!(passed, BURST as usize);
        assert_eq!(throttle.pass_at(start + INTERVAL), Some(10_000 - u64::from(BURST)));
        assert_eq!(throttle.pass_at(start + INTERVAL), None);
        assert_eq!(throttle.pass_at(start + 60 * INTERVAL), Some(1));
    }

    #[test]
    fn cut_between_characters() {
        assert_eq!(cut("name"), "name");
        let long = cut(&"ü".repeat(9000));
        assert_eq!((long.chars().count(), long.chars().last()), (65, Some('…')));
    }
}
