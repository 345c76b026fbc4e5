//! Verification of backups: every file of a destination's backups exists, with the same length and checksum.
//!
//! Input: a destination. Output: the names of missing and damaged files. Nothing is changed.

use super::list::{Item, backups};
use crate::Result;
use crate::check::GoOn;
use crate::destination::{Destination, PIECE_BYTES};
use std::collections::BTreeMap;
use std::path::Path;
use tidalite_storage::Error;

/// The result of [`verify_backups`].
#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    /// Backups in the destination.
    pub backups: u64,
    /// Files of these backups, each counted once.
    pub files: u64,
    /// Bytes of the valid files.
    pub bytes: u64,
    /// One line for each missing or damaged file, with the first backup that needs the file.
    pub problems: Vec<String>,
}

/// Reads every file that a backup in the destination needs.
///
/// # Errors
/// Fails if the destination cannot be read, or the list of a backup is damaged.
pub fn verify_backups(at: &dyn Destination, go_on: GoOn<'_>) -> Result<VerifyReport> {
    let all = backups(at)?;
    let mut needed: BTreeMap<&str, (&Item, &str)> = BTreeMap::new();
    for list in &all {
        for item in &list.items {
            needed.entry(&item.file).or_insert((item, &list.name));
        }
    }
    let total = needed.values().map(|(item, _)| item.bytes).sum();
    let mut report = VerifyReport { backups: all.len() as u64, files: needed.len() as u64, ..VerifyReport::default() };
    for (item, backup) in needed.values() {
        let done = report.bytes;
        match problem_of(at, item, &mut |bytes| go_on(done + bytes, total))? {
            None => report.bytes += item.bytes,
            Some(problem) => report.problems.push(format!("{} {problem}; backup {backup} needs it", item.file)),
        }
    }
    Ok(report)
}

/// Returns the problem of a file of a backup, or `None`. `go_on` receives the number of bytes read.
pub(super) fn problem_of(
    at: &dyn Destination,
    item: &Item,
    go_on: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<Option<String>> {
    let io = |e| Error::io("read", Path::new(&item.file), e);
    if let Some(problem) = problem_of_length(at, item)? {
        return Ok(Some(problem));
    }
    let file = at.open(&item.file)?;
    let (mut crc, mut done, mut buffer) = (0, 0, vec![0; PIECE_BYTES.min(item.bytes as usize)]);
    while done < item.bytes {
        let piece = (item.bytes - done).min(PIECE_BYTES as u64) as usize;
        file.read_exact_at(&mut buffer[..piece], done).map_err(io)?;
        crc = crc32c::crc32c_append(crc, &buffer[..piece]);
        done += piece as u64;
        go_on(done)?;
    }
    Ok((crc != item.crc).then(|| "does not match its checksum".to_owned()))
}

/// Returns the problem of a file of a backup without reading the file: missing, or another length.
pub(super) fn problem_of_length(at: &dyn Destination, item: &Item) -> Result<Option<String>> {
    let Some(file) = at.find(&item.file)? else { return Ok(Some("is missing".to_owned())) };
    let len = file.len().map_err(|e| Error::io("read", Path::new(&item.file), e))?;
    Ok((len != item.bytes).then(|| format!("has {len} bytes instead of {}", item.bytes)))
}
