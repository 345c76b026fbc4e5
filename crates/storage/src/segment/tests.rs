use super::encoding::tests::{TYPES, assert_same, naive_zone, random_column, same_zone};
use super::*;
use crate::fs::Fs;
use crate::fs::faulty::SimFs;
use crate::fs::os::OsFs;
use crate::{Sum, ValueSet, tally};
use std::io;
use std::sync::{Arc, Mutex};
use tidalite_types::{BLOCK_ROWS, Column, ColumnId, ColumnType, ErrorKind, SegmentId, TableId, Values};

const TABLE: TableId = TableId(7);

fn meta(summary: SegmentSummary) -> SegmentMeta {
    SegmentMeta {
        id: SegmentId(3),
        rows: summary.rows,
        bytes: summary.bytes,
        partition: 0,
        time_range: (0, 0),
        is_late: false,
    }
}

fn write(fs: &dyn Fs, segment: SegmentId, columns: &[(ColumnId, ColumnType, Column)]) -> SegmentSummary {
    fs.create_dir_all(&SegmentStore::dir(TABLE)).unwrap();
    let types: Vec<_> = columns.iter().map(|(id, t, _)| (*id, *t)).collect();
    let mut writer = SegmentWriter::create(fs, &SegmentStore::path(TABLE, segment), &types).unwrap();
    let rows = columns[0].2.len();
    for from in (0..rows).step_by(BLOCK_ROWS) {
        let sources: Vec<_> = columns.iter().map(|(_, _, column)| BlockSource::Rows { column, from }).collect();
        writer.write_block((rows - from).min(BLOCK_ROWS), &sources).unwrap();
    }
    writer.finish().unwrap()
}

fn random_columns(rng: &mut fastrand::Rng, rows: usize) -> Vec<(ColumnId, ColumnType, Column)> {
    // Not in order of id, and with gaps.
    let id = |i: usize| ColumnId((i as u32 * 7 + 3) % 17 * 2);
    TYPES.iter().enumerate().map(|(i, t)| (id(i), *t, random_column(rng, *t, rows))).collect()
}

fn open(fs: Arc<dyn Fs>, summary: SegmentSummary) -> Segment {
    Segment::open(SegmentStore::new(fs, 64 << 20), TABLE, meta(summary))
}

/// A footer with valid checksums whose entry contradicts itself.
#[test]
fn an_entry_that_contradicts_itself_is_damage() {
    let nulls = format::Entry::nulls(20);
    let constant = format::Entry { encoding: format::Encoding::Constant, sum: Some(Sum::Ints(5)), ..nulls };
    let zone = crate::Zone { null_count: 21, ..nulls.zone };
    for entry in [
        format::Entry { has_zones: true, ..nulls },
        format::Entry { has_validity: true, ..nulls },
        format::Entry { bytes: 8, ..nulls },
        format::Entry { zone, ..constant },
    ] {
        let columns = [(ColumnId(0), tidalite_types::column_type::Physical::I64)];
        let bytes = [&format::header()[..], &format::footer_and_trailer(20, &columns, &[vec![entry]], false)].concat();
        let fs = Arc::new(SimFs::new(1));
        fs.create_dir_all(&SegmentStore::dir(TABLE)).unwrap();
        fs.create(&SegmentStore::path(TABLE, SegmentId(3))).unwrap().write_all_at(&bytes, 0).unwrap();
        let segment = open(fs, SegmentSummary { rows: 20, bytes: bytes.len() as u64 });
        assert_eq!(segment.read(ColumnId(0), 0).unwrap_err().kind(), ErrorKind::Corrupt, "{entry:?}");
        assert_eq!(segment.totals(ColumnId(0), 0, None).unwrap_err().kind(), ErrorKind::Corrupt, "{entry:?}");
        assert_eq!(segment.verify().unwrap_err().kind(), ErrorKind::Corrupt, "{entry:?}");
    }
}

