//! Any bytes as a stream of Arrow's IPC format: the decoder must not panic, must not allocate claimed memory, and must
//! return the same batches for every split of a stream. Batches are valid, and convert to rows of a table.
//!
//! The first byte of an input is the length of chunks; the rest is the stream.
#![no_main]

use arrow::array::{Array, RecordBatch};
use arrow::buffer::Buffer;
use libfuzzer_sys::fuzz_target;
use tidalite_frames::{Error, IpcDecoder, IpcError, IpcLimits, Pieces, RowOptions, RowPlan, Symbols};

/// Maximum bytes of decompressed columns.
const BYTES_MAX: usize = 1 << 20;
/// Maximum rows that are converted: a server reserves memory for rows first, this target does not.
const ROWS_MAX: usize = 10_000;

fuzz_target!(|input: &[u8]| {
    let [step, stream @ ..] = input else { return };
    let whole = read(stream, stream.len().max(1));
    let pieces = read(stream, usize::from(*step) + 1);
    assert_eq!(whole.1.is_some(), pieces.1.is_some(), "the cuts");
    assert_eq!(whole.0, pieces.0, "the cuts");
    convert(&whole.0);
});

/// The batches before the end or an error.
fn read(stream: &[u8], piece: usize) -> (Vec<RecordBatch>, Option<IpcError>) {
    let limits = IpcLimits { decompressed_bytes_max: BYTES_MAX, ratio_max: IpcLimits::RATIO_MAX };
    let (mut decoder, mut batches) = (IpcDecoder::new(limits), Vec::new());
    for piece in stream.chunks(piece) {
        let mut buffer = Buffer::from(piece);
        loop {
            match decoder.decode::<IpcError>(&mut buffer, &mut |_| Ok(())) {
                Ok(Some(batch)) => batches.push(batch),
                Ok(None) => break,
                Err(error) => return (batches, Some(error)),
            }
        }
    }
    let end = decoder.finish().err();
    for column in batches.iter().flat_map(RecordBatch::columns) {
        column.to_data().validate_full().expect("decoded columns are valid");
    }
    (batches, end)
}

fn convert(batches: &[RecordBatch]) {
    let Some(first) = batches.first() else { return };
    if batches.iter().map(RecordBatch::num_rows).sum::<usize>() > ROWS_MAX {
        return;
    }
    let options = RowOptions { table: "t".to_owned(), at: None, symbols: Symbols::Auto };
    let Ok(plan) = RowPlan::new(&first.schema(), &options, None) else { return };
    let mut rows = Pieces::new(plan, true);
    let keep = &mut |_| Ok::<(), Error>(());
    if batches.iter().try_for_each(|batch| rows.push(batch.clone(), keep)).is_ok() {
        drop(rows.finish(keep));
    }
}
