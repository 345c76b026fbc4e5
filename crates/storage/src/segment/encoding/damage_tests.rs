//! Decodes bytes with a valid checksum that no encoder wrote: the result is an error or some rows, never a panic.

use super::tests::{TYPES, assert_same, encode_bare, random_column, shapes};
use super::*;
use crate::segment::Interval;
use std::collections::HashSet;

/// Returns blocks of every encoding.
fn blocks(rng: &mut fastrand::Rng) -> Vec<EncodedBlock> {
    let mut blocks = Vec::new();
    for rows in [1, 100, 1_024, 1_025, 5_000] {
        for effort in [Effort::Fresh, Effort::Sealed] {
            let shaped = shapes(rng, rows).into_iter().map(|(_, t, column)| (t, column));
            let random: Vec<_> = TYPES.iter().map(|t| (*t, random_column(rng, *t, rows))).collect();
            for (column_type, column) in shaped.chain(random) {
                blocks.push(encode(column_type, &column, 0, rows, effort));
                if blocks.last().is_some_and(|block| block.entry.encoding == Encoding::Compressed) {
                    blocks.push(encode_bare(column_type, &column, effort));
                }
            }
        }
    }
    blocks
}

fn use_all(block: &EncodedBlock) -> bool {
    if block.check().is_err() {
        return false;
    }
    // Compressed content is checked when it is decoded.
    let Ok(decoded) = block.decode() else {
        assert_eq!(block.entry.encoding, Encoding::Compressed);
        return false;
    };
    assert_eq!(decoded.rows, block.rows);
    if let BlockData::Fixed(bytes) = &decoded.data {
        let expected = block.physical.width().map_or(block.rows.div_ceil(64) * 8, |width| width * block.rows);
        assert_eq!(bytes.len(), expected);
    }
    let _ = block.rows_in(Interval::Ints(-5, 1 << 20));
    let _ = block.rows_in(Interval::Floats(-5.0, 1e9));
    zones::of_vectors(block).unwrap();
    true
}

#[test]
fn changed_bytes_are_refused_or_decoded() {
    let mut rng = fastrand::Rng::with_seed(1);
    let (mut refused, mut used, mut encodings) = (0, 0, HashSet::new());
    for block in blocks(&mut rng) {
        encodings.insert(block.entry.encoding as u8);
        assert!(use_all(&block), "as it was written");
        for _ in 0..40 {
            let mut damaged = block.clone();
            let mut bytes = block.bytes.to_vec();
            for _ in 0..rng.usize(1..4) {
                match rng.u8(..8) {
                    0 => damaged.entry.parameter = [0, 1, 2, 3, 257, 70_000, u32::MAX][rng.usize(..7)],
                    1 => damaged.entry.parameter ^= 1 << rng.u32(..32),
                    2 => damaged.entry.has_validity = !damaged.entry.has_validity,
                    3 => damaged.entry.has_zones = !damaged.entry.has_zones,
                    4 => damaged.entry.data_bytes ^= 1 << rng.u32(..32),
                    5 => bytes.truncate(rng.usize(..=bytes.len())),
                    _ if bytes.is_empty() => {}
                    // The headers of payloads have the most influence; they follow zones and validity.
                    6 => {
                        let at = rng.usize(..bytes.len().min(1_500));
                        bytes[at] = rng.u8(..);
                    }
                    _ => {
                        let at = rng.usize(..bytes.len());
                        bytes[at] ^= 1 << rng.u8(..8);
                    }
                }
            }
            damaged.entry.bytes = bytes.len() as u32;
            damaged.bytes = Bytes::from(bytes);
            if use_all(&damaged) { used += 1 } else { refused += 1 }
        }
    }
    assert!(refused > 1_000 && used > 1_000, "{refused} refused, {used} used");
    assert_eq!(encodings, HashSet::from([0, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]), "all that are written");
}

#[test]
fn any_encoding_with_any_bytes_is_refused_or_decoded() {
    use Encoding::{Alp, AlpRd, Compressed, Constant, Delta, Dict, Fsst, FsstDict, Narrow, Nulls, Packed, PackedDict};
    use Encoding::{Plain, Planes, Runs, Text, TextDict};
    #[rustfmt::skip]
    const ALL: [Encoding; 17] = [
        Nulls, Plain, Dict, Narrow, Constant, Packed, Delta, Runs, PackedDict, Alp, AlpRd, Fsst, FsstDict, Compressed,
        Text, TextDict, Planes,
    ];
    let mut rng = fastrand::Rng::with_seed(2);
    for _ in 0..30_000 {
        let column_type = TYPES[rng.usize(..TYPES.len())];
        let rows = [1, 2, 64, 100, 1_024, 1_500][rng.usize(..6)];
        let mut block = EncodedBlock::nulls(column_type.physical(), rows);
        block.entry.encoding = ALL[rng.usize(..ALL.len())];
        block.entry.parameter = [0, 1, 2, 4, rng.u32(..300)][rng.usize(..5)];
        block.entry.data_bytes = [0, 1, rng.u32(..40), rng.u32(..3_000)][rng.usize(..4)];
        block.entry.zone.null_count = if rng.bool() { 0 } else { rows as u32 };
        // Small numbers, so that lengths and counts are often plausible.
        let most = [0, 1, 3, 255][rng.usize(..4)];
        let len = [0, rng.usize(..40), rng.usize(..3_000)][rng.usize(..3)];
        block.bytes = Bytes::from((0..len).map(|_| rng.u8(..=most)).collect::<Vec<u8>>());
        block.entry.bytes = len as u32;
        use_all(&block);
    }
}

/// Encodings that exist in older files and are no longer written.
#[test]
fn dictionaries_and_distances_in_whole_bytes_are_read() {
    let block = |physical, encoding, parameter, rows, sections: &[&[u8]]| {
        let mut bytes = Vec::new();
        for section in sections {
            bytes.resize(crate::segment::format::aligned(bytes.len()), 0);
            bytes.extend_from_slice(section);
        }
        let mut block = EncodedBlock::nulls(physical, rows);
        block.entry.encoding = encoding;
        block.entry.parameter = parameter;
        block.entry.zone.null_count = 0;
        block.entry.bytes = bytes.len() as u32;
        block.bytes = Bytes::from(bytes);
        block.check().unwrap();
        to_column(&block.decode().unwrap())
    };
    let values = |values: &[i64]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let dict = block(Physical::I64, Encoding::Dict, 3, 5, &[&values(&[-7, 0, i64::MAX]), &[2, 0, 1, 1, 0]]);
    assert_same(&dict, &Column::new(Values::I64(vec![i64::MAX, -7, 0, 0, -7])));
    let narrow = block(Physical::I64, Encoding::Narrow, 2, 3, &[&values(&[1_000]), &[0, 0, 255, 255, 1, 0]]);
    assert_same(&narrow, &Column::new(Values::I64(vec![1_000, 66_535, 1_001])));
    let same = block(Physical::I8, Encoding::Narrow, 0, 2, &[&[200]]);
    assert_same(&same, &Column::new(Values::I8(vec![-56, -56])));
    let four = block(Physical::I32, Encoding::Narrow, 4, 1, &[&[255; 4], &[2, 0, 0, 0]]);
    assert_same(&four, &Column::new(Values::I32(vec![1])));
}
