//! Sums packed numbers of few bits by group, without converting each one to a number.
//!
//! The sums are sums of integers. A sum is converted to a number once, when it is read, while adding numbers would
//! round at each addition. The result is therefore at least as close to the exact sum.

use super::few::{self, Sum, Word};
use super::fold::FoldValues;
use super::runs::runs;
use crate::bitpack::VECTOR;

/// Numbers of a vector, `(base + word) / 10^scale` (see [`crate::alp::value`]). Integers have scale 0.
#[derive(Clone, Copy, Debug)]
pub struct Digits<'a> {
    pub words: DigitWords<'a>,
    /// Upper bound of the bits of a word.
    pub width: u32,
    pub base: i64,
    pub scale: i8,
    /// Rows with another number, independent of their word. Their numbers are in `numbers`.
    pub others: &'a [u32],
    pub numbers: FoldValues<'a>,
}

impl Digits<'_> {
    /// Largest [`Digits::width`].
    pub const WIDTH_MAX: u32 = 32;
    /// Largest magnitude of [`Digits::base`].
    pub const BASE_MAX: u64 = 1 << 32;

    /// Returns the largest magnitude of an integer.
    fn greatest(&self) -> u64 {
        self.base.unsigned_abs() + (1 << self.width) - 1
    }
}

/// Words in the narrowest available type.
#[derive(Clone, Copy, Debug)]
pub enum DigitWords<'a> {
    /// Words of at most [`DigitWords::NARROW_MAX`] bits.
    Narrow(&'a [u16]),
    Wide(&'a [u32]),
}

impl DigitWords<'_> {
    pub const NARROW_MAX: u32 = u16::BITS;

    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            DigitWords::Narrow(words) => words.len(),
            DigitWords::Wide(words) => words.len(),
        }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the word of a row.
    ///
    /// # Panics
    /// Panics if the row does not exist.
    #[must_use]
    pub fn at(&self, row: usize) -> u64 {
        match self {
            DigitWords::Narrow(words) => words[row].into(),
            DigitWords::Wide(words) => words[row].into(),
        }
    }
}

/// Bits of a sum, which may be negative. The bits above the sum in the same word count rows.
const SUM_BITS: u32 = 44;
const ONE: u64 = 1 << SUM_BITS;
const ROWS_MAX: u64 = (1 << (64 - SUM_BITS)) - 1;
/// Bound of the sum over all rows.
const SUM_MAX: u64 = (1 << (SUM_BITS - 1)) - 1;
// The sums of one vector always fit.
const _: () = assert!((Digits::BASE_MAX + (1 << Digits::WIDTH_MAX) - 1) <= SUM_MAX / VECTOR as u64);

/// Row counts and sums of one input.
#[derive(Debug)]
pub(super) struct DigitSums {
    /// Indexed by place.
    words: Vec<u64>,
    scale: i8,
    rows_left: u64,
    sum_left: u64,
}

impl DigitSums {
    pub fn new(places: usize) -> DigitSums {
        DigitSums { words: vec![0; places], scale: 0, rows_left: ROWS_MAX, sum_left: SUM_MAX }
    }

    pub fn bytes(&self) -> usize {
        self.words.capacity() * 8
    }

    /// Returns true if the rows, at most one vector, can be added. Otherwise the current sums must be taken first.
    pub fn has_room(&self, digits: &Digits<'_>) -> bool {
        let rows = digits.words.len() as u64;
        let is_empty = self.rows_left == ROWS_MAX;
        let is_alike = is_empty || self.scale == digits.scale;
        is_alike && self.rows_left >= rows && self.sum_left >= rows * digits.greatest()
    }

    /// Adds rows; `has_room` must be true. `are_runs` returns true if rows of one place are mostly adjacent.
    ///
    /// # Panics
    /// Panics if a place does not exist.
    pub fn add(&mut self, places: &[u32], are_runs: impl Fn() -> bool, digits: &Digits<'_>) {
        let rows = digits.words.len() as u64;
        self.scale = digits.scale;
        self.rows_left -= rows;
        self.sum_left -= rows * digits.greatest();
        let one = ONE.wrapping_add_signed(digits.base);
        let is_few = self.words.len() <= few::PLACES_MAX && digits.width <= few::WIDTH_MAX;
        match digits.words {
            DigitWords::Narrow(words) if is_few => self.add_few(places, words, digits.width, one),
            DigitWords::Wide(words) if is_few => self.add_few(places, words, digits.width, one),
            DigitWords::Narrow(words) if are_runs() => self.add_runs(places, words, one),
            DigitWords::Narrow(words) => self.add_singly(places, words, one),
            DigitWords::Wide(words) if are_runs() => self.add_runs(places, words, one),
            DigitWords::Wide(words) => self.add_singly(places, words, one),
        }
        for row in digits.others {
            let sum = &mut self.words[places[*row as usize] as usize];
            *sum = sum.wrapping_sub(one).wrapping_sub(digits.words.at(*row as usize));
        }
    }

