//! Any bytes to the line parser: it must not panic, and neither prediction nor the cut of the input may change what
//! it makes of them.
//!
//! The first byte of an input is where it is cut (in 256ths of its length), the rest is line protocol.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidalite_ingest::line::{LineError, LineOptions, LineParser};

const NOW_NS: i64 = 1_700_000_000_123_456_789;

fuzz_target!(|input: &[u8]| {
    let Some((&cut, text)) = input.split_first() else { return };
    let options =
        LineOptions { line_bytes_max: 4096, cache_bytes_max: 1 << 14, series_after_lines: 0, ..LineOptions::default() };
    let plain = outcome(&mut LineParser::new(LineOptions { predict: false, ..options.clone() }), text, text.len());
    let mut quick = LineParser::new(options);
    assert_eq!(outcome(&mut quick, text, text.len()), plain);
    // Once more, with the shapes learnt and the input cut.
    quick.reset();
    assert_eq!(outcome(&mut quick, text, text.len() * usize::from(cut) / 256), plain);
});

/// What the parser makes of the text: its batches, also those before an error, and the error.
fn outcome(parser: &mut LineParser, text: &[u8], cut: usize) -> (String, Option<LineError>) {
    let error = feed(parser, text, cut).err();
    let batches = parser.take();
    for batch in &batches {
        for column in &batch.columns {
            assert_eq!(column.column.len(), batch.rows);
        }
    }
    // As text, because a NaN is not equal to itself.
    (format!("{batches:?}"), error)
}

fn feed(parser: &mut LineParser, text: &[u8], cut: usize) -> Result<(), LineError> {
    let used = parser.parse(&text[..cut], NOW_NS)?;
    parser.finish(&text[used..], NOW_NS)
}