#[test]
fn segments_of_every_size_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut rng = fastrand::Rng::with_seed(3);
    for rows in [1, 1023, 1024, 1025, 65_535, 65_536, 65_537, 2 * BLOCK_ROWS + 5] {
        let fs = Arc::new(OsFs::new(dir.path().join(rows.to_string())));
        let columns = random_columns(&mut rng, rows);
        let summary = write(&*fs, SegmentId(3), &columns);
        let segment = open(fs.clone(), summary);
        assert_eq!((segment.rows(), segment.block_count()), (rows as u64, rows.div_ceil(BLOCK_ROWS)));
        segment.verify().unwrap();
        for (id, column_type, column) in &columns {
            let mut whole = Column::with_capacity(column_type.physical(), rows);
            for block in 0..segment.block_count() {
                let read = segment.read(*id, block).unwrap().unwrap();
                assert_eq!(read.rows, segment.block_rows(block));
                whole.extend_from_range(&to_column(&read), 0, read.rows);
                let zone = naive_zone(*column_type, column, block * BLOCK_ROWS, read.rows);
                assert!(same_zone(segment.zone(*id, block).unwrap().unwrap(), zone));
                assert_eq!(segment.vector_zones(*id, block).unwrap().unwrap().len(), read.rows.div_ceil(1024));
            }
            assert_same(column, &whole);
        }
        assert!(segment.read(ColumnId(1), 0).unwrap().is_none(), "a column added later");
        assert!(segment.zone(ColumnId(999), 0).unwrap().is_none());
        assert_eq!(segment.columns().unwrap().len(), columns.len());
    }
}

#[test]
fn blocks_are_copied_from_segment_to_segment_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let fs = Arc::new(OsFs::new(dir.path()));
    let columns = random_columns(&mut fastrand::Rng::with_seed(4), BLOCK_ROWS + 10);
    let segment = open(fs.clone(), write(&*fs, SegmentId(3), &columns));
    let types: Vec<_> = columns.iter().map(|(id, t, _)| (*id, *t)).collect();
    let path = SegmentStore::path(TABLE, SegmentId(4));
    let mut writer = SegmentWriter::create(&*fs, &path, &types).unwrap();
    for block in 0..2 {
        let encoded: Vec<_> = types.iter().map(|(id, _)| segment.read_encoded(*id, block).unwrap().unwrap()).collect();
        let sources: Vec<_> = encoded.iter().map(BlockSource::Encoded).collect();
        writer.write_block(segment.block_rows(block), &sources).unwrap();
    }
    writer.finish().unwrap();
    let bytes = |path| std::fs::read(dir.path().join(path)).unwrap();
    assert!(bytes(SegmentStore::path(TABLE, SegmentId(3))) == bytes(path));
}

#[test]
fn a_writer_refuses_what_does_not_fit() {
    let dir = tempfile::tempdir().unwrap();
    let fs = OsFs::new(dir.path());
    let mut writer = SegmentWriter::create(&fs, "a".as_ref(), &[(ColumnId(0), ColumnType::Long)]).unwrap();
    let ints = Column::nulls(tidalite_types::column_type::Physical::I32, 10);
    assert!(writer.write_block(10, &[BlockSource::Rows { column: &ints, from: 0 }]).is_err());
    assert!(writer.write_block(0, &[BlockSource::Nulls]).is_err());
    writer.write_block(10, &[BlockSource::Nulls]).unwrap();
    assert!(writer.write_block(10, &[BlockSource::Nulls]).is_err(), "only the last block is short");
    assert_eq!(writer.finish().unwrap().rows, 10);
    let empty = SegmentWriter::create(&fs, "b".as_ref(), &[(ColumnId(0), ColumnType::Long)]).unwrap();
    assert!(empty.finish().is_err());
}

/// Reads everything; returns the columns or the kind of the first error.
fn read_all(segment: &Segment, columns: &[(ColumnId, ColumnType, Column)]) -> Result<Vec<Column>, ErrorKind> {
    let kind = |e: crate::Error| e.kind();
    let mut out = Vec::new();
    for (id, _, _) in columns {
        segment.zone(*id, 0).map_err(kind)?;
        segment.vector_zones(*id, 0).map_err(kind)?;
        out.push(to_column(&segment.read(*id, 0).map_err(kind)?.ok_or(ErrorKind::NotFound)?));
    }
    Ok(out)
}

type Columns = Vec<(ColumnId, ColumnType, Column)>;

/// Returns a segment of 70 rows of every type on a simulated disk, and its bytes.
fn small_segment(seed: u64) -> (Arc<SimFs>, Columns, SegmentSummary, Vec<u8>) {
    let fs = Arc::new(SimFs::new(0));
    let columns = random_columns(&mut fastrand::Rng::with_seed(seed), 70);
    let summary = write(&*fs, SegmentId(3), &columns);
    let mut bytes = vec![0; summary.bytes as usize];
    fs.open(&SegmentStore::path(TABLE, SegmentId(3))).unwrap().read_exact_at(&mut bytes, 0).unwrap();
    (fs, columns, summary, bytes)
}

