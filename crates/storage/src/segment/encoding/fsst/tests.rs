use super::*;
use crate::segment::Effort;
use crate::segment::encoding::tests::{assert_same, encode_bare};
use crate::segment::encoding::to_column;
use bytes::Bytes;
use tidalite_types::{BLOCK_ROWS, Column, ColumnType, Values};

/// Returns strings built from random words, some of them NULL.
fn column(rng: &mut fastrand::Rng, rows: usize) -> Column {
    let words: Vec<String> =
        (0..rng.usize(1..300)).map(|_| "x".repeat(rng.usize(0..3)) + &rng.u32(..).to_string()).collect();
    let (most, noise) = (rng.usize(1..8), rng.u8(0..50));
    let string = |rng: &mut fastrand::Rng| -> Vec<u8> {
        let mut bytes: Vec<u8> =
            (0..rng.usize(..=most)).flat_map(|_| words[rng.usize(..words.len())].bytes()).collect();
        if rng.u8(..) < noise {
            bytes.extend((0..rng.usize(0..40)).map(|_| rng.u8(..)));
        }
        bytes
    };
    let few: Vec<Vec<u8>> = (0..rng.usize(1..5_000)).map(|_| string(rng)).collect();
    let (is_few, nulls_of) = (rng.u8(..) < 80, [0, 0, 3, 500][rng.usize(..4)]);
    let mut column = Column::with_capacity(Physical::Views, rows);
    for _ in 0..rows {
        if nulls_of > 0 && rng.usize(..nulls_of) == 0 {
            column.extend_null(1);
            continue;
        }
        let value = if is_few { few[rng.usize(..few.len())].clone() } else { string(rng) };
        let Values::Views(views) = &mut column.values else { unreachable!() };
        views.push(&value);
        if let Some(validity) = &mut column.validity {
            validity.push(true);
        }
    }
    column
}

fn blocks(seed: u64, count: usize) -> impl Iterator<Item = (Column, EncodedBlock)> {
    let mut rng = fastrand::Rng::with_seed(seed);
    (0..count).map(move |i| {
        let column = column(&mut rng, [1, 100, 1024, 6_000, BLOCK_ROWS][i % 5]);
        let block = encode_bare(ColumnType::Varchar, &column, Effort::Sealed);
        (column, block)
    })
}

#[test]
fn strings_come_back() {
    let mut seen = Vec::new();
    for (column, block) in blocks(1, 60) {
        block.check().unwrap();
        assert_same(&column, &to_column(&block.decode().unwrap()));
        seen.push(block.entry.encoding);
    }
    for encoding in [Encoding::Fsst, Encoding::FsstDict] {
        assert!(seen.iter().filter(|e| **e == encoding).count() > 3, "{encoding:?} among {seen:?}");
    }
}

#[test]
fn damaged_bytes_are_refused_or_decoded() {
    let mut rng = fastrand::Rng::with_seed(2);
    let (mut refused, mut decoded) = (0, 0);
    let kinds = [Encoding::Fsst, Encoding::FsstDict];
    for (_, block) in blocks(3, 50).filter(|(_, b)| kinds.contains(&b.entry.encoding) && b.rows <= 6_000) {
        let layout = Layout::of(&block.entry, block.physical, block.rows).unwrap();
        let payload_at = block.bytes.len() - layout.payload(&block.bytes).len();
        for _ in 0..100 {
            let mut damaged = block.clone();
            let mut bytes = block.bytes.to_vec();
            let end = if rng.bool() { bytes.len() } else { bytes.len().min(payload_at + 700) };
            for _ in 0..rng.usize(1..3) {
                bytes[rng.usize(payload_at..end)] = rng.u8(..);
            }
            match rng.u8(..) {
                0..10 => {
                    bytes.truncate(rng.usize(payload_at..bytes.len()));
                    damaged.entry.bytes = bytes.len() as u32;
                }
                10..20 => damaged.entry.parameter = rng.u32(..) >> rng.u32(0..32),
                _ => {}
            }
            damaged.bytes = Bytes::from(bytes);
            match damaged.check() {
                Ok(()) => {
                    assert_eq!(to_column(&damaged.decode().unwrap()).len(), block.rows);
                    decoded += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 300 && decoded > 30, "{refused} {decoded}");
}
