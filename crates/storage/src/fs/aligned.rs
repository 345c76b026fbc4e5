//! Aligns buffers in memory as direct I/O requires.

/// Returns the first offset in `bytes` whose address is a multiple of `unit`, a power of two.
///
/// `bytes` is extended to hold `len` bytes from this offset.
pub fn aligned(bytes: &mut Vec<u8>, unit: usize, len: usize) -> usize {
    // The memory is reserved first, because growing moves the bytes.
    bytes.reserve((len + unit).saturating_sub(bytes.len()));
    let from = bytes.as_ptr().addr().wrapping_neg() % unit;
    bytes.resize(bytes.len().max(from + len), 0);
    from
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_lies_where_it_is_asked_for_and_nothing_is_lost() {
        for len in [0, 1, 5_000] {
            let mut bytes = vec![7; 10];
            let from = aligned(&mut bytes, 4096, len);
            assert!(bytes.len() >= from + len && bytes[..10] == [7; 10]);
            assert_eq!(bytes[from..].as_ptr().addr() % 4096, 0);
            assert_eq!(aligned(&mut bytes, 1, len), 0);
        }
    }
}
