use super::*;
use crate::segment::Effort;
use crate::segment::encoding::chunk::Layout;
use crate::segment::encoding::tests::assert_same;
use crate::segment::encoding::{encode, to_column};
use crate::segment::{Comparison, Constant};
use bytes::Bytes;
use tidalite_types::{BLOCK_ROWS, Column, ColumnType, Values, Views};

/// Returns three rows per visit, with random numbers from one visit to the next.
fn visits(rng: &mut fastrand::Rng, rows: usize, width: i64) -> Vec<i64> {
    let mut out = Vec::with_capacity(rows);
    while out.len() < rows {
        let value = rng.i64(0..width);
        out.resize(rows.min(out.len() + rng.usize(1..6)), value);
    }
    out
}

fn pages(rng: &mut fastrand::Rng, rows: usize, distinct: usize) -> Values {
    let words = ["harbour", "gate", "window", "lantern", "river", "stone", "meadow", "cloud"];
    let page = |rng: &mut fastrand::Rng| {
        let path: Vec<&str> = (0..rng.usize(3..9)).map(|_| words[rng.usize(..words.len())]).collect();
        format!("https://example.com/{}?page={}", path.join("/"), rng.u32(..))
    };
    let pool: Vec<String> = (0..distinct).map(|_| page(rng)).collect();
    let mut views = Views::new();
    (0..rows).for_each(|_| views.push(pool[rng.usize(..distinct)].as_bytes()));
    Values::Views(views)
}

/// Returns columns that compress well, and the encoding inside.
fn columns(rng: &mut fastrand::Rng, rows: usize) -> Vec<(ColumnType, Column)> {
    let narrow: Vec<i64> = visits(rng, rows, 90);
    let wide: Vec<i64> = visits(rng, rows, i64::MAX);
    let mut time = 0;
    let near: Vec<i64> = visits(rng, rows, 1 << 17)
        .iter()
        .map(|v| {
            v + {
                time += 1;
                time
            }
        })
        .collect();
    let rare: Vec<i32> = (0..rows).map(|_| if rng.usize(..40) == 0 { rng.i32(0..9_000) } else { 0 }).collect();
    let addresses = wide.iter().map(|v| *v as u32).collect();
    let doubles: Vec<f64> = wide.iter().map(|v| *v as f64 / 3.0).collect();
    let flags = (0..rows).map(|_| rng.usize(..30) == 0).collect();
    vec![
        (ColumnType::Short, Column::new(Values::I16(narrow.iter().map(|v| *v as i16 - 45).collect()))),
        (ColumnType::Byte, Column::new(Values::I8(narrow.iter().map(|v| *v as i8 - 45).collect()))),
        (ColumnType::Long, Column::new(Values::I64(wide))),
        (ColumnType::Long, Column::new(Values::I64(near))),
        (ColumnType::Int, Column::new(Values::I32(rare))),
        (ColumnType::Ipv4, Column::new(Values::U32(addresses))),
        (ColumnType::Double, Column::new(Values::F64(doubles))),
        (ColumnType::Boolean, Column::new(Values::Bit(flags))),
        (ColumnType::Varchar, Column::new(pages(rng, rows, rows / 2 + 1))),
        (ColumnType::Varchar, Column::new(pages(rng, rows, rows))),
        (ColumnType::Varchar, Column::new(pages(rng, rows, rows / 100 + 2))),
    ]
}

fn with_nulls(rng: &mut fastrand::Rng, mut column: Column) -> Column {
    column.validity = Some((0..column.len()).map(|_| rng.usize(..9) > 0).collect());
    column
}