#[test]
fn any_wrong_byte_is_found_or_does_not_matter() {
    let (fs, columns, summary, good) = small_segment(5);
    let file = fs.open_write(&SegmentStore::path(TABLE, SegmentId(3))).unwrap();
    let mut found = 0;
    for at in 0..good.len() {
        file.write_all_at(&[good[at] ^ 1 << (at % 8)], at as u64).unwrap();
        let segment = open(fs.clone(), summary);
        match read_all(&segment, &columns) {
            Ok(read) => read.iter().zip(&columns).for_each(|(a, (_, _, b))| assert_same(b, a)),
            Err(kind) => {
                assert_eq!(kind, ErrorKind::Corrupt, "byte {at}");
                assert!(segment.verify().is_err());
                found += 1;
            }
        }
        file.write_all_at(&good[at..=at], at as u64).unwrap();
    }
    assert!(found > good.len() / 3, "{found} of {}", good.len());
}

/// Returns the sum of a numeric column by definition; `None` for other columns and if the footer has no sum.
fn naive_sum(column: &Column) -> Option<Sum> {
    let rows: Vec<usize> = (0..column.len()).filter(|row| column.is_valid(*row)).collect();
    let ints = |value: &dyn Fn(usize) -> i128| {
        let sum = rows.iter().map(|row| value(*row)).sum::<i128>();
        i64::try_from(sum).is_ok().then_some(Sum::Ints(sum))
    };
    let floats = |value: &dyn Fn(usize) -> f64| {
        let sum = rows.iter().fold(-0.0, |sum, row| sum + value(*row));
        (rows.len() == column.len() || sum != 0.0).then_some(Sum::Floats(sum))
    };
    match &column.values {
        _ if rows.is_empty() => None,
        Values::I8(v) => ints(&|row| v[row].into()),
        Values::I16(v) => ints(&|row| v[row].into()),
        Values::I32(v) => ints(&|row| v[row].into()),
        Values::I64(v) => ints(&|row| v[row].into()),
        Values::F32(v) => floats(&|row| v[row].into()),
        Values::F64(v) => floats(&|row| v[row]),
        _ => None,
    }
}

fn magnitudes(column: &Column) -> Column {
    let mut column = column.clone();
    match &mut column.values {
        Values::F32(v) => v.iter_mut().for_each(|v| *v = v.abs()),
        Values::F64(v) => v.iter_mut().for_each(|v| *v = v.abs()),
        _ => {}
    }
    column
}

/// Returns the start and the end of the footer.
fn footer_of(file: &[u8]) -> (usize, usize) {
    let end = file.len() - 32;
    let bytes = u64::from_le_bytes(file[end..end + 8].try_into().unwrap());
    (end - bytes as usize, end)
}

#[test]
fn sums_of_whole_blocks_are_in_the_footer() {
    let mut seen = std::collections::HashSet::new();
    for seed in 20..40 {
        let (fs, columns, summary, good) = small_segment(seed);
        // None of the chunks is needed.
        let (from, _) = footer_of(&good);
        let file = fs.open_write(&SegmentStore::path(TABLE, SegmentId(3))).unwrap();
        file.write_all_at(&vec![0x55; from - 64], 64).unwrap();
        let segment = open(fs.clone(), summary);
        for (id, column_type, column) in &columns {
            let Some(sum) = naive_sum(column) else { continue };
            seen.insert(column_type.to_string());
            let totals = segment.totals(*id, 0, None).unwrap().unwrap();
            assert_eq!(totals.present, (0..column.len()).filter(|row| column.is_valid(*row)).count());
            // In another order of addition, so not bit-identical.
            let magnitudes = naive_sum(&magnitudes(column));
            match (totals.sum, sum, magnitudes) {
                (Sum::Floats(a), Sum::Floats(b), Some(Sum::Floats(all))) if all.is_finite() => {
                    assert!((a - b).abs() <= 1e-9 * all, "{a} {b}");
                }
                (Sum::Floats(a), Sum::Floats(b), _) => assert_eq!(a.is_finite(), b.is_finite(), "{a} {b}"),
                (a, b, _) => assert_eq!(a, b),
            }
        }
    }
    for of in ["BYTE", "INT", "LONG", "FLOAT", "DOUBLE"] {
        assert!(seen.contains(of), "{seen:?}");
    }
}

