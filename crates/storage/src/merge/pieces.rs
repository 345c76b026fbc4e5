//! The order of a merge's result, as adjacent rows of either side.
//!
//! Rows without a piece are not part of the result.

use std::ops::Range;
use std::sync::OnceLock;
use tidalite_kernels::gather::Place;
use tidalite_types::BLOCK_ROWS;

/// Adjacent old rows or adjacent new rows, in the order of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub is_new: bool,
    pub from: u32,
    pub rows: u32,
}

impl Piece {
    pub fn range(self) -> Range<usize> {
        self.from as usize..self.from as usize + self.rows as usize
    }
}

/// Appends rows, extending the last piece if they follow it.
pub(super) fn push(pieces: &mut Vec<Piece>, is_new: bool, rows: Range<usize>) {
    if rows.is_empty() {
        return;
    }
    let (from, count) = (rows.start as u32, rows.len() as u32);
    match pieces.last_mut() {
        Some(last) if last.is_new == is_new && last.from + last.rows == from => last.rows += count,
        _ => pieces.push(Piece { is_new, from, rows: count }),
    }
}

pub(super) fn row_count(pieces: &[Piece]) -> usize {
    pieces.iter().map(|p| p.rows as usize).sum()
}

/// Splits the pieces into parts of `rows_max` rows; the last part may be shorter.
pub(super) fn split(pieces: &[Piece], rows_max: usize) -> Vec<Vec<Piece>> {
    let (mut parts, mut part, mut room) = (Vec::new(), Vec::new(), rows_max as u32);
    for &piece in pieces {
        let mut rest = piece;
        while rest.rows > 0 {
            let rows = rest.rows.min(room);
            part.push(Piece { rows, ..rest });
            rest = Piece { from: rest.from + rows, rows: rest.rows - rows, ..rest };
            room -= rows;
            if room == 0 {
                parts.push(std::mem::take(&mut part));
                room = rows_max as u32;
            }
        }
    }
    if !part.is_empty() {
        parts.push(part);
    }
    parts
}

/// Splits into as few parts as [`split`] but of similar size: complete blocks in all parts but the last.
pub(super) fn split_evenly(pieces: &[Piece], rows_max: usize) -> Vec<Vec<Piece>> {
    let rows = row_count(pieces);
    let parts = rows.div_ceil(rows_max).max(1);
    split(pieces, rows.div_ceil(parts).next_multiple_of(BLOCK_ROWS).min(rows_max))
}

/// The rows of a piece in storage order, and the position of each row in the piece.
#[derive(Debug)]
pub(super) struct ByArrival {
    pub places: Vec<Place>,
    pub to: Vec<u16>,
}

/// One block of the result: `pieces` in sequence, and, if they interleave finely, the rows `picks` of this sequence.
#[derive(Debug)]
pub(super) struct BlockPlan {
    pub rows: usize,
    pub pieces: Vec<Piece>,
    pub picks: Option<Vec<u32>>,
    /// For each piece, computed for all columns by the first column that is built.
    pub by_arrival: OnceLock<Vec<Option<ByArrival>>>,
}

/// If pieces are shorter than this, the rows of each side are collected first and then gathered: copying a piece of
/// eight bytes per row costs as much as gathering about ten rows.
const PIECE_ROWS_MIN: usize = 10;

impl BlockPlan {
    pub fn new(pieces: &[Piece]) -> BlockPlan {
        let rows = row_count(pieces);
        if pieces.len() < 4 || rows / pieces.len() >= PIECE_ROWS_MIN {
            return BlockPlan { rows, pieces: pieces.to_vec(), picks: None, by_arrival: OnceLock::new() };
        }
        let (mut sides, mut new) = (Vec::new(), Vec::new());
        for piece in pieces {
            push(if piece.is_new { &mut new } else { &mut sides }, piece.is_new, piece.range());
        }
        let mut next = [0, row_count(&sides) as u32];
        let mut picks = Vec::with_capacity(rows);
        for piece in pieces {
            let at = &mut next[usize::from(piece.is_new)];
            picks.extend(*at..*at + piece.rows);
            *at += piece.rows;
        }
        sides.extend(new);
        BlockPlan { rows, pieces: sides, picks: Some(picks), by_arrival: OnceLock::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(pieces: &[Piece]) -> Vec<(bool, usize)> {
        pieces.iter().flat_map(|p| p.range().map(|row| (p.is_new, row))).collect()
    }

    #[test]
    fn a_plan_by_picks_has_the_rows_in_the_order_of_its_pieces() {
        let mut rng = fastrand::Rng::with_seed(1);
        for rows_max in [1, 3, 30] {
            // Gaps on both sides are omitted rows.
            let (mut pieces, mut at) = (Vec::new(), [0, 1000]);
            for piece in 0..500 {
                let from = at[piece % 2] + rng.usize(0..2);
                let end = from + rng.usize(1..=rows_max);
                push(&mut pieces, piece % 2 == 1, from..end);
                at[piece % 2] = end;
            }
            let plan = BlockPlan::new(&pieces);
            assert_eq!(plan.picks.is_some(), rows_max < 30);
            let collected = rows(&plan.pieces);
            let picked = plan.picks.map(|p| p.iter().map(|row| collected[*row as usize]).collect());
            assert_eq!(picked.unwrap_or(collected), rows(&pieces));
        }
    }

    #[test]
    fn even_parts_are_as_few_and_of_whole_blocks() {
        let piece = |rows| [Piece { is_new: false, from: 7, rows }];
        let sizes = |rows: u32| -> Vec<usize> {
            split_evenly(&piece(rows), 4 * BLOCK_ROWS).iter().map(|part| row_count(part)).collect()
        };
        let block = BLOCK_ROWS;
        assert_eq!(sizes(4 * block as u32), [4 * block]);
        assert_eq!(sizes(4 * block as u32 + 2), [3 * block, block + 2]);
        assert_eq!(sizes(9 * block as u32), [3 * block, 3 * block, 3 * block]);
    }
}