#[test]
fn what_repeats_is_compressed_and_comes_back() {
    let mut rng = fastrand::Rng::with_seed(1);
    let mut seen = std::collections::HashSet::new();
    for rows in [5_000, 20_001, BLOCK_ROWS] {
        for (i, (column_type, column)) in columns(&mut rng, rows).into_iter().enumerate() {
            let column = if i % 2 == 0 { column } else { with_nulls(&mut rng, column) };
            let fresh = encode(column_type, &column, 0, rows, Effort::Fresh);
            let sealed = encode(column_type, &column, 0, rows, Effort::Sealed);
            sealed.check().unwrap();
            assert!(fresh.entry.encoding != Encoding::Compressed, "{column_type} fresh");
            assert!(sealed.bytes.len() <= fresh.bytes.len(), "{column_type} {}", sealed.encoding_name());
            seen.insert(sealed.encoding_name());
            let expected = to_column(&fresh.decode().unwrap());
            assert_same(&expected, &to_column(&sealed.decode().unwrap()));
            assert_eq!(fresh.zone(), sealed.zone());
            let constant = Constant::Int(100);
            for comparison in [Comparison::Less, Comparison::NotEqual] {
                if let (Some(a), Some(b)) = (fresh.compare(comparison, constant), sealed.compare(comparison, constant))
                {
                    assert_eq!(a, b, "{column_type} {}", sealed.encoding_name());
                }
            }
            if let Values::Views(views) = &expected.values {
                for row in [0, rows / 2, rows - 1] {
                    let wanted = views.get(row);
                    let naive = |row: usize| expected.is_valid(row) && views.get(row) == wanted;
                    let mask = sealed.equals(wanted).unwrap();
                    assert!((0..rows).all(|row| (mask[row / 64] >> (row % 64) & 1 == 1) == naive(row)));
                }
            }
        }
    }
    for name in ["Planes", "Text", "TextDict"] {
        assert!(seen.contains(&format!("compressed {name}")), "{name} among {seen:?}");
    }
}

#[test]
fn damaged_frames_are_refused() {
    let mut rng = fastrand::Rng::with_seed(2);
    let (mut refused, mut count) = (0, 0);
    for (column_type, column) in columns(&mut rng, 6_000) {
        let block = encode(column_type, &column, 0, 6_000, Effort::Sealed);
        if block.entry.encoding != Encoding::Compressed {
            continue;
        }
        let payload_at = block.bytes.len()
            - Layout::of(&block.entry, block.physical, block.rows).unwrap().payload(&block.bytes).len();
        for _ in 0..60 {
            let mut bytes = block.bytes.to_vec();
            let at = rng.usize(payload_at..bytes.len());
            bytes[at] ^= 1 << rng.u8(..8);
            if rng.usize(..4) == 0 {
                bytes.truncate(rng.usize(payload_at..bytes.len()));
            }
            let mut damaged = block.clone();
            damaged.entry.bytes = bytes.len() as u32;
            damaged.bytes = Bytes::from(bytes);
            let decoded = damaged.check().and_then(|()| damaged.decode());
            let _ =
                (damaged.compare(Comparison::Less, Constant::Int(7)), damaged.equals(b"x"), damaged.encoding_name());
            assert!(decoded.as_ref().map_or(true, |decoded| decoded.rows == block.rows));
            refused += usize::from(decoded.is_err());
            count += 1;
        }
    }
    assert!(count >= 400 && refused > count / 3, "{refused} of {count} refused");
}

#[test]
fn a_head_that_promises_too_much_is_refused() {
    let mut rng = fastrand::Rng::with_seed(3);
    let values: Vec<i64> = (0..200).map(|_| rng.i64(..)).collect();
    let column = Column::new(Values::I64((0..4_000).map(|i| values[i % 200]).collect()));
    let block = encode(ColumnType::Long, &column, 0, 4_000, Effort::Sealed);
    assert_eq!(block.entry.encoding, Encoding::Compressed);
    let layout = Layout::of(&block.entry, block.physical, block.rows).unwrap();
    let at = block.bytes.len() - layout.payload(&block.bytes).len();
    let with_head = |tag: u8, bytes: u32| {
        let mut damaged = block.bytes.to_vec();
        damaged[at] = tag;
        damaged[at + 4..at + 8].copy_from_slice(&bytes.to_le_bytes());
        EncodedBlock { bytes: Bytes::from(damaged), ..block.clone() }
    };
    let (inner, bytes, _) = parse(layout.payload(&block.bytes), &block).unwrap();
    with_head(inner as u8, bytes as u32).decode().unwrap();
    for (tag, bytes) in [
        (inner as u8, u32::MAX),
        (inner as u8, bytes as u32 + 1),
        (inner as u8, 0),
        (Encoding::Compressed as u8, bytes as u32),
        (Encoding::Nulls as u8, bytes as u32),
        (99, bytes as u32),
    ] {
        assert!(with_head(tag, bytes).check().is_err(), "tag {tag} and {bytes} bytes");
        assert!(with_head(tag, bytes).decode().is_err(), "tag {tag} and {bytes} bytes");
    }
    // A frame that states more bytes than it contains, and a frame without a size.
    let frame = compress(&vec![0; 1 << 20], LEVEL).unwrap();
    let mut payload = vec![Encoding::Plain as u8, 0, 0, 0];
    payload.extend((1u32 << 20).to_le_bytes());
    payload.extend(frame);
    assert!(parse(&payload, &block).is_err(), "more than 4,000 rows take");
}
