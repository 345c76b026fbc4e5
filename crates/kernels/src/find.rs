//! Finds a byte without a branch that depends on its distance, for positions that are hard to predict.

/// Returns the first position of `byte` in 64 bytes.
#[inline(always)]
pub fn position_in_64(bytes: &[u8; 64], byte: u8) -> Option<usize> {
    position(mask_of(bytes, byte))
}

/// Returns the first position of `byte` in 32 bytes.
#[inline(always)]
pub fn position_in_32(bytes: &[u8; 32], byte: u8) -> Option<usize> {
    position(mask_of(bytes, byte))
}

#[inline(always)]
fn position(mask: u64) -> Option<usize> {
    (mask != 0).then(|| mask.trailing_zeros() as usize)
}

/// Returns a bit per byte that equals `byte`, the first byte in the lowest bit. `N` is a multiple of 16, at most 64.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn mask_of<const N: usize>(bytes: &[u8; N], byte: u8) -> u64 {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_set1_epi8};
    let mut mask = 0;
    for (at, part) in bytes.as_chunks::<16>().0.iter().enumerate() {
        // SAFETY: the load reads the 16 bytes of `part`; SSE2 is in the baseline.
        let part = unsafe {
            let loaded = _mm_loadu_si128(part.as_ptr().cast());
            _mm_movemask_epi8(_mm_cmpeq_epi8(loaded, _mm_set1_epi8(byte.cast_signed())))
        };
        mask |= u64::from(part.cast_unsigned()) << (16 * at);
    }
    mask
}

#[cfg(not(target_arch = "x86_64"))]
fn mask_of<const N: usize>(bytes: &[u8; N], byte: u8) -> u64 {
    mask_of_plain(bytes, byte)
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn mask_of_plain<const N: usize>(bytes: &[u8; N], byte: u8) -> u64 {
    bytes.iter().enumerate().fold(0, |mask, (at, other)| mask | u64::from(*other == byte) << at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_the_plain_twin_at_every_place() {
        for wanted in [0, b' ', 0x80, 0xff] {
            for at in 0..64 {
                let mut bytes = [b'x'; 64];
                assert_eq!(position_in_64(&bytes, wanted), None);
                bytes[at] = wanted;
                assert_eq!(position_in_64(&bytes, wanted), Some(at));
                bytes[63] = wanted;
                assert_eq!(position_in_64(&bytes, wanted), Some(at));
                let first = bytes.first_chunk().expect("half of it");
                assert_eq!(position_in_32(first, wanted), (at < 32).then_some(at));
                assert_eq!(mask_of(&bytes, wanted), mask_of_plain(&bytes, wanted));
            }
        }
    }
}
