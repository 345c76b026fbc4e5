//! Rows of several columns in another order, far apart from where they lie.
//!
//! Rows that came in any order and are to be in order would be read line by line, each line as often as it has rows in
//! different blocks of the result. They are read forwards once instead and dealt out to the blocks, as a radix sort does
//! it; in a block, which the second level cache holds, they are brought into order.

use super::Place;
use crate::sort_permutation;
use tidalite_types::{BLOCK_ROWS, Bitmap, Column, Values};

/// A row of a block fits two bytes.
const _: () = assert!(BLOCK_ROWS <= 1 << 16);

/// An order of rows of several columns, for all columns that they have.
#[derive(Debug)]
pub struct Deal {
    /// In the order in which they lie.
    places: Vec<Place>,
    /// Of each place.
    blocks: Vec<u8>,
    /// Of the rows of each block, one block after the other, in the order in which they lie: which row of the block.
    to: Vec<u16>,
}

impl Deal {
    /// `places` in the order wanted, at most 256 blocks of them.
    ///
    /// # Panics
    /// With more.
    #[must_use]
    pub fn new(places: &[Place]) -> Deal {
        assert!(places.len() <= 256 * BLOCK_ROWS, "{} places", places.len());
        let keys: Vec<i64> = places.iter().map(|p| i64::from(p.run) << 32 | i64::from(p.row)).collect();
        let order = sort_permutation(&keys);
        let mut next = starts(places.len());
        let mut to = vec![0; places.len()];
        for &row in &order {
            let next = &mut next[row as usize / BLOCK_ROWS];
            to[*next] = (row as usize % BLOCK_ROWS) as u16;
            *next += 1;
        }
        let blocks = order.iter().map(|row| (*row as usize / BLOCK_ROWS) as u8).collect();
        Deal { places: order.iter().map(|row| places[*row as usize]).collect(), blocks, to }
    }

    /// Puts the rows of a column into `out`, which is empty; where a run has no such column they are NULL. `dealt` is of the
    /// same type, for its memory.
    ///
    /// # Panics
    /// When a place is past its column, and for values of no fixed width.
    pub fn gather(&self, runs: &[Option<&Column>], dealt: &mut Values, out: &mut Column) {
        macro_rules! fill {
            ($($kind:ident),*) => {
                match (dealt, &mut out.values) {
                    $((Values::$kind(dealt), Values::$kind(out)) => {
                        let slices: Vec<&[_]> = runs.iter().map(|run| match run.map(|c| &c.values) {
                            Some(Values::$kind(values)) => values.as_slice(),
                            None => &[],
                            Some(other) => unreachable!("{:?} in a column of another type", other.physical()),
                        }).collect();
                        self.values(&slices, dealt, out);
                    })*
                    (_, other) => unreachable!("values of {:?} dealt", other.physical()),
                }
            };
        }
        fill!(I8, I16, I32, I64, I128, F32, F64, U32, B16);
        let has_nulls = runs.iter().any(|run| run.is_none_or(|column| column.validity.is_some()));
        out.validity = has_nulls.then(|| self.validity(runs));
    }

    fn values<T: Copy + Default>(&self, runs: &[&[T]], dealt: &mut Vec<T>, out: &mut Vec<T>) {
        let rows = self.places.len();
        dealt.resize(rows, T::default());
        out.resize(rows, T::default());
        let (dealt, mut next, mut at) = (&mut dealt[..rows], starts(rows), 0);
        for of_run in self.places.chunk_by(|a, b| a.run == b.run) {
            let run = runs[of_run[0].run as usize];
            let blocks = &self.blocks[at..at + of_run.len()];
            at += of_run.len();
            for (place, block) in of_run.iter().zip(blocks) {
                let next = &mut next[usize::from(*block)];
                dealt[*next] = if run.is_empty() { T::default() } else { run[place.row as usize] };
                *next += 1;
            }
        }
        let blocks = out.chunks_mut(BLOCK_ROWS).zip(dealt.chunks(BLOCK_ROWS)).zip(self.to.chunks(BLOCK_ROWS));
        for ((out, dealt), to) in blocks {
            to.iter().zip(dealt).for_each(|(to, value)| out[usize::from(*to)] = *value);
        }
    }

    fn validity(&self, runs: &[Option<&Column>]) -> Bitmap {
        let mut validity = Bitmap::filled(self.places.len(), true);
        let mut next = starts(self.places.len());
        for (place, block) in self.places.iter().zip(&self.blocks) {
            let next = &mut next[usize::from(*block)];
            if runs[place.run as usize].is_none_or(|column| !column.is_valid(place.row as usize)) {
                validity.set(usize::from(*block) * BLOCK_ROWS + usize::from(self.to[*next]), false);
            }
            *next += 1;
        }
        validity
    }
}

/// The first row of each block.
fn starts(rows: usize) -> Vec<usize> {
    (0..rows).step_by(BLOCK_ROWS).collect()
}
