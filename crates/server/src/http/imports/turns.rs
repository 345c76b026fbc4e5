//! Pieces of one file that come in requests of their own, several at once, and are committed in their order.
//!
//! A piece names its import and its number. It waits for its turn after it is parsed; when a piece fails, those behind it
//! fail too, so that what is in the table is the beginning of the file.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tidalite::{Error, ErrorKind, Result};
use tokio::sync::Notify;

/// A piece that does not come within this time is not waited for.
const WAIT: Duration = Duration::from_secs(60);
/// An import of which nothing was heard for so long is over.
const KEPT: Duration = Duration::from_secs(900);
/// Imports at a time.
const IMPORTS_MAX: usize = 1_000;

/// Clones share the imports.
#[derive(Clone, Debug, Default)]
pub struct Turns(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    imports: Mutex<HashMap<String, Import>>,
    changed: Notify,
}

#[derive(Debug)]
struct Import {
    next: u64,
    /// The first piece that failed.
    failed: Option<u64>,
    heard: Instant,
}

/// A piece on its way. Dropped before its turn has passed, it has failed.
#[derive(Debug)]
pub struct Turn {
    turns: Turns,
    import: String,
    piece: u64,
    has_passed: bool,
}

impl Turns {
    /// # Errors
    /// Too many imports at a time, or a number that was there before.
    pub fn enter(&self, import: &str, piece: u64) -> Result<Turn> {
        let now = Instant::now();
        let mut imports = self.lock();
        imports.retain(|_, import| now.duration_since(import.heard) < KEPT);
        if imports.len() >= IMPORTS_MAX && !imports.contains_key(import) {
            return Err(Error::new(ErrorKind::Unavailable, format!("{IMPORTS_MAX} imports are under way")));
        }
        let state = imports.entry(import.to_owned()).or_insert(Import { next: 0, failed: None, heard: now });
        state.heard = now;
        if piece < state.next {
            return Err(Error::new(ErrorKind::Invalid, format!("piece {piece} of the import is there already")));
        }
        drop(imports);
        Ok(Turn { turns: self.clone(), import: import.to_owned(), piece, has_passed: false })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Import>> {
        self.0.imports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// Returns when the pieces before are committed.
    ///
    /// # Errors
    /// One of them failed, or does not come.
    pub async fn come(&self) -> Result<()> {
        let until = tokio::time::Instant::now() + WAIT;
        loop {
            // Before the look, so that no change between both is missed.
            let changed = self.turns.0.changed.notified();
            if self.is_next()? {
                return Ok(());
            }
            if tokio::time::timeout_at(until, changed).await.is_err() {
                return Err(Error::new(ErrorKind::Unavailable, "a piece of the import before this one did not come"));
            }
        }
    }

    fn is_next(&self) -> Result<bool> {
        let imports = self.turns.lock();
        match imports.get(&self.import) {
            Some(import) if import.failed.is_some_and(|failed| failed < self.piece) => {
                Err(Error::new(ErrorKind::Conflict, "a piece of the import before this one failed"))
            }
            Some(import) => Ok(import.next == self.piece),
            None => Err(Error::new(ErrorKind::Conflict, "the import is over")),
        }
    }

    /// The commits of the piece are on their way: those of the next one come behind them.
    pub fn pass(mut self) {
        self.has_passed = true;
        if let Some(import) = self.turns.lock().get_mut(&self.import) {
            (import.next, import.heard) = (self.piece + 1, Instant::now());
        }
        self.turns.0.changed.notify_waiters();
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.has_passed {
            if let Some(import) = self.turns.lock().get_mut(&self.import) {
                import.failed = Some(import.failed.map_or(self.piece, |failed| failed.min(self.piece)));
            }
            self.turns.0.changed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test]
    async fn pieces_come_in_their_order_and_end_with_the_first_that_fails() {
        let turns = Turns::default();
        let all: Vec<Turn> = (0..4).map(|piece| turns.enter("a", piece).unwrap()).collect();
        let [first, second, third, fourth] = <[Turn; 4]>::try_from(all).unwrap();
        let mut waiting = Box::pin(second.come());
        assert!(waiting.as_mut().now_or_never().is_none());
        first.come().await.unwrap();
        first.pass();
        waiting.await.unwrap();
        // Another import has turns of its own.
        turns.enter("b", 0).unwrap().come().await.unwrap();
        drop(third);
        assert_eq!(fourth.come().await.unwrap_err().kind, ErrorKind::Conflict);
        second.come().await.unwrap();
        second.pass();
        assert!(turns.enter("a", 1).is_err());
        assert!(turns.enter("a", 4).unwrap().come().await.is_err());
    }
}
