//! Counts and sums the rows of each of a few places by comparing every row with all places.
//!
//! Input: the places of a vector's rows and a word for each row. Output: the row count and the sum of the words of each
//! place. With AVX-512 the sums of all places stay in registers and the rows are read once, otherwise once for each
//! place.

use crate::bitpack::VECTOR;
use crate::dispatch;

/// Largest number of places. For more places, adding each row to its own place is faster.
pub(super) const PLACES_MAX: usize = 10;
/// Largest number of bits of a word. With more bits, too few words can be summed in 32 bits.
pub(super) const WIDTH_MAX: u32 = 26;

/// Row count and sum of one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub rows: u64,
    pub sum: u64,
}

/// Type of the packed words of rows.
pub(super) trait Word: Copy + Into<u32> + Into<u64> {
    /// Loads sixteen words into lanes of 32 bits.
    ///
    /// # Safety
    /// The processor must have AVX-512.
    #[cfg(target_arch = "x86_64")]
    unsafe fn lanes(words: &[Self; 16]) -> std::arch::x86_64::__m512i;
}

/// Computes the sums of at most one vector of rows, by place, for the places of `out`, at most [`PLACES_MAX`].
///
/// No word has more than `width` bits, which are at most [`WIDTH_MAX`]. Rows of other places are ignored.
pub(super) fn sums<W: Word>(places: &[u32], words: &[W], width: u32, out: &mut [Sum]) {
    assert!(places.len() == words.len() && places.len() <= VECTOR && width <= WIDTH_MAX && out.len() <= PLACES_MAX);
    #[cfg(target_arch = "x86_64")]
    if crate::has_avx512() {
        // SAFETY: `has_avx512` has checked the processor for every feature that is enabled there.
        return unsafe { avx512::sums(places, words, out) };
    }
    plain(places, words, width, out);
}

fn plain<W: Word>(places: &[u32], words: &[W], width: u32, out: &mut [Sum]) {
    let mut left = places.len() as u64;
    // Place 0, the place of NULL, rarely has a row.
    let count = out.len();
    for place in (1..count).chain(0..count.min(1)) {
        if left == 0 {
            return;
        }
        let own = of_place(place as u32, places, words, width);
        out[place] = Sum { rows: own.0, sum: own.1 };
        left -= own.0;
    }
}

