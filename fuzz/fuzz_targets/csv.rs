//! Any bytes to the CSV reader: it must not panic, and rows and bad records may depend neither on where the text is cut
//! nor on whether fields are read the short ways.
//!
//! The first three bytes of an input say how: delimiter and what bad records do, the bytes that come at a time, the types
//! of the columns. The rest is CSV.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidalite_ingest::csv::{
    CsvColumn, CsvFormat, CsvParser, DateOrder, Known, Nulls, NumberFormat, OnBad, Parsed, Splitter, Thousands,
    TimeFormat, detect,
};
use tidalite_types::{Batch, ColumnType, TimeUnit, Values, match_values};

const DELIMITERS: [u8; 8] = *b",;\t| 1:.";
const TYPES: [ColumnType; 16] = [
    ColumnType::Timestamp(TimeUnit::Micros),
    ColumnType::Symbol,
    ColumnType::Double,
    ColumnType::Varchar,
    ColumnType::Long,
    ColumnType::Timestamp(TimeUnit::Nanos),
    ColumnType::Float,
    ColumnType::Int,
    ColumnType::Decimal { precision: 12, scale: 3 },
    ColumnType::Boolean,
    ColumnType::Timestamp(TimeUnit::Millis),
    ColumnType::Date,
    ColumnType::Uuid,
    ColumnType::Ipv4,
    ColumnType::Json,
    ColumnType::Byte,
];
fuzz_target!(|input: &[u8]| {
    let [how, step, types, text @ ..] = input else { return };
    let step = usize::from(*step) + 1;
    let on_bad = [OnBad::Skip, OnBad::Null, OnBad::Abort, OnBad::Skip][usize::from(how >> 3 & 3)];
    for is_whole in [true, false] {
        let known = Known { delimiter: (how & 64 > 0).then_some(DELIMITERS[usize::from(how & 7)]), ..Known::default() };
        if let Ok(found) = detect(text, is_whole, &known) {
            same(&text[found.header_bytes..], &found.format, &found.columns, found.timestamp.as_deref(), step, on_bad);
        }
    }
    let format = CsvFormat {
        delimiter: DELIMITERS[usize::from(how & 7)],
        ignores_extra: how & 32 > 0,
        comment: (step & 1 > 0).then_some(b'#'),
        nulls: if step & 2 > 0 { Nulls::usual() } else { Nulls::default() },
        ..CsvFormat::default()
    };
    let (from, count) = (usize::from(types >> 4), usize::from(types & 15) + 1);
    let column = |i: usize| CsvColumn {
        name: format!("c{i}"),
        column_type: Some(TYPES[(from + i) % TYPES.len()]),
        times: [None, Some(TimeFormat::Auto(None)), Some(TimeFormat::Auto(Some(DateOrder::DayFirst)))]
            [(from + step) % 3]
            .clone(),
        numbers: NumberFormat {
            has_decimal_comma: step & 4 > 0,
            thousands: if step & 8 > 0 { Thousands::Point } else { Thousands::None },
        },
        added_to: None,
    };
    let columns: Vec<CsvColumn> = (0..count).map(column).collect();
    let is_time = |c: &&CsvColumn| matches!(c.column_type, Some(ColumnType::Timestamp(_)));
    let designated = columns.iter().find(is_time).filter(|_| how & 128 > 0).map(|c| c.name.as_str());
    same(text, &format, &columns, designated, step, on_bad);
});

fn same(text: &[u8], format: &CsvFormat, columns: &[CsvColumn], designated: Option<&str>, step: usize, on_bad: OnBad) {
    let parser = || CsvParser::new(format, "t", columns, designated, 7);
    let mut whole = Outcome::default();
    whole.parse(&mut parser(), text, on_bad);
    let mut general = Outcome::default();
    general.parse(&mut parser().without_short_ways(), text, on_bad);
    assert_eq!(whole, general, "the short ways");
    let (mut pieces, mut parser, mut splitter) = (Outcome::default(), parser(), Splitter::new(format));
    let mut held = Vec::new();
    for bytes in text.chunks(step) {
        held.extend_from_slice(bytes);
        let end = splitter.split(&held);
        assert!(end == 0 || held[end - 1] == b'\n');
        pieces.parse(&mut parser, &held[..end], on_bad);
        held.drain(..end);
    }
    pieces.parse(&mut parser, &held, on_bad);
    assert_eq!(whole, pieces, "the cuts");
}

/// What was made of a text so far.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    rows: Vec<String>,
    bad: Vec<String>,
    lines: u64,
    has_ended: bool,
}

impl Outcome {
    fn parse(&mut self, parser: &mut CsvParser, text: &[u8], on_bad: OnBad) {
        let mut at = 0;
        while at < text.len() && !self.has_ended {
            let Parsed { batch, bytes, lines, bad } = parser.parse(&text[at..], on_bad);
            assert!(bytes > 0 && (bytes + at == text.len() || !bad.is_empty()));
            self.has_ended = on_bad == OnBad::Abort && !bad.is_empty();
            for mut record in bad {
                record.line += self.lines;
                self.bad.push(format!("{record:?}"));
            }
            (0..batch.rows).for_each(|row| self.rows.push(row_of(&batch, row)));
            self.lines += lines;
            at += bytes;
        }
    }
}

fn row_of(batch: &Batch, row: usize) -> String {
    let mut text = batch.timestamps.as_ref().map_or(String::new(), |t| t.values[row].to_string());
    for column in &batch.columns {
        assert_eq!(column.column.len(), batch.rows);
        text += &match (&column.column.values, column.column_type) {
            _ if !column.column.is_valid(row) => ", NULL".to_owned(),
            (Values::U32(ids), ColumnType::Symbol) => {
                format!(", {:?}", std::str::from_utf8(column.dictionary.get(ids[row] as usize)).expect("UTF-8"))
            }
            // Bits, because zeros and NaNs have signs.
            (Values::F64(v), _) => format!(", {:x}", v[row].to_bits()),
            (Values::F32(v), _) => format!(", {:x}", v[row].to_bits()),
            (values, _) => match_values!(
                values,
                v => format!(", {:?}", v[row]),
                Bit(bits) => format!(", {}", bits.get(row)),
                Views(views) => format!(", {:?}", std::str::from_utf8(views.get(row)).expect("UTF-8")),
            ),
        };
    }
    text
}
