//! Any bytes as a segment: no panic, no memory for claims. Blocks are read in every way that queries have: whole, some
//! rows, vectors, texts, comparisons, totals. Some rows are those of the whole block. What a check finds whole is read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::Arc;
use tidalite_fuzz::folder::{self, TABLE};
use tidalite_fuzz::{memory, seal};
use tidalite_storage::fs::Fs;
use tidalite_storage::segment::reader::SegmentMeta;
use tidalite_storage::segment::salvage::salvage;
use tidalite_storage::segment::verify::verify;
use tidalite_storage::segment::{OpenBlock, SegmentStore, Selection, TextsOf, to_column};
use tidalite_storage::{Block, Result, Segment, TextPattern, ValueSet};
use tidalite_types::column_type::Physical;
use tidalite_types::{Column, ColumnId, SegmentId, VECTOR_ROWS};

/// A frame of zstd has at most 32,768 times its bytes; a block is decoded and copied.
const ALLOWED: usize = 768 << 20;
const CACHE_BYTES: usize = 1 << 20;
/// Maximum number of blocks that are read.
const BLOCKS_MAX: usize = 3;

fuzz_target!(|input: &[u8]| {
    let mut bytes = input.to_vec();
    let Some(rows) = seal::segment(&mut bytes) else { return };
    memory::within(ALLOWED, || {
        let fs = folder::empty();
        folder::put(&*fs, &SegmentStore::path(TABLE, SegmentId(1)), &bytes);
        let bytes = bytes.len() as u64;
        let meta =
            SegmentMeta { id: SegmentId(1), rows, bytes, partition: 0, time_range: (0, 0), is_late: false };
        let segment = Segment::open(SegmentStore::new(fs.clone(), CACHE_BYTES), TABLE, meta);
        check(&fs, &segment);
        let Ok(columns) = segment.columns() else { return };
        for column in columns {
            for block in 0..segment.block_count().min(BLOCKS_MAX) {
                if segment.vector_zones(column, block).is_ok()
                    && let Ok(Some(decoded)) = segment.read(column, block)
                {
                    // A value that can be read one way can be read in every other way, or gives an error.
                    let _ = rows_of(&segment, column, block, &decoded);
                    let _ = compared(&segment, column, block);
                    let _ = vectors(&segment, column, block, &decoded);
                }
            }
        }
    });
});

/// Checks the segment and copies its whole blocks.
fn check(fs: &Arc<dyn Fs>, segment: &Segment) {
    let verified = verify(segment, None, &mut |_| Ok(())).expect("the disk is well");
    let Ok(columns) = segment.columns() else { return };
    for column in columns.into_iter().filter(|_| verified.problems.is_empty()) {
        for block in 0..segment.block_count() {
            assert!(segment.read(column, block).is_ok_and(|block| block.is_some()), "a whole block is read");
            assert!(segment.read_encoded(column, block).is_ok());
            assert!(segment.vector_zones(column, block).is_ok());
        }
    }
    if !verified.whole_blocks.is_empty() {
        let blocks: Vec<usize> = verified.whole_blocks.into_iter().take(BLOCKS_MAX).collect();
        drop(salvage(segment, &folder::schema("t"), &blocks, SegmentId(2), &**fs));
    }
}

fn rows_of(segment: &Segment, column: ColumnId, block: usize, decoded: &Block) -> Result<()> {
    let rows = segment.block_rows(block);
    assert_eq!(decoded.rows, rows);
    let all = to_column(decoded);
    assert_eq!(all.len(), rows);
    for step in [1, 3, 400] {
        let mut mask = vec![0_u64; rows.div_ceil(64)];
        (0..rows).step_by(step).for_each(|row| mask[row / 64] |= 1 << (row % 64));
        let selection = Selection::new(mask);
        let some = to_column(&segment.take(column, block, &selection)?.expect("the column exists"));
        let mut expected = Column::with_capacity(decoded.physical, rows);
        (0..rows).step_by(step).for_each(|row| expected.extend_from_range(&all, row, 1));
        assert_eq!(some.len(), expected.len());
        assert_eq!(folder::bytes_of(&some), folder::bytes_of(&expected), "every {step} rows");
        segment.totals(column, block, Some(&selection))?;
        segment.totals(column, block, None)?;
        few(segment, column, block, &selection)?;
        if decoded.physical == Physical::Views {
            segment.texts(column, block, TextsOf::Some(&selection))?;
        }
    }
    if decoded.physical == Physical::Views {
        segment.texts(column, block, TextsOf::Each)?;
        let texts = segment.texts(column, block, TextsOf::All)?.expect("the column exists");
        assert_eq!(texts.rows, rows);
    }
    Ok(())
}