#[test]
fn a_footer_of_before_sums_is_read() {
    let (fs, columns, summary, good) = small_segment(8);
    let ((from, end), entries_at) = (footer_of(&good), 16 + 8 * columns.len());
    let mut footer = good[from..from + entries_at].to_vec();
    for entry in good[from + entries_at..end].chunks(56) {
        footer.extend([&entry[..18], &[entry[18] & 3], &entry[19..48]].concat());
    }
    let mut trailer = [&(footer.len() as u64).to_le_bytes()[..], &crc32c::crc32c(&footer).to_le_bytes()].concat();
    trailer.extend(&good[end + 12..end + 20]);
    trailer.extend(crc32c::crc32c(&trailer).to_le_bytes());
    trailer.extend(&good[end + 24..]);
    let bytes = [&good[..from], &footer, &trailer].concat();
    let file = fs.open_write(&SegmentStore::path(TABLE, SegmentId(3))).unwrap();
    file.set_len(0).unwrap();
    file.write_all_at(&bytes, 0).unwrap();
    let segment = open(fs.clone(), SegmentSummary { bytes: bytes.len() as u64, ..summary });
    segment.verify().unwrap();
    read_all(&segment, &columns).unwrap().iter().zip(&columns).for_each(|(a, (_, _, b))| assert_same(b, a));
    for (id, _, column) in columns.iter().filter(|(_, _, column)| naive_sum(column).is_some()) {
        let found = segment.totals(*id, 0, None).unwrap().unwrap();
        assert_eq!(found.present, (0..column.len()).filter(|row| column.is_valid(*row)).count(), "of the values");
    }
}

#[test]
fn a_wrong_sum_is_found() {
    let fs = SimFs::new(0);
    let column = Column::new(Values::I64((0..70).collect()));
    let mut block = encode(ColumnType::Long, &column, 0, 70, Effort::Fresh);
    assert_eq!(block.entry.sum, Some(Sum::Ints(69 * 70 / 2)));
    block.entry.sum = Some(Sum::Ints(69 * 70 / 2 + 1));
    fs.create_dir_all(&SegmentStore::dir(TABLE)).unwrap();
    let path = SegmentStore::path(TABLE, SegmentId(3));
    let mut writer = SegmentWriter::create(&fs, &path, &[(ColumnId(0), ColumnType::Long)]).unwrap();
    writer.write_block(70, &[BlockSource::Encoded(&block)]).unwrap();
    let segment = open(Arc::new(fs), writer.finish().unwrap());
    assert!(segment.verify().unwrap_err().to_string().contains("its sum is not that of its values"));
}

#[test]
fn a_file_cut_short_is_found() {
    let (fs, columns, summary, good) = small_segment(6);
    let file = fs.open_write(&SegmentStore::path(TABLE, SegmentId(3))).unwrap();
    for len in (0..good.len()).rev() {
        file.set_len(len as u64).unwrap();
        assert_eq!(read_all(&open(fs.clone(), summary), &columns).unwrap_err(), ErrorKind::Corrupt, "{len} bytes");
        // Also if the manifest has the shorter length.
        let told = SegmentSummary { bytes: len as u64, ..summary };
        assert_eq!(read_all(&open(fs.clone(), told), &columns).unwrap_err(), ErrorKind::Corrupt, "{len} bytes");
    }
}

#[test]
fn an_error_names_file_column_block_and_offset() {
    let (fs, _, summary, _) = small_segment(7);
    let file = fs.open_write(&SegmentStore::path(TABLE, SegmentId(3))).unwrap();
    let mut bytes = vec![0; 64];
    file.read_exact_at(&mut bytes, 64).unwrap();
    bytes.iter_mut().for_each(|b| *b ^= 0x55);
    file.write_all_at(&bytes, 64).unwrap();
    let message = open(fs, summary).verify().unwrap_err().to_string();
    assert_eq!(
        message,
        "segment segments/00000007/0000000000000003.seg is damaged at byte 64: column 6 block 0: its checksum is wrong"
    );
}

#[test]
fn open_files_and_cached_bytes_stay_within_their_limits() {
    let fs: Arc<dyn Fs> = Arc::new(SimFs::new(0));
    let store = SegmentStore::new(fs.clone(), 100_000);
    let column = random_column(&mut fastrand::Rng::with_seed(8), ColumnType::Long, 10);
    let columns = [(ColumnId(0), ColumnType::Long, column)];
    for id in 0..600 {
        let summary = write(&*fs, SegmentId(id), &columns);
        let meta = SegmentMeta { id: SegmentId(id), ..meta(summary) };
        let segment = Segment::open(store.clone(), TABLE, meta);
        assert_same(&columns[0].2, &to_column(&segment.read(ColumnId(0), 0).unwrap().unwrap()));
    }
    let stats = store.stats();
    assert_eq!(stats.open_files, store::OPEN_FILES_MAX);
    assert!(stats.cache.bytes <= 100_000 && stats.cache.bytes > 50_000, "{stats:?}");
    (0..600).for_each(|id| store.forget(SegmentId(id)));
    assert_eq!((store.stats().open_files, store.stats().cache.bytes), (0, 0));
}

