//! Replaces every number of a valid stream by numbers that claim memory: the decoder must neither panic nor allocate
//! more than a few times the bytes of the stream. The allocator of this test counts memory.

use arrow::array::{Array, ArrayRef, DictionaryArray, Int64Array, ListArray, NullArray, RecordBatch, StringArray};
use arrow::array::{FixedSizeListArray, RunArray, StringViewArray, StructArray};
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, Field, Float64Type, Int8Type, Int32Type};
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{IpcWriteOptions, StreamWriter};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use tidalite_frames::{IpcDecoder, IpcError, IpcLimits};

struct Counting;

/// Serializes the tests of this file: the counters are global.
static TURN: Mutex<()> = Mutex::new(());
static USED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn grown(bytes: usize) {
    let used = USED.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(used, Relaxed);
}

// SAFETY: every call goes to the system's allocator with its arguments; counters do not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: the caller upholds the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        grown(size);
        USED.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller upholds the contract of `realloc`.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const CLAIMS: [i64; 10] = [0, 1, -1, 1 << 19, 1 << 31, (1 << 31) - 1, 1 << 60, 1 << 62, i64::MAX, i64::MIN];
/// Maximum decompressed bytes.
const LIMIT: usize = 1 << 20;
/// Maximum memory of a decoder for a stream of a few KiB, with contexts of zstd and lz4, messages and arrays.
const ALLOWED: usize = LIMIT + (9 << 20);

fn columns() -> RecordBatch {
    let rows = 50;
    let text = |i: i64| (i % 3 > 0).then(|| format!("a text that is longer than a view holds {i}"));
    let lists = (0..rows).map(|i| Some((0..i % 4).map(|x| Some(x as f64)).collect::<Vec<_>>()));
    let codes: DictionaryArray<Int8Type> = (0..rows).map(|i| ["x", "y"][i as usize % 2]).collect();
    let runs = RunArray::<Int32Type>::try_new(&vec![20, 50].into(), &StringArray::from(vec!["a", "b"])).unwrap();
    let inner: ArrayRef = Arc::new(codes.clone());
    let within = StructArray::from(vec![(Arc::new(Field::new("d", inner.data_type().clone(), true)), inner)]);
    let pairs: ArrayRef = Arc::new(Int64Array::from_iter_values(0..2 * rows));
    let item = Arc::new(Field::new("item", DataType::Int64, true));
    let pairs = FixedSizeListArray::try_new(item, 2, pairs, None).unwrap();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("n", Arc::new(Int64Array::from_iter((0..rows).map(|i| (i % 7 > 0).then_some(i))))),
        ("t", Arc::new(StringArray::from_iter((0..rows).map(text)))),
        ("v", Arc::new(StringViewArray::from_iter((0..rows).map(text)))),
        ("l", Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(lists))),
        ("p", Arc::new(pairs)),
        ("d", Arc::new(codes)),
        ("s", Arc::new(within)),
        ("r", Arc::new(runs)),
        ("x", Arc::new(NullArray::new(rows as usize))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true))).unwrap()
}

fn stream(codec: Option<CompressionType>) -> Vec<u8> {
    let batch = columns();
    let options = IpcWriteOptions::default().try_with_compression(codec).unwrap();
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    writer.into_inner().unwrap()
}

fn read(bytes: &[u8]) -> Result<usize, IpcError> {
    let limits = IpcLimits { decompressed_bytes_max: LIMIT, ratio_max: IpcLimits::RATIO_MAX };
    let (mut decoder, mut buffer, mut rows) = (IpcDecoder::new(limits), Buffer::from(bytes), 0);
    while let Some(batch) = decoder.decode::<IpcError>(&mut buffer, &mut |_| Ok(()))? {
        rows += batch.num_rows();
        // Readers of the values rely on their validity.
        batch.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
    }
    decoder.finish()?;
    Ok(rows)
}

#[test]
fn no_claimed_number_takes_memory() {
    let _turn = TURN.lock().unwrap();
    for codec in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
        let good = stream(codec);
        assert_eq!(read(&good).unwrap(), 50);
        let (mut worst, mut refused, mut total) = (0, 0, 0);
        for at in (0..good.len() - 8).step_by(4) {
            for claim in CLAIMS {
                let mut bytes = good.clone();
                bytes[at..at + 8].copy_from_slice(&claim.to_le_bytes());
                let before = USED.load(Relaxed);
                PEAK.store(before, Relaxed);
                refused += usize::from(read(&bytes).is_err());
                let peak = PEAK.load(Relaxed) - before;
                assert!(peak <= ALLOWED, "{codec:?}: {claim} at byte {at} takes {peak} bytes");
                (worst, total) = (worst.max(peak), total + 1);
            }
        }
        assert!(refused > total / 20, "{codec:?}: {refused} of {total} refused");
        println!("{codec:?}: {total} streams of {} bytes, {refused} refused, at most {worst} bytes", good.len());
    }
}

#[test]
fn a_small_body_does_not_become_a_large_one() {
    let _turn = TURN.lock().unwrap();
    // 4 GiB of zeros by the length before the frame, and by the frame itself.
    for claim in [1_i64 << 32, 1 << 62] {
        let mut bytes = stream(Some(CompressionType::ZSTD));
        let magic = 0xfd2f_b528_u32.to_le_bytes();
        let at = bytes.windows(4).position(|word| word == magic).unwrap() - 8;
        bytes[at..at + 8].copy_from_slice(&claim.to_le_bytes());
        let before = USED.load(Relaxed);
        PEAK.store(before, Relaxed);
        let refused = read(&bytes).unwrap_err();
        assert!(matches!(refused, IpcError::TooLarge { limit: LIMIT }), "{refused}");
        assert!(PEAK.load(Relaxed) - before < 4 << 20);
    }
}
