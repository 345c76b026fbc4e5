//! Chunks of symbol files and checkpoints.

/// Bytes of length and checksum.
pub(super) const CHUNK_HEADER: usize = 8;

/// Encodes a chunk of symbol files and checkpoints: length and checksum, then the bytes.
pub(super) fn chunk(payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_le_bytes().to_vec();
    bytes.extend(crc32c::crc32c(payload).to_le_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// Returns the payload of a complete chunk that begins at `at`.
pub(super) fn chunk_at(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let header = bytes.get(at..at + CHUNK_HEADER)?;
    let word = |i: usize| u32::from_le_bytes([header[i], header[i + 1], header[i + 2], header[i + 3]]);
    let payload = bytes.get(at + CHUNK_HEADER..)?.get(..word(0) as usize)?;
    (!payload.is_empty() && crc32c::crc32c(payload) == word(4)).then_some(payload)
}