#[test]
fn codes_of_blocks_are_those_of_their_rows() {
    let mut rng = fastrand::Rng::with_seed(8);
    let rows = 2 * BLOCK_ROWS + 9;
    let mut codes = Column::with_capacity(ColumnType::Symbol.physical(), rows);
    // The first block has few codes, the second block more, the last block the codes of nine rows; 77 occurs only in
    // NULL rows.
    let code_of: Vec<Option<u32>> =
        (0..rows).map(|row| (rng.u32(0..5) > 0).then(|| rng.u32(0..if row < BLOCK_ROWS { 3 } else { 200 }))).collect();
    let values = code_of.iter().map(|code| code.unwrap_or(77 + 4_000));
    codes.values = tidalite_types::Values::U32(values.collect());
    codes.validity = Some(code_of.iter().map(Option::is_some).collect());
    let fs = Arc::new(SimFs::new(1));
    let summary = write(&*fs, SegmentId(3), &[(ColumnId(4), ColumnType::Symbol, codes)]);
    let segment = open(fs, summary);
    for _ in 0..2 {
        let present = segment.codes_present(ColumnId(4)).unwrap();
        for block in 0..segment.block_count() {
            for code in 0..4_100_u32 {
                let mut bits = vec![0; 65];
                bits[code as usize / 64] = 1 << (code % 64);
                let mut rows = (block * BLOCK_ROWS..rows.min((block + 1) * BLOCK_ROWS)).map(|row| code_of[row]);
                assert_eq!(present.has_any(block, &bits), rows.any(|own| own == Some(code)), "{block} {code}");
            }
        }
    }
    assert!(!segment.codes_present(ColumnId(1)).unwrap().has_any(0, &[u64::MAX]), "a column added later");
}

/// A file that records prefetch requests.
#[derive(Debug)]
struct Noting {
    below: Arc<dyn crate::fs::File>,
    asked: Arc<Mutex<Vec<(u64, u64)>>>,
}

impl crate::fs::File for Noting {
    fn len(&self) -> io::Result<u64> {
        self.below.len()
    }
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.below.read_exact_at(buffer, offset)
    }
    fn will_read(&self, offset: u64, bytes: u64) {
        self.asked.lock().unwrap().push((offset, bytes));
        self.below.will_read(offset, bytes);
    }
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.below.write_all_at(bytes, offset)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.below.set_len(len)
    }
    fn allocate(&self, len: u64) -> io::Result<()> {
        self.below.allocate(len)
    }
    fn sync(&self) -> io::Result<()> {
        self.below.sync()
    }
}

#[test]
fn the_disk_is_asked_for_blocks_that_are_not_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let fs = Arc::new(OsFs::new(dir.path()));
    let mut rng = fastrand::Rng::with_seed(12);
    let rows = 4 * BLOCK_ROWS;
    let numbers = |rng: &mut fastrand::Rng| Column::new(Values::I64((0..rows).map(|_| rng.i64(..)).collect()));
    let alone = [(ColumnId(0), ColumnType::Long, numbers(&mut rng))];
    let both = [alone[0].clone(), (ColumnId(1), ColumnType::Long, numbers(&mut rng))];
    for columns in [&alone[..], &both[..]] {
        let id = SegmentId(columns.len() as u64);
        let meta = SegmentMeta { id, ..meta(write(&*fs, id, columns)) };
        let store = SegmentStore::new(fs.clone(), 64 << 20);
        let path = SegmentStore::path(TABLE, id);
        let asked = Arc::new(Mutex::new(Vec::new()));
        store.keep_open(id, Arc::new(Noting { below: fs.open(&path).unwrap(), asked: asked.clone() }));
        let segment = Segment::open(store, TABLE, meta);
        let ask = |blocks: std::ops::Range<usize>| {
            segment.will_read(ColumnId(0), blocks);
            std::mem::take(&mut *asked.lock().unwrap())
        };
        let bytes = |block: usize| u64::from(segment.stored(ColumnId(0), block).unwrap().unwrap().bytes);
        let all = ask(0..4);
        if columns.len() == 1 {
            assert_eq!(all.len(), 1, "blocks beside each other are one request");
            let (padded, sum) = (all[0].1, (0..4).map(bytes).sum::<u64>());
            assert!((sum..sum + 4 * 64).contains(&padded), "{padded} for {sum}");
        } else {
            assert_eq!(all.iter().map(|(_, bytes)| *bytes).collect::<Vec<_>>(), (0..4).map(bytes).collect::<Vec<_>>());
        }
        segment.read(ColumnId(0), 1).unwrap();
        assert_eq!(ask(0..4).len(), if columns.len() == 1 { 2 } else { 3 }, "one is in memory");
        assert_eq!(ask(1..2), []);
        segment.will_read(ColumnId(9), 0..4);
        assert_eq!(*asked.lock().unwrap(), [], "a column added later");
    }
}