    fn add_singly<W: Copy + Into<u64>>(&mut self, places: &[u32], words: &[W], one: u64) {
        for (place, word) in places.iter().zip(words) {
            let sum = &mut self.words[*place as usize];
            *sum = sum.wrapping_add(one).wrapping_add((*word).into());
        }
    }

    fn add_runs<W: Copy + Into<u64>>(&mut self, places: &[u32], words: &[W], one: u64) {
        for (place, rows) in runs(places) {
            let own: u64 = words[rows.clone()].iter().map(|word| (*word).into()).sum();
            let sum = &mut self.words[place as usize];
            *sum = sum.wrapping_add(one.wrapping_mul(rows.len() as u64)).wrapping_add(own);
        }
    }

    fn add_few<W: Word>(&mut self, places: &[u32], words: &[W], width: u32, one: u64) {
        let mut found = [Sum::default(); few::PLACES_MAX];
        let found = &mut found[..self.words.len()];
        few::sums(places, words, width, found);
        for (word, own) in self.words.iter_mut().zip(&*found) {
            *word = word.wrapping_add(one.wrapping_mul(own.rows)).wrapping_add(own.sum);
        }
        let counted: u64 = found.iter().map(|own| own.rows).sum();
        assert!(counted == places.len() as u64, "{} rows, {counted} of them of a place", places.len());
    }

