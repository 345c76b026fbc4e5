//! Pieces of a scan in the order in which they are read, by one thread or by several.
//!
//! A thread waits for the blocks of its piece one after the other, and a fast disk is idle most of that time: once pieces turn
//! out to come from files, the disk is asked for those of the next ones. Which columns a piece needs is only known when
//! its filters were asked, so the columns that the last one needed are asked for.
//!
//! Always: each piece is taken once. A scan of what lies in memory asks the disk for nothing.

use super::prune::Piece;
use super::read::Reader;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tidalite_types::ColumnId;

/// What the disk is asked to have ready, at most.
const BYTES_AHEAD: u64 = 8 << 20;
const PIECES_AHEAD: u64 = 64;

#[derive(Debug)]
pub(super) struct Queue {
    pieces: Arc<[Piece]>,
    /// So many were taken.
    cursor: AtomicUsize,
    /// So many were read, or the disk was asked for them.
    asked: AtomicUsize,
}

impl Queue {
    pub fn new(pieces: Arc<[Piece]>) -> Queue {
        Queue { pieces, cursor: AtomicUsize::new(0), asked: AtomicUsize::new(0) }
    }

    pub fn pieces(&self) -> &Arc<[Piece]> {
        &self.pieces
    }

    /// The next piece and its place.
    pub fn take(&self) -> Option<(usize, Piece)> {
        let at = self.cursor.fetch_add(1, Ordering::Relaxed);
        Some((at, *self.pieces.get(at)?))
    }

    /// The piece at a place was read; of these columns so many bytes came from files.
    pub fn came_from_files(&self, reader: &Reader, at: usize, columns: &[ColumnId], bytes: u64) {
        for pieces in self.wanted_next(at, bytes).chunk_by(|a, b| a.is_before(b)) {
            if let Piece::Block { segment, block } = pieces[0] {
                let segment = &reader.snapshot.segments[segment];
                columns.iter().for_each(|column| segment.will_read(*column, block..block + pieces.len()));
            }
        }
    }

    /// Pieces that nobody asked the disk for, as far ahead of a place as makes sense when a piece has so many bytes.
    fn wanted_next(&self, at: usize, bytes: u64) -> &[Piece] {
        let ahead = (BYTES_AHEAD / bytes.max(1)).clamp(1, PIECES_AHEAD) as usize;
        let until = (at + 1 + ahead).min(self.pieces.len());
        let from = self.asked.fetch_max(until, Ordering::Relaxed).max(at + 1);
        self.pieces.get(from..until).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(count: usize) -> Queue {
        Queue::new((0..count).map(|at| Piece::Block { segment: at / 8, block: at % 8 }).collect())
    }

    #[test]
    fn each_piece_is_taken_once() {
        let queue = blocks(100);
        let taken = || std::iter::from_fn(|| queue.take()).collect::<Vec<_>>();
        let (mut all, others) = std::thread::scope(|scope| {
            let other = scope.spawn(taken);
            (taken(), other.join().unwrap())
        });
        all.extend(others);
        all.sort_unstable_by_key(|(at, _)| *at);
        let expected = queue.pieces().iter().copied().enumerate();
        assert_eq!(all, expected.collect::<Vec<_>>());
    }

    #[test]
    fn the_disk_is_asked_for_a_piece_once_and_not_too_far_ahead() {
        let queue = blocks(100);
        assert_eq!(queue.wanted_next(0, 2 << 20), &queue.pieces()[1..5], "four fit");
        assert_eq!(queue.wanted_next(1, 2 << 20), &queue.pieces()[5..6]);
        assert_eq!(queue.wanted_next(0, 2 << 20), []);
        assert_eq!(queue.wanted_next(20, u64::MAX), &queue.pieces()[21..22], "at least the next");
        assert_eq!(queue.wanted_next(21, 1), &queue.pieces()[22..86]);
        assert_eq!(queue.wanted_next(90, 1), &queue.pieces()[91..]);
        assert_eq!(queue.wanted_next(99, 1), []);
        let neighbours: Vec<usize> = queue.pieces()[3..20].chunk_by(|a, b| a.is_before(b)).map(<[_]>::len).collect();
        assert_eq!(neighbours, [5, 8, 4]);
    }
}