#[test]
fn few_codes_are_those_of_small_sets() {
    let few = |ranges: &[(i128, i128)]| {
        let set = ValueSet::ints(ranges.to_vec());
        few_codes(&set).map(Iterator::collect::<Vec<_>>)
    };
    assert_eq!(few(&[(3, 3), (7, 9)]), Some(vec![3, 7, 8, 9]));
    assert_eq!(few(&[(0, 15)]).map(|codes| codes.len()), Some(16));
    assert_eq!((few(&[(0, 16)]), few(&[(1 << 16, 1 << 16)]), few(&[(-1, 0)])), (None, None, None));
    assert_eq!(few(&[(i128::MIN, -1), (1, i128::MAX)]), None, "all but one");
    assert!(few_codes(&ValueSet::floats(vec![(3.0, 3.0)])).is_none());
}

#[test]
fn a_block_asked_again_knows_the_rows_of_a_code() {
    let mut rng = fastrand::Rng::with_seed(9);
    let rows = BLOCK_ROWS + 3_000;
    // The first block has many codes, each in few vectors; the second block has few codes, each in all vectors.
    let code_of: Vec<Option<u32>> = (0..rows)
        .map(|row| (rng.u32(0..9) > 0).then(|| rng.u32(0..if row < BLOCK_ROWS { 20_000 } else { 3 })))
        .collect();
    let mut codes = Column::new(Values::U32(code_of.iter().map(|code| code.unwrap_or(3)).collect()));
    codes.validity = Some(code_of.iter().map(Option::is_some).collect());
    let fs = Arc::new(SimFs::new(1));
    let segment = open(fs.clone(), write(&*fs, SegmentId(3), &[(ColumnId(4), ColumnType::Symbol, codes)]));
    assert_eq!(
        [4, 9].map(|id| segment.has_nulls(ColumnId(id)).unwrap()),
        [true, true],
        "some rows; a column added later"
    );
    let mut skipped = Vec::new();
    let rows_of = |wanted: &[usize]| {
        let is_wanted = |code: &Option<u32>| code.is_some_and(|code| wanted.contains(&(code as usize)));
        (0..BLOCK_ROWS).filter(|row| is_wanted(&code_of[*row])).collect::<Vec<_>>()
    };
    for ask in 0..6 {
        for wanted in [vec![2], vec![7, 1, 19_999], vec![60_000]] {
            let known = segment.known_rows(ColumnId(4), 0, &wanted);
            assert_eq!(known.is_some(), ask > 0, "a few asks of other codes are enough");
            if let Some(known) = known {
                assert_eq!(tidalite_kernels::picked(known.mask()).collect::<Vec<_>>(), rows_of(&wanted));
            }
            assert!(segment.known_rows(ColumnId(4), 1, &[1]).is_none(), "a third of the rows are not few");
        }
        let _ = tally::taken();
        for wanted in [
            vec![2],
            vec![0, 1, 7, 8, 9],
            vec![code_of.iter().flatten().copied().next().unwrap()],
            vec![19_999, 60_000],
        ] {
            let set = ValueSet::ints(wanted.iter().map(|code| (i128::from(*code), i128::from(*code))).collect());
            for (block, with_null) in [(0, false), (1, false), (0, true)] {
                let own = &code_of[block * BLOCK_ROWS..rows.min((block + 1) * BLOCK_ROWS)];
                // Some of the rows are no longer wanted.
                let asked: Vec<bool> = own.iter().map(|_| ask % 2 == 0 || rng.bool()).collect();
                let mut mask = asked.iter().copied().collect::<tidalite_types::Bitmap>().into_words();
                segment.retain(ColumnId(4), block, &set, with_null, &mut mask).unwrap();
                let is_in = |code: &Option<u32>| code.map_or(with_null, |code| wanted.contains(&code));
                let expected = own.iter().zip(&asked).map(|(code, asked)| *asked && is_in(code));
                assert_eq!(mask, expected.collect::<tidalite_types::Bitmap>().into_words(), "{ask} {wanted:?} {block}");
            }
        }
        skipped.push(tally::taken().vectors_skipped);
    }
    // About eight of four times 64 vectors of the first block have rows; the first two lookups compare all vectors.
    assert!(skipped[5] > 4 * 45 && skipped[0] <= 2 * 64, "{skipped:?}");
}