    /// Calls `each` with each place that has rows, its row count, the sum of its integers and the scale, and clears it.
    pub fn take(&mut self, mut each: impl FnMut(usize, u64, i64, i8)) {
        if self.rows_left < ROWS_MAX {
            for (place, word) in self.words.iter_mut().enumerate().filter(|(_, word)| **word != 0) {
                let rows = word.wrapping_add(ONE / 2) >> SUM_BITS;
                let sum = word.wrapping_sub(rows << SUM_BITS).cast_signed();
                *word = 0;
                each(place, rows, sum, self.scale);
            }
            (self.rows_left, self.sum_left) = (ROWS_MAX, SUM_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fold::{Fold, FoldInput, Folds};
    use super::super::planes::GroupPlanes;
    use super::*;
    use crate::alp;

    /// Numbers of a vector, and the integers from which most of them are computed.
    struct Numbers {
        words: Vec<u32>,
        narrow: Option<Vec<u16>>,
        width: u32,
        base: i64,
        scale: i8,
        others: Vec<u32>,
        of_others: Vec<f64>,
    }

    impl Numbers {
        fn random(random: &mut fastrand::Rng, rows: usize) -> Numbers {
            let width = random.u32(0..=Digits::WIDTH_MAX);
            let base_max = Digits::BASE_MAX.cast_signed();
            let base = if random.bool() { random.i64(-500..500) } else { random.i64(-base_max..=base_max) };
            // Quarters, halves and whole numbers are added exactly in every order.
            let others = (0..rows as u32).filter(|_| random.u8(..) < 5).collect::<Vec<_>>();
            let mask = crate::bitpack::width_mask(width) as u32;
            let words: Vec<u32> =
                (0..rows).map(|_| if random.u8(..) < 9 { mask } else { random.u32(..) & mask }).collect();
            let is_narrow = width <= DigitWords::NARROW_MAX && random.bool();
            Numbers {
                narrow: is_narrow.then(|| words.iter().map(|word| *word as u16).collect()),
                words,
                width,
                base,
                scale: if random.bool() { 0 } else { -2 },
                of_others: others.iter().map(|_| f64::from(random.i32(-900..900)) / 4.0).collect(),
                others,
            }
        }

        fn digits(&self) -> Digits<'_> {
            Digits {
                words: match &self.narrow {
                    Some(narrow) => DigitWords::Narrow(narrow),
                    None => DigitWords::Wide(&self.words),
                },
                width: self.width,
                base: self.base,
                scale: self.scale,
                others: &self.others,
                numbers: FoldValues::Floats(&self.of_others),
            }
        }

        /// Reference implementation: the numbers, computed one by one.
        fn plainly(&self) -> Vec<f64> {
            let number = |word: &u32| alp::value(self.base + i64::from(*word), self.scale);
            let mut numbers: Vec<f64> = self.words.iter().map(number).collect();
            for (row, number) in self.others.iter().zip(&self.of_others) {
                numbers[*row as usize] = *number;
            }
            numbers
        }
    }

    #[test]
    fn digits_come_to_what_their_numbers_do() {
        let mut random = fastrand::Rng::with_seed(10);
        let folds = vec![Fold::SumFloat(1), Fold::Rows, Fold::Present(0), Fold::SumFloat(0), Fold::Present(2)];
        let folds = Folds::new(folds);
        for (count, run, vectors) in
            [(1, 1, 3), (5, 1, 40), (5, 300, 9), (few::PLACES_MAX, 1, 3), (few::PLACES_MAX + 1, 1, 3), (3_000, 2, 5)]
        {
            let mut by_digits = GroupPlanes::new(folds.clone(), count);
            let mut plainly = GroupPlanes::new(folds.clone(), count);
            // The sums are reused after they were taken.
            for _ in 0..3 {
                for _ in 0..vectors {
                    let rows = if random.bool() { VECTOR } else { random.usize(1..VECTOR) };
                    let mut places: Vec<u32> = Vec::new();
                    while places.len() < rows {
                        let place = random.u32(..count as u32);
                        places.resize((places.len() + random.usize(1..=run)).min(rows), place);
                    }
                    let numbers = [Numbers::random(&mut random, rows), Numbers::random(&mut random, rows)];
                    // Some of the vectors are added as numbers, like vectors with a NULL.
                    if random.u8(..) < 200 {
                        by_digits.add_digits(&places, &[Some(numbers[0].digits()), Some(numbers[1].digits()), None]);
                    } else {
                        add_plainly(&mut by_digits, &places, &numbers);
                    }
                    add_plainly(&mut plainly, &places, &numbers);
                }
                assert_eq!(taken(&mut by_digits), taken(&mut plainly), "{count} places");
            }
        }
    }

    fn add_plainly(planes: &mut GroupPlanes, places: &[u32], numbers: &[Numbers; 2]) {
        let numbers = numbers.each_ref().map(Numbers::plainly);
        let input = |values| FoldInput { values, present: None };
        let of = |numbers| input(FoldValues::Floats(numbers));
        planes.add(places, &[of(&numbers[0]), of(&numbers[1]), input(FoldValues::Nothing)]);
    }

    fn taken(planes: &mut GroupPlanes) -> (Vec<u32>, Vec<u64>) {
        let (mut places, mut states) = (Vec::new(), Vec::new());
        planes.take(&mut places, &mut states);
        (places, states)
    }

    #[test]
    fn sums_of_digits_are_rounded_once() {
        let mut planes = GroupPlanes::new(Folds::new(vec![Fold::SumFloat(0), Fold::Rows]), 2);
        let words = [1, 2, 7];
        let digits = |others| Digits {
            words: DigitWords::Wide(&words),
            width: 3,
            base: 0,
            scale: 1,
            others,
            numbers: FoldValues::Floats(&[-0.0, -0.0, -0.0][3 - others.len()..]),
        };
        planes.add_digits(&[1, 1, 0], &[Some(digits(&[]))]);
        let (places, states) = taken(&mut planes);
        // 0.1 + 0.2 as doubles is 0.30000000000000004.
        assert_eq!((places, states), (vec![0, 1], vec![0.7_f64.to_bits(), 1, 0.3_f64.to_bits(), 2]));
        planes.add_digits(&[0, 0, 0], &[Some(digits(&[0, 1, 2]))]);
        assert_eq!(taken(&mut planes), (vec![0], vec![(-0.0_f64).to_bits(), 3]));
    }

    #[test]
    fn sums_of_integers_wrap() {
        let mut planes = GroupPlanes::new(Folds::new(vec![Fold::SumInt(0)]), 1);
        let (words, far) = ([u32::MAX; VECTOR], [i64::MAX, i64::MAX]);
        let mut expected = 0_i64;
        for _ in 0..5 {
            let base = -Digits::BASE_MAX.cast_signed();
            let numbers = FoldValues::Ints(&far);
            let digits =
                Digits { words: DigitWords::Wide(&words), width: 32, base, scale: 0, others: &[3, 9], numbers };
            planes.add_digits(&[0; VECTOR], &[Some(digits)]);
            let usual = (base + i64::from(u32::MAX)) * (VECTOR as i64 - 2);
            expected = expected.wrapping_add(usual).wrapping_add(i64::MAX).wrapping_add(i64::MAX);
        }
        assert_eq!(taken(&mut planes), (vec![0], vec![expected.cast_unsigned()]));
    }
}