/// Few rows, read one by one.
fn few(segment: &Segment, column: ColumnId, block: usize, selection: &Selection) -> Result<()> {
    let footer = segment.footer()?;
    let Some(few) = segment.few_rows(&footer, block, selection) else { return Ok(()) };
    let (mut ints, mut floats, mut codes) = (Vec::new(), Vec::new(), Vec::new());
    let _ = few.ints(column, &mut ints);
    let _ = few.floats(column, &mut floats);
    let _ = few.codes(column, &mut codes);
    few.zone(column).map(|_| ())
}

fn compared(segment: &Segment, column: ColumnId, block: usize) -> Result<()> {
    let pattern = TextPattern::of_like("%ex%t%").expect("a pattern");
    let sets = [
        ValueSet::ints(vec![(-5, 5), (100, 1 << 40)]),
        ValueSet::ints(vec![(7, 7)]),
        ValueSet::floats(vec![(-1.0, 0.5), (7.0, f64::NAN)]),
        ValueSet::texts(vec![b"text 7 of this style".to_vec(), Vec::new()]),
        ValueSet::Like { pattern, is_matching: true },
    ];
    let rows = segment.block_rows(block);
    for set in &sets {
        // A block gets an index after several identical lookups.
        for ask in 0..5 {
            let mut mask = vec![u64::MAX; rows.div_ceil(64)];
            if let Some(last) = mask.last_mut().filter(|_| rows % 64 > 0) {
                *last = (1 << (rows % 64)) - 1;
            }
            segment.retain(column, block, set, ask == 0, &mut mask)?;
            assert!(rows % 64 == 0 || mask.last().is_none_or(|last| last >> (rows % 64) == 0), "rows past the end");
        }
    }
    Ok(())
}

fn vectors(segment: &Segment, column: ColumnId, block: usize, decoded: &Block) -> Result<()> {
    let Some(open) = segment.open_block(column, block)? else { return Ok(()) };
    let count = decoded.rows.div_ceil(VECTOR_ROWS);
    open.zones()?;
    let rows_of = |i: usize| (decoded.rows - i * VECTOR_ROWS).min(VECTOR_ROWS);
    let mut presence = open.presence()?;
    (0..count).for_each(|i| assert!(presence.vector(i).1.is_none_or(|present| present.len() == rows_of(i))));
    match decoded.physical {
        Physical::I8 | Physical::I16 | Physical::I32 | Physical::I64 => {
            let mut ints = open.ints()?;
            (0..count).for_each(|i| assert_eq!(ints.vector(i).0.len(), rows_of(i)));
            digits(&open, false, count)?;
        }
        Physical::F32 | Physical::F64 => {
            let mut floats = open.floats()?;
            (0..count).for_each(|i| assert_eq!(floats.vector(i).0.len(), rows_of(i)));
            digits(&open, true, count)?;
        }
        Physical::U32 => {
            let mut codes = open.codes()?;
            (0..count).for_each(|i| assert_eq!(codes.vector(i).0.len(), rows_of(i)));
            segment.codes_present(column)?;
        }
        _ => {}
    }
    Ok(())
}

fn digits(open: &OpenBlock<'_>, as_floats: bool, count: usize) -> Result<()> {
    let Some(mut digits) = open.digits(as_floats)? else { return Ok(()) };
    for i in 0..count {
        if digits.has(i) {
            let _ = digits.vector(i);
        }
    }
    Ok(())
}
