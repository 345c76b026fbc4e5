//! Keys of groups: words of 64 or 128 bits with a hash and access to ranges of bits.

use std::ops::{BitAnd, BitOr};

const FOLDED: u64 = 0x9e37_79b9_7f4a_7c15;

pub trait GroupKey: Copy + Default + Eq + Send + Sync + BitOr<Output = Self> + BitAnd<Output = Self> + 'static {
    /// Returns a hash that depends on the seed.
    fn hash(self, seed: u64) -> u64;

    /// Returns the key if it is less than `below`.
    fn index(self, below: usize) -> Option<usize>;

    /// Returns the lowest differing bit of two keys, and the number of bits up to the highest differing bit.
    fn span(self, other: Self) -> (u32, u32);

    /// Extracts bits of the key.
    fn bits(self, from: u32, mask: u32) -> u32;

    /// Replaces bits of the key.
    fn with_bits(self, from: u32, mask: u32, bits: u32) -> Self;
}

/// Methods that are the same for words of every width.
macro_rules! bits_of_word {
    ($word:ty) => {
        #[inline]
        fn index(self, below: usize) -> Option<usize> {
            (self < below as $word).then_some(self as usize)
        }

        fn span(self, other: $word) -> (u32, u32) {
            let differing = self ^ other;
            if differing == 0 {
                (0, 0)
            } else {
                (differing.trailing_zeros(), differing.ilog2() + 1 - differing.trailing_zeros())
            }
        }

        #[inline]
        fn bits(self, from: u32, mask: u32) -> u32 {
            (self >> from) as u32 & mask
        }

        fn with_bits(self, from: u32, mask: u32, bits: u32) -> $word {
            self & !(<$word>::from(mask) << from) | <$word>::from(bits) << from
        }
    };
}

impl GroupKey for u64 {
    #[inline]
    fn hash(self, seed: u64) -> u64 {
        let product = u128::from(self ^ seed) * u128::from(FOLDED);
        (product as u64) ^ ((product >> 64) as u64)
    }

    bits_of_word!(u64);
}

impl GroupKey for u128 {
    #[inline]
    fn hash(self, seed: u64) -> u64 {
        ((self >> 64) as u64).hash((self as u64).hash(seed).rotate_left(29))
    }

    bits_of_word!(u128);
}

/// Returns the bits set in some key, and the bits set in all keys.
pub(super) fn bits_of<K: GroupKey>(keys: &[K]) -> Option<(K, K)> {
    let first = *keys.first()?;
    Some(keys.iter().fold((first, first), |(any, all), key| (any | *key, all & *key)))
}