#[test]
fn rows_of_codes_are_kept_where_codes_have_few_not_where_few_are_asked() {
    let codes = |count: u32| Column::new(Values::U32((0..BLOCK_ROWS as u32).map(|row| row % count).collect()));
    for (count, is_kept) in [(3, false), (5_000, true)] {
        let fs = Arc::new(SimFs::new(1));
        let segment = open(fs.clone(), write(&*fs, SegmentId(3), &[(ColumnId(0), ColumnType::Symbol, codes(count))]));
        assert!(!segment.has_nulls(ColumnId(0)).unwrap() && segment.has_nulls(ColumnId(1)).unwrap());
        let (set, blocks) = (ValueSet::ints(vec![(1, 1)]), |segment: &Segment| segment.store().stats().cache.blocks);
        let mut before = None;
        for _ in 0..6 {
            // Other conditions left 128 rows.
            let mut mask = vec![0_u64; BLOCK_ROWS / 64];
            mask[..2].fill(u64::MAX);
            segment.retain(ColumnId(0), 0, &set, false, &mut mask).unwrap();
            let found = (0..128).filter(|row| mask[row / 64] >> (row % 64) & 1 == 1);
            assert!(found.eq((0..128).filter(|row| row % count as usize == 1)));
            before.get_or_insert(blocks(&segment));
        }
        assert_eq!(blocks(&segment) > before.unwrap(), is_kept, "{count} codes");
    }
}

#[test]
fn rows_in_narrow_ranges_are_found_by_value() {
    let mut rng = fastrand::Rng::with_seed(44);
    let rows = BLOCK_ROWS + 3_000;
    let floats: Vec<f64> = (0..rows)
        .map(|row| if row % 5 == 0 { rng.f64() } else { f64::from(rng.i32(-99_999..99_999)) / 100.0 })
        .collect();
    let exact: Vec<f64> = (0..rows).map(|_| rng.f64() * 7.0 - 3.0).collect();
    let ints: Vec<i64> = (0..rows).map(|_| rng.i64(..)).collect();
    let few: Vec<i32> = (0..rows).map(|_| rng.i32(-40_000..40_000)).collect();
    let nulls = |rng: &mut fastrand::Rng| Some((0..rows).map(|_| rng.u32(..9) > 0).collect::<tidalite_types::Bitmap>());
    let columns = [
        (ColumnType::Double, Column { values: Values::F64(floats.clone()), validity: None }),
        (ColumnType::Double, Column { values: Values::F64(exact.clone()), validity: nulls(&mut rng) }),
        (ColumnType::Long, Column { values: Values::I64(ints.clone()), validity: nulls(&mut rng) }),
        (ColumnType::Int, Column { values: Values::I32(few.clone()), validity: None }),
    ];
    let columns: Vec<_> = columns.into_iter().enumerate().map(|(id, (t, c))| (ColumnId(id as u32), t, c)).collect();
    let fs = Arc::new(SimFs::new(1));
    let segment = open(fs.clone(), write(&*fs, SegmentId(3), &columns));
    let double = |rng: &mut fastrand::Rng| if rng.bool() { (250.0, 251.0) } else { (floats[7], floats[7]) };
    let mut skipped = vec![Vec::new(); columns.len()];
    for ask in 0..8 {
        for (id, _, column) in &columns {
            let set = match id.0 {
                0 => ValueSet::floats(vec![double(&mut rng)]),
                1 => ValueSet::floats(vec![(exact[9], exact[9] + 0.001), (3.999, f64::NAN)]),
                2 => ValueSet::ints(vec![
                    (ints[3].into(), i128::from(ints[3]) + (1 << 50)),
                    (i128::MIN, -(0x7fff << 48)),
                ]),
                _ => ValueSet::ints(vec![(few[1_455].into(), few[1_455].into()), (39_990, 50_000)]),
            };
            let _ = tally::taken();
            for block in 0..2 {
                let from = block * BLOCK_ROWS;
                let own = from..rows.min(from + BLOCK_ROWS);
                // Some of the rows are no longer wanted.
                let asked: Vec<bool> = own.clone().map(|_| ask % 2 == 0 || rng.bool()).collect();
                let mut mask = asked.iter().copied().collect::<tidalite_types::Bitmap>().into_words();
                segment.retain(*id, block, &set, false, &mut mask).unwrap();
                let has = |row: usize| match &column.values {
                    Values::F64(values) => set.has_float(values[row]),
                    Values::I64(values) => set.has_int(values[row].into()),
                    Values::I32(values) => set.has_int(values[row].into()),
                    _ => unreachable!(),
                };
                let expected = own.map(|row| asked[row - from] && column.is_valid(row) && has(row));
                assert_eq!(mask, expected.collect::<tidalite_types::Bitmap>().into_words(), "{id:?} {set:?} {block}");
            }
            skipped[id.0 as usize].push(tally::taken().vectors_skipped);
        }
    }
    // After repeated lookups, vectors without a matching row are skipped.
    for skipped in skipped {
        assert!(skipped[7] > skipped[0], "{skipped:?}");
    }
}

