//! Limits the distance between parsers and commits, because parsed parts wait in memory.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Parsers wait here, and the committing thread moves the window. A piece with many parts sends only its first part in
/// advance.
#[derive(Debug)]
pub(super) struct Window {
    pieces: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The next piece to be committed.
    next: u64,
    is_closed: bool,
}

impl Window {
    pub(super) fn new(pieces: usize) -> Window {
        Window { pieces: pieces as u64, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Waits until the part of the piece may be sent; returns false if the import has ended.
    pub(super) fn wait(&self, piece: u64, part: u64) -> bool {
        let ahead = if part == 0 { self.pieces } else { 1 };
        let mut state = self.lock();
        while !state.is_closed && piece >= state.next + ahead {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.is_closed
    }

    pub(super) fn move_to(&self, next: u64) {
        self.lock().next = next;
        self.changed.notify_all();
    }

    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_piece_waits_for_those_far_before_it_and_its_further_parts_for_its_turn() {
        let window = Window::new(3);
        assert!(window.wait(0, 0) && window.wait(0, 9) && window.wait(2, 0));
        std::thread::scope(|scope| {
            let (done, came) = channel();
            for (piece, part) in [(3, 0), (1, 1)] {
                let (done, window) = (done.clone(), &window);
                scope.spawn(move || done.send((piece, window.wait(piece, part))));
            }
            // Neither thread may continue before this call; both continue after it.
            window.move_to(1);
            let mut both = [came.recv().unwrap(), came.recv().unwrap()];
            both.sort_unstable();
            assert_eq!(both, [(1, true), (3, true)]);
            let window = &window;
            scope.spawn(move || done.send((9, window.wait(9, 0))));
            window.close();
            assert_eq!(came.recv().unwrap(), (9, false));
        });
        assert!(!window.wait(0, 0));
    }
}
