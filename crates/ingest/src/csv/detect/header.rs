//! Header detection: decides if the first record is a header, and returns the column names.

use super::super::CsvColumn;
use super::super::Nulls;
use super::known::Known;
use super::records::{Record, RecordFields};
use super::value::{SHORT_BOOLEAN, is_name, value_of};
use crate::{Error, Result};
use std::collections::{HashMap, HashSet};
use tidalite_types::schema::{column_name_problem, fold_name, same_name};
use tidalite_types::{ColumnType, NAME_BYTES_MAX};

/// Number of records that are compared with the first one.
const COMPARED_RECORDS: usize = 2_000;

/// Largest number of words of a text that may be a name.
const NAME_WORDS_MAX: usize = 4;

/// Confidence that the first record is a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Evidence {
    /// The record is a row.
    None,
    /// All fields are text; the fields of the first record are distinct and do not occur in later records.
    Weak,
    /// The record names columns of the table, or values that are not text are below texts.
    Strong,
}

/// Names and types of known columns: those of the user, then those of the table.
pub(super) struct Types(HashMap<String, (String, ColumnType)>);

impl Types {
    pub(super) fn new(known: &Known) -> Types {
        let mut types = HashMap::new();
        let said = known.columns.iter().map(|c| (c, false));
        for ((name, column_type), is_of_table) in said.chain(known.table.iter().flatten().map(|c| (c, true))) {
            let entry = types.entry(fold_name(name)).or_insert_with(|| (String::new(), *column_type));
            // The spelling of the file is used, unless the table has another.
            if is_of_table {
                entry.0.clone_from(name);
            }
        }
        Types(types)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(&fold_name(name))
    }

    pub(super) fn column(&self, name: &str) -> Option<CsvColumn> {
        let (spelled, column_type) = self.0.get(&fold_name(name))?;
        let name = if spelled.is_empty() { name } else { spelled };
        Some(CsvColumn { name: name.to_owned(), column_type: Some(*column_type), ..CsvColumn::default() })
    }
}

/// Returns the text of a field that is not NULL in a column without text.
pub(super) fn text_of<'a>(record: &'a Record, column: usize, nulls: &Nulls) -> Option<&'a str> {
    let (text, _) = record.fields.get(column)?;
    if text.is_empty() || nulls.has_beside_values(text.trim_ascii()) {
        return None;
    }
    std::str::from_utf8(text).ok().map(str::trim).filter(|t| !t.is_empty())
}

/// Returns the texts of a first record that may be names, if none is a value.
pub(super) fn names_in(first: &RecordFields) -> Option<Vec<&str>> {
    let texts = first.iter().filter(|(text, _)| !text.is_empty());
    let names: Option<Vec<&str>> = texts.map(|(text, _)| std::str::from_utf8(text).ok().map(str::trim)).collect();
    names.filter(|names| !names.is_empty() && names.iter().all(|name| is_name(name)))
}

/// Returns the evidence for a header.
///
/// For an existing table, a first record is a header only if its fields are names of the table's columns: all, most, or
/// the designated timestamp. A column without a name is ignored (pandas writes its index this way).
pub(super) fn evidence(records: &[Record], types: &Types, known: &Known, nulls: &Nulls) -> Evidence {
    let Some((first, rest)) = records.split_first() else { return Evidence::None };
    let Some(names) = names_in(&first.fields) else { return Evidence::None };
    let are_different = names.iter().map(|name| fold_name(name)).collect::<HashSet<_>>().len() == names.len();
    let has_names = if known.table.is_some() || !known.columns.is_empty() {
        let is_part = |name: &str| known.date_and_time.iter().any(|(d, t)| same_name(d, name) || same_name(t, name));
        let found = names.iter().filter(|name| types.has(name) || is_part(name)).count();
        let has_time = known.timestamp.as_ref().is_some_and(|time| names.iter().any(|name| same_name(name, time)));
        are_different && (2 * found > names.len() || has_time || (found > 0 && !may_be_row(first, known)))
    } else {
        false
    };
    if has_names {
        return Evidence::Strong;
    }
    if known.table.is_some() {
        return Evidence::None;
    }
    let rest = &rest[..rest.len().min(COMPARED_RECORDS)];
    let has_name = |i: &usize| text_of(first, *i, nulls).is_some();
    let is_typed = |i: usize| {
        let mut texts = rest.iter().filter_map(|r| text_of(r, i, nulls)).peekable();
        texts.peek().is_some() && texts.fold(u32::MAX, |bits, text| bits & value_of(text).bits) & !SHORT_BOOLEAN != 0
    };
    if (0..first.fields.len()).filter(has_name).any(is_typed) {
        return Evidence::Strong;
    }
    let comes_again = |i: usize| rest.iter().any(|r| text_of(r, i, nulls) == text_of(first, i, nulls));
    let is_header = are_different
        && names.iter().all(|name| looks_like_name(name))
        && !(0..first.fields.len()).filter(has_name).any(comes_again);
    if is_header { Evidence::Weak } else { Evidence::None }
}

