//! Detection of the format and the columns of a CSV file from its first records and from known options.
//!
//! Input: the beginning of a file, the options of the user and the schema of the table. Output: the format, the names,
//! types and notations of the columns, the designated timestamp. Options of the user take precedence, then the schema
//! of the table; everything else is detected from the records. The type of a column is the narrowest of BOOLEAN, LONG,
//! DOUBLE, DATE, TIMESTAMP, UUID, IPV4 that every value of the sample has, else SYMBOL if strings repeat, else VARCHAR.
//! Values with two meanings (`01/02/2024`) are an error.
//!
//! Reading order: [`known`] options; [`records`]; [`layout`] delimiter, quote, lines before the names; [`header`]
//! names; [`value`] candidate types of one string; [`column`] types and notations; [`designated`] the designated
//! timestamp and partitions.

mod column;
mod designated;
mod header;
mod known;
mod layout;
mod names;
mod records;
mod value;

use super::{CsvColumn, CsvFormat, Splitter, lines_of};
use crate::{Error, Result};
use column::Choice;
pub use column::Finding;
use header::{Evidence, Types};
pub use known::Known;
use names::list;
use records::Record;
use std::ops::Range;
use tidalite_types::PartitionBy;
use tidalite_types::schema::same_name;

/// Number of sampled records.
const RECORDS_MAX: usize = 20_000;
/// Number of sampled records if all types are known and the delimiter is a comma.
///
/// Decimal commas are rare in such files.
const KNOWN_RECORDS_MAX: usize = 1_000;

#[derive(Clone, Debug, PartialEq)]
pub struct Detected {
    pub format: CsvFormat,
    /// Bytes before the first row; `header_lines` are their lines.
    pub header_bytes: usize,
    pub header_lines: usize,
    /// The record with the names, within the header; empty if there is none.
    pub names: Range<usize>,
    pub columns: Vec<CsvColumn>,
    pub timestamp: Option<String>,
    /// Partition interval with about half a million rows or more per partition, estimated from the sample.
    pub partition_by: PartitionBy,
    pub sampled_rows: usize,
    /// One finding per column.
    pub findings: Vec<Finding>,
}

impl Detected {
    #[must_use]
    pub fn has_names(&self) -> bool {
        !self.names.is_empty()
    }
}

/// The header record of a sample, and the start of the first row.
struct Head {
    names: Vec<String>,
    /// Byte range of the record with the names; empty if there is no such record.
    range: Range<usize>,
    /// Byte offset of the first row.
    bytes: usize,
}

/// Detects the format of a file. `sample` is the beginning of the file, or all of it if `is_whole` is true.
///
/// # Errors
/// The sample is not CSV, contradicts known properties, or is ambiguous.
pub fn detect(sample: &[u8], is_whole: bool, known: &Known) -> Result<Detected> {
    let layout = layout::layout(sample, known)?;
    let (format, start) = (layout.format, layout.start);
    let whole = start + if is_whole { sample.len() - start } else { Splitter::new(&format).split(&sample[start..]) };
    if whole == start && whole < sample.len() {
        let message =
            format!("the first record, or a quoted field in it, is longer than {} bytes", sample.len() - start);
        return Err(Error::invalid(message).at_line(Some(1)));
    }
    let sample = &sample[..whole];
    let types = Types::new(known);
    let max = if known.is_complete { 2 } else { RECORDS_MAX };
    let mut records =
        records::records(sample, start, &format, if known.table.is_some() { max.min(KNOWN_RECORDS_MAX) } else { max })?;
    let Some(first) = records.first_mut() else { return Err(Error::invalid("there is no record")) };
    if layout.is_comment_header {
        layout::without_comment(first, sample);
    }
    let has_names = match known.has_header {
        Some(has_header) => has_header,
        None => layout.is_comment_header || header::evidence(&records, &types, known, &format.nulls) > Evidence::None,
    };
    let head = head(&records[0], has_names, start, known)?;
    let mut columns: Vec<CsvColumn> = head
        .names
        .iter()
        .map(|name| types.column(name).unwrap_or_else(|| CsvColumn { name: name.clone(), ..CsvColumn::default() }))
        .collect();
    let are_known = columns.iter().all(|c| c.column_type.is_some());
    let wants_more = known.table.is_some() && !known.is_complete && !(are_known && format.delimiter == b',');
    if wants_more && records.len() >= KNOWN_RECORDS_MAX {
        let behind = records.last().map_or(whole, |r| r.end);
        records.extend(records::records(sample, behind, &format, RECORDS_MAX - KNOWN_RECORDS_MAX).unwrap_or_default());
    }
    let rows: &[Record] = if known.is_complete { &[] } else { &records[usize::from(has_names)..] };
    detected(sample, &mut columns, format, &head, rows, known)
}

/// Returns true if a sample that is not the whole file has the two records that [`detect`] needs.
#[must_use]
pub fn has_rows(sample: &[u8], known: &Known) -> bool {
    let Ok(layout) = layout::layout(sample, known) else { return true };
    let whole = layout.start + Splitter::new(&layout.format).split(&sample[layout.start..]);
    // `detect` reports malformed records.
    records::records(&sample[..whole], layout.start, &layout.format, 2).map_or(true, |records| records.len() == 2)
}

fn head(first: &Record, has_names: bool, start: usize, known: &Known) -> Result<Head> {
    Ok(match has_names {
        true => Head { names: header::header_names(&first.fields), range: first.start..first.end, bytes: first.end },
        false => Head { names: header::given_names(first.fields.len(), known)?, range: start..start, bytes: start },
    })
}

fn detected(
    sample: &[u8],
    columns: &mut Vec<CsvColumn>,
    format: CsvFormat,
    head: &Head,
    rows: &[Record],
    known: &Known,
) -> Result<Detected> {
    let named = known.columns.iter().map(|(n, _)| n).chain(known.formats.iter().map(|(n, _)| n));
    let named = named.chain(known.numbers.iter().map(|(n, _)| n));
    let mut named = named.chain(known.date_and_time.iter().flat_map(|(date, time)| [date, time]));
    if let Some(missing) = named.find(|name| !columns.iter().any(|c| same_name(&c.name, name))) {
        return Err(Error::invalid(format!("column \"{missing}\" is not in the file, which has {}", list(columns))));
    }
    let mut choices = column::choose(columns, rows, &format, known)?;
    let timestamp = designated::designate(columns, &mut choices, rows, known, &format.nulls)?;
    column::check(columns, &choices, known)?;
    let findings = choices.into_iter().map(|Choice { finding, .. }| finding).collect();
    Ok(Detected {
        header_bytes: head.bytes,
        header_lines: lines_of(&sample[..head.bytes]) as usize,
        names: head.range.clone(),
        partition_by: designated::partition_by(columns, rows, timestamp.as_deref(), &format.nulls),
        columns: std::mem::take(columns),
        timestamp,
        sampled_rows: rows.len(),
        findings,
        format,
    })
}

#[cfg(test)]
mod tests;
