//! The small file that completes a backup by listing its content.
//!
//! A text file with a line per item; the last line is a checksum of the previous lines. All listed files were written
//! before.

use crate::destination::{BACKUPS, Destination};
use crate::{Error, ErrorKind, Result};
use std::fmt::Write;
use tidalite_types::{SegmentId, TableId, Txn};

const FIRST_LINE: &str = "tidalite backup 1";

#[derive(Clone, Debug, PartialEq)]
pub struct BackupList {
    pub name: String,
    /// Identity of the database.
    pub database: String,
    /// The last commit of the backup.
    pub txn: Txn,
    /// Start of the backup in microseconds since 1970-01-01 UTC.
    pub time: i64,
    /// The previous backup of the same database at the destination.
    pub previous: Option<String>,
    pub tables: u64,
    pub rows: u64,
    pub(crate) items: Vec<Item>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Item {
    pub what: What,
    pub bytes: u64,
    /// CRC32C of the whole file.
    pub crc: u32,
    /// Name of the file in the destination.
    pub file: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Manifest,
    /// The rows that were not in segments.
    Rows,
    Symbols(TableId),
    Segment(TableId, SegmentId),
    /// The first and the last of its commits.
    Log(Txn, Txn),
}

impl BackupList {
    /// Returns the bytes of all required files, including shared files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.items.iter().map(|item| item.bytes).sum()
    }

    /// Returns the first of the commits up to [`BackupList::txn`] in its part of the log.
    #[must_use]
    pub fn log_from(&self) -> Option<Txn> {
        self.items.iter().find_map(|item| match item.what {
            What::Log(first, _) => Some(first),
            _ => None,
        })
    }

    pub(crate) fn to_text(&self) -> String {
        let mut text = format!("{FIRST_LINE}\nname {}\ndatabase {}\n", self.name, self.database);
        let previous = self.previous.as_deref().unwrap_or("-");
        let BackupList { txn, time, tables, rows, .. } = self;
        let _ = write!(text, "txn {txn}\ntime {time}\nprevious {previous}\ntables {tables}\nrows {rows}\n");
        for Item { what, bytes, crc, file } in &self.items {
            let what = match what {
                What::Manifest => "manifest".to_owned(),
                What::Rows => "staged".to_owned(),
                What::Symbols(table) => format!("symbols {table}"),
                What::Segment(table, segment) => format!("segment {table} {segment}"),
                What::Log(first, last) => format!("log {first} {last}"),
            };
            let _ = writeln!(text, "{what} {bytes} {crc:08x} {file}");
        }
        let crc = crc32c::crc32c(text.as_bytes());
        let _ = writeln!(text, "crc {crc:08x}");
        text
    }

    fn from_text(text: &str) -> Option<BackupList> {
        let body = &text[..text.trim_end().rfind("\ncrc ")? + 1];
        let crc = text.trim_end().rsplit(' ').next()?;
        if u32::from_str_radix(crc, 16).ok()? != crc32c::crc32c(body.as_bytes()) {
            return None;
        }
        let mut lines = body.lines();
        if lines.next()? != FIRST_LINE {
            return None;
        }
        let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned);
        let mut list = BackupList {
            name: field("name")?,
            database: field("database")?,
            txn: Txn(field("txn")?.parse().ok()?),
            time: field("time")?.parse().ok()?,
            previous: field("previous").map(|p| (p != "-").then_some(p))?,
            tables: field("tables")?.parse().ok()?,
            rows: field("rows")?.parse().ok()?,
            items: Vec::new(),
        };
        for line in lines {
            list.items.push(item(line)?);
        }
        Some(list)
    }
}

fn item(line: &str) -> Option<Item> {
    let mut words = line.split(' ');
    let kind = words.next()?;
    let mut number = || words.next()?.parse::<u64>().ok();
    let what = match kind {
        "manifest" => What::Manifest,
        "staged" => What::Rows,
        "symbols" => What::Symbols(TableId(number()? as u32)),
        "segment" => What::Segment(TableId(number()? as u32), SegmentId(number()?)),
        "log" => What::Log(Txn(number()?), Txn(number()?)),
        _ => return None,
    };
    let bytes = number()?;
    let crc = u32::from_str_radix(words.next()?, 16).ok()?;
    let file = words.next()?.to_owned();
    words.next().is_none().then_some(Item { what, bytes, crc, file })
}

/// Returns the backups in a destination, sorted by their last commit.
///
/// # Errors
/// Fails if the destination cannot be read, or a list in it is damaged.
pub fn backups(at: &dyn Destination) -> Result<Vec<BackupList>> {
    let mut all = Vec::new();
    for name in at.list(BACKUPS)?.iter().filter(|name| !name.ends_with(".part")) {
        let bytes = at.read(&format!("{BACKUPS}/{name}"))?;
        let list = std::str::from_utf8(&bytes).ok().and_then(BackupList::from_text);
        let list = list.filter(|list| list.name == *name).ok_or_else(|| {
            Error::new(ErrorKind::Corrupt, format!("backup {name} in {} does not match its checksum", at.name()))
        })?;
        all.push(list);
    }
    all.sort_by_key(|list| (list.txn, list.time));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_comes_back_and_any_changed_byte_is_seen() {
        let item = |what| Item { what, bytes: 77, crc: 0xdead_beef, file: "a/b-c".to_owned() };
        let list = BackupList {
            name: "n".to_owned(),
            database: "0123".to_owned(),
            txn: Txn(12),
            time: -5,
            previous: None,
            tables: 3,
            rows: 1_000,
            items: vec![
                item(What::Manifest),
                item(What::Rows),
                item(What::Symbols(TableId(3))),
                item(What::Segment(TableId(3), SegmentId(9))),
                item(What::Log(Txn(1), Txn(12))),
            ],
        };
        let text = list.to_text();
        assert_eq!(BackupList::from_text(&text), Some(list));
        for at in 0..text.len() - 1 {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let changed = String::from_utf8_lossy(&bytes).into_owned();
            assert_eq!(BackupList::from_text(&changed), None, "byte {at}: {changed}");
        }
        assert_eq!(BackupList::from_text(&text[..text.len() / 2]), None);
    }
}
