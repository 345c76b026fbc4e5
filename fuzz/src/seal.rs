//! Makes lengths fit and checksums right in files that the fuzzer changed, so that its changes reach the decoders.
//!
//! The formats are those of docs/FORMAT.md.

use tidalite_ingest::wal::record::{Front, decode_front};
use tidalite_storage::codec::Decoder;

/// Maximum number of rows that a run keeps. A decoder of columns takes the number of rows on trust: columns of equal
/// values have no bytes for them.
const RUN_ROWS_MAX: u32 = 4095;
/// In an operation of rows: tag, table and two commits stand before the number of rows.
const RUN_ROWS_AT: usize = 21;

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|b| u32::from_le_bytes(*b))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|b| u64::from_le_bytes(*b))
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

fn put_crc(bytes: &mut [u8], at: usize, of: std::ops::Range<usize>) {
    let crc = crc32c::crc32c(&bytes[of]);
    put(bytes, at, &crc.to_le_bytes());
}

/// A manifest: its magic number, then records of length, checksum, number and changes.
pub fn manifest(bytes: &mut [u8]) {
    const HEADER: usize = 16;
    if bytes.len() < 8 {
        return;
    }
    put(bytes, 0, b"TIDEMAN");
    bytes[7] = if bytes[7] & 1 == 0 { b'2' } else { b'1' };
    let (mut at, mut number) = (8, 0_u64);
    while at + HEADER <= bytes.len() {
        let len = u32_at(bytes, at).unwrap_or_default() as usize;
        // The last record reaches to the end of the file where its length is wrong.
        let len = len.min(bytes.len() - at - HEADER);
        put(bytes, at, &(len as u32).to_le_bytes());
        put(bytes, at + 8, &number.to_le_bytes());
        put_crc(bytes, at + 4, at + 8..at + HEADER + len);
        at += HEADER + len;
        number += 1;
    }
}

/// File 1 of the log: a header, then records at multiples of 8.
pub fn log(bytes: &mut [u8]) {
    const FILE_HEADER: usize = 64;
    const HEADER: usize = 32;
    if bytes.len() < FILE_HEADER {
        return;
    }
    put(bytes, 0, b"TIDELOG1");
    put(bytes, 8, &1_u64.to_le_bytes());
    put_crc(bytes, 24, 0..24);
    put_crc(bytes, 36, 0..36);
    let mut at = FILE_HEADER;
    while at + HEADER <= bytes.len() {
        let len = u32_at(bytes, at).unwrap_or_default() as usize;
        let len = len.min(bytes.len() - at - HEADER);
        put(bytes, at, &(len as u32).to_le_bytes());
        put(bytes, at + 8, &1_u64.to_le_bytes());
        limit_rows(&mut bytes[at + HEADER..at + HEADER + len]);
        put_crc(bytes, at + 4, at + 8..at + HEADER + len);
        at += HEADER + len;
    }
}

/// A checkpoint: chunks of length, checksum and operations; one of length 0 is the end.
pub fn checkpoint(bytes: &mut [u8]) {
    chunks(bytes, limit_rows);
}

/// A symbol file: chunks of length, checksum and entries.
pub fn symbols(bytes: &mut [u8]) {
    chunks(bytes, |_| {});
}

fn chunks(bytes: &mut [u8], prepare: fn(&mut [u8])) {
    const HEADER: usize = 8;
    let mut at = 0;
    while at + HEADER <= bytes.len() {
        let len = u32_at(bytes, at).unwrap_or_default() as usize;
        let len = len.min(bytes.len() - at - HEADER);
        put(bytes, at, &(len as u32).to_le_bytes());
        prepare(&mut bytes[at + HEADER..at + HEADER + len]);
        put_crc(bytes, at + 4, at + HEADER..at + HEADER + len);
        at += HEADER + len;
    }
}

/// Limits the rows of the runs in a list of operations to [`RUN_ROWS_MAX`].
fn limit_rows(payload: &mut [u8]) {
    let whole = payload.len();
    let mut at = 4;
    while at < whole {
        let mut d = Decoder::new(&payload[at..]);
        let Ok(front) = decode_front(&mut d) else { return };
        let rows_at = at + RUN_ROWS_AT;
        let is_rows = matches!(front, Front::Rows(..));
        if is_rows && let Some(rows) = u32_at(payload, rows_at).filter(|rows| *rows > RUN_ROWS_MAX) {
            put(payload, rows_at, &(rows & RUN_ROWS_MAX).to_le_bytes());
            // Once more, with this number of rows.
            continue;
        }
        let mut d = Decoder::new(&payload[at..]);
        let Ok(front) = decode_front(&mut d) else { return };
        if front.whole(&mut d).is_err() {
            return;
        }
        at = whole - d.rest.len();
    }
}

/// A segment: a header, chunks, a footer with their checksums, a trailer with that of the footer. Returns the number of
/// rows that the footer has, which a manifest would say.
pub fn segment(bytes: &mut [u8]) -> Option<u64> {
    const HEADER: usize = 64;
    const TRAILER: usize = 32;
    const FOOTER_HEAD: usize = 16;
    const COLUMN: usize = 8;
    let trailer_at = bytes.len().checked_sub(TRAILER).filter(|at| *at >= HEADER + FOOTER_HEAD)?;
    let footer_bytes = (u64_at(bytes, trailer_at)?.min(trailer_at as u64) as usize).min(trailer_at - HEADER);
    let footer_at = trailer_at - footer_bytes.max(FOOTER_HEAD);
    let rows = u64_at(bytes, footer_at)?;
    let (columns, blocks) = (u32_at(bytes, footer_at + 8)? as usize, u32_at(bytes, footer_at + 12)? as usize);
    let entries_at = footer_at + FOOTER_HEAD + columns.min(bytes.len()) * COLUMN;
    // Entries of older files have 48 bytes.
    let entry_bytes = [56, 48].into_iter().find(|entry| {
        Some(trailer_at) == columns.checked_mul(blocks).and_then(|n| n.checked_mul(*entry)?.checked_add(entries_at))
    });
    if let Some(entry_bytes) = entry_bytes {
        for at in (entries_at..trailer_at).step_by(entry_bytes) {
            let (offset, len) = (u64_at(bytes, at)?, u32_at(bytes, at + 8)?);
            if let Some(left) = (footer_at as u64).checked_sub(offset) {
                let len = u64::from(len).min(left) as usize;
                put(bytes, at + 8, &(len as u32).to_le_bytes());
                put_crc(bytes, at + 12, offset as usize..offset as usize + len);
            }
        }
    }
    put(bytes, trailer_at, &((trailer_at - footer_at) as u64).to_le_bytes());
    put_crc(bytes, trailer_at + 8, footer_at..trailer_at);
    put(bytes, trailer_at + 12, &1_u32.to_le_bytes());
    put_crc(bytes, trailer_at + 20, trailer_at..trailer_at + 20);
    put(bytes, trailer_at + 24, b"TIDALSEG");
    Some(rows)
}