#[test]
fn codes_beside_others_are_those_of_their_rows() {
    let mut rng = fastrand::Rng::with_seed(14);
    let rows = BLOCK_ROWS + 900;
    let symbols = |of: &[Option<u32>]| {
        let mut column = Column::with_capacity(ColumnType::Symbol.physical(), of.len());
        column.values = tidalite_types::Values::U32(of.iter().map(|code| code.unwrap_or(9_999)).collect());
        column.validity = Some(of.iter().map(Option::is_some).collect());
        column
    };
    // Trucks of 4 fleets; some rows have no fleet, some no truck. Truck 50 has its own fleet.
    let trucks: Vec<Option<u32>> = (0..rows).map(|_| (rng.u32(0..9) > 0).then(|| rng.u32(0..150))).collect();
    let fleet = |truck: &Option<u32>| truck.map(|truck| if truck == 50 { 4 } else { truck % 4 });
    let fleets: Vec<Option<u32>> = trucks.iter().map(|truck| fleet(truck).filter(|_| rng.u32(0..90) > 0)).collect();
    let fs = Arc::new(SimFs::new(1));
    let columns =
        [(ColumnId(4), ColumnType::Symbol, symbols(&trucks)), (ColumnId(2), ColumnType::Symbol, symbols(&fleets))];
    let summary = write(&*fs, SegmentId(3), &columns);
    let segment = open(fs, summary);
    assert!(segment.known_codes_beside(ColumnId(4), ColumnId(2)).is_none(), "nobody asked");
    for _ in 0..2 {
        let beside = segment.codes_beside(ColumnId(4), ColumnId(2), (150, 5)).unwrap();
        for (fleet, or_null) in [(Some(0), false), (Some(4), false), (Some(3), true), (None, true), (Some(7), false)] {
            let asked = |own: &Option<u32>| own.map_or(or_null, |own| Some(own) == fleet);
            let mut expected = [0_u64; 3];
            for (truck, _) in trucks.iter().zip(&fleets).filter(|(_, own)| asked(own)) {
                truck.iter().for_each(|truck| expected[*truck as usize / 64] |= 1 << (truck % 64));
            }
            let mut found = [0; 3];
            assert!(beside.add_to(&[fleet.map_or(0, |fleet| 1 << fleet)], or_null, &mut found));
            assert_eq!(found, expected, "{fleet:?} {or_null}");
        }
        assert!(segment.known_codes_beside(ColumnId(4), ColumnId(2)).is_some());
    }
    // Too many codes for an index, and codes that are not in the dictionary.
    let too_many = segment.codes_beside(ColumnId(4), ColumnId(9), (150, 1 << 20)).unwrap();
    assert!(!too_many.add_to(&[1], true, &mut [0; 3]));
    assert_eq!(segment.codes_beside(ColumnId(2), ColumnId(4), (2, 100)).unwrap_err().kind(), ErrorKind::Corrupt);
    // A column that was added later is NULL in every row.
    let later = segment.codes_beside(ColumnId(2), ColumnId(7), (5, 1)).unwrap();
    let mut found = [0];
    assert!(later.add_to(&[], true, &mut found) && found == [0b1_1111]);
}
