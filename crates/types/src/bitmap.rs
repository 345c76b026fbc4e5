//! A growable bitmap, least significant bit first, in Arrow's layout.

/// A bitmap. Bits at and past `len` in the last word are zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bitmap {
    words: Vec<u64>,
    len: usize,
}

impl Bitmap {
    #[must_use]
    pub fn new() -> Bitmap {
        Bitmap::default()
    }

    #[must_use]
    pub fn filled(len: usize, bit: bool) -> Bitmap {
        let mut bitmap = Bitmap { words: vec![if bit { u64::MAX } else { 0 }; len.div_ceil(64)], len };
        bitmap.clear_tail();
        bitmap
    }

    /// Creates a bitmap of `len` bits from words whose bits past `len` are arbitrary.
    ///
    /// # Panics
    /// Panics if `words` is shorter than `len` bits.
    #[must_use]
    pub fn from_words(mut words: Vec<u64>, len: usize) -> Bitmap {
        assert!(words.len() >= len.div_ceil(64), "a bitmap of {len} bits needs {} words", len.div_ceil(64));
        words.truncate(len.div_ceil(64));
        let mut bitmap = Bitmap { words, len };
        bitmap.clear_tail();
        bitmap
    }

    fn clear_tail(&mut self) {
        if !self.len.is_multiple_of(64)
            && let Some(last) = self.words.last_mut()
        {
            *last &= (1 << (self.len % 64)) - 1;
        }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Returns the words. Bits after the last one are clear.
    #[must_use]
    pub fn into_words(self) -> Vec<u64> {
        self.words
    }

    #[inline]
    pub fn push(&mut self, bit: bool) {
        if self.len.is_multiple_of(64) {
            self.words.push(0);
        }
        let last = self.words.len() - 1;
        self.words[last] |= u64::from(bit) << (self.len % 64);
        self.len += 1;
    }

    /// Appends `bit` `count` times.
    pub fn extend_filled(&mut self, count: usize, bit: bool) {
        let len = self.len + count;
        if bit {
            let head = (64 - self.len % 64) % 64;
            for _ in 0..head.min(count) {
                self.push(true);
            }
        }
        self.words.resize(len.div_ceil(64), if bit { u64::MAX } else { 0 });
        self.len = len;
        self.clear_tail();
    }

    pub fn extend_from(&mut self, other: &Bitmap) {
        self.extend_from_range(other, 0, other.len);
    }

    /// Appends bits `from..from + count` of `other`.
    pub fn extend_from_range(&mut self, other: &Bitmap, from: usize, count: usize) {
        assert!(from + count <= other.len, "bits {from}+{count} of a bitmap of {}", other.len);
        let mut done = 0;
        while done < count {
            let take = (count - done).min(64 - self.len % 64).min(64 - (from + done) % 64);
            let source = other.words[(from + done) / 64] >> ((from + done) % 64);
            let bits = if take == 64 { source } else { source & ((1 << take) - 1) };
            if self.len.is_multiple_of(64) {
                self.words.push(0);
            }
            let last = self.words.len() - 1;
            self.words[last] |= bits << (self.len % 64);
            self.len += take;
            done += take;
        }
    }

    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> bool {
        assert!(index < self.len, "bit {index} of a bitmap of {}", self.len);
        self.words[index / 64] >> (index % 64) & 1 == 1
    }

    #[inline]
    pub fn set(&mut self, index: usize, bit: bool) {
        assert!(index < self.len, "bit {index} of a bitmap of {}", self.len);
        let mask = 1 << (index % 64);
        if bit { self.words[index / 64] |= mask } else { self.words[index / 64] &= !mask }
    }

    /// Sets bits `from..from + count`; returns the number of bits that were clear.
    pub fn set_range(&mut self, from: usize, count: usize) -> usize {
        assert!(from + count <= self.len, "bits {from}+{count} of a bitmap of {}", self.len);
        let (mut at, end, mut cleared) = (from, from + count, 0);
        while at < end {
            let take = (64 - at % 64).min(end - at);
            let mask = if take == 64 { u64::MAX } else { ((1 << take) - 1) << (at % 64) };
            let word = &mut self.words[at / 64];
            cleared += (mask & !*word).count_ones() as usize;
            *word |= mask;
            at += take;
        }
        cleared
    }

    pub fn truncate(&mut self, len: usize) {
        if len < self.len {
            self.words.truncate(len.div_ceil(64));
            self.len = len;
            self.clear_tail();
        }
    }

    #[must_use]
    pub fn count_ones(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    #[must_use]
    pub fn count_zeros(&self) -> usize {
        self.len - self.count_ones()
    }

    pub fn iter(&self) -> impl Iterator<Item = bool> + '_ {
        (0..self.len).map(|i| self.get(i))
    }
}

impl FromIterator<bool> for Bitmap {
    fn from_iter<I: IntoIterator<Item = bool>>(bits: I) -> Bitmap {
        let mut bitmap = Bitmap::new();
        bits.into_iter().for_each(|b| bitmap.push(b));
        bitmap
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_grow_gives_the_same_bits() {
        let bits: Vec<bool> = (0..300).map(|i| (i * 7919) % 5 < 2).collect();
        let whole: Bitmap = bits.iter().copied().collect();
        for cut in [0, 1, 63, 64, 65, 129, 300] {
            for from in [0, 1, 60, 64, 100] {
                let mut out: Bitmap = bits[..cut].iter().copied().collect();
                out.extend_from_range(&whole, from, 300 - from);
                out.extend_filled(70, true);
                out.extend_filled(3, false);
                let mut expected = bits[..cut].to_vec();
                expected.extend(&bits[from..]);
                expected.extend([true; 70]);
                expected.extend([false; 3]);
                assert_eq!(out.iter().collect::<Vec<_>>(), expected, "cut {cut} from {from}");
                assert_eq!(out.count_ones(), expected.iter().filter(|b| **b).count());
            }
        }
    }

    #[test]
    fn a_range_is_set_and_its_clear_bits_counted() {
        for (from, count) in [(0, 300), (1, 62), (1, 63), (63, 2), (64, 64), (70, 200), (299, 1), (5, 0)] {
            let mut bitmap: Bitmap = (0..300).map(|i| i % 3 == 0).collect();
            let expected: Vec<bool> = (0..300).map(|i| i % 3 == 0 || (from..from + count).contains(&i)).collect();
            let clear = (from..from + count).filter(|i| i % 3 != 0).count();
            assert_eq!(bitmap.set_range(from, count), clear, "{from}+{count}");
            assert_eq!(bitmap.iter().collect::<Vec<_>>(), expected, "{from}+{count}");
        }
    }

    #[test]
    fn what_lies_past_the_length_is_zero() {
        let mut bitmap = Bitmap::filled(70, true);
        bitmap.truncate(66);
        assert_eq!(bitmap.words(), &[u64::MAX, 3]);
        assert_eq!(Bitmap::from_words(vec![u64::MAX, u64::MAX], 65).words(), &[u64::MAX, 1]);
    }
}