dispatch! {
    fn of_place<W: Word>(place: u32, places: &[u32], words: &[W], width: u32) -> (u64, u64) {
        let (mut rows, mut sum) = (0, 0);
        // Rows per partial sum: their words fit sums of 32 bits.
        let together = 1_usize << (u32::BITS - width).min(VECTOR.ilog2());
        for (places, words) in places.chunks(together).zip(words.chunks(together)) {
            let (mut own_rows, mut own_sum) = (0_u32, 0_u32);
            for (own, word) in places.iter().zip(words) {
                let is_own = u32::from(*own == place);
                own_rows += is_own;
                own_sum += Into::<u32>::into(*word) & is_own.wrapping_neg();
            }
            rows += u64::from(own_rows);
            sum += u64::from(own_sum);
        }
        (rows, sum)
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::{PLACES_MAX, Sum, VECTOR, WIDTH_MAX, Word};
    use std::arch::x86_64::{
        __m512i, _mm256_loadu_si256, _mm512_cmpeq_epi32_mask, _mm512_cvtepu16_epi32, _mm512_loadu_si512,
        _mm512_mask_add_epi32, _mm512_set1_epi32, _mm512_setzero_si512, _mm512_storeu_si512,
    };

    const LANES: usize = 16;
    // The sum of a lane fits 32 bits.
    const _: () = assert!(((1 << WIDTH_MAX) - 1) * (VECTOR / LANES) as u64 <= u32::MAX as u64);

    impl Word for u32 {
        unsafe fn lanes(words: &[u32; LANES]) -> __m512i {
            // SAFETY: the load reads exactly the bytes of `words`, with any alignment.
            unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
        }
    }

    impl Word for u16 {
        unsafe fn lanes(words: &[u16; LANES]) -> __m512i {
            // SAFETY: the load reads exactly the bytes of `words`, with any alignment.
            unsafe { _mm512_cvtepu16_epi32(_mm256_loadu_si256(words.as_ptr().cast())) }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn sums<W: Word>(places: &[u32], words: &[W], out: &mut [Sum]) {
        const { assert!(PLACES_MAX == 10) };
        match out.len() {
            0 => {}
            1 => of::<W, 1>(places, words, out),
            2 => of::<W, 2>(places, words, out),
            3 => of::<W, 3>(places, words, out),
            4 => of::<W, 4>(places, words, out),
            5 => of::<W, 5>(places, words, out),
            6 => of::<W, 6>(places, words, out),
            7 => of::<W, 7>(places, words, out),
            8 => of::<W, 8>(places, words, out),
            9 => of::<W, 9>(places, words, out),
            _ => of::<W, PLACES_MAX>(places, words, out),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn of<W: Word, const N: usize>(places: &[u32], words: &[W], out: &mut [Sum]) {
        let (full, rest) = places.as_chunks::<LANES>();
        let (full_words, words_of_rest) = words.as_chunks::<LANES>();
        let (mut rows, mut sums) = ([0_u64; N], [_mm512_setzero_si512(); N]);
        for (places, words) in full.iter().zip(full_words) {
            // SAFETY: this function runs only with AVX-512.
            let (places, words) = unsafe { (u32::lanes(places), W::lanes(words)) };
            for place in 0..N {
                let own = _mm512_cmpeq_epi32_mask(places, _mm512_set1_epi32(place as i32));
                sums[place] = _mm512_mask_add_epi32(sums[place], own, sums[place], words);
                rows[place] += u64::from(own.count_ones());
            }
        }
        for (place, out) in out.iter_mut().take(N).enumerate() {
            let mut lanes = [0_u32; LANES];
            // SAFETY: the store writes exactly the bytes of `lanes`, with any alignment.
            unsafe { _mm512_storeu_si512(lanes.as_mut_ptr().cast(), sums[place]) };
            *out = Sum { rows: rows[place], sum: lanes.iter().map(|sum| u64::from(*sum)).sum() };
        }
        for (place, word) in rest.iter().zip(words_of_rest) {
            if let Some(out) = out.get_mut(*place as usize) {
                out.rows += 1;
                out.sum += Into::<u64>::into(*word);
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod words {
    impl super::Word for u32 {}
    impl super::Word for u16 {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_few_places_are_those_of_their_rows() {
        let mut random = fastrand::Rng::with_seed(8);
        for round in 0..400 {
            let (count, rows) = (round % (PLACES_MAX + 1), [VECTOR, 0, 1, 15, 16, 17, 1000][round % 7]);
            let width = random.u32(0..=WIDTH_MAX);
            let mask = crate::bitpack::width_mask(width) as u32;
            // Some rows belong to no place; most words have the largest value.
            let places: Vec<u32> = (0..rows).map(|_| random.u32(..count as u32 + 2)).collect();
            let words: Vec<u32> = (0..rows).map(|_| if random.bool() { mask } else { random.u32(..) & mask }).collect();
            let mut expected = vec![Sum::default(); count];
            for (place, word) in places.iter().zip(&words) {
                if let Some(sum) = expected.get_mut(*place as usize) {
                    *sum = Sum { rows: sum.rows + 1, sum: sum.sum + u64::from(*word) };
                }
            }
            let found = |sums: &dyn Fn(&mut [Sum])| {
                let mut found = vec![Sum::default(); count];
                sums(&mut found);
                found
            };
            assert_eq!(found(&|out| sums(&places, &words, width, out)), expected);
            assert_eq!(found(&|out| plain(&places, &words, width, out)), expected);
            if width <= 16 {
                let narrow: Vec<u16> = words.iter().map(|word| *word as u16).collect();
                assert_eq!(found(&|out| sums(&places, &narrow, width, out)), expected);
                assert_eq!(found(&|out| plain(&places, &narrow, width, out)), expected);
            }
        }
    }
}
