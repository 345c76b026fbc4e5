use super::*;
use arrow::array::{
    BinaryViewArray, BooleanArray, Decimal128Array, DictionaryArray, FixedSizeBinaryArray, Float64Array, Int64Array,
    ListArray, NullArray, RunArray, StringArray, StringViewArray, StructArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Float64Type, Int32Type, Schema};
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{DictionaryHandling, IpcWriteOptions, StreamWriter};

const CODECS: [Option<CompressionType>; 3] = [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)];

fn batch(from: i64, rows: i64) -> RecordBatch {
    let values = || from..from + rows;
    let text = |i: i64| (i % 3 > 0).then(|| format!("a text that is longer than a view holds {i}"));
    let lists = values().map(|i| (i % 4 > 0).then(|| (0..i % 5).map(|x| Some(x as f64)).collect::<Vec<_>>()));
    let ends: Vec<i32> = (1..=rows as i32).collect();
    let runs = RunArray::<Int32Type>::try_new(&ends.into(), &StringArray::from_iter(values().map(text))).unwrap();
    let bytes: Vec<[u8; 16]> = values().map(|i| (i as u128).to_le_bytes()).collect();
    let number: ArrayRef = Arc::new(Int64Array::from_iter(values().map(|i| (i % 7 > 0).then_some(i))));
    let within = StructArray::from(vec![(Arc::new(Field::new("n", DataType::Int64, true)), number.clone())]);
    let codes = values().map(|i| ["x", "y", "z"][i as usize % 3]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("number", number),
        ("flag", Arc::new(BooleanArray::from_iter(values().map(|i| (i % 5 > 0).then_some(i % 2 == 0))))),
        ("price", Arc::new(Decimal128Array::from_iter_values(values().map(i128::from)))),
        ("time", Arc::new(TimestampMicrosecondArray::from_iter_values(values()).with_timezone("UTC"))),
        ("text", Arc::new(StringArray::from_iter(values().map(text)))),
        ("view", Arc::new(StringViewArray::from_iter(values().map(text)))),
        ("bytes", Arc::new(BinaryViewArray::from_iter(values().map(|i| text(i).map(String::into_bytes))))),
        ("uuid", Arc::new(FixedSizeBinaryArray::try_from_iter(bytes.iter()).unwrap())),
        ("list", Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(lists))),
        ("struct", Arc::new(within)),
        ("symbol", Arc::new(codes.collect::<DictionaryArray<Int32Type>>())),
        ("runs", Arc::new(runs)),
        ("nothing", Arc::new(NullArray::new(rows as usize))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true))).unwrap()
}

fn stream(batches: &[RecordBatch], options: IpcWriteOptions) -> Vec<u8> {
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    writer.into_inner().unwrap()
}

fn compressed(codec: Option<CompressionType>) -> IpcWriteOptions {
    IpcWriteOptions::default().try_with_compression(codec).unwrap()
}

/// Returns all batches of a stream that is read in chunks, and the bytes that were reserved.
fn read(bytes: &[u8], piece: usize, limits: IpcLimits) -> Result<(Vec<RecordBatch>, usize), IpcError> {
    let (mut decoder, mut batches, mut reserved) = (IpcDecoder::new(limits), Vec::new(), 0);
    for piece in bytes.chunks(piece) {
        let mut buffer = Buffer::from(piece);
        let mut reserve = |bytes| {
            reserved += bytes;
            Ok::<(), IpcError>(())
        };
        while let Some(batch) = decoder.decode(&mut buffer, &mut reserve)? {
            batches.push(batch);
        }
    }
    decoder.finish()?;
    Ok((batches, reserved))
}

#[test]
fn streams_come_back_wherever_they_are_cut() {
    let batches = [batch(0, 1000), batch(1000, 77)];
    for codec in CODECS {
        let bytes = stream(&batches, compressed(codec));
        for piece in [1, 13, 4096, bytes.len()] {
            let (found, _) = read(&bytes, piece, IpcLimits::none()).unwrap();
            assert_eq!(found, batches, "{codec:?}, pieces of {piece} bytes");
        }
        assert!(read(&bytes[..bytes.len() / 2], 4096, IpcLimits::none()).is_err(), "{codec:?}");
    }
}

#[test]
fn a_dictionary_grows_by_deltas_and_is_counted_each_time() {
    let symbols = |values: &[&str]| -> RecordBatch {
        let codes = (0..values.len() as i32).collect::<Vec<_>>();
        let values: ArrayRef = Arc::new(StringArray::from(values.to_vec()));
        let column: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::new(codes.into(), values));
        RecordBatch::try_from_iter([("s", column)]).unwrap()
    };
    let batches = [symbols(&["a", "b"]), symbols(&["a", "b", "c"]), symbols(&["a", "b", "c", "d"])];
    let bytes = stream(&batches, IpcWriteOptions::default().with_dictionary_handling(DictionaryHandling::Delta));
    let (found, reserved) = read(&bytes, bytes.len(), IpcLimits::none()).unwrap();
    assert_eq!(found, batches);
    assert!(reserved > 0);
}