/// Returns true if a record could be a row: the field of the designated timestamp could be a time.
fn may_be_row(first: &Record, known: &Known) -> bool {
    let (Some(table), Some(time)) = (&known.table, &known.timestamp) else { return true };
    let place = table.iter().position(|(name, _)| same_name(name, time));
    let text = place.and_then(|place| first.fields.get(place));
    text.is_some_and(|(text, _)| std::str::from_utf8(text).is_ok_and(|text| value_of(text.trim()).bits != 0))
}

/// Returns true if a string consists of a few words, as column names do.
fn looks_like_name(text: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || " _-.()[]%/".contains(c);
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.chars().all(is_part)
        && text.split(' ').count() <= NAME_WORDS_MAX
        && text.len() <= NAME_BYTES_MAX
}

/// Makes column names valid and unique: invalid characters become underscores, duplicates get a number.
pub(super) fn header_names(first: &RecordFields) -> Vec<String> {
    let mut taken = HashSet::with_capacity(first.len());
    // The next number to try for each name.
    let mut next: HashMap<String, usize> = HashMap::new();
    let mut names = Vec::with_capacity(first.len());
    for (i, (text, _)) in first.iter().enumerate() {
        let plain = header_name(text, i);
        let mut name = plain.clone();
        if !taken.insert(fold_name(&name)) {
            let number = next.entry(fold_name(&plain)).or_insert(2);
            loop {
                let suffix = format!("_{number}");
                name = shortened(&plain, NAME_BYTES_MAX - suffix.len()).to_owned() + &suffix;
                *number += 1;
                if taken.insert(fold_name(&name)) {
                    break;
                }
            }
        }
        names.push(name);
    }
    names
}

fn header_name(text: &[u8], column: usize) -> String {
    let text = String::from_utf8_lossy(text);
    let fits = |c: char| column_name_problem(c.encode_utf8(&mut [0; 4])).is_none();
    let name: String = text.trim().chars().map(|c| if fits(c) { c } else { '_' }).collect();
    if name.is_empty() { format!("c{column}") } else { shortened(&name, NAME_BYTES_MAX).to_owned() }
}

/// Truncates a name to a number of bytes, at a character boundary.
fn shortened(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// Returns column names for a file whose first record is a row.
///
/// # Errors
/// The record has another number of fields than the columns that were given, or that the table has.
pub(super) fn given_names(width: usize, known: &Known) -> Result<Vec<String>> {
    let names = |columns: &[(String, ColumnType)]| columns.iter().map(|(n, _)| n.clone()).collect();
    if !known.columns.is_empty() {
        if known.columns.len() == width {
            return Ok(names(&known.columns));
        }
        let message = format!("{} columns were given and the first record has {width} fields", known.columns.len());
        return Err(Error::invalid(message));
    }
    match &known.table {
        Some(columns) if columns.len() == width => Ok(names(columns)),
        Some(columns) => Err(Error::invalid(format!(
            "the table has {} columns and the first record, which does not name columns of it, has {width} fields; if it \
             has the names, say that there is a header",
            columns.len()
        ))),
        None => Ok((0..width).map(|i| format!("c{i}")).collect()),
    }
}
