//! Stores integers in fewer bytes.

use crate::Int;

macro_rules! narrow {
    ($($(#[$doc:meta])* $name:ident, $bytes:literal, $unsigned:ty;)*) => { $(
        crate::dispatch! {
        wide
        $(#[$doc])*
        pub fn $name<T: Int>(values: &[T], min: T, out: &mut [[u8; $bytes]]) {
            for (to, value) in out.iter_mut().zip(values) {
                *to = (value.distance(min) as $unsigned).to_le_bytes();
            }
        }
        }
    )* };
}

narrow! {
    /// Writes the lowest byte of each value minus `min`, up to the length of `out`.
    narrow_to_1, 1, u8;
    /// Writes the two lowest bytes of each value minus `min`, little-endian.
    narrow_to_2, 2, u16;
    /// Writes the four lowest bytes of each value minus `min`, little-endian.
    narrow_to_4, 4, u32;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_low_bytes_of_differences_are_kept() {
        let mut dice = fastrand::Rng::with_seed(3);
        for len in [0, 1, 63, 64, 65, 1_000] {
            let min = dice.i64(..);
            let values: Vec<i64> = (0..len).map(|_| dice.i64(..)).collect();
            let above = |value: i64| value.wrapping_sub(min).to_le_bytes();
            let (mut one, mut two, mut four) = (vec![[0]; len], vec![[0; 2]; len], vec![[0; 4]; len]);
            narrow_to_1(&values, min, &mut one);
            narrow_to_2(&values, min, &mut two);
            narrow_to_4(&values, min, &mut four);
            for (at, value) in values.iter().enumerate() {
                let bytes = above(*value);
                assert_eq!((&one[at][..], &two[at][..], &four[at][..]), (&bytes[..1], &bytes[..2], &bytes[..4]));
            }
            let short: Vec<i16> = values.iter().map(|v| *v as i16).collect();
            narrow_to_1(&short, min as i16, &mut one);
            let expected = short.iter().map(|v| [v.wrapping_sub(min as i16) as u8]);
            assert!(one.iter().copied().eq(expected));
        }
    }
}