#[test]
fn decompressed_bytes_are_limited_and_reserved_before() {
    let zeros: ArrayRef = Arc::new(Int64Array::from(vec![0; 1 << 20]));
    let batch = RecordBatch::try_from_iter([("n", zeros)]).unwrap();
    for codec in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
        let bytes = stream(std::slice::from_ref(&batch), compressed(Some(codec)));
        assert!(bytes.len() < 100 << 10, "{codec:?}: {}", bytes.len());
        let limits = |decompressed_bytes_max| IpcLimits { decompressed_bytes_max, ratio_max: usize::MAX };
        let (_, reserved) = read(&bytes, bytes.len(), limits(8 << 20)).unwrap();
        assert_eq!(reserved, 8 << 20, "{codec:?}");
        let refused = read(&bytes, bytes.len(), limits((8 << 20) - 1)).unwrap_err();
        assert_eq!(refused, IpcError::TooLarge { limit: (8 << 20) - 1 });
        let mut decoder = IpcDecoder::new(limits(usize::MAX));
        let refused = decoder.decode(&mut Buffer::from(&bytes[..]), &mut |bytes| {
            if bytes > 1 << 20 { Err(IpcError::malformed("no memory")) } else { Ok(()) }
        });
        assert_eq!(refused.unwrap_err(), IpcError::malformed("no memory"));
    }
}

#[test]
fn past_the_first_bytes_the_ratio_is_limited() {
    let zeros: ArrayRef = Arc::new(Int64Array::from(vec![0; 1 << 20]));
    let batch = RecordBatch::try_from_iter([("n", zeros)]).unwrap();
    let bytes = stream(&vec![batch; 9], compressed(Some(CompressionType::ZSTD)));
    let limits = |ratio_max| IpcLimits { decompressed_bytes_max: usize::MAX, ratio_max };
    assert!(bytes.len() < 64 << 10, "{}", bytes.len());
    assert!(matches!(read(&bytes, bytes.len(), limits(1000)), Err(IpcError::TooLarge { .. })));
    assert_eq!(read(&bytes, bytes.len(), limits(usize::MAX)).unwrap().0.len(), 9);
}

#[test]
fn numbers_that_the_body_does_not_hold_are_refused() {
    let numbers: ArrayRef = Arc::new(Float64Array::from(vec![1.0; 64]));
    let nothing: ArrayRef = Arc::new(NullArray::new(64));
    let batch = RecordBatch::try_from_iter([("n", numbers), ("x", nothing)]).unwrap();
    let bytes = stream(&[batch], IpcWriteOptions::default());
    let at: Vec<usize> =
        (0..bytes.len() - 8).step_by(8).filter(|at| bytes[*at..at + 8] == 64_i64.to_le_bytes()).collect();
    assert!(at.len() >= 4, "rows of the batch, of two nodes, nulls: {at:?}");
    for claim in [-1, 1 << 31, 1 << 60, i64::MAX] {
        let mut all = bytes.clone();
        for &at in &at {
            let mut one = bytes.clone();
            one[at..at + 8].copy_from_slice(&i64::to_le_bytes(claim));
            all[at..at + 8].copy_from_slice(&i64::to_le_bytes(claim));
            assert!(read(&one, one.len(), IpcLimits::none()).is_err(), "{claim} at {at}");
        }
        assert!(read(&all, all.len(), IpcLimits::none()).is_err(), "{claim} everywhere");
    }
}

#[test]
fn buffers_of_a_message_may_not_share_bytes() {
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![7; 100]));
    let batch = RecordBatch::try_from_iter([("a", numbers.clone()), ("b", numbers)]).unwrap();
    let bytes = stream(&[batch], IpcWriteOptions::default());
    // The offsets of the two columns: NULLs have no bytes, each column has 800 and is padded to 832.
    let mut shared = bytes.clone();
    let second = (0..bytes.len() - 16)
        .step_by(8)
        .find(|at| bytes[*at..at + 16] == [832_i64.to_le_bytes(), 800_i64.to_le_bytes()].concat()[..]);
    shared[second.unwrap()..second.unwrap() + 8].copy_from_slice(&0_i64.to_le_bytes());
    // Twice 800 bytes fit the body of 1,664, so only the sum of all buffers limits sharing.
    assert!(read(&shared, shared.len(), IpcLimits::none()).is_ok());
    let wide = (0..40).map(|i| (format!("c{i}"), Arc::new(Int64Array::from(vec![7; 100])) as ArrayRef));
    let bytes = stream(&[RecordBatch::try_from_iter(wide).unwrap()], IpcWriteOptions::default());
    let mut shared = bytes.clone();
    for at in (0..bytes.len() - 16).step_by(8) {
        let (offset, length) = (bytes[at..at + 8].try_into().unwrap(), bytes[at + 8..at + 16].try_into().unwrap());
        if i64::from_le_bytes(length) == 800 && i64::from_le_bytes(offset) % 832 == 0 {
            shared[at..at + 8].copy_from_slice(&0_i64.to_le_bytes());
            shared[at + 8..at + 16].copy_from_slice(&(40 * 832_i64).to_le_bytes());
        }
    }
    let refused = read(&shared, shared.len(), IpcLimits::none()).unwrap_err();
    assert_eq!(refused, IpcError::malformed("buffers of a message overlap"));
}

#[test]
fn what_is_no_stream_is_refused() {
    let bytes = stream(&[batch(0, 3)], IpcWriteOptions::default());
    let refused = |bytes: &[u8]| read(bytes, bytes.len().max(1), IpcLimits::none()).unwrap_err().to_string();
    assert_eq!(refused(&bytes[..bytes.len() - 9]), "the stream ends inside a message");
    assert_eq!(refused(&[&bytes[..], b"x"].concat()), "bytes follow the end of the stream");
    let long = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0x7f];
    assert_eq!(refused(&long), "the description of a message has 2130706432 bytes; at most 16777216 are allowed");
    let rows_first = Schema::new(vec![Field::new("a", DataType::Int64, true)]);
    let schema_bytes = stream(&[RecordBatch::new_empty(Arc::new(rows_first))], IpcWriteOptions::default());
    let length = u32::from_le_bytes(schema_bytes[4..8].try_into().unwrap()) as usize + 8;
    assert_eq!(refused(&schema_bytes[length..]), "rows come before the schema");
}
